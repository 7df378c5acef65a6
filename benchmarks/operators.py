"""Single operators on the xla device and in eager PyTorch, the worst first: forward, and of layers with their gradients.

    python -m benchmarks.operators                          a markdown table of what takes 1.2 of eager's time and more
    python -m benchmarks.operators --above 0                of all
    python -m benchmarks.operators --only pool sort         of those whose names hold one of these words
    python -m benchmarks.operators --shape 100 10000        matrices of another shape, where an operator takes any
    python -m benchmarks.operators --database --worst 30    the worst of torch's own database of operators, of a million numbers
    python -m benchmarks.operators --database --gradients --type float64
    python -m benchmarks.operators --convolutions           those of networks, forward and with gradients; --type bfloat16
    python -m benchmarks.operators --threads 2              with two threads, by the clock

Milliseconds of processor time, the least of turns in one process, each with one thread and compiled; a few dozen operators to
a process. What is short on both sides (`--least` milliseconds) is the overhead of a step, which `benchmarks.small` measures,
and is left out.
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

IN_A_PROCESS = 40
FEWEST_TURNS, MOST_TURNS, TURN_SECONDS = 3, 15, 0.15


def _names(words: list[str], arguments: argparse.Namespace) -> list[str]:
    from benchmarks.convolution_layers import CONVOLUTIONS
    from benchmarks.single_operators import ELEMENTWISE, LAYERS, MATRIX

    layers = CONVOLUTIONS if arguments.convolutions else LAYERS
    if arguments.database:
        from benchmarks import database_operators

        names = database_operators.names()
    else:
        names = [] if arguments.convolutions else [*ELEMENTWISE, *MATRIX]
        names += [name + suffix for name in layers for suffix in (", layer", ", gradient")]
    return [name for name in names if not words or any(word in name for word in words)]


def _inputs(shapes: list[Any], device: str, dtype: str = "float32") -> list[Any]:
    import torch

    torch.manual_seed(0)
    inputs = []
    for shape in shapes:
        if isinstance(shape, tuple) and isinstance(shape[-1], tuple):
            inputs.append(torch.randint(shape[0], shape[1]).to(device))
        else:
            inputs.append(torch.randn(shape).to(device, getattr(torch, dtype)).requires_grad_())
    return inputs


def _layer(
    name: str, device: str, with_gradient: bool, arguments: argparse.Namespace
) -> Callable[[], Any]:
    import copy

    import torch

    from benchmarks.convolution_layers import CONVOLUTIONS
    from benchmarks.single_operators import LAYERS

    function, *shapes = (CONVOLUTIONS if arguments.convolutions else LAYERS)[name]
    inputs = _inputs(shapes, device, arguments.type)
    if isinstance(function, torch.nn.Module):
        module = copy.deepcopy(function).to(device)
        function = lambda x: module(x)[0]  # noqa: E731
    if not with_gradient:
        inputs = [x.detach() for x in inputs]

        def forward() -> Any:
            with torch.no_grad():
                return function(*inputs)

        return forward
    leaves = [x for x in inputs if x.requires_grad]
    cotangent = torch.randn_like(function(*inputs))

    def backward() -> Any:
        return torch.autograd.grad(function(*inputs), leaves, cotangent, allow_unused=True)

    return backward


def _call(name: str, device: str, arguments: argparse.Namespace) -> Callable[[], Any]:
    from benchmarks.single_operators import ELEMENTWISE, MATRIX

    base, _, kind = name.rpartition(", ")
    if base:
        return _layer(base, device, kind == "gradient", arguments)
    function = (ELEMENTWISE | MATRIX)[name]
    (x,) = _inputs([tuple(arguments.shape)], device)
    x = x.detach()
    return lambda: function(x)


def _milliseconds(
    call: Callable[[], Any], sync: Callable[[], None], clock: Callable[[], float]
) -> float:
    start = clock()
    result = call()
    sync()
    taken = clock() - start
    del result
    return taken * 1e3


def _calls(name: str, arguments: argparse.Namespace) -> list[Callable[[], Any]]:
    """In eager and on the device."""
    if not arguments.database:
        return [_call(name, device, arguments) for device in ("cpu", "xla")]
    import torch

    from benchmarks import database_operators

    return database_operators.calls(name, getattr(torch, arguments.type), arguments.gradients)


def measured(
    calls: list[Callable[[], Any]], clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Milliseconds in eager and on the device."""
    import torch_xla

    def wait() -> None:
        torch_xla.sync(wait=True)

    sides = list(zip(calls, [lambda: None, wait], strict=True))
    wait()
    for call, sync in sides:
        _milliseconds(call, sync, clock)
    turns: list[list[float]] = []
    end = time.perf_counter() + 2 * TURN_SECONDS
    while len(turns) < MOST_TURNS and (len(turns) < FEWEST_TURNS or time.perf_counter() < end):
        turns.append([_milliseconds(call, sync, clock) for call, sync in sides])
    return list(map(min, zip(*turns, strict=True)))


