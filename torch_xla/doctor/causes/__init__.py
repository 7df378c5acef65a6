"""What costs the steps time, the most first."""

from torch_xla.doctor.causes import (
    copies,
    fallbacks,
    input_stalls,
    precision,
    python_code,
    recompilations,
    recording,
    step_ends,
    uploads,
    value_reads,
)
from torch_xla.doctor.causes.cause import Cause, Measure
from torch_xla.doctor.program_run import ProgramRun

_FINDERS = (
    value_reads.find,
    recompilations.find,
    fallbacks.find,
    input_stalls.find,
    uploads.find,
    python_code.find,
    step_ends.find,
    precision.find,
    copies.find,
)
KINDS = {
    "read": "values that are read before a step's end",
    "recompile": "steps that are other programs",
    "fallback": "operators that run on the CPU",
    "input": "waiting for batches",
    "upload": "moving data to the device within a step",
    "wait": "waiting for the device at a step's end",
    "no-step-end": "a program that ends no steps",
    "small-steps": "steps of very few operators",
    "large-graph": "steps of very many operators",
    "python": "Python code that records nothing",
    "recording": "recording that takes longer than running",
    "float64": "computing in float64",
    "copies": "kernels that only move data",
}
"""The kinds of causes, for --fail-on."""

# Of a step's time. What costs less is no cause; what happens in most steps is one sooner.
_LEAST_SHARE = 0.03
_LEAST_SHARE_OF = {"input": 0.05, "python": 0.05}
_LEAST_SHARE_OF_FREQUENT_READS = 0.01
# Whatever they cost, these are said: they cost more elsewhere.
_ALWAYS = {"fallback", "no-step-end", "large-graph", "float64"}


def find(run: ProgramRun) -> list[Cause]:
    """All causes that matter, the most expensive first."""
    if not run.executions:
        return []
    found = [cause for finder in _FINDERS for cause in finder(run)]
    rest = recording.find(run, found)
    if rest is not None:
        found.append(rest)
    steps = Measure(run).count
    found = [
        cause for cause in found if cause.kind in _ALWAYS or cause.share >= _least(cause, steps)
    ]
    return sorted(found, key=lambda cause: (-cause.share, -cause.seconds_per_step))


def _least(cause: Cause, steps: int) -> float:
    if cause.kind == "read" and cause.count * 2 > steps:
        return _LEAST_SHARE_OF_FREQUENT_READS
    return _LEAST_SHARE_OF.get(cause.kind, _LEAST_SHARE)
