"""Profiles of this process, and their content as plain objects.

    from torch_xla.debug import trace_events

    trace_events.start()
    ...                                                  # some steps
    space = trace_events.parse(trace_events.stop())
    for plane in space.planes:                           # "/host:CPU", the devices'
        for line in plane.lines:                         # a thread; a device's operations
            for event in line.events:
                print(event.name, event.start_ps, event.duration_ps, event.stats)

The bytes between are a serialized XSpace, the format of XLA's profilers and of TensorBoard's `.xplane.pb` files. All times
count from the beginning of the profile, on one axis.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from torch_xla import _XLAC

HOST_PLANE = "/host:CPU"
TASK_PLANE = "Task Environment"


@dataclass(slots=True)
class Event:
    """Something that took time. `stats` are those of the event and of all events of its name."""

    name: str
    display_name: str
    start_ps: int
    duration_ps: int
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def end_ps(self) -> int:
        """When it ended, in picoseconds like `start_ps`."""
        return self.start_ps + self.duration_ps


@dataclass(slots=True)
class Line:
    """A thread of the host, or one aspect of a device. Its events are in the order of their starts."""

    id: int
    name: str
    events: list[Event] = field(default_factory=list)


@dataclass(slots=True)
class Plane:
    """The host, or a device."""

    name: str
    lines: list[Line] = field(default_factory=list)
    stats: dict[str, Any] = field(default_factory=dict)

    @property
    def is_device(self) -> bool:
        """Whether it is a device, not the host."""
        return self.name.startswith("/device:")


@dataclass(slots=True)
class Space:
    """A profile."""

    planes: list[Plane] = field(default_factory=list)
    hostnames: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def plane(self, name: str) -> Plane | None:
        """The plane of that name, or None."""
        return next((plane for plane in self.planes if plane.name == name), None)

    @property
    def host(self) -> Plane:
        """The host's threads."""
        return self.plane(HOST_PLANE) or Plane(HOST_PLANE)

    @property
    def devices(self) -> list[Plane]:
        """The devices' planes."""
        return [plane for plane in self.planes if plane.is_device]

    def events(self, name: str) -> Iterator[Event]:
        """The host's events of that name, thread by thread."""
        for line in self.host.lines:
            yield from (event for event in line.events if event.name == name)


def start() -> None:
    """Collects from now on. Raises RuntimeError if a profile of this process is being collected: one at a time."""
    _XLAC._start_profile()


def is_running() -> bool:
    """Whether a profile of this process is being collected."""
    return _XLAC._is_profiling()


def stop() -> bytes:
    """What was collected since `start`, as a serialized XSpace. Raises RuntimeError if nothing is being collected."""
    return _XLAC._stop_profile()


def parse(xspace: bytes) -> Space:
    """The content of a serialized XSpace; raises RuntimeError for bytes that are none."""
    planes, hostnames, warnings, errors = _XLAC._parse_xspace(xspace)
    return Space(
        [
            Plane(
                name,
                [
                    Line(number, line_name, sorted((Event(*event) for event in events), key=_start))
                    for number, line_name, events in lines
                ],
                stats,
            )
            for name, stats, lines in planes
        ],
        hostnames,
        warnings,
        errors,
    )


def _start(event: Event) -> tuple[int, int]:
    return event.start_ps, -event.duration_ps
