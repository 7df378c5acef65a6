"""Compares collectives between processes of this machine with torch.distributed's gloo, and prints markdown tables.

    python -m benchmarks.collectives                       2 and 4 processes; about five minutes
    python -m benchmarks.collectives --processes 2 --seconds 0.3

All figures of a table come from the same processes, one thread each, in which the sides take turns; the fastest turn
counts, because a neighbour on the machine slows the others. All-reduce: the time of one, of float32 numbers, in place.
`gloo` is `torch.distributed.all_reduce`; `a step each` is `xm.all_reduce` with a sync that waits, so with recording and
starting a program; `in a program` is one of ten in the same program. Training steps are forward, backward, the
gradients' all-reduce and the optimizer.
"""

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

SIZES = {
    "4 KB": 4 << 10,
    "64 KB": 64 << 10,
    "1 MB": 1 << 20,
    "16 MB": 16 << 20,
    "100 MB": 100 << 20,
}
IN_A_PROGRAM = 10
TURN_SECONDS = 0.15
Side = Callable[[int], None]  # runs the thing so many times, and waits


def _time(
    sides: dict[str, Side], seconds: float, agree: Callable[[float], float]
) -> dict[str, float]:
    """Seconds for each side's thing, once. `agree` gives all processes the same number."""
    counts = {}
    for name, side in sides.items():
        side(2)
        start = time.perf_counter()
        side(1)
        once = agree(time.perf_counter() - start)
        counts[name] = max(1, min(500, int(TURN_SECONDS / max(once, 1e-6))))
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(max(5, int(seconds / TURN_SECONDS))):
        for name, side in sides.items():
            agree(0)
            start = time.perf_counter()
            side(counts[name])
            times[name].append((time.perf_counter() - start) / counts[name])
    return {name: agree(min(taken)) for name, taken in times.items()}


def _all_reduces(count: int, gloo: Any) -> dict[str, Side]:
    import torch
    import torch.distributed as dist

    import torch_xla
    from torch_xla.core import xla_model as xm

    on_cpu = torch.zeros(count)
    held = [torch.zeros(count, device="xla")]
    many = [torch.zeros(count, device="xla") for _ in range(IN_A_PROGRAM)]

    def by_gloo(times: int) -> None:
        for _ in range(times):
            dist.all_reduce(on_cpu, group=gloo)

    def a_step_each(times: int) -> None:
        for _ in range(times):
            xm.all_reduce(xm.REDUCE_SUM, held)
            torch_xla.sync(wait=True)

    def in_a_program(times: int) -> None:
        for _ in range(times):
            for tensor in many:
                xm.all_reduce(xm.REDUCE_SUM, [tensor])
            torch_xla.sync(wait=True)

    return {"gloo": by_gloo, "a step each": a_step_each, "in a program": in_a_program}


def _mlp() -> Any:
    from torch import nn

    layers: list[nn.Module] = []
    for _ in range(6):
        layers += [nn.Linear(1024, 1024), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(1024, 16)), (64, 1024), 16


def _cnn() -> Any:
    from torch import nn

    layers: list[nn.Module] = []
    for inputs, outputs in ((3, 32), (32, 64), (64, 128)):
        layers += [nn.Conv2d(inputs, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()]
        layers.append(nn.MaxPool2d(2))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(128 * 16, 10)), (32, 3, 32, 32), 10


