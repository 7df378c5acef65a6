"""Values that the program reads: the device is idle from then until the next program is recorded and started."""

import bisect

from torch_xla.doctor.causes.cause import Cause, Measure, line_of, through
from torch_xla.doctor.program_run import Interval, ProgramRun

_ELSEWHERE = ("compile", "input", "upload", "fallback", "read")


def find(run: ProgramRun) -> list[Cause]:
    """A cause for each line that reads."""
    measure = Measure(run)
    return [_cause(run, measure, reads) for reads in measure.grouped("read")]


def _cause(run: ProgramRun, measure: Measure, reads: list[Interval]) -> Cause:
    idle = sum(idle_after(run, measure, read) for read in reads)
    seconds = saved_per_step(run, measure, reads)
    waited = sum(measure.own_seconds(r.start, r.end, ("compile",)) for r in reads)
    site = reads[0].site
    what = f"`{site.expression}`" if site is not None and site.expression else reads[0].name
    details = [
        f"{reads[0].name}: {len(reads)} times in {measure.count} steps.",
        f"The program waits {waited / measure.count * 1e3:.3f} ms a step for the values. Meanwhile it records nothing, so that "
        f"the device then has nothing to do for {idle / measure.count * 1e3:.3f} ms a step.",
    ]
    return Cause(
        "read",
        f"{what} waits for the device",
        line_of(site),
        seconds,
        measure.share(seconds),
        len(reads),
        _remedy(reads[0].name),
        (*details, *through(site)),
    )


def _remedy(reader: str) -> str:
    if reader == "torch.equal":
        return (
            "Compare what is known without the values: whether the tensors are the same object (`a is b`), or a flag of the caller's. "
            "Where the values must decide, torch.where computes both sides."
        )
    if reader.startswith("torch.nonzero"):
        return (
            "Keep the shape: torch.where(mask, x, 0), a product with the mask, or masked_fill, instead of as many elements as the mask "
            "has ones."
        )
    return (
        "Keep the value on the device: sum it up in a tensor, and read it every so many steps or at the end of the epoch; or hand it "
        "to xm.add_step_closure(…, run_async=True), which reads it while the next step is recorded. For a decision in Python, "
        "torch.where computes both sides."
    )


def saved_per_step(run: ProgramRun, measure: Measure, waits: list[Interval]) -> float:
    """How much shorter a step would be without these waits."""
    idle = sum(idle_after(run, measure, wait) for wait in waits) / measure.count
    # Then recording and running overlap: at most the shorter of them is saved.
    busy = measure.busy_seconds_per_step()
    return idle if busy is None else min(idle, busy)


def idle_after(run: ProgramRun, measure: Measure, wait: Interval) -> float:
    """For how long the device has nothing to do after a wait because of it: until the next program starts, or the next wait."""
    starts = [execution.start for execution in run.executions]
    at = bisect.bisect(starts, wait.end)
    if at == len(starts):
        return 0.0
    until = starts[at]
    for interval in run.main_intervals():
        if interval.kind in ("read", "fallback") and wait.end <= interval.start < until:
            until = interval.start
    return measure.own_seconds(wait.end, until, _ELSEWHERE)
