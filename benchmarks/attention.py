"""Scaled dot-product attention on the xla device and in eager, forward and with its gradients, by turns in one process.

    python -m benchmarks.attention                       one and two threads; markdown tables
    python -m benchmarks.attention --threads 1 --seconds 0.5
    python -m benchmarks.attention --measure 1 "1 x 8 x 4096 x 64 causal"      one row; its figures as JSON

A row is batch x heads x length x width, the operands lying as a projection leaves them: [batch, length, heads, width]; a
decoding step has one query. The figures are milliseconds of a whole step (recorded, run, awaited), the fastest of the turns,
and how much the resident memory grew at most.
"""

import argparse
import functools
import json
import time
from collections.abc import Callable
from typing import Any

from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

ROWS = (
    "2 x 4 x 16 x 16",
    "8 x 8 x 32 x 32",
    "1 x 6 x 128 x 64 causal",
    "8 x 4 x 128 x 64",
    "4 x 8 x 512 x 64",
    "2 x 8 x 1024 x 64 causal",
    "1 x 8 x 4096 x 64",
    "1 x 8 x 4096 x 64 causal",
    "1 x 12 x 1024 x 64 decoding",
    "1 x 12 x 4096 x 128 decoding",
)


def _steps(row: str, device: str) -> dict[str, Callable[[], Any]]:
    import torch
    import torch.nn.functional as F

    *sizes, width = row.split()[:7:2]
    batch, heads, length = map(int, sizes)
    causal, decodes = row.endswith("causal"), row.endswith("decoding")
    torch.manual_seed(0)

    def operand(rows: int) -> torch.Tensor:
        return torch.randn(batch, rows, heads, int(width)).to(device).requires_grad_(not decodes)

    query, key, value = operand(1 if decodes else length), operand(length), operand(length)
    gradient = torch.ones(query.shape).to(device)

    def attend() -> torch.Tensor:
        q, k, v = (x.transpose(1, 2) for x in (query, key, value))
        return F.scaled_dot_product_attention(q, k, v, is_causal=causal).transpose(1, 2)

    def forward() -> Any:
        with torch.no_grad():
            return attend()

    def with_gradients() -> Any:
        return torch.autograd.grad(attend(), (query, key, value), gradient)

    return {"forward": forward} if decodes else {"forward": forward, "training": with_gradients}


def _resident_mib(field: str) -> float:
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field)) / 1024


def _growth(step: Callable[[], Any]) -> float:
    """How many MiB the resident memory is at most above what it was."""
    with open("/proc/self/clear_refs", "w") as peak:
        peak.write("5")
    before = _resident_mib("VmRSS")
    step()
    return _resident_mib("VmHWM") - before


def measure(row: str, threads: int, seconds: float) -> dict[str, Any]:
    """Milliseconds and MiB of both sides."""
    limit_threads(threads)
    import torch

    import torch_xla
    from torch_xla import _XLAC

    torch.set_num_threads(threads)
    _XLAC._xla_set_interpretation("never")
    sides = {"eager": _steps(row, "cpu"), "xla": _steps(row, "xla")}
    torch_xla.sync(wait=True)

    def run(side: str, what: str) -> None:
        result = sides[side][what]()
        if side == "xla":
            torch_xla.sync(wait=True)
        del result

    figures: dict[str, Any] = {}
    for what in sides["xla"]:
        growth = {side: _growth(functools.partial(run, side, what)) for side in sides}
        best = dict.fromkeys(sides, float("inf"))
        end = time.perf_counter() + seconds
        turns = 0
        while turns < 5 or time.perf_counter() < end:
            for side in sides:
                start = time.perf_counter()
                run(side, what)
                best[side] = min(best[side], (time.perf_counter() - start) * 1e3)
            turns += 1
        figures[what] = {"ms": best, "mib": growth}
    return figures


def _cell(figures: dict[str, Any] | None, what: str) -> str:
    if figures is None or what not in figures:
        return "| | | "
    ms, mib = figures[what]["ms"], figures[what]["mib"]
    return (
        f"| {ms['eager']:.3g} | {ms['xla']:.3g} ({ms['xla'] / ms['eager']:.2f}) "
        f"| {mib['eager']:.0f}, {mib['xla']:.0f} "
    )


def main() -> None:
    """Prints the tables, or the figures of one row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rows", nargs="+", default=ROWS)
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--measure", nargs=2, metavar=("THREADS", "ROW"))
    arguments = parser.parse_args()
    if arguments.measure:
        threads, row = arguments.measure
        print(json.dumps(measure(row, int(threads), arguments.seconds)))
        return
    for threads in arguments.threads:
        print(f"\n{threads} thread(s)\n")
        print("| attention | eager, ms | xla | MiB | training: eager, ms | xla | MiB |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for row in arguments.rows:
            figures = figures_of(
                "benchmarks.attention",
                ["--measure", str(threads), row, "--seconds", str(arguments.seconds)],
            )
            print(f"| {row} {_cell(figures, 'forward')}{_cell(figures, 'training')}|", flush=True)


if __name__ == "__main__":
    main()
