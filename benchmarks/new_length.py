"""What a length costs that is new: a training step at a length that no step before had, less the same step again.

    python -m benchmarks.new_length
    chrt -f 1 python -m benchmarks.new_length --lengths 15      beside other work

The encoder has 4 layers of width 256 and is trained with AdamW on batches of 8, on one thread. Ten lengths come first, so that
the loops for all sizes are there. Processor time, in milliseconds: of the thread that calls, and of all.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import optim

from benchmarks import models
from benchmarks.measure import limit_threads

VOCABULARY, SEQUENCES, WIDTH, HEADS, LAYERS = 512, 8, 256, 4, 4
SHORTEST, LONGEST, WARM, REPEATS = 33, 129, 10, 3


def training(device: str) -> Callable[[int], float]:
    """A step at a length, and its loss."""
    torch.manual_seed(0)
    model = models.Encoder(VOCABULARY, 1, WIDTH, HEADS, LAYERS, dropout=0.0).to(device)
    optimizer = optim.AdamW(model.parameters(), lr=1e-4)

    def step(length: int) -> float:
        tokens = torch.arange(SEQUENCES * length).view(SEQUENCES, length) % VOCABULARY
        tokens = tokens.to(device)
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def milliseconds(step: Callable[[int], float], length: int) -> tuple[float, float]:
    """Of processor, in one step: this thread's, and all threads'."""
    own, all_threads = time.thread_time(), time.process_time()
    step(length)
    return (time.thread_time() - own) * 1e3, (time.process_time() - all_threads) * 1e3


def main() -> None:
    """Prints the least and the median of what the new lengths cost."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--lengths", type=int, default=15)
    arguments = parser.parse_args()
    import torch_xla  # noqa: F401

    limit_threads(1)
    step = training("xla")
    lengths = random.Random(1).sample(range(SHORTEST, LONGEST + 1), WARM + arguments.lengths)
    for length in lengths[:WARM]:
        step(length)
        step(length)
    time.sleep(1)  # what is compiled in the background is no part of it
    costs: list[tuple[float, float]] = []
    for length in lengths[WARM:]:
        first = milliseconds(step, length)
        again = min(milliseconds(step, length) for _ in range(REPEATS))
        costs.append((first[0] - again[0], first[1] - again[1]))
    for name, values in zip(
        ("the caller's", "all threads'"), zip(*costs, strict=True), strict=True
    ):
        print(f"{name}: least {min(values):.1f}, median {statistics.median(values):.1f} ms")


if __name__ == "__main__":
    main()
