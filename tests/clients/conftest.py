"""What the tests of the client libraries share: running a library's training program, on the CPU and on the device."""

import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

FOLDER = pathlib.Path(__file__).parent
ROOT = FOLDER.parents[1]


def check_weight(name: str, actual: torch.Tensor, expected: torch.Tensor) -> None:
    """The weights are close: a tenth of one step at the learning rates of the programs. An error says which one is not."""
    torch.testing.assert_close(
        actual, expected, rtol=1e-3, atol=3e-4, msg=lambda text: f"{name}: {text}"
    )


class Run(NamedTuple):
    """What a training program reports."""

    losses: list[float]
    weights: dict[str, torch.Tensor]
    report: dict[str, Any]
    output: str

    def check_equal(
        self, other: "Run", learned: float = 0.8, without_effect: tuple[str, ...] = ()
    ) -> None:
        """Both have made the same steps, and they have learned (see `check_learned`).

        Weights whose names end in one of `without_effect` are not compared: no output depends on them, so that their
        gradients are rounding errors, which Adam makes as large as any other gradient.
        """
        assert len(self.losses) == len(other.losses) > 0
        torch.testing.assert_close(
            torch.tensor(self.losses), torch.tensor(other.losses), rtol=1e-3, atol=1e-4
        )
        assert self.weights.keys() == other.weights.keys()
        for name, weight in self.weights.items():
            if without_effect and name.endswith(without_effect):
                continue
            check_weight(name, weight, other.weights[name])
        self.check_learned(learned)

    def check_learned(self, factor: float = 0.8) -> None:
        """The last quarter of the losses is below the first by this factor."""
        quarter = max(len(self.losses) // 4, 1)
        first, last = self.losses[:quarter], self.losses[-quarter:]
        assert sum(last) < factor * sum(first), self.losses

    def check_on_device(self, processes: int = 1) -> None:
        """It ran on the device, in that many processes, and no operator on the CPU."""
        assert self.report["device"].startswith("xla"), self.report
        assert self.report["world_size"] == processes
        assert self.report["fallbacks"] == {}


def cpu_environment() -> dict[str, str]:
    """Variables with which the libraries train on the CPU although torch_xla is installed."""
    return {"USE_TORCH_XLA": "0", "CUDA_VISIBLE_DEVICES": ""}


def device_environment(devices: int = 1) -> dict[str, str]:
    """Variables with which they find that many devices."""
    return {"PJRT_DEVICE": "TPU", "TORCH_XLA_SIMULATE_TPU": str(devices)}


class Program:
    """Runs the training programs of this folder, each in a process of its own and a folder of its own."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self._runs = 0

    def run(
        self,
        script: str,
        *arguments: str,
        variables: dict[str, str],
        launcher: tuple[str, ...] = (),
        timeout: float = 300,
    ) -> Run:
        """Runs `python [LAUNCHER] SCRIPT ARGUMENTS` and reads what it has written."""
        self._runs += 1
        out = self.folder / f"run{self._runs}"
        out.mkdir()
        path = os.pathsep.join(map(str, (ROOT, ROOT / "examples", FOLDER)))
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "OMP_NUM_THREADS": "1",
            "HF_HUB_OFFLINE": "1",
            "TOKENIZERS_PARALLELISM": "false",
            **variables,
        }
        command = [sys.executable, *launcher, str(FOLDER / script), *arguments, "--out", str(out)]
        process = subprocess.Popen(
            command,
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            # Its children too: they have its group.
            os.killpg(process.pid, 9)
            output, _ = process.communicate()
            pytest.fail(f"{' '.join(command)} still ran after {timeout} s\n{output[-8000:]}")
        if process.returncode != 0 or not (out / "report.json").exists():
            pytest.fail(f"{' '.join(command)}: exit status {process.returncode}\n{output[-8000:]}")
        report = json.loads((out / "report.json").read_text())
        weights = torch.load(out / "weights.pt", map_location="cpu")
        return Run(report.pop("losses"), weights, report, output)


@pytest.fixture
def program(tmp_path: pathlib.Path) -> Program:
    return Program(tmp_path)


_cpu_runs: dict[tuple[str, ...], Run] = {}


@pytest.fixture
def on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Run]:
    """The run of a program on the CPU; equal ones are run once."""

    def run(script: str, *arguments: str) -> Run:
        key = (script, *arguments)
        if key not in _cpu_runs:
            folder = tmp_path_factory.mktemp("cpu")
            _cpu_runs[key] = Program(folder).run(script, *arguments, variables=cpu_environment())
        return _cpu_runs[key]

    return run
