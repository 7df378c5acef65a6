"""Tensors that move to the device in the middle of a step, while the program waits for them."""

from torch_xla.doctor.causes.cause import Cause, Measure, line_of, through
from torch_xla.doctor.program_run import Interval, ProgramRun


def find(run: ProgramRun) -> list[Cause]:
    """A cause for each line that moves a tensor."""
    measure = Measure(run)
    return [_cause(measure, uploads) for uploads in measure.grouped("upload")]


def _cause(measure: Measure, uploads: list[Interval]) -> Cause:
    seconds = sum(upload.seconds for upload in uploads) / measure.count
    return Cause(
        "upload",
        "the step moves data to the device",
        line_of(uploads[0].site),
        seconds,
        measure.share(seconds),
        len(uploads),
        "torch_xla.distributed.parallel_loader.MpDeviceLoader(loader, device) moves the next batches while a step runs. What does "
        "not change from step to step moves once, before the first; what can be computed is made on the device (device=…).",
        (f"{len(uploads)} times in {measure.count} steps.", *through(uploads[0].site)),
    )
