"""LSTM, GRU and plain recurrent layers on the xla device and in eager PyTorch: training and inference.

    python -m benchmarks.recurrent                             a markdown table; two minutes
    python -m benchmarks.recurrent --rows "LSTM 100 16 128"    kind, steps, batch, width (of the input, too)

Milliseconds of processor time of a step that ends with reading a number, the least of turns in one process, each row in a
fresh one; and milliseconds of the first step of training.
"""

import argparse
import json
import time
from collections.abc import Callable
from typing import Any

from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads
from benchmarks.small import settle

ROWS = ["LSTM 10 4 16", "LSTM 50 1 256", "LSTM 100 16 128", "GRU 100 16 128", "RNN 100 16 128"]
TURNS, TURN_SECONDS = 10, 0.1


def _steps(kind: str, steps: int, batch: int, width: int, device: str) -> dict[str, Callable]:
    import torch

    torch.manual_seed(0)
    model = getattr(torch.nn, kind)(width, width).to(device)
    x = torch.randn(steps, batch, width).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)

    def train() -> torch.Tensor:
        optimizer.zero_grad()
        loss = model(x)[0].square().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    def infer() -> torch.Tensor:
        with torch.no_grad():
            return model(x)[0].sum()

    return {"train": train, "infer": infer}


def _turn(step: Callable) -> float:
    """Milliseconds of processor time."""
    start, end, count = time.process_time(), time.perf_counter() + TURN_SECONDS, 0
    while time.perf_counter() < end:
        step().item()
        count += 1
    return (time.process_time() - start) / count * 1e3


def measure(row: str, threads: int) -> dict[str, dict[str, Any]]:
    """For training and inference: `first` and `step` of eager and of the device."""
    limit_threads(threads)
    import torch

    import torch_xla  # noqa: F401

    torch.set_num_threads(threads)
    kind, *sizes = row.split()
    both = [_steps(kind, *map(int, sizes), device) for device in ("cpu", "xla")]
    figures = {}
    for name in ("train", "infer"):
        first = []
        for steps in both:
            start = time.perf_counter()
            steps[name]().item()
            first.append((time.perf_counter() - start) * 1e3)
        settle(both[1][name])
        turns = [[_turn(steps[name]) for steps in both] for _ in range(TURNS)]
        figures[name] = {"first": first, "step": list(map(min, zip(*turns, strict=True)))}
    return figures


def main() -> None:
    """Prints the table, or the figures of one row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", nargs="+", default=ROWS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--measure", metavar="ROW")
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.threads)))
        return
    print("| kind, steps, batch, width | training | inference | first step |\n|---|---:|---:|---:|")
    for row in arguments.rows:
        options = ["--measure", row, f"--threads={arguments.threads}"]
        figures = figures_of("benchmarks.recurrent", options)
        if figures is None:
            continue
        cells = [
            f"{eager:.3g} / {xla:.3g} ({xla / eager:.2f})"
            for eager, xla in (figures[name]["step"] for name in ("train", "infer"))
        ]
        cells.append("{:.3g} / {:.3g}".format(*figures["train"]["first"]))
        print(f"| {row} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
