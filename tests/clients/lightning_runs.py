"""What the tests of both Lightnings share: runs of their training program, and what is checked about them."""

import json
from collections.abc import Callable

import pytest
import torch
from conftest import Program, Run, check_weight, device_environment

SCRIPT = "train_lightning.py"
# What all processes together take at a step, drawn as the library's own sampler does; so the one on the CPU.
WHOLE_BATCH = ("--batch-size", "128", "--sampler")


def trainer(**options) -> tuple[str, str]:
    """Arguments of the Trainer, for the training program."""
    return "--trainer", json.dumps(options)


class Library:
    """Trains with one of the libraries."""

    def __init__(self, name: str, program: Program, on_cpu: Callable[..., Run]) -> None:
        self.name = name
        self.program = program
        self._on_cpu = on_cpu

    def train(self, devices: int, *arguments: str) -> Run:
        """A run on a machine with that many devices."""
        variables = device_environment(devices)
        return self.program.run(SCRIPT, "--package", self.name, *arguments, variables=variables)

    def reference(self, *arguments: str) -> Run:
        """The library's own run on the CPU."""
        if "--tied" not in arguments:
            arguments = (*arguments, "--validate")
        options = trainer(accelerator="cpu", devices=1)
        return self._on_cpu(SCRIPT, "--package", self.name, *options, *arguments)

    def check_one_device(self, options: tuple[str, ...]) -> Run:
        """Learns, validates and profiles as on the CPU."""
        run = self.train(1, *options, "--validate", "--profile")
        expected = self.reference()
        run.check_equal(expected)
        run.check_on_device()
        check_accuracy(run, expected)
        check_profiled(run)
        return run

    def check_tied_weights(self, options: tuple[str, ...]) -> None:
        """Tied layers stay tied, and learn as on the CPU."""
        run = self.train(1, *options, "--tied")
        run.check_equal(self.reference("--tied"), learned=0.95)
        run.check_on_device()
        check_tied(run)

    def check_resumed(self, devices: int, arguments: tuple[str, ...], whole: Run) -> None:
        """An epoch, and another one from its checkpoint in a new process, are as good as both at once."""
        start = self.train(devices, *arguments, "--checkpoint", "--epochs", "1")
        checkpoint = self.program.folder / "run1" / "last.ckpt"
        resumed = self.train(devices, *arguments, "--resume", str(checkpoint))
        assert len(start.losses) == len(resumed.losses)
        assert start.losses + resumed.losses == pytest.approx(whole.losses, rel=1e-3, abs=1e-4)
        for name, weight in whole.weights.items():
            check_weight(name, resumed.weights[name], weight)


def check_divided(run: Run, expected: Run, processes: int, learned: float = 0.8) -> None:
    """The processes have shared the work of one, and each has seen its part of the samples."""
    run.check_equal(expected, learned=learned)
    run.check_on_device(processes)
    assert run.report["sampler"] in ("DistributedSampler", "DistributedSamplerWrapper")
    assert run.report["rank_samples"] * processes == expected.report["rank_samples"]


def check_accuracy(run: Run, expected: Run) -> None:
    """Validation says the same; in several processes its last batches are divided differently."""
    accuracy = expected.report["metrics"]["accuracy"]
    assert run.report["metrics"]["accuracy"] == pytest.approx(accuracy, abs=0.01)


def check_tied(run: Run) -> None:
    """The layers have one weight still: the module has two of them."""
    assert run.report["tied"]
    assert run.report["parameters"] == 2


def check_bfloat16(run: Run, full: Run, processes: int = 1) -> None:
    """Near the run in float32, and different; the weights hold numbers of bfloat16's precision."""
    run.check_learned()
    run.check_on_device(processes)
    for weight in run.weights.values():
        assert weight.dtype in (torch.float32, torch.bfloat16)
        assert torch.equal(weight, weight.bfloat16().to(weight.dtype))
    assert run.losses == pytest.approx(full.losses, abs=0.3)
    assert run.losses != pytest.approx(full.losses, rel=1e-4)


def check_profiled(run: Run) -> None:
    """The profiler's sections were recorded, and its server ran."""
    assert {name.rpartition(".")[2] for name in run.report["sections"]} >= {
        "training_step",
        "backward",
        "validation_step",
    }
    assert run.report["profiler_port"] > 0
