"""What was found, as plain data: for `--json`, and for those who print and draw it.

    {"version": 1, "script", "arguments", "ended": {"status", "how"}, "device",
     "steps": {"count", "measured", "seconds", "phases": {kind: seconds a step}},
     "causes": [{"kind", "title", "place", "file", "line", "function", "code", "seconds_per_step", "share", "count", "remedy",
                 "details"}],
     "compilations": [{"seconds", "start", "step", "kind", "change", "place", "code", "cause", "operators", "graph_name"}],
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
from torch_xla.doctor.program_run import Compilation, MemorySample, ProgramRun
from torch_xla.doctor.script import Ended

VERSION = 1


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
    location = change.location if change is not None and change.location else None
    return {
        "seconds": compilation.seconds,
        "start": compilation.start - run.start,
        "step": step,
        "kind": change.kind if change is not None else None,
        "change": change.text if change is not None else None,
        "cause": compilation.cause,
        "operators": compilation.operators,
        "graph_name": compilation.graph_name,
        **_place(location or line_of(compilation.site)),
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