def _training(make: Callable[[], Any], gloo: Any) -> dict[str, Side]:
    import torch
    from torch.nn.parallel import DistributedDataParallel

    import torch_xla
    from torch_xla.core import xla_model as xm

    def prepare(device: str, wrap: Callable[[Any], Any]) -> tuple[Any, ...]:
        torch.manual_seed(0)
        model, shape, classes = make()
        model = wrap(model.to(device))
        inputs, targets = torch.randn(shape), torch.randint(classes, shape[:1])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
        return model, optimizer, inputs.to(device), targets.to(device)

    def backward(model: Any, optimizer: Any, inputs: Any, targets: Any) -> None:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), targets).backward()

    def eager(wrap: Callable[[Any], Any]) -> Side:
        parts = prepare("cpu", wrap)

        def side(times: int) -> None:
            for _ in range(times):
                backward(*parts)
                parts[1].step()

        return side

    def xla(wrap: Callable[[Any], Any], step: Callable[[Any], Any]) -> Side:
        parts = prepare("xla", wrap)

        def side(times: int) -> None:
            for _ in range(times):
                backward(*parts)
                step(parts[1])
                torch_xla.sync()
            xm.wait_device_ops()

        return side

    def in_one_bucket(optimizer: Any) -> None:
        os.environ["ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB"] = "1000"
        xm.optimizer_step(optimizer)
        del os.environ["ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB"]

    return {
        "eager DDP on gloo": eager(lambda m: DistributedDataParallel(m, process_group=gloo)),
        "eager, no all-reduce": eager(lambda m: m),
        "torch_xla, optimizer_step": xla(lambda m: m, xm.optimizer_step),
        "torch_xla, optimizer_step, one bucket": xla(lambda m: m, in_one_bucket),
        "torch_xla, DDP": xla(DistributedDataParallel, lambda optimizer: optimizer.step()),
        "torch_xla, no all-reduce": xla(lambda m: m, lambda optimizer: optimizer.step()),
    }


def _work(sizes: list[str], seconds: float, send: Any) -> None:
    """One process; that of rank 0 gives the figures to `send`."""
    import torch
    import torch.distributed as dist

    import torch_xla.distributed.xla_backend  # noqa: F401

    torch.set_num_threads(1)
    dist.init_process_group("xla", init_method="xla://")
    gloo = dist.new_group(backend="gloo")

    def agree(value: float) -> float:
        shared = torch.tensor(value, dtype=torch.float64)
        dist.all_reduce(shared, dist.ReduceOp.MAX, group=gloo)
        return shared.item()

    for name in sizes:
        figures = _time(_all_reduces(SIZES[name] // 4, gloo), seconds, agree)
        figures["in a program"] /= IN_A_PROGRAM
        send(("all-reduce", name, figures))
    for name, make in {"MLP, 25 MB": _mlp, "CNN": _cnn}.items():
        send(("training", name, _time(_training(make, gloo), 4 * seconds, agree)))
    dist.destroy_process_group()


def _main(index: int, sizes: list[str], seconds: float, queue: Any) -> None:
    _work(sizes, seconds, queue.put if index == 0 else lambda figures: None)


def _text(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"


def _print_tables(processes: int, rows: list[tuple[str, str, dict[str, float]]]) -> None:
    print(f"\n### {processes} processes\n")
    print("| all-reduce of | gloo | a step each | in a program | gloo : in a program |")
    print("|---|---:|---:|---:|---:|")
    for table, name, times in rows:
        if table != "all-reduce":
            continue
        ratio = times["gloo"] / times["in a program"]
        cells = [_text(times[side]) for side in ("gloo", "a step each", "in a program")]
        print(f"| {name} | " + " | ".join(cells) + f" | {ratio:.2f} |")
    trained = [(name, times) for table, name, times in rows if table == "training"]
    print("\n| training step | " + " | ".join(name for name, _ in trained) + " |")
    print("|---|" + "---:|" * len(trained))
    for side in trained[0][1] if trained else ():
        print(f"| {side} | " + " | ".join(_text(times[side]) for _, times in trained) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--processes", nargs="+", type=int, default=[2, 4])
    parser.add_argument("--seconds", type=float, default=1.5, help="for each figure")
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), help="of all-reduces")
    arguments = parser.parse_args()
    import torch.multiprocessing

    from torch_xla.distributed import xla_multiprocessing as xmp

    os.environ["TORCH_XLA_NUM_THREADS"] = "1"
    for processes in arguments.processes:
        queue = torch.multiprocessing.get_context("spawn").SimpleQueue()
        xmp.spawn(_main, (arguments.sizes, arguments.seconds, queue), nprocs=processes)
        rows = []
        while not queue.empty():
            rows.append(queue.get())
        _print_tables(processes, rows)


if __name__ == "__main__":
    main()
