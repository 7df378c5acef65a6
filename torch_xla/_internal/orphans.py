"""A process that was started to work for another ends when that one has ended, however it did."""

import contextlib
import os
import pathlib
import select
import signal
import sys
import threading
from collections.abc import Iterator
from multiprocessing import spawn
from typing import Any

from torch.multiprocessing import _prctl_pr_set_pdeathsig

# What takes over orphans as the first process, by the names that everybody may read.
_INITS = {
    "systemd",
    "init",
    "tini",
    "docker-init",
    "dumb-init",
    "catatonit",
    "s6-svscan",
    "runit",
    "pause",
}


def end_with(launcher: int) -> None:
    """Ends this process, at once, when the process of that number has ended."""
    try:
        descriptor = os.pidfd_open(launcher)
    except ProcessLookupError:
        _end()
    except OSError:
        return  # An old kernel, or a sandbox that forbids it.
    threading.Thread(
        target=_end_after, args=(descriptor,), name="torch_xla-launcher", daemon=True
    ).start()


def end_with_agent() -> None:
    """The same for the agent of torchrun that has started this process, perhaps through others, such as a shell.

    The agent may have ended before, while this process was still importing. Then this one has been handed to another
    process, which neither has torch in memory, as an agent has, nor the variables of a worker, as those between have.
    """
    process = os.getppid()
    while process > 0 and not _has_torch(process):
        if not _is_worker(process):
            print(
                "torch_xla: torchrun's agent, which has started this process, has ended; so does this process.",
                file=sys.stderr,
                flush=True,
            )
            _end()
        process = _parent_of(process)
    # (0: it is not among the processes that this one sees.)
    end_with(process or os.getppid())


def _has_torch(process: int) -> bool:
    return _holds(process, "maps", b"/libtorch")


def _is_worker(process: int) -> bool:
    return _holds(process, "environ", b"TORCHELASTIC_RUN_ID=")


def _holds(process: int, name: str, text: bytes) -> bool:
    """Whether the text is in that file of the process, or may be, which this user may not see."""
    try:
        return text in pathlib.Path(f"/proc/{process}/{name}").read_bytes()
    except OSError:
        return _lives(process) and not _is_init(process)


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_init(process: int) -> bool:
    """Whether this process, which may not be looked at, takes over orphans.

    The first process of a container may be an agent as well, which this user may not see because it is another's. One of
    this user's own that nobody may see is none.
    """
    if process != 1:
        return False
    try:
        name = pathlib.Path("/proc/1/comm").read_text().strip()
        return name in _INITS or os.stat("/proc/1").st_uid == os.geteuid()
    except OSError:
        return False


def _parent_of(process: int) -> int:
    try:
        status = pathlib.Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return os.getppid()
    # The name of the program, in parentheses, may hold anything.
    return int(status.rpartition(")")[2].split()[1])


def end_with_parent(parent: int) -> None:
    """The same by the kernel alone, whatever this process is busy with.

    `parent` has started this process. The kernel ends it with the thread of the parent that has done so.
    """
    _prctl_pr_set_pdeathsig(signal.SIGKILL)
    if os.getppid() != parent:
        _end()


# The first that a new interpreter runs: what it is to import may take long, and be anything. (1: PR_SET_PDEATHSIG)
_FIRST = (
    "import ctypes, os; ctypes.CDLL(None).prctl(1, {signal}); "
    "os.getppid() == {parent} or os._exit(1); "
)


@contextlib.contextmanager
def interpreters_end_with_this_thread() -> Iterator[None]:
    """Interpreters that `multiprocessing` starts meanwhile end, by the kernel, with the thread that does so."""
    command_line = spawn.get_command_line
    first = _FIRST.format(signal=int(signal.SIGKILL), parent=os.getpid())

    def get_command_line(**options: Any) -> list[str]:
        words = command_line(**options)
        if "-c" in words:  # (a frozen program has none)
            code = words.index("-c") + 1
            words[code] = first + words[code]
        return words

    spawn.get_command_line = get_command_line
    try:
        yield
    finally:
        spawn.get_command_line = command_line


def _end_after(descriptor: int) -> None:
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    ended.poll()
    _end()


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
