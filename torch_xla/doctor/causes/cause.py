"""One reason for slow steps."""

import bisect
import collections
import functools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from torch_xla.debug import user_frame
from torch_xla.debug.what_changed import Location
from torch_xla.doctor.device_profile import Kernel
from torch_xla.doctor.program_run import Interval, Part, ProgramRun, Site, innermost_parts


class Cause(NamedTuple):
    """What costs the steps time.

    `seconds_per_step`: how much shorter a step would be without it, at most: an estimate; `share`: of a step's time. `count`: how often it
    happened. `details`: more that was seen, a sentence each.
    """

    kind: str
    title: str
    location: Location | None
    seconds_per_step: float
    share: float
    count: int
    remedy: str
    details: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        """The line itself; empty if there is none."""
        if self.location is None:
            return ""
        return user_frame.line_text(self.location.file, self.location.line)


class Measure:
    """How long things take, for each measured step."""

    def __init__(self, run: ProgramRun) -> None:
        self._run = run
        self.steps = run.measured_steps()
        self.count = max(len(self.steps), 1)
        if self.steps:
            self.start, self.end = self.steps[0].start, self.steps[-1].end
        else:
            self.start, self.end = run.start, run.end
        noting = run.noting_seconds(self.start, self.end)
        watching = sum(
            max(min(interval.end, self.end) - max(interval.start, self.start), 0.0)
            for interval in run.main_intervals()
            if interval.kind == "doctor"
        )
        self.seconds_per_step = max(self.end - self.start - noting - watching, 1e-9) / self.count

    def contains(self, time: float) -> bool:
        """Whether a time lies in a measured step."""
        return self.start <= time <= self.end

    def grouped(
        self, kind: str, key: Callable[[Interval], object] | None = None
    ) -> list[list[Interval]]:
        """The main thread's intervals of a kind in the measured steps: those of one line together, or of one key."""
        groups: dict[object, list[Interval]] = collections.defaultdict(list)
        for interval in self._run.main_intervals():
            if interval.kind == kind and self.contains(interval.start):
                groups[key(interval) if key else line_of(interval.site)].append(interval)
        return list(groups.values())

    def share(self, seconds_per_step: float) -> float:
        """Of a step's time."""
        return min(seconds_per_step / self.seconds_per_step, 1.0)

    def is_own_time(self, time: float) -> bool:
        """Whether the main thread was in none of the intervals then."""
        at = bisect.bisect(self._part_starts, time) - 1
        return at < 0 or self._parts[at].end <= time

    @functools.cached_property
    def _part_starts(self) -> list[float]:
        return [part.start for part in self._parts]

    def own_seconds(self, start: float, end: float, kinds: Iterable[str]) -> float:
        """What of a time the main thread spent in none of these kinds of intervals, without what only the observation takes."""
        run, left_out = self._run, {*kinds, "doctor"}
        taken = sum(
            max(min(part.end, end) - max(part.start, start), 0.0)
            for part in self._parts
            if part.interval.kind in left_out
        )
        return max(end - start - taken - run.noting_seconds(start, end), 0.0)

    def busy_seconds_per_step(self) -> float | None:
        """For how long the device works in a step; None if that was collected for none."""
        device = self._run.device
        if device is None or not device.programs:
            return None
        steps = [step for step in self.steps if device.covers(step.start, step.end)]
        if not steps:
            return None
        busy = sum(device.busy_seconds(step.start, step.end) for step in steps)
        return busy / len(steps)

    def overlap_seconds_per_step(self) -> float | None:
        """For how long in a step the program records while the device works; None if that was collected for no step."""
        device, busy = self._run.device, self.busy_seconds_per_step()
        if device is None or busy is None:
            return None
        steps = [step for step in self.steps if device.covers(step.start, step.end)]
        waiting = sum(
            device.busy_seconds(max(part.start, step.start), min(part.end, step.end))
            for step in steps
            for part in self._parts
            if part.end > step.start and part.start < step.end
        )
        return max(busy - waiting / len(steps), 0.0)

    def kernel_seconds_per_step(self, is_meant: Callable[[Kernel], bool]) -> float:
        """For how long such kernels run in a step; 0 if that was not collected."""
        device = self._run.device
        if device is None:
            return 0.0
        steps = sum(device.covers(step.start, step.end) for step in self._run.steps())
        return sum(k.seconds for k in device.kernels if is_meant(k)) / max(steps, 1)

    def busy_seconds(self, intervals: list[Interval]) -> float:
        """For how long the device works during these, as far as that was collected; for the others as long on average."""
        device = self._run.device
        if device is None:
            return 0.0
        covered = [i for i in intervals if device.covers(i.start, i.end)]
        if not covered:
            return 0.0
        busy = sum(device.busy_seconds(i.start, i.end) for i in covered)
        return busy / len(covered) * len(intervals)

    @functools.cached_property
    def _parts(self) -> list[Part]:
        return innermost_parts(self._run.main_intervals())


def line_of(site: Site | None) -> Location | None:
    """The line to name: the program's own if there is one, else the innermost."""
    if site is None:
        return None
    return site.called_from or site.location


def through(site: Site | None) -> tuple[str, ...]:
    """A detail that says which package's line it was, if the program's own line called a package."""
    if site is None or site.called_from is None:
        return ()
    return (f"It happens in {site.location.function}, {site.location}.",)
