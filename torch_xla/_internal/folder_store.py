"""A store of torch.distributed in a folder: each key is a file, and nothing listens.

Who may use the folder may use the store. It is for the processes of one machine.
"""

import contextlib
import datetime
import fcntl
import hashlib
import os
import threading
import time
from collections.abc import Iterator, Sequence

import torch.distributed as dist

from torch_xla._internal import private_folder

_LOCK = "lock"
# A process that waits looks again after the first time, and after twice as long each time until the last.
_FIRST_LOOK_SECONDS = 0.0001
_LAST_LOOK_SECONDS = 0.005


def _bytes(value: bytes | str) -> bytes:
    return value.encode() if isinstance(value, str) else value


class FolderStore(dist.Store):
    """See `torch.distributed.Store` for the operations.

    The names in camel case are those by which torch's C++ code looks for the methods.
    """

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        try:
            self._held = private_folder.hold(folder)
        except FileNotFoundError as error:
            raise RuntimeError(
                f"The folder {folder}, where the processes of this launch meet, is gone: has the launcher ended?"
            ) from error

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError, OSError):
            os.close(self._held)

    def clone(self) -> "FolderStore":
        # There is no connection that a thread that waits could block.
        return self

    def set(self, key: str, value: bytes | str) -> None:
        path = self._path(key)
        # A reader finds all of a value or nothing.
        unfinished = f"{path}.{os.getpid()}.{threading.get_ident()}"
        with open(unfinished, "wb") as file:
            file.write(_bytes(value))
        os.replace(unfinished, path)

    def get(self, key: str) -> bytes:
        end = time.monotonic() + self.timeout.total_seconds()
        while True:
            self._wait_until([key], end)
            value = self._value(key)
            if value is not None:
                return value

    def add(self, key: str, amount: int) -> int:
        with self._exclusively():
            number = int(self._value(key) or b"0") + amount
            self.set(key, str(number))
        return number

    def compare_set(self, key: str, expected: bytes | str, desired: bytes | str) -> bytes:
        with self._exclusively():
            value = self._value(key)
            if value is None and _bytes(expected):
                return _bytes(expected)
            if value is not None and value != _bytes(expected):
                return value
            self.set(key, desired)
        return _bytes(desired)

    def check(self, keys: Sequence[str]) -> bool:
        return all(os.path.exists(self._path(key)) for key in keys)

    def wait(self, keys: Sequence[str], timeout: datetime.timedelta | None = None) -> None:
        allowed = self.timeout if timeout is None else timeout
        self._wait_until(keys, time.monotonic() + allowed.total_seconds())

    def delete_key(self, key: str) -> bool:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(key))
            return True
        return False

    deleteKey = delete_key  # noqa: N815

    def num_keys(self) -> int:
        with os.scandir(self._folder) as entries:
            return sum("." not in entry.name and entry.name != _LOCK for entry in entries)

    getNumKeys = num_keys  # noqa: N815

    def _path(self, key: str) -> str:
        # A key may hold any characters, and be longer than a file's name.
        return os.path.join(self._folder, hashlib.sha256(key.encode()).hexdigest())

    def _value(self, key: str) -> bytes | None:
        try:
            with open(self._path(key), "rb") as file:
                return file.read()
        except FileNotFoundError:
            return None

    def _wait_until(self, keys: Sequence[str], end: float) -> None:
        pause = _FIRST_LOOK_SECONDS
        for key in keys:
            path = self._path(key)
            while not os.path.exists(path):
                left = end - time.monotonic()
                if left <= 0:
                    raise dist.DistStoreError(f"Nobody has set the key {key!r} in time.")
                time.sleep(min(pause, left))
                pause = min(2 * pause, _LAST_LOOK_SECONDS)

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        lock = os.open(
            os.path.join(self._folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)
