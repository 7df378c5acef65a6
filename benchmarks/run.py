"""Compares the xla device with eager PyTorch, torch.compile and JAX, and prints a markdown table.

    python -m benchmarks.run                                   everything; about an hour
    python -m benchmarks.run --workloads cnn lstm --threads 1 --repeats 1
    python -m benchmarks.run --output docs/performance-tables.md
    python -m benchmarks.run --peers xla --against ../before   a change of the project: an older build takes turns, too

Each figure comes from a fresh process; the peers take turns, and the median over the turns counts.
"""

import argparse
import importlib.util
import json
import pathlib
import platform
import statistics
import sys
from typing import Any

from benchmarks import tables
from benchmarks.fresh_process import figures_of
from benchmarks.measure import PEERS

WORKLOADS = (
    "mlp",
    "cnn",
    "resnet18",
    "resnet18_infer",
    "bert",
    "gpt_infer",
    "lstm",
    "chain",
    "gemm",
    "bmm",
    "recording",
)
# Recording is what a lazy device does; the others run at once, or do not run Python at all.
RECORDING_PEERS = ("eager", "xla", "xla_before")
NEEDS = {"jax": "jax", "xla_on_xla_cpu": "lammps_jax_pjrt_cpu"}


def median_of(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The medians of the figures of several processes; counts and names are the last one's."""
    last = runs[-1]
    return {
        name: statistics.median(run[name] for run in runs)
        if isinstance(value, (int, float))
        else value
        for name, value in last.items()
    }


def _processor() -> str:
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _measure(
    peer: str, workload: str, threads: int, arguments: argparse.Namespace
) -> dict[str, Any] | None:
    """One process's figures; `xla_before` is the xla device of the other checkout."""
    options = ["--threads", str(threads), "--seconds", str(arguments.seconds)]
    if peer == "xla_before":
        tree = arguments.against.resolve()
        return figures_of("benchmarks.measure", ["xla", workload, *options], tree)
    return figures_of("benchmarks.measure", [peer, workload, *options])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=WORKLOADS)
    parser.add_argument("--peers", nargs="+", choices=PEERS, default=PEERS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument(
        "--against",
        type=pathlib.Path,
        metavar="TREE",
        help="also measure the torch_xla of another checkout, which is built",
    )
    parser.add_argument("--output", type=pathlib.Path, help="a file for the tables")
    parser.add_argument("--json", type=pathlib.Path, help="a file for the figures")
    arguments = parser.parse_args()
    missing = [peer for peer, module in NEEDS.items() if not importlib.util.find_spec(module)]
    peers = [peer for peer in arguments.peers if peer not in missing]
    if arguments.against:
        peers.append("xla_before")

    figures: dict[str, dict[str, tables.Results]] = {}
    for threads in arguments.threads:
        for workload in arguments.workloads:
            runs: dict[str, list[dict[str, Any]]] = {}
            for _ in range(arguments.repeats):
                for peer in peers:
                    if workload == "recording" and peer not in RECORDING_PEERS:
                        continue
                    found = _measure(peer, workload, threads, arguments)
                    if found is not None:
                        runs.setdefault(peer, []).append(found)
            results = {peer: median_of(found) for peer, found in runs.items()}
            figures.setdefault(str(threads), {})[workload] = results
            print(f"{threads} thread(s), {workload}: {tables.one_line(results)}", file=sys.stderr)

    header = f"{_processor()}, Python {platform.python_version()}: `{_command()}`\n"
    text = header + "\n" + tables.markdown(figures, list(peers))
    print(text)
    if arguments.output:
        arguments.output.write_text(text)
    if arguments.json:
        arguments.json.write_text(json.dumps(figures, indent=1))


def _command() -> str:
    return " ".join(["python -m benchmarks.run", *sys.argv[1:]])


if __name__ == "__main__":
    main()
