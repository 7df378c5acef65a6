"""The processes of a launch end when their launcher does, however that ends."""

import contextlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

from torch_xla._internal.private_folder import PREFIX

SCRIPT = str(pathlib.Path(__file__).parent / "worlds" / "endless.py")
TORCHRUN = ("-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone")
MOST_SECONDS = 10


def begun(folder: pathlib.Path, launcher: subprocess.Popen) -> list[int]:
    """The processes, as soon as both have begun."""
    end = time.monotonic() + 150
    while len(files := list(folder.glob("*.begun"))) < 2:
        assert time.monotonic() < end and launcher.poll() is None
        time.sleep(0.1)
    return [int(file.stem) for file in files]


def is_alive(process: int) -> bool:
    """Whether it runs; one that has ended may wait for its parent to look."""
    with contextlib.suppress(OSError):
        status = pathlib.Path(f"/proc/{process}/stat").read_text()
        return status.rpartition(")")[2].split()[0] != "Z"
    return False


@pytest.fixture
def temporary():
    """A folder with a short path, as sockets of `multiprocessing` need it."""
    with tempfile.TemporaryDirectory(prefix="ends-", dir="/tmp") as folder:
        yield pathlib.Path(folder)


@pytest.mark.parametrize(
    ("how", "number"),
    [
        pytest.param("spawn", signal.SIGKILL, marks=pytest.mark.exhaustive),
        ("spawn, importing", signal.SIGKILL),
        ("spawn, importing", signal.SIGHUP),
        ("fork", signal.SIGTERM),
        ("forkserver", signal.SIGKILL),
        ("join=False, fork", signal.SIGKILL),
        pytest.param("torchrun", signal.SIGKILL, marks=pytest.mark.exhaustive),
        ("torchrun, importing", signal.SIGKILL),
    ],
)
def test_processes_end_with_their_launcher(program, tmp_path, temporary, how, number):
    words = (*(TORCHRUN if how.startswith("torchrun") else ()), SCRIPT, how, str(tmp_path))
    launcher = program.start(
        *words, pipes=(), new_session=True, CPU_NUM_DEVICES="2", TMPDIR=str(temporary)
    )
    processes = []
    try:
        processes = begun(tmp_path, launcher)
        launcher.send_signal(number)
        start = time.monotonic()
        launcher.wait(timeout=MOST_SECONDS)
        while any(map(is_alive, processes)):
            # What one that still imports needs for that comes on top.
            most = MOST_SECONDS + (20 if how == "torchrun, importing" else 0)
            assert time.monotonic() - start < most, "a process lives on"
            time.sleep(0.05)
        assert launcher.returncode == -number
    finally:
        for process in (launcher.pid, *processes):
            with contextlib.suppress(OSError):
                os.kill(process, signal.SIGKILL)
        launcher.wait()
    # Who is killed cannot clean up; the next launch does (test_strangers.py).
    left = [path.name for path in temporary.iterdir() if path.name.startswith("torch_xla")]
    assert all(name.startswith(PREFIX) for name in left)
    assert number == signal.SIGKILL or not left


# The first process of a container, and a worker of it that becomes another user.
FIRST = """
import pathlib, subprocess, sys
pathlib.Path("/proc/self/comm").write_text(sys.argv[1])
sys.exit(-subprocess.run([sys.executable, "-c", sys.argv[2]]).returncode)
"""
WORKER = """
import os
from torch_xla._internal import orphans
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
orphans.end_with_agent()
"""


@pytest.mark.parametrize(("name", "ends"), [("python", False), ("tini", True)])
def test_a_first_process_that_may_not_be_read(program, name, ends):
    """It may be the agent, unless its name is one of those that only take over orphans."""
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"]
    if os.geteuid() != 0 or not shutil.which("unshare"):
        pytest.skip("only root can become another user")
    if subprocess.run([*unshare, "true"], capture_output=True).returncode != 0:
        pytest.skip("this machine allows no other processes' namespaces")
    result = subprocess.run(
        [*unshare, sys.executable, "-c", FIRST, name, WORKER],
        env=program.environment(),
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert result.returncode == (signal.SIGKILL if ends else 0), result.stderr
    assert ("agent" in result.stderr) == ends
