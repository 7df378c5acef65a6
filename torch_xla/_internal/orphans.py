"""A process that was started to work for another ends when that one has ended, however it did."""

import os
import select
import signal
import threading

from torch.multiprocessing import _prctl_pr_set_pdeathsig


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


def end_with_parent(parent: int) -> None:
    """The same by the kernel alone, whatever this process is busy with.

    `parent` has started this process. The kernel ends it with the thread of the parent that has done so.
    """
    _prctl_pr_set_pdeathsig(signal.SIGKILL)
    if os.getppid() != parent:
        _end()


def _end_after(descriptor: int) -> None:
    ended = select.poll()
    ended.register(descriptor, select.POLLIN)
    ended.poll()
    _end()


def _end() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
