"""A bounded queue between threads that either side can close."""

import collections
from typing import Generic, TypeVar

from torch_xla._internal import fork_lock

T = TypeVar("T")


class Queue(Generic[T]):
    """A bounded queue. After `close_write` no more items come; after `close` nobody wants them any more."""

    def __init__(self, maxsize: int) -> None:
        if maxsize < 1:
            raise ValueError(f"A queue needs room for an item; its size is {maxsize}.")
        self._maxsize = maxsize
        self._items: collections.deque[T] = collections.deque()
        self._changed = fork_lock.Condition()
        self._no_more_writes = False
        self._closed = False

    def put(self, item: T) -> bool:
        """Appends an item, waiting for room; returns False, without the item, once the queue is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._items) < self._maxsize)
            if self._closed:
                return False
            self._items.append(item)
            self._changed.notify_all()
            return True

    def get(self) -> T | None:
        """Takes the oldest item, waiting for one; None when the queue is closed, or empty for good."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._items or self._no_more_writes)
            if self._closed or not self._items:
                return None
            item = self._items.popleft()
            self._changed.notify_all()
            return item

    def close_write(self) -> None:
        """Says that no item comes any more. What is in the queue can still be taken."""
        with self._changed:
            self._no_more_writes = True
            self._changed.notify_all()

    def close(self) -> None:
        """Drops the items and lets every waiting thread go."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()
