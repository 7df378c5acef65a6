"""Training in bf16 (autocast) and in f32: eager and the xla device, by turns in one process.

    python -m benchmarks.mixed_precision                 one thread; a markdown table
    python -m benchmarks.mixed_precision --workloads bert --seconds 2
    python -m benchmarks.mixed_precision --measure bert               one row; its figures as JSON

The figures are milliseconds of processor time of a step, of all threads, the least of the turns; each step is waited for. The
weights are of f32, and autocast holds the forward pass and the loss, as torch says.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

WORKLOADS = ("bert", "gpt", "resnet18")
SIDES = ("eager f32", "eager bf16", "xla f32", "xla bf16")


def _step(workload: str, side: str) -> Callable[[], Any]:
    import torch

    import torch_xla
    import torch_xla.core.xla_model as xm
    from benchmarks import workloads

    kind, precision = side.split()
    device = "cpu" if kind == "eager" else kind

    def in_autocast(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16"):
                return function(*arguments)

        return run

    torch.manual_seed(0)
    step = workloads.WORKLOADS[workload](device, in_autocast)

    def whole() -> None:
        step()
        if device == "xla":
            torch_xla.sync()
            xm.wait_device_ops()

    return whole


def _milliseconds(step: Callable[[], Any], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        step()
    return (time.process_time() - start) / count * 1e3


def measure(workload: str, threads: int, seconds: float) -> dict[str, float]:
    """Milliseconds of a step for each side."""
    limit_threads(threads)
    import torch

    torch.set_num_threads(threads)
    steps = {side: _step(workload, side) for side in SIDES}
    for step in steps.values():
        _milliseconds(step, 4)
    count = max(1, int(50 / _milliseconds(steps["eager f32"], 2)))
    best = {side: _milliseconds(step, count) for side, step in steps.items()}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for side, step in steps.items():
            best[side] = min(best[side], _milliseconds(step, count))
    return best


def main() -> None:
    """Prints the table, or the figures of one row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--measure", metavar="WORKLOAD", choices=WORKLOADS)
    arguments = parser.parse_args()
    if arguments.measure:
        figures = measure(arguments.measure, arguments.threads, arguments.seconds)
        print(json.dumps(figures))
        return
    print(f"| workload | {' | '.join(SIDES)} | xla f32 / bf16 |")
    print("|---|" + "---:|" * (len(SIDES) + 1))
    options = ["--threads", str(arguments.threads), "--seconds", str(arguments.seconds)]
    for workload in arguments.workloads:
        row = figures_of("benchmarks.mixed_precision", ["--measure", workload, *options])
        if row is None:
            continue
        cells = " | ".join(f"{row[side]:.1f}" for side in SIDES)
        print(f"| {workload} | {cells} | {row['xla f32'] / row['xla bf16']:.2f} |", flush=True)


if __name__ == "__main__":
    main()
