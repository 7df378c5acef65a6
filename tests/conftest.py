"""What all Python tests share."""

import gc
import os
from pathlib import Path

import processor_times
import pytest

# Eager PyTorch's threads wait for one another awake, which takes the processors from the other workers' tests. Read when
# torch is loaded, here and in the processes that tests start.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """While modules are loaded and tests made, most of what there is stays: to look for garbage takes a third of that time.

    Later collections pass over what is there then, and so does that at the end of each process forked from this one.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def kept_environment():
    """Takes back what a test, or what it calls, leaves in the environment: later tests and the server of programs see it."""
    before = dict(os.environ)
    yield
    for name in os.environ.keys() | before.keys():
        if name == "PYTEST_CURRENT_TEST" or os.environ.get(name) == before.get(name):
            continue
        if name in before:
            os.environ[name] = before[name]
        else:
            del os.environ[name]


@pytest.fixture(params=["always", "never"])
def interpretation(request):
    """Torch's kernels run the graphs, or programs: the kernels first, as a program that is there would serve both."""
    from torch_xla import _XLAC  # not before a test asks for it

    before = _XLAC._xla_get_interpretation()
    _XLAC._xla_set_interpretation(request.param)
    yield
    _XLAC._xla_set_interpretation(before)


@pytest.fixture(scope="session", autouse=True)
def torchrun_logs(tmp_path_factory):
    """Where torchrun keeps its logs: untold it makes a folder among the system's temporary ones, and leaves it there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PET_LOG_DIR", str(tmp_path_factory.mktemp("torchrun")))
        yield


def pytest_addoption(parser):
    parser.addoption(
        "--processor-times",
        type=int,
        default=0,
        metavar="N",
        help="show the N tests that took the most processor time, that of the processes they awaited included",
    )


def pytest_configure(config):
    if config.option.processor_times:
        config.pluginmanager.register(processor_times.Plugin(config.option.processor_times))


def pytest_sessionfinish(session, exitstatus):
    """`make pytest` asks several folders for what `-k` names, which need not be in each of them, but in one.

    The file that TORCH_XLA_PYTEST_MATCHED names then says that something was.
    """
    if hasattr(session.config, "workerinput"):
        return
    if exitstatus != pytest.ExitCode.NO_TESTS_COLLECTED:
        if matched := os.environ.get("TORCH_XLA_PYTEST_MATCHED"):
            Path(matched).touch()
    elif session.config.option.keyword:
        session.exitstatus = pytest.ExitCode.OK
