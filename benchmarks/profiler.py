"""What the profiler costs: recording an operation while it is off and on, and steps of training with it off and on.

    python -m benchmarks.profiler

Each step of training has the annotations that a program would have, a `StepTrace` and two `Trace`. Blocks of steps with the
profiler off and on take turns; turns are short, and what counts is the median of the ratios of neighbours, so that other work on
the machine counts little.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import torch_xla
import torch_xla.debug.profiler as xp
from benchmarks import models
from torch_xla.debug import trace_events

MODELS: dict[str, tuple[Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "MLP 32-32-10, batch 1": (lambda: models.MLP(32, 32, 10), (1, 32)),
    "CNN, batch 32": (models.CNN, (32, 1, 28, 28)),
    "ResNet-18, 64x64, batch 8": (lambda: models.ResNet18(10), (8, 3, 64, 64)),
}


def training_step(
    make: Callable[[], torch.nn.Module], shape: tuple[int, ...], device: torch.device
) -> Callable[[], None]:
    """A function that does a step, annotated; it does not wait."""
    model = make().to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    data = torch.randn(*shape, device=device)
    target = torch.randint(10, shape[:1], device=device)
    number = 0

    def step() -> None:
        nonlocal number
        with xp.StepTrace("train", step_num=number):
            with xp.Trace("forward"):
                loss = torch.nn.functional.cross_entropy(model(data), target)
            optimizer.zero_grad()
            with xp.Trace("backward"):
                loss.backward()
            optimizer.step()
        number += 1

    return step


def seconds_a_step(step: Callable[[], None], count: int) -> float:
    """The mean of `count` steps, to the end of the last."""
    begin = time.perf_counter()
    for _ in range(count):
        step()
    torch_xla.sync(wait=True)
    return (time.perf_counter() - begin) / count


def microseconds_an_add(device: torch.device, count: int = 1000) -> float:
    """The mean time that recording `x + y` takes."""
    x, y = torch.ones(4, device=device), torch.ones(4, device=device)
    torch_xla.sync(wait=True)
    begin = time.perf_counter()
    for _ in range(count):
        z = x + y
    elapsed = time.perf_counter() - begin
    del z
    return elapsed / count * 1e6


def off_and_on(measure: Callable[[], float], blocks: int) -> tuple[float, float, float, int]:
    """The medians with the profiler off and on, that of the ratios of neighbours, and the bytes of the last profile."""
    off, on, size = [], [], 0
    measure()
    for _ in range(blocks):
        off.append(measure())
        trace_events.start()
        on.append(measure())
        size = len(trace_events.stop())
    ratio = statistics.median(b / a for a, b in zip(off, on, strict=True))
    return statistics.median(off), statistics.median(on), ratio, size


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--blocks", type=int, default=60, help="pairs of measurements")
    parser.add_argument("--seconds", type=float, default=0.1, help="that a block takes")
    arguments = parser.parse_args()
    device = torch_xla.device()
    print("| | off | on | |\n|---|---:|---:|---:|")
    off, on, ratio, _ = off_and_on(lambda: microseconds_an_add(device), arguments.blocks)
    print(f"| recording an `add`, us | {off:.2f} | {on:.2f} | {ratio - 1:+.1%} |")
    for name, (make, shape) in MODELS.items():
        step = training_step(make, shape, device)
        seconds_a_step(step, 3)
        count = max(1, round(arguments.seconds / seconds_a_step(step, 3)))
        off, on, ratio, size = off_and_on(lambda: seconds_a_step(step, count), arguments.blocks)  # noqa: B023
        print(
            f"| {name}, ms a step | {off * 1e3:.3f} | {on * 1e3:.3f} | {ratio - 1:+.1%}, "
            f"{size / count / 1e3:.1f} kB a step |"
        )


if __name__ == "__main__":
    main()
