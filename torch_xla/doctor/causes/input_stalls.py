"""Steps that wait for their batch: the loader is slower than the step."""

from torch_xla.doctor.causes.cause import Cause, Measure, line_of, through
from torch_xla.doctor.program_run import Interval, ProgramRun


def find(run: ProgramRun) -> list[Cause]:
    """A cause for each line that iterates a loader."""
    measure = Measure(run)
    return [_cause(run, measure, stalls) for stalls in measure.grouped("input")]


def _cause(run: ProgramRun, measure: Measure, stalls: list[Interval]) -> Cause:
    seconds = sum(stall.seconds for stall in stalls) / measure.count
    details = [f"Waited {len(stalls)} times in {measure.count} steps."]
    loads = [
        i for i in run.intervals if i.kind == "load" and i.thread != run.main_thread and i.seconds
    ]
    is_parallel = bool(loads)
    if is_parallel:
        each = sum(load.seconds for load in loads) / len(loads)
        details.append(
            f"The loader needs {each * 1e3:.3f} ms for a batch; a step takes {measure.seconds_per_step * 1e3:.3f} ms."
        )
    workers = max((loader.workers for loader in run.loaders), default=0)
    for loader in run.loaders:
        where = f", made in {loader.item.function}, {loader.item}" if loader.item else ""
        details.append(f"Items of `{loader.description}`, {loader.workers} workers{where}.")
    return Cause(
        "input",
        "the step waits for its batch",
        line_of(stalls[0].site),
        seconds,
        measure.share(seconds),
        len(stalls),
        _remedy(is_parallel, workers),
        (*details, *through(stalls[0].site)),
    )


def _remedy(is_parallel: bool, workers: int) -> str:
    more = "more workers (num_workers)" if workers else "worker processes (num_workers=2 or more)"
    faster = f"Give the DataLoader {more}, and do less for each item: decode and tokenize once, before training."
    if is_parallel:
        return faster
    return (
        "Load in the background: torch_xla.distributed.parallel_loader.MpDeviceLoader(loader, device) makes and moves the next "
        f"batches while a step runs. {faster}"
    )
