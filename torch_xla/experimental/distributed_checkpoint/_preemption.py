"""What becomes of SIGTERM in a program that wants to save a checkpoint first: all processes agree on the step at which they do."""

import atexit
import signal
import threading
import types

from torch_xla._internal import world

_ASKED = "preemption/asked"
# How often a process looks whether another one has been asked to end.
_LOOK_SECONDS = 1.0
_POLL_SECONDS = 0.01


class _Watch:
    """Notes SIGTERM while it is there, and finds the step."""

    def __init__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(
                "SIGTERM can be waited for in the main thread only: make the CheckpointManager there, or give it "
                "chkpt_on_preemption=False."
            )
        self._asked = self._closed = False
        self._wakes = threading.Event()
        self._guard = threading.Lock()
        self._last = -1  # the step of the latest call
        self._is_told = (
            False  # to the others; from here on this process begins no step before the end is known
        )
        self._end: int | None = None
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None
        if world.size() > 1:
            self._thread = threading.Thread(target=self._agree, daemon=True)
            self._thread.start()
        self._before = signal.signal(signal.SIGTERM, self._note)

    def _note(self, number: int, frame: types.FrameType | None) -> None:
        self._asked = True
        self._wakes.set()
        if callable(self._before):
            self._before(number, frame)

    def close(self) -> None:
        """Lets SIGTERM do what it did before."""
        signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)
        self._closed = True
        self._wakes.set()
        if self._thread is not None:
            self._thread.join()

    def is_at(self, step: int) -> bool:
        """See `reached`."""
        if self._thread is None:
            if self._end is None and self._asked:
                self._end = step
            return step == self._end
        with self._guard:
            if not self._is_told:
                self._last = step
                return False
        if not self._is_over.wait(world.timeout().total_seconds()) or self._end is None:
            raise RuntimeError("After SIGTERM not all processes have said at which step they are.")
        return step == self._end

    def _agree(self) -> None:
        """On a thread: a process tells where it is, whatever its program waits for. The end is the step after the last one."""
        store = world.store()
        while not self._closed and not self._asked and not store.check([_ASKED]):
            self._wakes.wait(_LOOK_SECONDS)
        if self._closed:
            return
        store.set(_ASKED, "1")
        with self._guard:
            self._is_told = True
            last = self._last
        try:
            store.set(_place(world.rank()), str(last))
            places = [_place(rank) for rank in range(world.size())]
            self._wakes.clear()
            while not self._closed and not store.check(places):
                self._wakes.wait(_POLL_SECONDS)
            if not self._closed:
                self._end = max(int(store.get(place)) for place in places) + 1
        finally:
            self._is_over.set()


def _place(rank: int) -> str:
    return f"preemption/step/{rank}"


_watch: _Watch | None = None


def activate() -> None:
    """From here on SIGTERM ends no process; `reached` tells of it."""
    global _watch
    if _watch is None:
        _watch = _Watch()


@atexit.register
def deactivate() -> None:
    """Undoes `activate`."""
    global _watch
    if _watch is not None:
        _watch.close()
        _watch = None


def reached(step: int) -> bool:
    """Whether all processes are to save at this step, since one of them got SIGTERM. Each asks for every step, in order.

    Raises RuntimeError where SIGTERM is not waited for, and where a process does not tell its step in time.
    """
    if _watch is None:
        raise RuntimeError("SIGTERM is not waited for: chkpt_on_preemption=False.")
    return _watch.is_at(step)
