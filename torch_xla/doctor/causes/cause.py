"""One reason for slow steps."""

import functools
from collections.abc import Iterable
from typing import NamedTuple

from torch_xla.debug import user_frame
from torch_xla.debug.what_changed import Location
from torch_xla.doctor.program_run import Part, ProgramRun, Site, innermost_parts


class Cause(NamedTuple):
    """What costs the steps time.

    `seconds_per_step`: how much shorter a step would be without it, estimated; `share`: of a step's time. `count`: how often it
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

    def share(self, seconds_per_step: float) -> float:
        """Of a step's time."""
        return min(seconds_per_step / self.seconds_per_step, 1.0)

    def own_seconds(self, start: float, end: float, kinds: Iterable[str]) -> float:
        """What of a time the main thread spent in none of these kinds of intervals, without what only the observation takes."""
        run, left_out = self._run, {*kinds, "doctor"}
        taken = sum(
            max(min(part.end, end) - max(part.start, start), 0.0)
            for part in self._parts
            if part.interval.kind in left_out
        )
        return max(end - start - taken - run.noting_seconds(start, end), 0.0)

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
