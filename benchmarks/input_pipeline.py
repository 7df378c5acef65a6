"""How much of a slow loader a step hides: a loader that waits for 80 % of a step's time for each batch.

    python -m benchmarks.input_pipeline

Prints the time of a step whose batch is on the device already, of one that loads and moves its batch itself, and of one
whose batches come through `MpDeviceLoader`.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Iterable, Iterator

import torch

import torch_xla
import torch_xla.distributed.parallel_loader as pl

SIZE = 512


def seconds_a_step(
    batches: Iterable[torch.Tensor], step: Callable[[torch.Tensor], torch.Tensor], steps: int
) -> float:
    """The mean over the steps of one pass."""
    begin = time.perf_counter()
    for batch in batches:
        loss = step(batch)
        torch_xla.sync()
    loss.item()
    return (time.perf_counter() - begin) / steps


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument(
        "--share", type=float, default=0.8, help="of a step's time that a batch takes"
    )
    arguments = parser.parse_args()
    device = torch_xla.device()
    weight = torch.randn(SIZE, SIZE, device=device)
    data = [torch.randn(SIZE, SIZE) for _ in range(arguments.steps)]
    on_device = [batch.to(device) for batch in data]

    def step(batch: torch.Tensor) -> torch.Tensor:
        for _ in range(8):
            batch = torch.tanh(batch @ weight)
        return batch.sum()

    def slow(seconds: float) -> Iterator[torch.Tensor]:
        for batch in data:
            time.sleep(seconds)
            yield batch

    seconds_a_step(on_device, step, arguments.steps)
    rows = []
    for _ in range(arguments.repeats):
        ready = seconds_a_step(on_device, step, arguments.steps)
        wait = arguments.share * ready
        own = seconds_a_step(
            (batch.to(device) for batch in slow(wait)), lambda b: waited(step(b)), arguments.steps
        )
        ahead = seconds_a_step(pl.MpDeviceLoader(slow(wait), device), step, arguments.steps)
        rows.append((ready, own, ahead))
    names = (
        "batch on the device already",
        "loaded by the step itself, which is awaited",
        "MpDeviceLoader",
    )
    for name, column in zip(names, zip(*rows, strict=True), strict=True):
        print(f"{name:45} {statistics.median(column) * 1e3:7.2f} ms a step")


def waited(loss: torch.Tensor) -> torch.Tensor:
    """The loss, when the step has ended."""
    loss.item()
    return loss


if __name__ == "__main__":
    main()
