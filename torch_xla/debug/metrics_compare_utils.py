"""Metrics reports as numbers, and how one differs from those before it.

import torch_xla.debug.metrics as met
import torch_xla.debug.metrics_compare_utils as mcu

history = mcu.get_data_points_from_metrics_reports(earlier_reports)
print(mcu.compare_metrics(history, met.metrics_report()), end="")
"""

import re
import statistics
from collections.abc import Sequence
from typing import Any

_SECONDS = {"d": 86400, "h": 3600, "m": 60, "s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
_MEGABYTES = {"B": 1e-6, "KB": 1e-3, "MB": 1, "GB": 1e3, "TB": 1e6}
_NUMBER = r"-?\d+(?:\.\d+)?"
_TIME = re.compile(rf"(?:{_NUMBER}(?:ms|us|ns|[dhms]))+")

# By default a metric may be greater than its mean by twice the standard deviation.
_CONFIG = {"base_expression": "v <= v_mean + (v_stddev * 2.0)"}


def _number(text: str) -> tuple[float, str]:
    """What a report writes as 01s002ms, 12.00KB or 3 as a number; and its unit, as a suffix of names."""
    if _TIME.fullmatch(text):
        parts = re.findall(rf"({_NUMBER})(ms|us|ns|[dhms])", text)
        return sum(float(value) * _SECONDS[unit] for value, unit in parts), "_sec"
    if match := re.fullmatch(rf"({_NUMBER})([KMGT]?B)", text):
        return float(match[1]) * _MEGABYTES[match[2]], "_mb"
    try:
        return float(text), ""
    except ValueError:
        raise ValueError(f"{text!r} is no value of a metrics report") from None


def parse_metrics_report(report: str, dehumanize: bool = True) -> dict[str, Any]:
    """The values of a report by name: "CompileTime__TotalSamples", "CompileTime__Percentile_99_sec", "MarkStep__Value".

    Args:
      report: what `torch_xla.debug.metrics.metrics_report()` gives; other lines before it are passed over.
      dehumanize: numbers, of seconds ("_sec") and megabytes ("_mb") where there is a unit; else the report's text.
    """
    points: dict[str, Any] = {}
    name = kind = None

    def add(key: str, text: str) -> None:
        value, suffix = _number(text) if dehumanize else (text, "")
        points[f"{name}__{key}{suffix}"] = value

    for line in report.splitlines():
        if match := re.search(r"(Metric|Counter): (\S+)$", line):
            kind, name = match[1], match[2]
        elif match := re.fullmatch(r"  (Value|TotalSamples|Accumulator|Percentiles): (.*)", line):
            key, text = match.groups()
            if key == "Percentiles":
                for percentile, value in re.findall(r"(\d+)%=([^;\s]+)", text):
                    add(f"Percentile_{percentile}", value)
            elif kind == "Counter" and dehumanize:
                points[f"{name}__{key}"] = int(text)
            else:
                add(key, text)
    return points


def get_data_points_from_metrics_reports(
    metrics_reports: Sequence[str],
) -> dict[str, list[float | None]]:
    """The values of several reports by name, in the reports' order; None where a report has none."""
    parsed = [parse_metrics_report(report) for report in metrics_reports]
    names = dict.fromkeys(name for report in parsed for name in report)
    return {name: [report.get(name) for report in parsed] for name in names}


def compare_metrics(
    data_points: dict[str, list[float | None]],
    metrics_report: str,
    config: dict[str, str] = _CONFIG,
) -> str:
    """A line for each value of a report that is not as it was, and for each operator that is new among those run on the CPU.

    Args:
      data_points: what `get_data_points_from_metrics_reports` gives of the reports before.
      metrics_report: the report.
      config: Python expressions that hold for a value `v` that is as it was, of its mean `v_mean` and standard deviation
        `v_stddev` before: "base_expression", or "NAME_expression" for one value.
    """
    lines = []
    for name, value in sorted(parse_metrics_report(metrics_report).items()):
        before = [point for point in data_points.get(name, []) if point is not None]
        if not before:
            if name.startswith("aten::"):
                lines.append(f"Found new aten counter: {name}: {value}\n")
            continue
        mean, deviation = float(statistics.fmean(before)), statistics.pstdev(before)
        expression = config.get(f"{name}_expression", config["base_expression"])
        if not eval(expression, None, {"v": value, "v_mean": mean, "v_stddev": deviation}):
            lines.append(
                f"{name} failed its expression check. Expression: {expression}.  Mean: {mean}.  "
                f"Stddev: {deviation}.  Actual Value: {value}\n"
            )
    return "".join(lines)
