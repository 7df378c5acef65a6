"""What the device did while a part of the program's steps ran: programs, kernels and transfers, on the program's time axis."""

import bisect
import dataclasses
import time
from typing import Any, NamedTuple

from torch_xla.debug import trace_events
from torch_xla.debug.what_changed import Location

_PICOSECOND = 1e-12
_MODULES, _OPERATIONS = "XLA Modules", "XLA Ops"
_TRANSFERS = ("xla::upload", "xla::download")
# The first steps compile, however long; then so many steps, and for so long, are collected.
_STEPS_BEFORE = 3
_STEPS = 32
_LEAST_SECONDS = 1.0
_MOST_SECONDS = 20.0


class Run(NamedTuple):
    """When a program or a kernel ran, in seconds of `time.perf_counter()`."""

    start: float
    end: float
    name: str


@dataclasses.dataclass
class Kernel:
    """An operation of a program. `flops` and `bytes` are those of one run; 0 where the device does not say."""

    name: str
    text: str
    category: str
    operation: str
    location: Location | None
    flops: float
    bytes: float
    count: int = 0
    seconds: float = 0.0


class Transfer(NamedTuple):
    """Bytes that moved between host and device."""

    start: float
    end: float
    name: str
    bytes: int


@dataclasses.dataclass
class DeviceProfile:
    """Of the time from `start` to `end`. `programs` and `runs` (of kernels) are in the order of their starts."""

    start: float
    end: float
    programs: list[Run] = dataclasses.field(default_factory=list)
    runs: list[Run] = dataclasses.field(default_factory=list)
    kernels: list[Kernel] = dataclasses.field(default_factory=list)
    transfers: list[Transfer] = dataclasses.field(default_factory=list)
    warnings: list[str] = dataclasses.field(default_factory=list)

    def covers(self, start: float, end: float) -> bool:
        """Whether all of this time was collected."""
        return self.start <= start and end <= self.end

    def busy_seconds(self, start: float, end: float) -> float:
        """For how long of this time a program ran on the device."""
        ends = self._ends
        total, at = 0.0, start
        for program in self.programs[bisect.bisect(ends, start) :]:
            if program.start >= end:
                break
            begin = max(program.start, at)
            until = min(program.end, end)
            if until > begin:
                total += until - begin
                at = until
        return total

    @property
    def _ends(self) -> list[float]:
        # The largest until then: programs of several devices overlap.
        if not hasattr(self, "_latest_ends"):
            latest, found = float("-inf"), []
            for program in self.programs:
                latest = max(latest, program.end)
                found.append(latest)
            self._latest_ends = found
        return self._latest_ends


class Collector:
    """Collects a profile of some of the steps."""

    def __init__(self) -> None:
        self.profile: DeviceProfile | None = None
        self._start = 0.0
        self._steps = 0
        self._is_mine = False
        self._start_profile = trace_events.start

    def start(self) -> None:
        """Collects, unless the program already does."""
        if trace_events.is_running():
            return
        self._start = time.perf_counter()
        trace_events.start()
        self._is_mine = True
        trace_events.start = self._give_way

    def _give_way(self) -> None:
        """There is one profile at a time, and the program's own goes before this one."""
        self.stop()
        trace_events.start()

    def step_ended(self) -> None:
        """Called at each step's end."""
        self._steps += 1
        if not self._is_mine or self._steps < _STEPS_BEFORE:
            return
        if self._steps == _STEPS_BEFORE:
            self._end()
            self.start()
            return
        taken = time.perf_counter() - self._start
        enough = self._steps >= _STEPS_BEFORE + _STEPS and taken >= _LEAST_SECONDS
        if enough or taken >= _MOST_SECONDS:
            self.stop()

    def stop(self) -> None:
        """Ends the collection, if there is one."""
        if not self._is_mine:
            return
        end = time.perf_counter()
        space = trace_events.parse(self._end())
        self.profile = _profile(space, self._start, end)

    def _end(self) -> bytes:
        self._is_mine = False
        trace_events.start = self._start_profile
        return trace_events.stop()


def _profile(space: trace_events.Space, start: float, end: float) -> DeviceProfile:
    profile = DeviceProfile(start, end, warnings=[*space.warnings, *space.errors])
    kernels: dict[tuple[Any, ...], Kernel] = {}
    for plane in space.devices:
        for line in plane.lines:
            for event in line.events:
                begin, until = _times(event, start)
                if line.name == _MODULES:
                    profile.programs.append(Run(begin, until, event.name.partition("(")[0]))
                elif line.name == _OPERATIONS:
                    profile.runs.append(Run(begin, until, event.display_name or event.name))
                    kernel = _kernel(kernels, event)
                    kernel.count += 1
                    kernel.seconds += until - begin
    for line in space.host.lines:
        for event in line.events:
            if event.name in _TRANSFERS:
                begin, until = _times(event, start)
                size = int(event.stats.get("bytes", 0))
                profile.transfers.append(Transfer(begin, until, event.name, size))
    profile.programs.sort()
    profile.runs.sort()
    profile.transfers.sort()
    profile.kernels = sorted(kernels.values(), key=lambda kernel: -kernel.seconds)
    return profile


def _times(event: trace_events.Event, start: float) -> tuple[float, float]:
    return start + event.start_ps * _PICOSECOND, start + event.end_ps * _PICOSECOND


def _kernel(kernels: dict[tuple[Any, ...], Kernel], event: trace_events.Event) -> Kernel:
    stats = event.stats
    key = (stats.get("program_id"), event.display_name, event.name)
    if key not in kernels:
        file, _, line = str(stats.get("source", "")).rpartition(":")
        kernels[key] = Kernel(
            event.display_name or event.name,
            event.name,
            str(stats.get("hlo_category", "")),
            str(stats.get("tf_op", "")),
            Location(file, int(line), "") if file and line.isdigit() else None,
            float(stats.get("flops", 0)),
            float(stats.get("bytes_accessed", 0)),
        )
    return kernels[key]
