"""A profile in the trace-event format, which Perfetto and `chrome://tracing` show."""

from typing import Any

from torch_xla.debug.trace_events import Event, Space


def _title(name: str, stats: dict[str, Any]) -> str:
    device = stats.get("device_type_string")
    return f"{device} {name.rsplit(':', 1)[-1]}" if device else name


def _argument(value: Any) -> Any:
    return f"{len(value)} bytes" if isinstance(value, bytes) else value


def _complete_event(event: Event, process: int, thread: int) -> dict[str, Any]:
    arguments = {name: _argument(value) for name, value in event.stats.items()}
    if event.display_name != event.name:
        arguments["long_name"] = event.name
    return {
        "ph": "X",
        "name": event.display_name,
        "pid": process,
        "tid": thread,
        "ts": event.start_ps / 1e6,
        "dur": event.duration_ps / 1e6,
        "args": arguments,
    }


def _metadata(kind: str, process: int, thread: int, **arguments: Any) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": process, "tid": thread, "args": arguments}


def convert(space: Space) -> dict[str, Any]:
    """The JSON object: each plane a process, each line a thread of it; times in microseconds."""
    events: list[dict[str, Any]] = []
    for process, plane in enumerate(space.planes, start=1):
        if not plane.lines:
            continue
        events.append(_metadata("process_name", process, 0, name=_title(plane.name, plane.stats)))
        events.append(_metadata("process_sort_index", process, 0, sort_index=process))
        for index, line in enumerate(plane.lines):
            events.append(_metadata("thread_name", process, line.id, name=line.name))
            events.append(_metadata("thread_sort_index", process, line.id, sort_index=index))
            events += [_complete_event(event, process, line.id) for event in line.events]
    return {
        "displayTimeUnit": "ns",
        "otherData": {"hostnames": space.hostnames, "warnings": space.warnings},
        "traceEvents": events,
    }