def _measure_here(names: list[str], arguments: argparse.Namespace) -> dict[str, Any]:
    limit_threads(arguments.threads)
    import torch

    from torch_xla import _XLAC

    torch.set_num_threads(arguments.threads)
    # What several threads do at a time is seen by the clock alone.
    clock = time.process_time if arguments.threads == 1 else time.perf_counter
    _XLAC._xla_set_interpretation("never")
    figures: dict[str, Any] = {}
    for name in names:
        try:
            figures[name] = measured(_calls(name, arguments), clock)
        except Exception as error:  # an operator that does not take this shape
            figures[name] = str(error).partition("\n")[0]
    return figures


def _print_table(figures: dict[str, Any], arguments: argparse.Namespace) -> None:
    rows, failed = [], []
    for name, row in figures.items():
        if isinstance(row, str):
            failed.append(f"{name}: {row}")
        elif max(row) >= arguments.least:
            rows.append((row[1] / row[0], name, *row))
    if arguments.database:  # the database has samples that cannot be enlarged
        print(f"{len(failed)} of {len(figures)} operators that were tried were not measured.\n")
    else:
        print(*failed, sep="\n")
    print("| operator | eager, ms | xla, ms | ratio |\n|---|---:|---:|---:|")
    for ratio, name, eager, xla in sorted(rows, reverse=True)[: arguments.worst]:
        if ratio >= arguments.above:
            print(f"| {name} | {eager:.2f} | {xla:.2f} | {ratio:.2f} |")
    mean = math.exp(statistics.fmean(math.log(row[0]) for row in rows))
    over = sum(row[0] >= 1.2 for row in rows)
    print(f"| geometric mean of {len(rows)}; {over} at 1.2 and above | | | {mean:.2f} |")


def main() -> None:
    """Prints the table, or the figures of some operators."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", default=[], help="words in their names")
    parser.add_argument("--shape", type=int, nargs=2, default=[1000, 1000])
    parser.add_argument("--above", type=float, default=1.2)
    parser.add_argument("--least", type=float, default=0.2, help="milliseconds")
    parser.add_argument("--worst", type=int, help="as many rows at most")
    parser.add_argument("--database", action="store_true", help="of torch's database, op_db")
    parser.add_argument("--convolutions", action="store_true", help="as networks have them")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--type", default="float32", help="of the database's and layers' numbers")
    parser.add_argument("--gradients", action="store_true", help="of the database, too")
    parser.add_argument("--here", nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        print(json.dumps(_measure_here(arguments.here, arguments)))
        return
    given = sys.argv[1:]
    names = _names(arguments.only, arguments)
    figures: dict[str, Any] = {}
    for start in range(0, len(names), IN_A_PROCESS):
        some = names[start : start + IN_A_PROCESS]
        if sys.stderr.isatty():
            print(f"\r{start} of {len(names)} operators", end="", file=sys.stderr)
        figures.update(figures_of("benchmarks.operators", [*given, "--here", *some]) or {})
    if sys.stderr.isatty():
        print("\r", end="", file=sys.stderr)
    _print_table(figures, arguments)


if __name__ == "__main__":
    main()
