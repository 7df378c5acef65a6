"""What becomes of SIGTERM in a program that wants to save a checkpoint first: all processes agree on the step at which they do."""

import signal
import threading
import time
import types

import torch_xla
from torch_xla._internal import world

_ASKED = "preemption/asked"
_POLL_SECONDS = 0.01


class _Watch:
    """Notes SIGTERM while it is there, and finds the step."""

    def __init__(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError(
                "SIGTERM can be waited for in the main thread only: make the CheckpointManager there, or give it "
                "chkpt_on_preemption=False."
            )
        self._asked = threading.Event()
        self._step: int | None = None
        self._before = signal.signal(signal.SIGTERM, self._note)

    def _note(self, number: int, frame: types.FrameType | None) -> None:
        self._asked.set()
        if callable(self._before):
            self._before(number, frame)

    def close(self) -> None:
        """Lets SIGTERM do what it did before."""
        signal.signal(signal.SIGTERM, self._before)

    def is_at(self, step: int) -> bool:
        if self._step is None:
            self._step = self._agreed_step(step)
        return self._step == step

    def _agreed_step(self, step: int) -> int | None:
        """The step that the processes have agreed on; None while none of them is asked to end.

        Each says at which step it has heard of it, and the last of these is the one that none has passed yet.
        """
        if world.size() == 1:
            return step if self._asked.is_set() else None
        store = world.store()
        if self._asked.is_set():
            store.set(_ASKED, "1")
        if not store.check([_ASKED]):
            return None
        # What the others wait for, on their way to their own call.
        torch_xla.sync(reset_scope=False)
        store.set(_place(world.rank()), str(step))
        places = [_place(rank) for rank in range(world.size())]
        end = time.monotonic() + world.timeout().total_seconds()
        while not store.check(places):
            if time.monotonic() > end:
                raise RuntimeError(
                    "Not all processes have come to the end of a step after SIGTERM."
                )
            time.sleep(_POLL_SECONDS)
        return max(int(store.get(place)) for place in places)


def _place(rank: int) -> str:
    return f"preemption/step/{rank}"


_watch: _Watch | None = None


def activate() -> None:
    """From here on SIGTERM ends no process; `reached` tells of it."""
    global _watch
    if _watch is None:
        _watch = _Watch()


def deactivate() -> None:
    """Undoes `activate`."""
    global _watch
    if _watch is not None:
        _watch.close()
        _watch = None


def reached(step: int) -> bool:
    """Whether all processes are to save at this step, since one of them got SIGTERM. Each calls it once a step, or oftener.

    Raises RuntimeError where SIGTERM is not waited for.
    """
    if _watch is None:
        raise RuntimeError("SIGTERM is not waited for: chkpt_on_preemption=False.")
    return _watch.is_at(step)
