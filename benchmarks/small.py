"""CPU time of small steps on the xla device, as a share of eager's: the programs of `small_programs.py`.

    python -m benchmarks.small                           one and two threads; a quarter of an hour
    python -m benchmarks.small --threads 1 --programs optimizer graph
    python -m benchmarks.small --record                  what `--check` compares with: benchmarks/small.json
    python -m benchmarks.small --check                   fails where a share has grown by more than the noise

The two devices take turns in one process, and each step ends with reading a number. Of each turn counts the processor time of
all of the process's threads, of a program the median of the turns' shares; noise is the distance of their quartiles. Processor
time says the same on a machine that is busy with other work, within that noise.
"""

import argparse
import json
import math
import pathlib
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

RECORD = pathlib.Path(__file__).with_suffix(".json")
WARM_STEPS, TURNS, IN_A_PROCESS = 50, 11, 8
# A share may grow by so many times its noise, and by so much in any case.
NOISES, TOLERANCE = 3, 0.15

Figures = dict[str, dict[str, float]]


def settle(step: Callable[[], Any]) -> None:
    """Until no step compiles, here or in the background."""
    import torch_xla.debug.metrics as met

    def compiled() -> list[Any]:
        return [met.counter_value(name) for name in ("CreateCompileHandles", "InterpretedGraph")]

    for _ in range(20):
        before = compiled()
        for _ in range(WARM_STEPS):
            step().item()
        if compiled() == before:
            return
        time.sleep(0.2)


def _milliseconds(step: Callable[[], Any], count: int) -> float:
    start = time.process_time()
    for _ in range(count):
        step().item()
    return (time.process_time() - start) / count * 1e3


def measured(name: str, seconds: float) -> dict[str, float]:
    """`eager` and `xla`: milliseconds a step, the least of the turns; `share`: the median; `noise`: of the share."""
    import torch

    import torch_xla  # noqa: F401
    from benchmarks.small_programs import PROGRAMS

    steps = []
    for device in ("cpu", "xla"):
        torch.manual_seed(0)
        steps.append(PROGRAMS[name](device))
    for step in steps:
        settle(step)
    count = max(1, int(seconds * 1e3 / TURNS / 2 / _milliseconds(steps[0], WARM_STEPS)))
    turns = [[_milliseconds(step, count) for step in steps] for _ in range(TURNS)]
    shares = [xla / eager for eager, xla in turns]
    low, middle, high = statistics.quantiles(shares, n=4)
    eager, xla = (min(times) for times in zip(*turns, strict=True))
    return {"eager": eager, "xla": xla, "share": middle, "noise": (high - low) / middle}


def geometric_mean(figures: Figures) -> float:
    return math.exp(statistics.fmean(math.log(row["share"]) for row in figures.values()))


def _print_table(threads: int, figures: Figures) -> None:
    print(f"\n## {threads} thread{'s' if threads > 1 else ''}\n")
    print("| program | eager, ms | xla, ms | share | noise |\n|---|---:|---:|---:|---:|")
    for name, row in sorted(figures.items(), key=lambda item: item[1]["share"]):
        print(
            f"| {name} | {row['eager']:.3f} | {row['xla']:.3f} | {row['share']:.2f} | {row['noise']:.2f} |"
        )
    print(f"| geometric mean of {len(figures)} | | | {geometric_mean(figures):.2f} | |", flush=True)


def grown(recorded: Figures, figures: Figures) -> list[str]:
    """What to say of the programs whose share has grown by more than both runs' noise explains."""
    lines = []
    for name, row in figures.items():
        before = recorded.get(name)
        if before is None:
            continue
        allowed = 1 + max(TOLERANCE, NOISES * max(before["noise"], row["noise"]))
        if row["share"] > before["share"] * allowed:
            lines.append(
                f"{name}: {row['share']:.2f} of eager's time, {before['share']:.2f} when it was recorded "
                f"(at most {before['share'] * allowed:.2f} is noise)"
            )
    return lines


def _measure_here(arguments: argparse.Namespace) -> None:
    limit_threads(arguments.threads[0])
    import torch

    torch.set_num_threads(arguments.threads[0])
    print(json.dumps({name: measured(name, arguments.seconds) for name in arguments.programs}))


def _measure(threads: int, names: list[str], seconds: float) -> Figures:
    """A few programs in each process: what one compiles takes memory, which the others would feel."""
    figures: Figures = {}
    for start in range(0, len(names), IN_A_PROCESS):
        some = names[start : start + IN_A_PROCESS]
        options = ["--here", "--threads", str(threads), "--seconds", str(seconds)]
        options += ["--programs", *some]
        measured_here = figures_of("benchmarks.small", options)
        if measured_here is None:
            raise SystemExit(f"No figures of {', '.join(some)}.")
        figures.update(measured_here)
        print(".", end="", file=sys.stderr, flush=True)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--programs", nargs="+", default=[""], help="words in their names")
    parser.add_argument("--seconds", type=float, default=1.0, help="of processor for a program")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here:
        return _measure_here(arguments)
    from benchmarks.small_programs import PROGRAMS

    names = [name for name in PROGRAMS if any(word in name for word in arguments.programs)]
    results = {str(t): _measure(t, names, arguments.seconds) for t in arguments.threads}
    for threads, figures in results.items():
        _print_table(int(threads), figures)
    recorded = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    unknown = [threads for threads in results if threads not in recorded]
    if arguments.check and unknown:
        raise SystemExit(f"Nothing is recorded for {', '.join(unknown)} thread(s): see --record.")
    if arguments.record:
        for threads, figures in results.items():
            recorded[threads] = {**recorded.get(threads, {}), **figures}
        RECORD.write_text(json.dumps(recorded, indent=1) + "\n")
    if arguments.check:
        lines = [
            f"{threads} thread(s): {line}"
            for threads, figures in results.items()
            for line in grown(recorded.get(threads, {}), figures)
        ]
        if lines:
            raise SystemExit("\n".join(["", "Slower than recorded:", *lines]))


if __name__ == "__main__":
    main()
