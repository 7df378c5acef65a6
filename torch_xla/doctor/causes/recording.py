"""Recording that takes longer than running: the device waits for the program."""

from torch_xla.debug.what_changed import Location
from torch_xla.doctor.causes.cause import Cause, Measure, line_of
from torch_xla.doctor.program_run import ProgramRun

# Of a step in which the device works less than this, and that records something, recording is the bottleneck.
_LEAST_SECONDS = 0.2e-3


def find(run: ProgramRun, others: list[Cause]) -> Cause | None:
    """The cause, if it is known how long the device works; `others` explain a part of the time in which it does not."""
    measure = Measure(run)
    busy = measure.busy_seconds_per_step()
    if busy is None or not measure.steps:
        return None
    idle = measure.seconds_per_step - busy
    seconds = idle - sum(cause.seconds_per_step for cause in others)
    other_code = sum(cause.seconds_per_step for cause in others if cause.kind == "python")
    python = run.phases(measure.steps).get("python", 0.0) / measure.count - other_code
    # If both go on at the same time, a step takes as long as the longer of them.
    seconds = min(seconds, python - busy)
    if seconds < _LEAST_SECONDS:
        return None
    operators, lines = _recorded(run, measure)
    if operators == 0:
        return None
    details = [
        f"The device works {busy * 1e3:.3f} ms a step; Python and recording take {python * 1e3:.3f} ms, for {operators:.0f} operators.",
    ]
    if lines:
        most = ", ".join(f"{location} ({count})" for location, count in lines)
        details.append(f"The lines that record the most operators: {most}.")
    return Cause(
        "recording",
        "recording takes longer than running",
        lines[0][0] if lines else line_of(measure.steps[-1].ended_by.site),
        seconds,
        measure.share(seconds),
        len(measure.steps),
        "Give the device more to do in a step (a larger batch, several batches a step), or record less: fused optimizers "
        "(fused=True or foreach=True), nn.functional's own operators instead of formulas, no loops over elements or layers' "
        "parts.",
        tuple(details),
    )


def _recorded(run: ProgramRun, measure: Measure) -> tuple[float, list[tuple[Location, int]]]:
    """How many operators a step records, and which lines record the most."""
    executions = [e for e in run.executions if measure.contains(e.start)]
    operators = sum(execution.operators for execution in executions) / measure.count
    largest = max(executions, key=lambda execution: execution.operators, default=None)
    if largest is None:
        return operators, []
    return operators, run.recording_lines.get(largest.hash, [])[:3]
