"""What was found, as plain data: for `--json`, and for those who print and draw it.

    {"version": 1, "script", "arguments", "ended": {"status", "how"}, "device",
     "steps": {"count", "measured", "seconds", "phases": {kind: seconds a step}},
     "causes": [{"kind", "title", "place", "file", "line", "function", "code", "seconds_per_step", "share", "count", "remedy",
                 "details"}],
     "compilations": [{"seconds", "start", "step", "kind", "change", "place", "code", "cause", "asked_at", "operators",
                       "graph_name"}],
     "device_seconds": a step's, in which the device works, "overlap_seconds": those of them in which the program records the next
                       step; null if that was not collected,
     "peaks": {"flops", "bytes"} a second, as measured, or null,
     "kernels": [{"name", "text", "category", "operation", "place", "code", "seconds" a step, "count" a step, "flops", "bytes" of one
                  run, "roofline": the least time that the work takes as a share of the time that it took, or null,
                  "bound": "compute", "memory" or null}],
     "memory": {"peak_bytes", "program_bytes", "holdings": [{"bytes", "count", "shape", "made_by", "place", "code"}]}}

Times are seconds; `start` counts from the program's start. `step` is -1 before the first step; `file`, `line`, `place` are null
where no line is known. `share` is of a step's time.
"""

from typing import Any

import torch_xla
from torch_xla import _XLAC
from torch_xla.debug import user_frame
from torch_xla.debug.what_changed import Location
from torch_xla.doctor.causes.cause import Cause, Measure, line_of
from torch_xla.doctor.device_profile import Kernel
from torch_xla.doctor.peaks import Peaks
from torch_xla.doctor.program_run import Compilation, MemorySample, ProgramRun
from torch_xla.doctor.script import Ended

VERSION = 1
_MOST_KERNELS = 100
_MOST_TEXT = 300


def of(
    run: ProgramRun, causes: list[Cause], script: str, arguments: list[str], ended: Ended
) -> dict[str, Any]:
    """The summary of a run."""
    measure = Measure(run)
    steps = run.steps()
    phases = run.phases(measure.steps)
    peak = max(run.memory, key=lambda sample: sample.bytes, default=MemorySample(0, (), 0))
    return {
        "version": VERSION,
        "script": script,
        "arguments": arguments,
        "ended": {"status": ended.status, "how": ended.how},
        "device": _device(),
        "steps": {
            "count": len(steps),
            "measured": len(measure.steps),
            "seconds": measure.seconds_per_step if measure.steps else None,
            "phases": {kind: seconds / measure.count for kind, seconds in phases.items()},
        },
        "causes": [_cause(cause) for cause in causes],
        "compilations": [_compilation(run, compilation) for compilation in run.compilations],
        "device_seconds": measure.busy_seconds_per_step(),
        "overlap_seconds": measure.overlap_seconds_per_step(),
        "peaks": run.peaks._asdict() if run.peaks is not None else None,
        "kernels": _kernels(run),
        "memory": {
            "peak_bytes": peak.bytes,
            "program_bytes": peak.program_bytes,
            "holdings": [
                {
                    "bytes": holding.bytes,
                    "count": holding.count,
                    "shape": holding.shape,
                    "made_by": holding.made_by,
                    **_place(holding.location),
                }
                for holding in peak.holdings[:50]
            ],
        },
    }


def _device() -> str | None:
    if not _XLAC._xla_runtime_is_initialized():
        return None
    return f"{torch_xla.device()} ({torch_xla.real_devices()[0]})"


def _cause(cause: Cause) -> dict[str, Any]:
    return {
        "kind": cause.kind,
        "title": cause.title,
        **_place(cause.location),
        "seconds_per_step": cause.seconds_per_step,
        "share": cause.share,
        "count": cause.count,
        "remedy": cause.remedy,
        "details": list(cause.details),
    }


def _compilation(run: ProgramRun, compilation: Compilation) -> dict[str, Any]:
    steps = run.steps()
    step = next((step.index for step in steps if step.start <= compilation.start < step.end), -1)
    change = compilation.change
    location = change.location if change is not None else None
    asked = line_of(compilation.site)
    return {
        "seconds": compilation.seconds,
        "start": compilation.start - run.start,
        "step": step,
        "kind": change.kind if change is not None else None,
        "change": change.text if change is not None else None,
        "cause": compilation.cause,
        "operators": compilation.operators,
        "graph_name": compilation.graph_name,
        "asked_at": str(asked) if asked is not None else None,
        **_place(location or asked),
    }


def _kernels(run: ProgramRun) -> list[dict[str, Any]]:
    if run.device is None:
        return []
    device = run.device
    steps = max(sum(device.covers(step.start, step.end) for step in run.steps()), 1)
    return [_kernel(kernel, run.peaks, steps) for kernel in device.kernels[:_MOST_KERNELS]]


def _kernel(kernel: Kernel, peaks: Peaks | None, steps: int) -> dict[str, Any]:
    roofline = bound = None
    if peaks is not None and (kernel.flops or kernel.bytes) and kernel.seconds > 0:
        least = peaks.seconds(kernel.flops, kernel.bytes)
        roofline = min(least * kernel.count / kernel.seconds, 1.0)
        bound = "compute" if kernel.flops / peaks.flops > kernel.bytes / peaks.bytes else "memory"
    return {
        "name": kernel.name,
        "text": kernel.text[:_MOST_TEXT],
        "category": kernel.category,
        "operation": kernel.operation,
        **_place(kernel.location),
        "seconds": kernel.seconds / steps,
        "count": kernel.count / steps,
        "flops": kernel.flops,
        "bytes": kernel.bytes,
        "roofline": roofline,
        "bound": bound,
    }


def _place(location: Location | None) -> dict[str, Any]:
    if location is None:
        return {"place": None, "file": None, "line": None, "function": None, "code": ""}
    return {
        "place": str(location),
        "file": location.file,
        "line": location.line,
        "function": location.function,
        "code": user_frame.line_text(location.file, location.line),
    }
