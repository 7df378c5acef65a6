"""What was found, for the terminal."""

import textwrap
from typing import Any

_WIDTH = 100
# How the phases of a step are called, in the order in which they are shown.
PHASES = {
    "python": "Python and recording",
    "input": "waiting for batches",
    "upload": "moving data to the device",
    "compile": "compiling",
    "read": "waiting for values",
    "fallback": "operators on the CPU",
    "sync": "ending steps, waiting for the device",
}


def of(summary: dict[str, Any]) -> str:
    """A ranked list: cause, line, time per step, remedy."""
    lines = ["", "=" * _WIDTH, *_head(summary), ""]
    causes = summary["causes"]
    for rank, cause in enumerate(causes, 1):
        lines += [*_cause(rank, cause), ""]
    if not causes and summary["steps"]["seconds"] is not None:
        lines += ["Nothing was found that makes the steps slow.", ""]
    return "\n".join([*lines, "=" * _WIDTH])


def _head(summary: dict[str, Any]) -> list[str]:
    steps = summary["steps"]
    head = [f"{summary['script']} {summary['ended']['how']}."]
    if summary["device"] is None:
        return [
            *head,
            "It did not use an xla device. (Of the processes that it started, only those of torch_xla.launch are watched.)",
        ]
    if steps["seconds"] is None:
        return [
            *head,
            "It ended no two steps (torch_xla.sync()), so that there is nothing to measure a step by.",
        ]
    head.append(
        f"{steps['count']} steps on {summary['device']}, {milliseconds(steps['seconds'])} each"
        f" (the last {steps['measured']} count):"
    )
    for kind, name in PHASES.items():
        seconds = steps["phases"].get(kind, 0.0)
        if seconds > 0.001 * steps["seconds"]:
            head.append(f"  {milliseconds(seconds):>12}  {seconds / steps['seconds']:4.0%}  {name}")
    if summary["device_seconds"] is not None:
        busy, overlap = summary["device_seconds"], summary["overlap_seconds"]
        head.append(
            f"The device works {milliseconds(busy)} a step ({min(busy / steps['seconds'], 1):.0%}); in {milliseconds(overlap)} of "
            "it the program records."
        )
    return head


def _cause(rank: int, cause: dict[str, Any]) -> list[str]:
    cost = f"{milliseconds(cause['seconds_per_step'])} a step ({cause['share']:.0%})"
    first = f"{rank}. [{cause['kind']}] {cause['title']}: {cost}"
    lines = _wrapped(first, "   ", "")
    if cause["place"] is not None:
        lines.append(f"   {cause['place']}: {cause['code']}")
    for detail in cause["details"]:
        lines += _wrapped(detail, "   ")
    return [*lines, *_wrapped(f"-> {cause['remedy']}", "      ", "   ")]


def _wrapped(text: str, indent: str, first: str | None = None) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def milliseconds(seconds: float) -> str:
    """`12.3 ms`."""
    value = seconds * 1e3
    return f"{value:.0f} ms" if value >= 100 else f"{value:.{1 if value >= 10 else 3}f} ms"
