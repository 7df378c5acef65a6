"""Operators that have no lowering: the graph is cut, their inputs are computed and copied, and torch's CPU kernel runs."""

from torch_xla.doctor.causes.cause import Cause, Measure, line_of, through
from torch_xla.doctor.causes.value_reads import idle_after
from torch_xla.doctor.program_run import Interval, ProgramRun


def find(run: ProgramRun) -> list[Cause]:
    """A cause for each line and operator."""
    measure = Measure(run)
    by_operator = measure.grouped("fallback", lambda call: (line_of(call.site), call.name))
    return [_cause(run, measure, calls) for calls in by_operator]


def _cause(run: ProgramRun, measure: Measure, calls: list[Interval]) -> Cause:
    inside = sum(measure.own_seconds(call.start, call.end, ("compile",)) for call in calls)
    # What the device computes meanwhile it would compute anyway.
    inside = max(inside - measure.busy_seconds(calls), 0.0)
    idle = sum(idle_after(run, measure, call) for call in calls)
    seconds = (inside + idle) / measure.count
    operator = calls[0].name
    details = [
        f"{len(calls)} times in {measure.count} steps: {inside / measure.count * 1e3:.3f} ms a step until it is done, and "
        f"{idle / measure.count * 1e3:.3f} ms more until the device has something to do again.",
    ]
    return Cause(
        "fallback",
        f"{operator} is not lowered and runs on the CPU",
        line_of(calls[0].site),
        seconds,
        measure.share(seconds),
        len(calls),
        f"Write it with operators that are lowered (docs/operators.md lists them), register a decomposition for {operator}, or "
        "compute it outside of the step.",
        (*details, *through(calls[0].site)),
    )
