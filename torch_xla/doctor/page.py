"""The report: one HTML file that needs nothing else, drawn by `page.js` from the data in it."""

import collections
import importlib.resources
import json
from typing import Any

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
    steps = run.steps()[-_MOST_STEPS:]
    if not steps:
        return {"steps": [], "lanes": []}
    start, end = steps[0].start, steps[-1].end
    threads: dict[int, list[Interval]] = collections.defaultdict(list)
    for interval in run.intervals:
        if interval.end > start and interval.start < end:
            threads[interval.thread].append(interval)
    main = threads.pop(run.main_thread, [])
    lanes = [_lane(run, "Program", main)]
    for number, intervals in enumerate(threads.values(), 1):
        name = "Loader" if any(i.kind == "load" for i in intervals) else f"Thread {number}"
        lanes.append(_lane(run, name, intervals))
    return {
        "steps": [[step.start - run.start, step.end - run.start, step.index] for step in steps],
        "lanes": lanes,
    }


def _lane(run: ProgramRun, name: str, intervals: list[Interval]) -> dict[str, Any]:
    spans = [
        [
            round(part.start - run.start, 7),
            round(part.end - run.start, 7),
            part.interval.kind,
            part.interval.name,
            str(part.interval.site.location) if part.interval.site is not None else "",
        ]
        for part in innermost_parts(intervals)
    ]
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
