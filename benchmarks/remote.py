"""What a runtime server on this machine costs: the same work in process and through PJRT_DEVICE=REMOTE, side by side.

    ninja -C build plugin_transfers
    python -m benchmarks.remote                    about a minute
    python -m benchmarks.remote --rounds 5

Each side is a process of its own with the same number of threads, and they take turns, so that a change of the
machine's speed meets both. A step's time is the median of all its steps, then of the rounds. Transfers are the plugins'
own, without PyTorch (benchmarks/engine/plugin_transfers.cc), the fastest that was seen; all pages have been used before.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from torch_xla._binding import library_directory
from torch_xla._internal import remote

STEPS = {
    "x + 1, read": "one addition and reading its result",
    "mlp": "training step of a small network, not read",
    "mlp, read": "the same, its loss read each step",
}
SIZES = {"1 MB": 1 << 20, "16 MB": 16 << 20, "128 MB": 128 << 20}
TRANSFERS = pathlib.Path(__file__).parents[1] / "build/benchmarks/engine/plugin_transfers"


def _small_step(read: bool) -> Callable[[], None]:
    import torch
    from torch import nn

    import torch_xla

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10)).to("xla")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x, y = torch.randn(32, 64, device="xla"), torch.randint(10, (32,)).to("xla")

    def step() -> None:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        if read:
            loss.item()

    return step


def _addition() -> Callable[[], None]:
    import torch

    x = torch.zeros(4, device="xla")
    return lambda: (x + 1).cpu()


def time_steps(name: str, steps: int) -> float:
    """Microseconds a step."""
    import torch_xla

    step = _addition() if name == "x + 1, read" else _small_step("read" in name)
    for _ in range(20):
        step()
    torch_xla.sync(wait=True)
    times = []
    for _ in range(steps):
        begin = time.perf_counter()
        step()
        if name == "mlp":  # what is not waited for is counted too
            torch_xla.sync(wait=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times) * 1e6


def work() -> None:
    """Answers requests of the parent, a line of JSON each."""
    for line in sys.stdin:
        request = json.loads(line)
        answer = time_steps(request["name"], request["steps"])
        print("answer " + json.dumps(answer), flush=True)


class Side:
    """A process that measures."""

    def __init__(self, **variables: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.remote", "--work"],
            env={**os.environ, **variables},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request: object):
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(request), file=self._process.stdin, flush=True)
        for line in self._process.stdout:
            if line.startswith("answer "):
                return json.loads(line.removeprefix("answer "))
        raise RuntimeError("a measuring process ended")

    def close(self) -> None:
        self._process.communicate()


def report_steps(sides: dict[str, Side], rounds: int, steps: int) -> None:
    print("| step, µs | in process | remote | more |\n|---|---:|---:|---:|")
    for name, what in STEPS.items():
        times: dict[str, list[float]] = {side: [] for side in sides}
        for _ in range(rounds):
            for side, process in sides.items():
                times[side].append(process.ask(name=name, steps=steps))
        inside, remote = (statistics.median(times[side]) for side in ("in process", "remote"))
        print(f"| {what} | {inside:.0f} | {remote:.0f} | {remote - inside:+.0f} |")


def time_transfers(library: str, seconds: float) -> dict[int, dict[str, float]]:
    """GB/s by size: up, down, memcpy."""
    path = library_directory() / library
    command = [str(TRANSFERS), str(path), str(seconds), *map(str, SIZES.values())]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return {line["bytes"]: line for line in map(json.loads, lines)}


def report_transfers(rounds: int, seconds: float) -> None:
    libraries = {"in process": "libpjrt_cpu.so", "remote": "libpjrt_remote.so"}
    best: dict[tuple[str, int, str], float] = {}
    for _ in range(rounds):
        for side, library in libraries.items():
            # One that has nothing to do ends.
            remote.ensure_server(remote.address())
            for bytes_, rates in time_transfers(library, seconds).items():
                for way in ("up", "down", "memcpy"):
                    key = (side, bytes_, way)
                    best[key] = max(best.get(key, 0), rates[way])
    print("\n| GB/s | memcpy | up, in process | up, remote | down, in process | down, remote |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, bytes_ in SIZES.items():
        memcpy = max(best[side, bytes_, "memcpy"] for side in libraries)
        cells = [f"{memcpy:.1f}"]
        for way in ("up", "down"):
            cells.append(f"{best['in process', bytes_, way]:.1f}")
            rate = best["remote", bytes_, way]
            cells.append(f"{rate:.1f} ({rate / memcpy:.2f})")
        print(f"| {name} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seconds", type=float, default=0.3, help="for each transfer")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work()
        return
    sides = {"in process": Side(PJRT_DEVICE="CPU"), "remote": Side(PJRT_DEVICE="REMOTE")}
    report_steps(sides, options.rounds, options.steps)
    for side in sides.values():
        side.close()
    if TRANSFERS.exists():
        report_transfers(options.rounds, options.seconds)
    else:
        print(f"\nTransfers: build the tool first (ninja -C build {TRANSFERS.name})")


if __name__ == "__main__":
    main()
