"""What costs the steps time, the most first."""

from torch_xla.doctor.causes import (
    fallbacks,
    input_stalls,
    precision,
    recompilations,
    recording,
    step_ends,
    value_reads,
)
from torch_xla.doctor.causes.cause import Cause
from torch_xla.doctor.program_run import ProgramRun

_FINDERS = (
    value_reads.find,
    recompilations.find,
    fallbacks.find,
    input_stalls.find,
    step_ends.find,
    recording.find,
    precision.find,
)
KINDS = {
    "read": "values that are read before a step's end",
    "recompile": "steps that are other programs",
    "fallback": "operators that run on the CPU",
    "input": "waiting for batches",
    "wait": "waiting for the device at a step's end",
    "no-step-end": "a program that ends no steps",
    "small-steps": "steps of very few operators",
    "large-graph": "steps of very many operators",
    "recording": "recording that takes longer than running",
    "float64": "computing in float64",
}
"""The kinds of causes, for --fail-on."""

# Of a step's time. What costs less is no cause.
_LEAST_SHARE = 0.03
# Whatever they cost, these are said: they cost more elsewhere.
_ALWAYS = {"fallback", "no-step-end", "large-graph", "float64"}


def find(run: ProgramRun) -> list[Cause]:
    """All causes that matter, the most expensive first."""
    found = [cause for finder in _FINDERS for cause in finder(run)]
    found = [cause for cause in found if cause.share >= _LEAST_SHARE or cause.kind in _ALWAYS]
    return sorted(found, key=lambda cause: -cause.seconds_per_step)
