"""Locks that forked children find free: the thread that held one does not come along."""

import os
import threading


class _Lock:
    """To be used by `with`. A child has another lock, and gives back what it holds itself: the one of before."""

    def __init__(self) -> None:
        self._renew()
        os.register_at_fork(after_in_child=self._renew)

    def __enter__(self) -> None:
        lock = self._lock
        lock.acquire()
        self._held = lock

    def __exit__(self, *_: object) -> None:
        self._held.release()

    def _renew(self) -> None:
        self._lock = threading.Lock()


def free_in_children() -> _Lock:
    """A lock of what lives as long as the process, and may be found half changed."""
    return _Lock()
