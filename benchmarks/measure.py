"""Times one workload on one peer, in this process, and prints the figures as JSON. `run.py` starts it.

    python -m benchmarks.measure PEER WORKLOAD --threads N --seconds S

Figures: `step_ms`, the median over blocks of steps that end with waiting for the results; `first_s`, the first step from
nothing compiled; `peak_mib`, the most memory resident at a time, and `import_mib`, that after the imports; `compilations` and
`fallbacks` where the peer counts them. The workload `recording` gives microseconds for each recorded operation instead.
"""

import argparse
import gc
import importlib.util
import json
import os
import pathlib
import statistics
import time
from collections.abc import Callable
from typing import Any

PEERS = ("eager", "inductor", "xla", "jax", "xla_on_xla_cpu")
MOST_STEPS_IN_A_BLOCK = 256
RECORDED_OPERATIONS = 1000


def limit_threads(count: int) -> None:
    """Must run before the libraries are imported: they ask for their processors then."""
    processors = sorted(os.sched_getaffinity(0))[:count]
    os.sched_setaffinity(0, processors)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(count)


def _peak_mib() -> float:
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _plugin_of_xla_cpu() -> str:
    specification = importlib.util.find_spec("lammps_jax_pjrt_cpu")
    if specification is None or not specification.submodule_search_locations:
        raise SystemExit("The package lammps-jax-pjrt-cpu is not installed.")
    return str(next(pathlib.Path(specification.submodule_search_locations[0]).rglob("*.so")))


class Peer:
    """How a peer makes a workload's step, ends a step, and waits for it."""

    def __init__(self, threads: int) -> None:
        import torch

        torch.set_num_threads(threads)
        torch.manual_seed(0)

    def make(self, workload: str) -> Callable[[], Any]:
        from benchmarks import workloads

        return workloads.WORKLOADS[workload]("cpu", lambda function: function)

    def end_step(self) -> None:
        pass

    def wait(self, result: Any) -> None:
        pass

    def counts(self) -> dict[str, Any]:
        return {}


class Inductor(Peer):
    """torch.compile."""

    def make(self, workload: str) -> Callable[[], Any]:
        import torch

        from benchmarks import workloads

        return workloads.WORKLOADS[workload]("cpu", torch.compile)


class Xla(Peer):
    """The xla device; the environment chooses the engine."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        import torch_xla
        import torch_xla.core.xla_model as xm

        self._sync, self._wait = torch_xla.sync, xm.wait_device_ops

    def make(self, workload: str) -> Callable[[], Any]:
        from benchmarks import workloads

        step = workloads.WORKLOADS[workload]("xla", lambda function: function)
        self._sync()
        self._wait()
        return step

    def end_step(self) -> None:
        self._sync()

    def wait(self, result: Any) -> None:
        self._wait()

    def counts(self) -> dict[str, Any]:
        import torch_xla.debug.metrics as met

        fallbacks = [
            name
            for name in met.counter_names()
            if name.startswith("aten::") and name != "aten::_local_scalar_dense"
        ]
        return {"compilations": met.counter_value("ProgramCompile") or 0, "fallbacks": fallbacks}


class Jax(Peer):
    """JAX."""

    def __init__(self, threads: int) -> None:
        import jax  # noqa: F401

    def make(self, workload: str) -> Callable[[], Any]:
        from benchmarks import jax_workloads

        return jax_workloads.WORKLOADS[workload]()

    def wait(self, result: Any) -> None:
        import jax

        jax.block_until_ready(result)


def _peer(name: str, threads: int) -> Peer:
    if name == "xla_on_xla_cpu":
        os.environ["PJRT_DEVICE"] = "LIBRARY"
        os.environ["PJRT_LIBRARY_PATH"] = _plugin_of_xla_cpu()
    kinds = {"eager": Peer, "inductor": Inductor, "jax": Jax}
    return kinds.get(name, Xla)(threads)


def time_steps(peer: Peer, workload: str, seconds: float) -> dict[str, Any]:
    """The figures of a workload."""
    imported = _peak_mib()
    step = peer.make(workload)

    def block(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            result = step()
            peer.end_step()
        peer.wait(result)
        return (time.perf_counter() - start) / count

    first = block(1)
    warm = min(block(1) for _ in range(4))
    count = max(1, min(MOST_STEPS_IN_A_BLOCK, int(0.05 / warm)))
    gc.collect()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        times.append(block(count))
    return {
        "step_ms": statistics.median(times) * 1e3,
        "first_s": first,
        "peak_mib": _peak_mib(),
        "import_mib": imported,
        **peer.counts(),
    }


def time_recording(peer: Peer, device: str, seconds: float) -> dict[str, Any]:
    """Microseconds for a small `add`, and an in-place one, from Python. Running what is recorded is not timed."""
    import torch

    x, y = torch.ones(8).to(device), torch.ones(8).to(device)

    def add() -> None:
        for _ in range(RECORDED_OPERATIONS):
            x + y

    def add_() -> None:
        for _ in range(RECORDED_OPERATIONS):
            x.add_(y)

    def median_us(record: Callable[[], None]) -> float:
        times, end = [], time.perf_counter() + seconds / 2
        while time.perf_counter() < end or len(times) < 5:
            start = time.perf_counter()
            record()
            times.append(time.perf_counter() - start)
            peer.end_step()
            peer.wait(x)
        return statistics.median(times) / RECORDED_OPERATIONS * 1e6

    return {"add_us": median_us(add), "add__us": median_us(add_)}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("peer", choices=PEERS)
    parser.add_argument("workload")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3.0)
    arguments = parser.parse_args()
    limit_threads(arguments.threads)
    peer = _peer(arguments.peer, arguments.threads)
    if arguments.workload == "recording":
        device = "xla" if isinstance(peer, Xla) else "cpu"
        figures = time_recording(peer, device, arguments.seconds)
    else:
        figures = time_steps(peer, arguments.workload, arguments.seconds)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
