"""What was seen of a program: the data that causes are found in. Times are seconds of `time.perf_counter()`."""

import bisect
import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

from torch_xla.debug.memory import Holding
from torch_xla.debug.what_changed import Change, Location
from torch_xla.doctor.device_profile import DeviceProfile
from torch_xla.doctor.host_samples import HostSample
from torch_xla.doctor.peaks import Peaks


class Site(NamedTuple):
    """A line of the program, and what of it ran.

    `location`: the innermost line outside of torch and torch_xla. `called_from`: the program's own line, if `location` is an
    installed package's. `expression`: the part that ran, as `loss.item()`; empty if that is not known.
    """

    location: Location
    expression: str = ""
    called_from: Location | None = None


class Interval(NamedTuple):
    """What a thread did for some time.

    `kind`: "compile"; "read", waiting for a value; "fallback", an operator on the CPU; "input", waiting for a batch; "load", making
    a batch; "upload", moving a tensor to the device; "sync"; "doctor", time that only the observation takes.
    """

    kind: str
    start: float
    end: float
    thread: int
    name: str = ""
    site: Site | None = None

    @property
    def seconds(self) -> float:
        """How long."""
        return self.end - self.start


class Compilation(NamedTuple):
    """A graph that no program was there for. `change`: what is different from the nearest one before; None for the first."""

    start: float
    end: float
    change: Change | None
    cause: str
    site: Site | None
    graph_name: str
    operators: int
    is_step_end: bool

    @property
    def seconds(self) -> float:
        """How long it took."""
        return self.end - self.start


class Execution(NamedTuple):
    """A program that was started. `operators`: how many were recorded for it."""

    start: float
    hash: int
    operators: int
    thread: int


class StepEnd(NamedTuple):
    """A sync that ended a step."""

    start: float
    end: float
    cause: str
    waits: bool
    site: Site | None


class MemorySample(NamedTuple):
    """What was held when a program started, and what that needed besides."""

    time: float
    holdings: tuple[Holding, ...]
    program_bytes: int

    @property
    def bytes(self) -> int:
        """All of it."""
        return sum(holding.bytes for holding in self.holdings) + self.program_bytes


class Loader(NamedTuple):
    """A `DataLoader` that was iterated. `item`: where its dataset makes an item, or its batches are made."""

    description: str
    workers: int
    item: Location | None


class WideOperator(NamedTuple):
    """An operator that computes in float64, and how many such results one program of the step has."""

    operator: str
    location: Location | None
    elements: int


class Step(NamedTuple):
    """From the end of a step to the next one's end."""

    index: int
    start: float
    end: float
    ended_by: StepEnd

    @property
    def seconds(self) -> float:
        """How long."""
        return self.end - self.start


@dataclasses.dataclass
class ProgramRun:
    """All that was seen. The lists are in the order of time."""

    main_thread: int = 0
    start: float = 0.0
    end: float = 0.0
    intervals: list[Interval] = dataclasses.field(default_factory=list)
    compilations: list[Compilation] = dataclasses.field(default_factory=list)
    executions: list[Execution] = dataclasses.field(default_factory=list)
    step_ends: list[StepEnd] = dataclasses.field(default_factory=list)
    memory: list[MemorySample] = dataclasses.field(default_factory=list)
    loaders: list[Loader] = dataclasses.field(default_factory=list)
    wide_operators: dict[int, list[WideOperator]] = dataclasses.field(default_factory=dict)
    """Of each graph."""
    recording_lines: dict[int, list[tuple[Location, int]]] = dataclasses.field(default_factory=dict)
    """Of each graph, how many operators each line recorded, the most first."""
    device: DeviceProfile | None = None
    """Of a part of the steps; None where nothing was collected."""
    peaks: Peaks | None = None
    recorded_lines: set[tuple[str, int]] = dataclasses.field(default_factory=set)
    """(file, line) of all that recorded an operator."""
    host_samples: list[HostSample] = dataclasses.field(default_factory=list)
    noting: list[tuple[float, float]] = dataclasses.field(default_factory=list)
    """(time, how many seconds the noting of lines had taken until then)."""

    def steps(self) -> list[Step]:
        """The steps in which something ran. What comes before the first end is the program's preparation, and none of them."""
        starts = [execution.start for execution in self.executions]
        steps = []
        for before, end in zip(self.step_ends, self.step_ends[1:], strict=False):
            ran = bisect.bisect(starts, end.end) - bisect.bisect(starts, before.end)
            if ran:
                steps.append(Step(len(steps), before.end, end.end, end))
        return steps

    def measured_steps(self) -> list[Step]:
        """The steps without the first two, which compile and make the optimizer's state, where there are enough of them."""
        steps = self.steps()
        return steps[2:] if len(steps) >= 4 else steps[1:] or steps

    def main_intervals(self) -> list[Interval]:
        """Those of the thread that runs the program."""
        return [interval for interval in self.intervals if interval.thread == self.main_thread]

    def noting_seconds(self, start: float, end: float) -> float:
        """How long the noting of lines took between two times."""
        return max(self._noted_until(end) - self._noted_until(start), 0.0)

    def _noted_until(self, when: float) -> float:
        """Between two notes, as much for each second."""
        at = bisect.bisect(self.noting, (when, float("inf")))
        if at == 0:
            return 0.0
        time, seconds = self.noting[at - 1]
        if at == len(self.noting):
            return seconds
        next_time, next_seconds = self.noting[at]
        return seconds + (next_seconds - seconds) * (when - time) / max(next_time - time, 1e-12)

    def phases(self, steps: Iterable[Step]) -> dict[str, float]:
        """The seconds that the main thread spent in each kind of interval during these steps; "python" is what remains.

        Of intervals within each other the innermost counts. What only the observation takes is left out.
        """
        totals: dict[str, float] = {}
        parts = innermost_parts(self.main_intervals())
        for step in steps:
            covered = 0.0
            for part in parts:
                kind = part.interval.kind
                seconds = min(part.end, step.end) - max(part.start, step.start)
                if seconds > 0:
                    totals[kind] = totals.get(kind, 0.0) + seconds
                    covered += seconds
            noting = self.noting_seconds(step.start, step.end)
            own = max(step.seconds - covered - noting, 0.0)
            totals["python"] = totals.get("python", 0.0) + own
        totals.pop("doctor", None)
        return totals


class Part(NamedTuple):
    """A time in which nothing that an interval contains had started."""

    interval: Interval
    start: float
    end: float


def innermost_parts(intervals: Iterable[Interval]) -> list[Part]:
    """Intervals that lie within each other as parts that do not: each time belongs to the one that started last."""
    parts: list[Part] = []
    stack: list[Interval] = []
    at = 0.0

    def advance(until: float) -> None:
        nonlocal at
        while stack and stack[-1].end <= until:
            ended = stack.pop()
            if ended.end > at:
                parts.append(Part(ended, at, ended.end))
                at = ended.end
        if stack and until > at:
            parts.append(Part(stack[-1], at, until))
        at = max(at, until)

    for interval in sorted(intervals, key=lambda interval: (interval.start, -interval.end)):
        advance(interval.start)
        stack.append(interval)
    advance(float("inf"))
    return parts
