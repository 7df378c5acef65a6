"""Markdown tables of the figures that `run.py` has collected."""

import math
from typing import Any

NAMES = {
    "eager": "eager",
    "inductor": "torch.compile",
    "xla": "torch_xla",
    "xla_before": "torch_xla before",
    "jax": "JAX",
    "xla_on_xla_cpu": "torch_xla on XLA:CPU",
}
Results = dict[str, dict[str, Any]]


def number(value: float) -> str:
    """Three significant digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def one_line(results: Results) -> str:
    """The step times of one workload."""
    key = "add_us" if any("add_us" in figures for figures in results.values()) else "step_ms"
    return ", ".join(f"{peer} {number(figures[key])}" for peer, figures in results.items())


def _table(
    title: str, key: str, workloads: dict[str, Results], peers: list[str], ratios: bool
) -> list[str]:
    rows = [
        f"### {title}",
        "",
        "| workload | " + " | ".join(NAMES[peer] for peer in peers) + " |",
        "|---|" + "---:|" * len(peers),
    ]
    logarithms: dict[str, list[float]] = {peer: [] for peer in peers}
    for workload, results in workloads.items():
        values = {peer: figures[key] for peer, figures in results.items() if key in figures}
        if not values:
            continue
        best = min(values.values())
        cells = []
        for peer in peers:
            if peer not in values:
                cells.append("-")
                continue
            ratio = values[peer] / best
            logarithms[peer].append(math.log(ratio))
            cells.append(number(values[peer]) + (f" ({ratio:.2f})" if ratios else ""))
        rows.append(f"| {workload} | " + " | ".join(cells) + " |")
    if ratios:
        means = [
            f"({math.exp(sum(logs) / len(logs)):.2f})" if logs else "-"
            for logs in logarithms.values()
        ]
        rows.append("| geometric mean of ratios | " + " | ".join(means) + " |")
    return [*rows, ""]


def _recording(results: Results) -> list[str]:
    rows = ["### Recording from Python, us an operation", "", "| | add | add_ |", "|---|---:|---:|"]
    rows += [
        f"| {NAMES[peer]} | {number(figures['add_us'])} | {number(figures['add__us'])} |"
        for peer, figures in results.items()
    ]
    if {"eager", "xla"} <= set(results):
        ratios = [results["xla"][key] / results["eager"][key] for key in ("add_us", "add__us")]
        rows.append(f"| ratio to eager | {ratios[0]:.2f} | {ratios[1]:.2f} |")
    return [*rows, ""]


def _counts(workloads: dict[str, Results]) -> list[str]:
    rows = [
        "### Compilations and CPU fallbacks of torch_xla",
        "",
        "| workload | compilations | fallbacks |",
    ]
    rows.append("|---|---:|---|")
    for workload, results in workloads.items():
        figures = results.get("xla", {})
        if "compilations" in figures:
            fallbacks = ", ".join(figures["fallbacks"]) or "none"
            rows.append(f"| {workload} | {figures['compilations']:.0f} | {fallbacks} |")
    return [*rows, ""]


def markdown(figures: dict[str, dict[str, Results]], peers: list[str]) -> str:
    """All tables, by number of threads."""
    rows: list[str] = []
    for threads, workloads in figures.items():
        timed = {name: results for name, results in workloads.items() if name != "recording"}
        rows += [f"## {threads} thread{'s' if threads != '1' else ''}", ""]
        if timed:
            rows += _table("Step in ms (ratio to the best)", "step_ms", timed, peers, ratios=True)
            rows += _table("First step in s, nothing cached", "first_s", timed, peers, ratios=False)
            rows += _table("Peak resident MiB", "peak_mib", timed, peers, ratios=True)
            rows += _counts(timed)
        if "recording" in workloads:
            rows += _recording(workloads["recording"])
    return "\n".join(rows)
