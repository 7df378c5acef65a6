"""What sizes that vary cost: whole programs, compilation included, on the xla device, eager, torch.compile and JAX.

    python -m benchmarks.shapes                                     all programs; a markdown table
    python -m benchmarks.shapes --programs sample lengths --peers eager xla
    python -m benchmarks.shapes --plot shapes.png                   also the time against the steps, as a picture
    python -m benchmarks.shapes --measure xla sample                one program on one peer; its figures as JSON

The programs are in `varying_sizes.py`. Each runs twice in a fresh process: the first time from nothing compiled, and once more
with the weights that the first has trained. A step ends where its number is read. The numbers of torch's peers must agree;
JAX has weights of its own. Inductor compiles with `dynamic=True`, JAX each length by itself, as its users would.
"""

import argparse
import importlib.util
import itertools
import json
import math
import pathlib
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks import tables
from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

PEERS = ("eager", "inductor", "xla", "jax")
PROGRAMS = (
    "sample",
    "generate",
    "lengths",
    "last_batch",
    "pairs",
    "graphs",
    "experts",
    "windows",
    "ode",
)
JAX_PROGRAMS = ("sample",)
# How far a number may lie from eager's: sums in another order, over some dozens of steps of training.
TOLERANCE = 1e-2


def _run_of_jax(program: str) -> Any:
    import jax
    import jax.numpy as jnp

    from benchmarks import jax_workloads
    from benchmarks import varying_sizes as sizes

    assert program in JAX_PROGRAMS, program
    shape = (sizes.VOCABULARY, sizes.LONGEST, sizes.WIDTH, sizes.HEADS, sizes.LAYERS)
    parameters, forward = jax_workloads.gpt(*shape)
    jitted = jax.jit(forward)

    def run() -> Iterator[float]:
        tokens = jnp.arange(8)[None]
        for _ in range(100):
            token = jitted(parameters, tokens)[:, -1].argmax(-1, keepdims=True)
            tokens = jnp.concatenate((tokens, token), 1)
            yield token.item()

    return run


def _run_of_torch(peer: str, program: str) -> Any:
    import torch

    from benchmarks import varying_sizes

    torch.manual_seed(0)
    if peer == "xla":
        import torch_xla  # noqa: F401

        return varying_sizes.PROGRAMS[program]("xla", lambda function: function)
    if peer == "inductor":
        # More than its default, at which it gives up.
        torch._dynamo.config.recompile_limit = 64
        return varying_sizes.PROGRAMS[program]("cpu", lambda f: torch.compile(f, dynamic=True))
    return varying_sizes.PROGRAMS[program]("cpu", lambda function: function)


def _timed(run: Any) -> tuple[list[float], list[float]]:
    """The seconds of each step, and the numbers."""
    seconds, numbers, start = [], [], time.perf_counter()
    for value in run():
        now = time.perf_counter()
        seconds.append(now - start)
        numbers.append(value)
        start = now
    return seconds, numbers


def measure(peer: str, program: str, threads: int) -> dict[str, Any]:
    """The figures of a program in this process."""
    limit_threads(threads)
    run = _run_of_jax(program) if peer == "jax" else _run_of_torch(peer, program)
    first, numbers = _timed(run)
    second, _ = _timed(run)
    figures = {
        "first_s": sum(first),
        "second_s": sum(second),
        "slowest_ms": max(second) * 1e3,
        "step_ms": statistics.median(second) * 1e3,
        "steps": first,
        "numbers": numbers,
    }
    if peer == "xla":
        import torch_xla.debug.metrics as met

        figures["programs"] = met.counter_value("ProgramCompile") or 0
        figures["loops"] = met.counter_value("LoopCompile") or 0
    return figures


def furthest(numbers: list[float], expected: list[float]) -> float:
    """The largest difference, relative where numbers are larger than 1; infinite for another count of steps, or no number."""
    if len(numbers) != len(expected) or not all(map(math.isfinite, [*numbers, *expected])):
        return math.inf
    pairs = zip(numbers, expected, strict=True)
    return max((abs(x - y) / max(1.0, abs(y)) for x, y in pairs), default=0.0)


def differences(program: str, figures: dict[str, dict[str, Any]]) -> list[str]:
    """The peers that have eager's weights, and not its numbers."""
    lines = []
    for peer in ("inductor", "xla"):
        if {"eager", peer} <= figures.keys():
            far = furthest(figures[peer]["numbers"], figures["eager"]["numbers"])
            if far > TOLERANCE:
                lines.append(f"{program}: {tables.NAMES[peer]} is {far:.3g} away from eager")
    return lines


def table(results: dict[str, dict[str, dict[str, Any]]], peers: list[str]) -> str:
    """Markdown: seconds of the first run and of the second; programs that were made, and loops that LLVM compiled for them."""
    head = [f"{tables.NAMES[peer]} {which}" for peer in peers for which in ("first", "second")]
    rows = ["| program | " + " | ".join([*head, "programs", "loops"]) + " |"]
    rows.append("|---|" + "---:|" * (len(head) + 2))
    for program, figures in results.items():
        cells = []
        for peer in peers:
            for key in ("first_s", "second_s"):
                cells.append(tables.number(figures[peer][key]) if peer in figures else "-")
        cells += [str(figures.get("xla", {}).get(count, "-")) for count in ("programs", "loops")]
        rows.append(f"| {program} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def plot(results: dict[str, dict[str, dict[str, Any]]], path: pathlib.Path) -> None:
    """A picture of each program: seconds since the start against the number of steps, in each peer's first run."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    columns = min(3, len(results))
    rows = math.ceil(len(results) / columns)
    figure, axes = plt.subplots(
        rows, columns, figsize=(4 * columns, 3 * rows), squeeze=False, layout="constrained"
    )
    for place, (program, figures) in zip(axes.flat, results.items(), strict=False):
        for peer, found in figures.items():
            color = f"C{PEERS.index(peer)}"
            seconds = list(itertools.accumulate(found["steps"]))
            place.plot(range(1, len(seconds) + 1), seconds, color, label=tables.NAMES[peer])
        # From milliseconds of a step to half a minute of a compiler.
        place.set(xlabel="steps", ylabel="seconds since the start", title=program, yscale="log")
    for place in axes.flat[len(results) :]:
        place.set_axis_off()
    axes.flat[0].legend()
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plot", type=pathlib.Path, help="a file for a picture")
    parser.add_argument("--measure", nargs=2, metavar=("PEER", "PROGRAM"))
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(*arguments.measure, arguments.threads)))
        return
    peers = [p for p in arguments.peers if p != "jax" or importlib.util.find_spec("jax")]
    results: dict[str, dict[str, dict[str, Any]]] = {}
    wrong = []
    for program in arguments.programs:
        figures = results.setdefault(program, {})
        for peer in peers:
            if peer == "jax" and program not in JAX_PROGRAMS:
                continue
            found = figures_of(
                "benchmarks.shapes",
                ["--threads", str(arguments.threads), "--measure", peer, program],
            )
            if found is None:
                wrong.append(f"{program}: {tables.NAMES[peer]} failed")
                continue
            figures[peer] = found
            times = f"first {found['first_s']:.2f} s, second {found['second_s']:.2f} s"
            print(f"{program}, {tables.NAMES[peer]}: {times}", file=sys.stderr)
        wrong += differences(program, figures)
    if arguments.plot:
        plot(results, arguments.plot)
    print(table(results, peers))
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
