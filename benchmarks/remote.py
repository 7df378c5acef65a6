"""What a runtime server on this machine costs: the same work in process and through PJRT_DEVICE=REMOTE, side by side.

    python -m benchmarks.remote                    about a minute
    python -m benchmarks.remote --rounds 5

Each side is a process of its own with the same number of threads, and they take turns, so that a change of the
machine's speed meets both. A step's time is the median of all its steps, a transfer's the fastest round, since pages
that are new to the machine count for neither; `memcpy` is a copy between arrays whose pages are there.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

STEPS = {
    "x + 1, read": "one addition and reading its result",
    "mlp": "training step of a small network, not read",
    "mlp, read": "the same, its loss read each step",
}
SIZES = {"64 KB": 64 << 10, "1 MB": 1 << 20, "16 MB": 16 << 20, "128 MB": 128 << 20}


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


def time_transfers(bytes_: int, seconds: float) -> dict[str, float]:
    """GB/s of each way, and of memcpy."""
    import torch

    import torch_xla

    source = torch.rand(bytes_ // 4)
    target = torch.empty_like(source).fill_(1)
    on_device = source.to("xla")
    torch_xla.sync(wait=True)

    def upload() -> None:
        source.to("xla")

    def download() -> None:
        target.copy_(on_device)

    ways = {"up": upload, "down": download, "memcpy": lambda: target.copy_(source)}
    torch.set_num_threads(1)
    rates = {}
    for name, way in ways.items():
        way()
        best, end = float("inf"), time.perf_counter() + seconds
        while time.perf_counter() < end:
            begin = time.perf_counter()
            way()
            best = min(best, time.perf_counter() - begin)
        rates[name] = bytes_ / best / 1e9
    return rates


def work() -> None:
    """Answers requests of the parent, a line of JSON each."""
    for line in sys.stdin:
        request = json.loads(line)
        if "steps" in request:
            answer = time_steps(request["name"], request["steps"])
        else:
            answer = time_transfers(request["bytes"], request["seconds"])
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


def report_transfers(sides: dict[str, Side], rounds: int, seconds: float) -> None:
    print("\n| GB/s | memcpy | up, in process | up, remote | down, in process | down, remote |")
    print("|---|---:|---:|---:|---:|---:|")
    for name, bytes_ in SIZES.items():
        best: dict[tuple[str, str], float] = {}
        for _ in range(rounds):
            for side, process in sides.items():
                for way, rate in process.ask(bytes=bytes_, seconds=seconds).items():
                    best[side, way] = max(best.get((side, way), 0), rate)
        memcpy = max(best[side, "memcpy"] for side in sides)
        cells = [f"{memcpy:.1f}"]
        for way in ("up", "down"):
            cells.append(f"{best['in process', way]:.1f}")
            cells.append(f"{best['remote', way]:.1f} ({best['remote', way] / memcpy:.2f})")
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
    report_transfers(sides, options.rounds, options.seconds)
    for side in sides.values():
        side.close()


if __name__ == "__main__":
    main()
