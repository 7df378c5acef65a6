"""Where steps end: nowhere, too often, or only after waiting."""

import collections
import statistics

from torch_xla.doctor.causes.cause import Cause, Measure, line_of
from torch_xla.doctor.causes.value_reads import saved_per_step
from torch_xla.doctor.program_run import Interval, ProgramRun

_FEW_OPERATORS = 4
_SHORT_SECONDS = 0.5e-3
_MANY_OPERATORS = 100_000


def find(run: ProgramRun) -> list[Cause]:
    """Each of these, if it is so."""
    return [*_never(run), *_waiting(run), *_small(run), *_large(run)]


def _never(run: ProgramRun) -> list[Cause]:
    if run.step_ends or len(run.executions) < 2:
        return []
    measure = Measure(run)
    last = next((i for i in reversed(run.main_intervals()) if i.site is not None), None)
    return [
        Cause(
            "no-step-end",
            "no step is ever ended",
            line_of(last.site) if last is not None else None,
            measure.own_seconds(run.start, run.end, ("compile", "input")) / len(run.executions),
            1.0,
            len(run.executions),
            "Call torch_xla.sync() at the end of each step. Without it a graph grows until a value is read, and what runs is only "
            "what that value needs.",
            (
                f"{len(run.executions)} programs ran, each because a value was read; the time is that of one of them.",
            ),
        )
    ]


def _waiting(run: ProgramRun) -> list[Cause]:
    measure = Measure(run)
    by_line = collections.defaultdict(list)
    for end in run.step_ends:
        if end.waits and measure.contains(end.start):
            by_line[line_of(end.site)].append(end)
    causes = []
    for location, ends in by_line.items():
        waits = [Interval("sync", end.start, end.end, run.main_thread) for end in ends]
        seconds = saved_per_step(run, measure, waits)
        causes.append(
            Cause(
                "wait",
                "the step's end waits for the device",
                location,
                seconds,
                measure.share(seconds),
                len(ends),
                "Call torch_xla.sync() without wait=True: the next step is recorded while this one runs.",
                ("Until the next step is recorded, the device has nothing to do.",),
            )
        )
    return causes


def _small(run: ProgramRun) -> list[Cause]:
    measure = Measure(run)
    sizes = [e.operators for e in run.executions if measure.contains(e.start)]
    if len(run.steps()) < 8 or not sizes or statistics.median(sizes) > _FEW_OPERATORS:
        return []
    # Few operators may be a lot of work.
    if statistics.median(step.seconds for step in measure.steps) > _SHORT_SECONDS:
        return []
    seconds = run.phases(measure.steps).get("sync", 0.0) / measure.count
    return [
        Cause(
            "small-steps",
            f"a step has {statistics.median(sizes):.0f} operators",
            line_of(run.step_ends[-1].site),
            seconds,
            measure.share(seconds),
            len(measure.steps),
            "End a step once for each batch, not for each operation: each end cuts the graph and starts a program.",
        )
    ]


def _large(run: ProgramRun) -> list[Cause]:
    largest = max(run.executions, key=lambda execution: execution.operators, default=None)
    if largest is None or largest.operators < _MANY_OPERATORS:
        return []
    measure = Measure(run)
    end = next((end for end in run.step_ends if end.end >= largest.start), None)
    return [
        Cause(
            "large-graph",
            f"one program has {largest.operators} operators",
            line_of(end.site) if end is not None else None,
            0.0,
            measure.share(0.0),
            1,
            "Call torch_xla.sync() more often, such as once for each batch: large programs take long to compile and much memory.",
        )
    ]
