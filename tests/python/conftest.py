"""What the Python tests share: the engines, and running a program in a process of its own."""

import collections
import contextlib
import importlib.util
import os
import pathlib
import signal
import subprocess
import sys

import network_hosts
import pytest
from program_server import ProgramServer, ServedProgram

ROOT = pathlib.Path(__file__).parents[2]

# The engine checks its programs after each pass. It reads this when it is loaded, which is after this.
os.environ.setdefault("TORCH_XLA_VERIFY", "1")
# A shell's background jobs ignore interrupts, and what the tests start, and interrupt, would do so, too.
signal.signal(signal.SIGINT, signal.default_int_handler)


@contextlib.contextmanager
def without_interpreter():
    """No graph runs without a program, here and in processes started from here."""
    from torch_xla import _XLAC

    before = _XLAC._xla_get_interpretation()  # which reads the variable at its first call
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_XLA_INTERPRET", "never")
        _XLAC._xla_set_interpretation("never")
        yield
        _XLAC._xla_set_interpretation(before)


@pytest.fixture
def programs_only():
    """For a test of programs, and of their compilations."""
    with without_interpreter():
        yield


@pytest.fixture(scope="module")
def module_of_programs():
    """For a file of such tests."""
    with without_interpreter():
        yield


def pytest_addoption(parser):
    parser.addoption(
        "--draws", type=int, default=2 * 10**6, metavar="N", help="random numbers of each"
    )
    parser.addoption(
        "--index-programs", type=int, default=25, metavar="N", help="random programs of each seed"
    )


def pytest_collection_modifyitems(items):
    """Marks as slow what starts processes of its own, and puts files of many such tests first, lest the last one runs alone."""
    for item in items:
        if {"program", "network", "reports", "pod"} & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    slow = collections.Counter(item.path for item in items if item.get_closest_marker("slow"))
    items.sort(key=lambda item: -slow[item.path])


def engine_environment(engine: str) -> dict[str, str]:
    """The variables that choose an engine: ours, or XLA:CPU through its plugin."""
    if engine == "ours":
        return {"PJRT_DEVICE": "CPU"}
    specification = importlib.util.find_spec("lammps_jax_pjrt_cpu")
    if specification is None:
        pytest.skip("The package lammps-jax-pjrt-cpu is not installed.")
    (library,) = pathlib.Path(specification.submodule_search_locations[0]).rglob("*.so")
    return {"PJRT_DEVICE": "LIBRARY", "PJRT_LIBRARY_PATH": str(library)}


class Program:
    """Runs Python programs in processes of their own."""

    def __init__(self, folder: pathlib.Path, server: ProgramServer) -> None:
        self.folder = folder
        self._server = server

    @staticmethod
    def environment(**variables: str) -> dict[str, str]:
        """This process's, with the source tree importable and other variables added."""
        path = f"{ROOT}{os.pathsep}{ROOT / 'examples'}"
        return {**os.environ, "PYTHONPATH": path, **variables}

    def run(
        self,
        *arguments: str,
        timeout: float = 300,
        check: bool = True,
        anew: bool = False,
        **variables: str,
    ) -> subprocess.CompletedProcess[str]:
        """Runs `python ARGUMENTS`, for `anew` with nothing loaded; a failure shows what the program printed."""
        environment = self.environment(**variables)
        if not anew and self._server.serves(arguments, environment):
            result = self._server.run(arguments, self.folder, environment, timeout)
        else:
            result = subprocess.run(
                [sys.executable, *arguments],
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=timeout,
            )
        if check and result.returncode != 0:
            pytest.fail(f"exit status {result.returncode}\n{result.stdout}\n{result.stderr}")
        return result

    def start(
        self,
        *arguments: str,
        pipes: tuple[str, ...] = ("stdout",),
        new_session: bool = False,
        **variables: str,
    ) -> ServedProgram | subprocess.Popen[str]:
        """Starts `python ARGUMENTS`, with text to and from it through pipes."""
        environment = self.environment(**variables)
        if self._server.serves(arguments, environment):
            return self._server.start(arguments, self.folder, environment, pipes, new_session)
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=self.folder,
            env=environment,
            text=True,
            start_new_session=new_session,
            **dict.fromkeys(pipes, subprocess.PIPE),
        )

    def run_code(self, code: str, **options) -> subprocess.CompletedProcess[str]:
        """Runs a piece of code."""
        return self.run("-c", code, **options)


@pytest.fixture(scope="session")
def program_server():
    server = ProgramServer(Program.environment())
    yield server
    server.close()


@pytest.fixture
def program(tmp_path: pathlib.Path, program_server: ProgramServer) -> Program:
    return Program(tmp_path, program_server)


# What passes on one engine and one model has shown the boundary: the rest of the other engine is for `make test-all`.
@pytest.fixture(params=["ours", pytest.param("xla_cpu", marks=pytest.mark.exhaustive)])
def engine(request: pytest.FixtureRequest) -> dict[str, str]:
    return engine_environment(request.param)


@pytest.fixture
def device():
    """The xla device, with no work pending from other tests."""
    import torch_xla

    torch_xla.sync()
    return torch_xla.device()


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    """Two hosts of their own; skipped where no network namespaces can be made."""
    if reason := network_hosts.why_not():
        pytest.skip(reason)
    with network_hosts.network(tmp_path_factory.mktemp("network")) as made:
        yield made
