"""Which lines the program's thread is at, looked at every few milliseconds: for time that no observer is told of."""

import sys
import threading
import time
from typing import NamedTuple

from torch_xla.debug import user_frame
from torch_xla.debug.what_changed import Location

_INTERVAL_SECONDS = 0.004
_MOST = 500_000
# A thread that computes without letting others go on is seen late.
_MOST_SECONDS = 0.1


class HostSample(NamedTuple):
    """Where the thread was. `seconds`: how long since the last look, for which it stands.

    `line`: the innermost one outside of torch and torch_xla; `own`: the program's own, outside of installed packages;
    `is_in_torch`: a function of torch or torch_xla was running.
    """

    time: float
    seconds: float
    line: Location
    own: Location
    is_in_torch: bool


class Sampler:
    """Looks at the thread that starts it."""

    def __init__(self) -> None:
        self.samples: list[HostSample] = []
        self._thread_id = threading.get_ident()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="doctor", daemon=True)

    def start(self) -> None:
        """Looks from now on."""
        self._thread.start()

    def stop(self) -> None:
        """Looks no more."""
        self._ended.set()
        self._thread.join(timeout=10)

    def _run(self) -> None:
        before = time.perf_counter()
        while not self._ended.wait(_INTERVAL_SECONDS) and len(self.samples) < _MOST:
            now = time.perf_counter()
            sample = self._look(now, min(now - before, _MOST_SECONDS))
            before = now
            if sample is not None:
                self.samples.append(sample)

    def _look(self, now: float, seconds: float) -> HostSample | None:
        # No frame is held beyond this: it would keep its variables, and so the program's tensors, alive.
        innermost = sys._current_frames().get(self._thread_id)
        frame = user_frame.outside_of_torch(innermost)
        if frame is None or frame.f_lineno is None:
            return None
        own = user_frame.outside_of_packages(frame) or frame
        line, own_line = user_frame.location(frame), user_frame.location(own)
        return HostSample(now, seconds, line, own_line, frame is not innermost)
