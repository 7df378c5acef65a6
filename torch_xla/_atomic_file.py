"""Files that are replaced whole: written aside, forced to the disk, and renamed.

A process that is killed at any moment, and a machine that loses its power, leave the old file or the new one.
"""

import contextlib
import fcntl
import os
import stat
import time
import uuid
from collections.abc import Iterator
from typing import IO

_SUFFIX = ".partial"
# A partial file is locked right after it was made; none that is older and unlocked has a writer.
_ABANDONED_AFTER_SECONDS = 60.0


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` when the body has ended, and is dropped when the body raises.

    It gets the permissions of the file that it replaces, otherwise those of a new file. What is no regular file, such
    as a pipe or /dev/null, is written directly. A symbolic link stays, and the file behind it is replaced.
    """
    path = os.path.realpath(os.fspath(path))
    old = _status(path)
    if old is not None and not stat.S_ISREG(old.st_mode):
        with open(path, "wb") as file:
            yield file
        return
    folder, name = os.path.split(path)
    partial = os.path.join(folder, f".{name}.{uuid.uuid4().hex}{_SUFFIX}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            _lock(file.fileno())
            if old is not None:
                os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            os.replace(partial, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(partial)
        raise
    sync_folder(folder)
    _remove_abandoned(folder, name)


def sync_folder(folder: str | os.PathLike[str]) -> None:
    """Forces the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def locked(folder: str | os.PathLike[str]) -> Iterator[None]:
    """Holds a folder's lock, waiting for it where another process has it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        # A file system without locks has to do without.
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def is_locked(path: str | os.PathLike[str]) -> bool:
    """Whether another process, or another part of this one, holds the lock of a file or a folder."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return not _lock(descriptor)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool:
    """Takes the lock of a file or a folder, unless another process has it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks has to do without.
        return True
    return True


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _remove_abandoned(folder: str, name: str) -> None:
    """Drops what killed writers of the same file have left."""
    for entry in os.listdir(folder):
        if not (entry.startswith(f".{name}.") and entry.endswith(_SUFFIX)):
            continue
        partial = os.path.join(folder, entry)
        # Another process may remove it, or finish it, at the same time.
        with contextlib.suppress(OSError):
            age = time.time() - os.stat(partial).st_mtime
            if age > _ABANDONED_AFTER_SECONDS and not is_locked(partial):
                os.unlink(partial)
