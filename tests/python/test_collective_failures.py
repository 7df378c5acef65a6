"""Processes that die, hang or diverge; worlds/failures.py holds what they do."""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

import pytest

SCRIPT = pathlib.Path(__file__).parent / "worlds" / "failures.py"
NETWORK = {"TORCH_XLA_SHARED_MEMORY": "0"}
SHARED_MEMORY = {"TORCH_XLA_SHARED_MEMORY": "1"}
TRANSPORTS = pytest.mark.parametrize(
    "transport", [SHARED_MEMORY, NETWORK], ids=["shared memory", "network"]
)


def line(mark: str) -> str:
    """The place in the script of the comment `# line: MARK`."""
    lines = SCRIPT.read_text().splitlines()
    return f"failures.py:{next(i for i, text in enumerate(lines, 1) if text.endswith(f'# line: {mark}'))}"


def errors(program, tmp_path: pathlib.Path, mode: str, size: int, **variables: str) -> list[str]:
    """What the ranks other than the last are told, within 30 seconds."""
    result = program.run(str(SCRIPT), mode, str(size), str(tmp_path), timeout=100, **variables)
    statuses = json.loads(result.stdout.splitlines()[-1])
    assert statuses[:-1] == [0] * (size - 1), result.stderr
    reports = [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in range(size - 1)]
    assert all(report["seconds"] < 30 for report in reports)
    return [report["error"] for report in reports]


@TRANSPORTS
@pytest.mark.parametrize("size", [2, 4])
def test_killed_in_a_collective(program, tmp_path, size, transport):
    for error in errors(program, tmp_path, "killed", size, **transport):
        assert f"rank {size - 1} has died" in error
        assert "all_reduce(sum) of f32[4000000]" in error
        assert line("killed") in error


def test_killed_outside_a_collective(program, tmp_path):
    for error in errors(program, tmp_path, "killed_outside", 2):
        assert "rank 1 has died" in error
        assert "all_reduce(sum) of f32[5]" in error
        # Where it was last, and where it is missed.
        assert line("begin") in error
        assert line("killed_outside") in error


# (tests/cpu/collective_failure_test.cc has every way to fail over every transport.)
@pytest.mark.parametrize(
    ("mode", "names", "transport"),
    [
        ("other_shape", ["all_gather of f32[5]", "all_gather of f32[7]"], SHARED_MEMORY),
        ("other_graph", ["all_reduce(max) of f32[8,8]", "all_gather of f32[8,8]"], NETWORK),
    ],
)
def test_diverging(program, tmp_path, mode, names, transport):
    for error in errors(program, tmp_path, mode, 2, **transport):
        assert "the ranks diverge" in error
        assert re.search(r"rank [01] runs .* but rank [01] runs ", error)
        for words in (*names, line(mode), line(f"{mode}, last")):
            assert words in error


@pytest.mark.parametrize(("mode", "transport"), [("hung", NETWORK), ("stopped", SHARED_MEMORY)])
def test_missing(program, tmp_path, mode, transport):
    told = errors(program, tmp_path, mode, 4, TORCH_XLA_COLLECTIVE_TIMEOUT="2", **transport)
    for error in told:
        assert "rank 3 has not arrived" in error
        assert "TORCH_XLA_COLLECTIVE_TIMEOUT" in error
        assert line(mode) in error
        assert line("begin") in error


def _links(process: int) -> set[str]:
    """What the process has open or mapped."""
    found = set()
    for folder in ("fd", "map_files"):
        for name in pathlib.Path(f"/proc/{process}/{folder}").iterdir():
            with contextlib.suppress(FileNotFoundError):
                found.add(os.readlink(name))
    return found


def _sockets() -> set[str]:
    """The sockets of the system, as `_links` names them."""
    found = set()
    for name in ("tcp", "tcp6"):
        for row in pathlib.Path("/proc/net", name).read_text().splitlines()[1:]:
            found.add(f"socket:[{row.split()[9]}]")
    return found


@TRANSPORTS
def test_nothing_is_left_of_those_killed(program, tmp_path, transport):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    environment = program.environment(TMPDIR=str(temporary), **transport)
    command = [sys.executable, str(SCRIPT), "endless", "2", str(tmp_path)]
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    try:
        end = time.monotonic() + 60
        while len(list(tmp_path.glob("*.ready"))) < 2:
            assert time.monotonic() < end
            time.sleep(0.1)
        time.sleep(0.2)
        children = json.loads((tmp_path / "children.json").read_text())
        links = set.union(*map(_links, children))
        assert links & _sockets()
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    alive = [pathlib.Path(f"/proc/{child}/exe") for child in children]
    end = time.monotonic() + 20
    while any(process.exists() for process in alive) or links & _sockets():
        assert time.monotonic() < end, "a rank, or a port of one, lives on"
        time.sleep(0.1)
    assert not [link for link in links if link.startswith("/dev/shm/") and os.path.exists(link)]
    assert list(temporary.iterdir()) == []


def test_launcher_ends_the_rest(program):
    output = program.run_code(
        """
import os, signal, torch, torch_xla
from torch_xla.core import xla_model as xm

def work(index):
    value = torch.zeros(1000, device="xla")
    while True:
        xm.all_reduce(xm.REDUCE_SUM, [value])
        torch_xla.sync(wait=True)
        if index == 1:
            os.kill(os.getpid(), signal.SIGKILL)

try:
    torch_xla.launch(work, start_method="fork")
except Exception as error:
    print(error)
try:
    print("a child is left:", os.waitpid(-1, os.WNOHANG))
except ChildProcessError:
    print("no child is left")
""",
        timeout=60,
        CPU_NUM_DEVICES="4",
    ).stdout
    assert "process 1 terminated with signal SIGKILL" in output
    assert output.splitlines()[-1] == "no child is left"
