"""A folder that only this user can read, for the processes of one launch.

Whoever uses it holds a shared lock on it, which the kernel lets go of with the last process. So a folder of processes
that were killed is told from one in use, and the next launch removes it.
"""

import contextlib
import fcntl
import os
import pathlib
import shutil
import stat
import tempfile
from multiprocessing import util

PREFIX = "torch_xla-launch-"


class PrivateFolder:
    """Makes the folder; `close`, or the end of the process and of those that `multiprocessing` has started, removes it."""

    def __init__(self) -> None:
        _remove_abandoned()
        self.path, self._lock = _make()
        # At the end of the process this priority comes after the children have been waited for.
        self._finalizer = util.Finalize(None, _remove, (self.path, self._lock), exitpriority=-100)

    def close(self) -> None:
        """Removes it. Where a process still uses it, the next launch does."""
        self._finalizer()


def hold(path: str) -> int:
    """The descriptor of a shared lock on the folder; while it is open the folder stays."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _make() -> tuple[str, int]:
    while True:
        path = tempfile.mkdtemp(prefix=PREFIX)
        # Another launch may have taken it for an abandoned one before it was locked.
        with contextlib.suppress(FileNotFoundError):
            lock = hold(path)
            if os.path.exists(path):
                return path, lock
            os.close(lock)


def _remove(path: str, lock: int) -> None:
    os.close(lock)
    _remove_unused(path)


def _remove_unused(path: str) -> None:
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        finally:
            os.close(descriptor)


def _remove_abandoned() -> None:
    for path in pathlib.Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            status = path.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                _remove_unused(str(path))
