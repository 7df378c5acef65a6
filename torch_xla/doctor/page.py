"""The report: one HTML file that needs nothing else, drawn by `page.js` from the data in it."""

import collections
import importlib.resources
import json
from collections.abc import Iterable
from typing import Any

from torch_xla.doctor.device_profile import Transfer
from torch_xla.doctor.program_run import Interval, ProgramRun, innermost_parts
from torch_xla.doctor.text import PHASES

# So many steps are shown, the last ones, with at most so many intervals in a lane.
_MOST_STEPS = 40
_MOST_INTERVALS = 5000
# So many lines have a colour of their own in the picture of the memory.
_MOST_LINES = 7


def of(run: ProgramRun, summary: dict[str, Any]) -> str:
    """The page's text."""
    data = {
        **summary,
        "phaseNames": PHASES,
        "timeline": _timeline(run),
        "memorySeries": _memory_series(run),
        "inputSeries": _input_series(run),
        "loaders": [
            {
                "description": loader.description,
                "workers": loader.workers,
                "item": str(loader.item) if loader.item else "",
            }
            for loader in run.loaders
        ],
    }
    # Nothing in the data can end the element that holds it.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    files = importlib.resources.files(__package__)
    page = files.joinpath("page.html").read_text()
    for place, content in (
        ("/*STYLE*/", files.joinpath("page.css").read_text()),
        ("/*SCRIPT*/", files.joinpath("page.js").read_text()),
        ("/*DATA*/", text),
    ):
        page = page.replace(place, content)
    return page


def _timeline(run: ProgramRun) -> dict[str, Any]:
    """Steps and lanes of spans [start, end, kind, label, place], from the program's start on."""
    steps = run.steps()
    if run.device is not None:
        collected = [step for step in steps if run.device.covers(step.start, step.end)]
        steps = collected or steps
    steps = steps[-_MOST_STEPS:]
    if not steps:
        return {"steps": [], "lanes": []}
    start, end = steps[0].start, steps[-1].end
    threads: dict[int, list[Interval]] = collections.defaultdict(list)
    for interval in run.intervals:
        if interval.end > start and interval.start < end:
            threads[interval.thread].append(interval)
    main = threads.pop(run.main_thread, [])
    lanes = [_lane("Program", _parts(run, main))]
    for number, intervals in enumerate(threads.values(), 1):
        kinds = {interval.kind for interval in intervals}
        names = {"load": "Loader", "upload": "Uploads"}
        name = next((name for kind, name in names.items() if kind in kinds), f"Thread {number}")
        lanes.append(_lane(name, _parts(run, intervals)))
    return {
        "steps": [[step.start - run.start, step.end - run.start, step.index] for step in steps],
        "lanes": [*lanes, *_device_lanes(run, start, end)],
    }


def _parts(run: ProgramRun, intervals: list[Interval]) -> list[list[Any]]:
    return [
        [
            part.start - run.start,
            part.end - run.start,
            part.interval.kind,
            part.interval.name,
            str(part.interval.site.location) if part.interval.site is not None else "",
        ]
        for part in innermost_parts(intervals)
    ]


def _device_lanes(run: ProgramRun, start: float, end: float) -> list[dict[str, Any]]:
    device = run.device
    if device is None:
        return []

    def spans(events: Iterable[Any], kind: str) -> list[list[Any]]:
        return [
            [event.start - run.start, event.end - run.start, kind, event.name, ""]
            for event in events
            if event.end > start and event.start < end
        ]

    transfers = [event._replace(name=_transfer_text(event)) for event in device.transfers]
    lanes = [
        _lane("Transfers", spans(transfers, "transfer")),
        _lane("Device", spans(device.programs, "run")),
        _lane("Kernels", spans(device.runs, "kernel")),
    ]
    return [lane for lane in lanes if lane["spans"]]


def _transfer_text(transfer: Transfer) -> str:
    direction = (
        "to the device" if transfer.name == "xla::upload" else "to the host, with the wait for them"
    )
    return f"{transfer.bytes} bytes {direction}"


def _lane(name: str, spans: list[list[Any]]) -> dict[str, Any]:
    for span in spans:
        span[0], span[1] = round(span[0], 7), round(span[1], 7)
    return {"name": name, "spans": spans[-_MOST_INTERVALS:]}


def _memory_series(run: ProgramRun) -> dict[str, Any]:
    """What each of the largest lines held at each time, in bytes; the rest of them are one, and so is what programs need."""
    totals: collections.Counter[str] = collections.Counter()
    for sample in run.memory:
        for holding in sample.holdings:
            totals[_line(holding)] += holding.bytes
    lines = [line for line, _ in totals.most_common(_MOST_LINES)]
    samples = []
    for sample in run.memory:
        held: collections.Counter[str] = collections.Counter()
        for holding in sample.holdings:
            line = _line(holding)
            held[line if line in lines else "other lines"] += holding.bytes
        values = [held[line] for line in [*lines, "other lines"]]
        samples.append([round(sample.time - run.start, 6), *values, sample.program_bytes])
    return {"lines": [*lines, "other lines", "results and intermediate values"], "samples": samples}


def _line(holding: Any) -> str:
    if holding.location is not None:
        return f"{holding.location} ({holding.location.function})"
    return "from the host" if not holding.made_by else f"made by {holding.made_by}"


def _input_series(run: ProgramRun) -> list[list[float]]:
    """For each step: its seconds, and how long it waited for batches."""
    waits = [interval for interval in run.main_intervals() if interval.kind == "input"]
    return [
        [
            step.index,
            step.seconds,
            sum(w.seconds for w in waits if step.start <= w.start < step.end),
        ]
        for step in run.steps()[-400:]
    ]
