"""Does one thing very often, and tells whether memory and descriptors reach a plateau.

    python tests/python/soak.py steps --times 1000000       small steps of training
    python tests/python/soak.py shapes --times 20000        as many programs, each of another shape
    python tests/python/soak.py reconnects --times 1000     clients of one runtime server
    python tests/python/soak.py epochs --times 1000         epochs of a loader with two workers

`make soak` runs all four. The first third of the run fills the caches. Then the most memory that the last third needed
may not exceed what the second needed by more than `--slack` MB, and the fewest descriptors and threads of the last
third, when nothing else is going on, not those of the second by more than two. Prints one line, and exits with 1 where
there is no plateau.
"""

import argparse
import contextlib
import dataclasses
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

SAMPLES = 300


@dataclasses.dataclass
class Sample:
    """What a process uses at one time."""

    kilobytes: int
    descriptors: int
    threads: int


def look_at(pid: int) -> Sample:
    folder = pathlib.Path(f"/proc/{pid}")
    status = (folder / "status").read_text()

    def field(name: str) -> int:
        return int(re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)[1])

    return Sample(field("VmRSS"), len(os.listdir(folder / "fd")), field("Threads"))


@dataclasses.dataclass
class Plateau:
    """The most memory, and the fewest descriptors and threads, of the second and the last third of a run."""

    second: Sample
    last: Sample

    @classmethod
    def of(cls, samples: list[Sample]) -> "Plateau":
        third = len(samples) // 3

        def needed(part: list[Sample]) -> Sample:
            return Sample(
                max(sample.kilobytes for sample in part),
                min(sample.descriptors for sample in part),
                min(sample.threads for sample in part),
            )

        return cls(needed(samples[third : 2 * third]), needed(samples[2 * third :]))

    def is_one(self, slack_megabytes: float) -> bool:
        return (
            self.last.kilobytes - self.second.kilobytes <= slack_megabytes * 1024
            and self.last.descriptors <= self.second.descriptors + 2
            and self.last.threads <= self.second.threads + 2
        )


def steps(times: int) -> Iterator[int]:
    """Trains two parameters; the optimizer's state, views and random numbers take part."""
    import torch

    import torch_xla

    device = torch_xla.device()
    weight = torch.zeros(8, 4, device=device, requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=0.01, momentum=0.9)
    batch = torch.ones(2, 8, device=device)
    for step in range(times):
        optimizer.zero_grad()
        torch.dropout(batch @ weight, 0.5, train=True)[0].sum().backward()
        optimizer.step()
        torch_xla.sync()
        if step % 100 == 0:
            weight.detach().cpu()
        yield os.getpid()


def shapes(times: int) -> Iterator[int]:
    """Each step has a shape that none before had, and is another program."""
    # Interpreted, it would be the framework's own memory, which grows as in eager: the C library
    # finds no use for the pieces that arrays of other sizes leave.
    os.environ["TORCH_XLA_INTERPRET"] = "never"
    import torch

    import torch_xla

    device = torch_xla.device()
    for step in range(times):
        x = torch.ones(1 + step % 200, 1 + step // 200, device=device)
        (x[:, :1].t() @ torch.nn.functional.gelu(x + step)).sum().item()
        yield os.getpid()


@contextlib.contextmanager
def server() -> Iterator[subprocess.Popen]:
    """A runtime server that this process's variables then name."""
    from torch_xla import runtime_server

    process = subprocess.Popen(
        [sys.executable, runtime_server.__file__, "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    try:
        readable, _, _ = select.select([process.stdout], [], [], 60)
        port = re.search(r":(\d+)$", process.stdout.readline().strip() if readable else "")
        if port is None:
            raise RuntimeError("the runtime server does not start")
        os.environ |= {"PJRT_DEVICE": "REMOTE", "PJRT_REMOTE_ADDRESS": f"localhost:{port[1]}"}
        yield process
    finally:
        process.terminate()
        process.wait(timeout=60)


def be_a_client(step: int) -> None:
    """Computes on the server; every other one dies in the middle of it."""
    import torch

    import torch_xla

    value = step % 16  # small, so that sums are exact in whatever order
    x = torch.full((64, 64), float(value), device=torch_xla.device())
    if step % 2:
        (x @ x).sum()
        torch_xla.sync()
        os.kill(os.getpid(), signal.SIGKILL)
    if (x @ x).sum().item() != 64.0**3 * value**2:
        os._exit(1)
    os._exit(0)


def reconnects(times: int) -> Iterator[int]:
    """Clients come one after the other, each a process of its own that was forked before it had a runtime."""
    import torch  # noqa: F401

    import torch_xla  # noqa: F401

    with server() as process:
        for step in range(times):
            child = os.fork()
            if child == 0:
                be_a_client(step)
            _, status = os.waitpid(child, 0)
            if status != (signal.SIGKILL if step % 2 else 0):
                raise RuntimeError(f"client {step} ended with status {status}")
            yield process.pid


def epochs(times: int) -> Iterator[int]:
    """A loader's workers and its threads start and end with each epoch."""
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    import torch_xla
    import torch_xla.distributed.parallel_loader as pl

    device = torch_xla.device()
    data = DataLoader(TensorDataset(torch.arange(64.0)), batch_size=16, num_workers=2)
    loader = pl.MpDeviceLoader(data, device)
    for _ in range(times):
        total = torch.zeros((), device=device)
        for (batch,) in loader:
            total += batch.sum()
        if total.item() != 2016.0:
            raise RuntimeError("the loader has lost an item")
        yield os.getpid()


WORK: dict[str, Callable[[int], Iterator[int]]] = {
    work.__name__: work for work in (steps, shapes, reconnects, epochs)
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("work", choices=WORK)
    parser.add_argument("--times", type=int, required=True)
    parser.add_argument(
        "--slack", type=float, default=4, metavar="MB", help="the noise of the measurement (4)"
    )
    arguments = parser.parse_args()
    start = time.monotonic()
    every = max(1, arguments.times // SAMPLES)
    samples = []
    for step, pid in enumerate(WORK[arguments.work](arguments.times)):
        if step % every == 0:
            samples.append(look_at(pid))
    plateau = Plateau.of(samples)
    print(
        f"{arguments.work}: {arguments.times} times in {time.monotonic() - start:.0f} s; "
        f"at first {samples[0]}, then {plateau.second}, at last {plateau.last}"
    )
    return 0 if plateau.is_one(arguments.slack) else 1


if __name__ == "__main__":
    sys.exit(main())
