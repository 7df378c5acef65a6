"""Time against the number of distinct sizes: each step has a length that no step before it had, so what a new size costs adds up.

    python -m benchmarks.distinct_sizes                              docs/images/distinct-sizes.svg, and a markdown table
    python -m benchmarks.distinct_sizes --lengths 12 --peers eager xla --picture other.svg
    python -m benchmarks.distinct_sizes --seconds 120                a peer that has taken longer takes no more lengths
    python -m benchmarks.distinct_sizes --measure xla training       one peer; its figures as JSON

The program is a GPT of 3 layers, width 128, on 4 sequences: its logits, or a step of training with SGD. Each peer runs in a fresh
process, from nothing compiled; a step ends where its number is read. Inductor compiles with `dynamic=True`, JAX each length by
itself, as its users would. The numbers of torch's peers must agree; JAX has weights of its own.
"""

import argparse
import itertools
import json
import pathlib
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks import shapes, tables
from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

PROGRAMS = ("logits", "training")
MODEL = {"vocabulary": 512, "length": 160, "size": 128, "heads": 4, "layers": 3}
SEQUENCES, SHORTEST, RATE = 4, 8, 0.01
START_AND_LAST_STEP = 300  # seconds that a process may take beside its limit


def _step_of_jax(program: str) -> Callable[[int], float]:
    import jax.numpy as jnp

    from benchmarks import jax_workloads

    parameters, forward = jax_workloads.gpt(**MODEL)
    run = jax_workloads.logits_or_training(forward, program == "training", RATE)
    carried = [parameters]

    def step(length: int) -> float:
        tokens = jnp.arange(SEQUENCES * length).reshape(SEQUENCES, length) % MODEL["vocabulary"]
        carried[0], value = run(carried[0], tokens)
        return value.item()

    return step


def _step_of_torch(peer: str, program: str) -> Callable[[int], float]:
    import torch
    import torch.nn.functional as F

    from benchmarks import models

    if peer == "xla":
        import torch_xla  # noqa: F401
    torch.manual_seed(0)
    device = "xla" if peer == "xla" else "cpu"
    model = models.GPT(*MODEL.values()).to(device)
    model.tie_weights()
    compiled = torch.compile(model, dynamic=True) if peer == "inductor" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)

    def tokens_of(length: int) -> torch.Tensor:
        tokens = torch.arange(SEQUENCES * length).view(SEQUENCES, length)
        return (tokens % MODEL["vocabulary"]).to(device)

    @torch.no_grad()
    def logits(length: int) -> float:
        return compiled(tokens_of(length)).square().mean().item()

    def training(length: int) -> float:
        tokens = tokens_of(length)
        loss = F.cross_entropy(compiled(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.item()

    return training if program == "training" else logits


def measure(peer: str, program: str, count: int, threads: int, limit: float) -> dict[str, Any]:
    """The seconds and the number of each step in this process, until all of them together have taken `limit` seconds."""
    limit_threads(threads)
    step = _step_of_jax(program) if peer == "jax" else _step_of_torch(peer, program)
    lengths = random.Random(0).sample(range(SHORTEST, MODEL["length"]), count)
    seconds, numbers = [], []
    for length in lengths:
        start = time.perf_counter()
        numbers.append(step(length))
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > limit:
            break
    return {"steps": seconds, "numbers": numbers}


def differences(program: str, figures: dict[str, dict[str, Any]]) -> list[str]:
    """The peers whose numbers are not eager's, at the lengths that all of torch's took."""
    count = min(
        (len(found["numbers"]) for peer, found in figures.items() if peer != "jax"), default=0
    )
    common = {peer: {"numbers": found["numbers"][:count]} for peer, found in figures.items()}
    return shapes.differences(program, common)


def draw(results: dict[str, dict[str, dict[str, Any]]], picture: pathlib.Path) -> None:
    """A panel for each program: seconds since the start against distinct lengths."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    canvas, panels = pyplot.subplots(
        1, len(results), figsize=(4.5 * len(results), 3.4), squeeze=False, layout="constrained"
    )
    for panel, (program, figures) in zip(panels.flat, results.items(), strict=True):
        for peer, found in figures.items():
            seconds = list(itertools.accumulate(found["steps"]))
            color = f"C{shapes.PEERS.index(peer)}"
            panel.plot(range(1, len(seconds) + 1), seconds, color, label=tables.NAMES[peer])
        # From milliseconds of a step to minutes of compilers.
        panel.set(
            xlabel="distinct lengths", ylabel="seconds since the start", title=program, yscale="log"
        )
    # Lines lie in all parts of the panels.
    handles, labels = panels.flat[0].get_legend_handles_labels()
    canvas.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    canvas.savefig(picture, metadata={"Date": None} if picture.suffix == ".svg" else None)


def main() -> None:
    """Prints the table and draws it, or prints the figures of one peer."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--programs", nargs="+", choices=PROGRAMS, default=PROGRAMS)
    parser.add_argument("--peers", nargs="+", choices=shapes.PEERS, default=shapes.PEERS)
    parser.add_argument("--lengths", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=600, help="that one peer may take")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--picture", type=pathlib.Path, default="docs/images/distinct-sizes.svg")
    parser.add_argument("--measure", nargs=2, metavar=("PEER", "PROGRAM"))
    arguments = parser.parse_args()
    if arguments.measure:
        limits = (arguments.lengths, arguments.threads, arguments.seconds)
        print(json.dumps(measure(*arguments.measure, *limits)))
        return
    results: dict[str, dict[str, dict[str, Any]]] = {}
    wrong = []
    print(
        "| program | peer | lengths | s for all | ms of the last ten, each |\n|---|---|---:|---:|---:|"
    )
    for program in arguments.programs:
        figures = results.setdefault(program, {})
        for peer in arguments.peers:
            options = ["--lengths", str(arguments.lengths), "--threads", str(arguments.threads)]
            options += ["--seconds", str(arguments.seconds)]
            options += ["--measure", peer, program]
            found = figures_of(
                "benchmarks.distinct_sizes",
                options,
                most_seconds=arguments.seconds + START_AND_LAST_STEP,
            )
            if found is None:
                wrong.append(f"{program}: {tables.NAMES[peer]} failed")
                continue
            figures[peer] = found
            last = found["steps"][-10:]
            cells = (
                str(len(found["steps"])),
                tables.number(sum(found["steps"])),
                tables.number(sum(last) / len(last) * 1e3),
            )
            print(f"| {program} | {tables.NAMES[peer]} | {' | '.join(cells)} |", flush=True)
        wrong += differences(program, figures)
    draw(results, arguments.picture)
    if wrong:
        sys.exit("\n".join(wrong))


if __name__ == "__main__":
    main()
