"""Runs functions one after another in a thread of their own."""

import atexit
import os
import queue
import threading
from collections.abc import Callable


class AsyncClosureHandler:
    """A thread, started by the first function that it is given, and a queue of functions for it.

    An exception of a function is raised by the next `run_all`.
    """

    _instance: "AsyncClosureHandler | None" = None

    def __init__(self, max_queue_size: int = 100) -> None:
        self._queue: queue.Queue[Callable[[], None]] = queue.Queue(max_queue_size)
        self._error: Exception | None = None
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        atexit.register(self._finish)

    @classmethod
    def instance(cls) -> "AsyncClosureHandler":
        """The one that `xla_model.add_step_closure` uses."""
        if cls._instance is None:
            cls._instance = cls()
        return cls._instance

    def run_all(self, closures: list[Callable[[], None]]) -> None:
        """Queues the functions. Waits when the queue is full."""
        error, self._error = self._error, None
        if error is not None:
            raise RuntimeError("An asynchronous step closure failed.") from error
        # A forked child has no thread.
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._work, name="step_closures", daemon=True)
            self._thread.start()
        for closure in closures:
            self._queue.put(closure)

    def wait(self) -> None:
        """Returns when all functions have run."""
        self._queue.join()

    def _finish(self) -> None:
        # A forked child inherits the queue, but not the thread that would empty it.
        if self._process == os.getpid():
            self.wait()

    def _work(self) -> None:
        while True:
            closure = self._queue.get()
            try:
                closure()
            except Exception as error:
                self._error = error
            finally:
                self._queue.task_done()
