"""The program's own Python code that records nothing: preparing data, plotting, bookkeeping between the operations."""

import collections

from torch_xla.debug.what_changed import Location
from torch_xla.doctor.causes.cause import Cause, Measure
from torch_xla.doctor.host_samples import HostSample
from torch_xla.doctor.program_run import ProgramRun

# Fewer looks than this say nothing.
_LEAST_SAMPLES = 5


def find(run: ProgramRun) -> list[Cause]:
    """A cause for each function that takes time."""
    measure = Measure(run)
    by_function: dict[tuple[str, str], list[HostSample]] = collections.defaultdict(list)
    for sample in run.host_samples:
        if not measure.contains(sample.time) or sample.is_in_torch:
            continue
        if (sample.line.file, sample.line.line) in run.recorded_lines:
            continue
        if measure.is_own_time(sample.time):
            # A comprehension is a part of its function.
            function = sample.own.function.partition(".<locals>.<")[0]
            by_function[sample.own.file, function].append(sample)
    # While the device works, the time costs nothing.
    busy = measure.busy_seconds_per_step()
    idle = float("inf") if busy is None else max(measure.seconds_per_step - busy, 0.0)
    return [
        _cause(measure, function, samples, idle)
        for (_, function), samples in by_function.items()
        if len(samples) >= _LEAST_SAMPLES
    ]


def _cause(measure: Measure, function: str, samples: list[HostSample], idle: float) -> Cause:
    lines: collections.Counter[Location] = collections.Counter()
    taken = 0.0
    for sample in samples:
        lines[sample.own] += 1
        taken += sample.seconds
    taken /= measure.count
    seconds = min(taken, idle)
    (location, _), *others = lines.most_common(4)
    details = [f"It takes about {taken * 1e3:.1f} ms a step."]
    if others:
        share = ", ".join(f"{line} ({count / lines.total():.0%})" for line, count in others)
        details.append(f"Other lines of it: {share}.")
    return Cause(
        "python",
        f"Python code in `{function}` records nothing",
        location,
        seconds,
        measure.share(seconds),
        len(samples),
        "If it makes batches, give it to a DataLoader with workers and to MpDeviceLoader, so that it runs besides the steps; else do it "
        "less often, or in another thread.",
        tuple(details),
    )
