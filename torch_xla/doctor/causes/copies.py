"""Kernels that compute nothing: transposes, copies and changes of layout that no other kernel could take along."""

from torch_xla.doctor.causes.cause import Cause, Measure
from torch_xla.doctor.program_run import ProgramRun

_CATEGORIES = {
    "copy",
    "transpose",
    "reshape",
    "broadcast",
    "concatenate",
    "pad",
    "slice",
    "reverse",
    "data formatting",
}


def find(run: ProgramRun) -> list[Cause]:
    """A cause for the line whose data is moved for the longest time."""
    if run.device is None:
        return []
    kernels = [kernel for kernel in run.device.kernels if kernel.category in _CATEGORIES]
    if not kernels:
        return []
    measure = Measure(run)
    seconds = measure.kernel_seconds_per_step(lambda kernel: kernel.category in _CATEGORIES)
    longest = kernels[0]
    return [
        Cause(
            "copies",
            f"{len(kernels)} kernels only move data, `{longest.operation or longest.category}` the most of it",
            longest.location,
            seconds,
            measure.share(seconds),
            len(kernels),
            "Keep tensors in the order in which they are used: transpose once instead of in every layer, and avoid contiguous(), "
            "cat() and expand().clone() within the step.",
        )
    ]
