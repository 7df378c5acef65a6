"""Locks that forked children find free: the thread that held one does not come along."""

import os
import threading
import weakref
from collections.abc import Callable


class Lock:
    """To be used by `with`. A child has another one, and gives back what it holds itself: the one of before."""

    def __init__(self) -> None:
        self._renew()
        _locks.add(self)

    def __enter__(self) -> None:
        condition = self._condition
        condition.acquire()
        self._held = condition

    def __exit__(self, *_: object) -> None:
        self._held.release()

    def _renew(self) -> None:
        self._condition = threading.Condition(threading.Lock())


class Condition(Lock):
    """The same, whose holders can wait. Those who wait do not come along either.

    Its holder may take it once more: what is collected as garbage, wherever that happens, may close what it guards.
    """

    def _renew(self) -> None:
        self._condition = threading.Condition(threading.RLock())

    def wait_for(self, predicate: Callable[[], object]) -> None:
        """Waits until that is so, giving the lock away meanwhile."""
        self._condition.wait_for(predicate)

    def notify_all(self) -> None:
        """Lets all who wait look again."""
        self._condition.notify_all()


_locks: weakref.WeakSet[Lock] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in list(_locks):
        lock._renew()


os.register_at_fork(after_in_child=_renew_all)
