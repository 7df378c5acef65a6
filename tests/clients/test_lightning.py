"""Lightning 2.6 and its 1.9, unmodified: `Trainer` on one device and on several, as in its guides."""

import json

import pytest
import torch
from conftest import device_environment

SCRIPT = "train_lightning.py"


def trainer(**options) -> tuple[str, str]:
    return "--trainer", json.dumps(options)


def reference(on_cpu, library: str, *arguments: str):
    return on_cpu(SCRIPT, "--library", library, *trainer(accelerator="cpu", devices=1), *arguments)


@pytest.mark.parametrize("devices", [1, "auto"])
def test_lightning_one_device(program, on_cpu, devices):
    run = program.run(
        SCRIPT,
        *trainer(accelerator="tpu", devices=devices),
        "--validate",
        variables=device_environment(1),
    )
    expected = reference(on_cpu, "lightning", "--validate")
    run.check_equal(expected)
    run.check_on_device()
    assert run.report["strategy"] == "SingleDeviceXLAStrategy"
    assert run.report["metrics"]["accuracy"] == pytest.approx(
        expected.report["metrics"]["accuracy"], abs=0.01
    )
    # The first step creates the optimizer's state; validation is a graph of its own.
    assert run.report["compilations"] <= 8


def test_pytorch_lightning_one_core(program, on_cpu):
    run = program.run(
        SCRIPT,
        "--library",
        "pytorch_lightning",
        *trainer(tpu_cores=1),
        variables=device_environment(1),
    )
    run.check_equal(reference(on_cpu, "pytorch_lightning"))
    run.check_on_device()


def test_pytorch_lightning_core_5(program, on_cpu):
    run = program.run(
        SCRIPT,
        "--library",
        "pytorch_lightning",
        *trainer(tpu_cores=[5]),
        variables=device_environment(8),
    )
    run.check_equal(reference(on_cpu, "pytorch_lightning"))
    run.check_on_device()
    assert run.report["device"] == "xla:5"


@pytest.mark.parametrize("library", ["lightning", "pytorch_lightning"])
def test_checkpoint_and_resume(program, on_cpu, library):
    options = dict(devices=1, accelerator="tpu")
    start = program.run(
        SCRIPT,
        *("--library", library, *trainer(**options)),
        *("--checkpoint", "--epochs", "1"),
        variables=device_environment(1),
    )
    checkpoint = program.folder / "run1" / "last.ckpt"
    assert checkpoint.exists()
    resumed = program.run(
        SCRIPT,
        *("--library", library, *trainer(**options)),
        *("--resume", str(checkpoint), "--epochs", "2"),
        variables=device_environment(1),
    )
    whole = reference(on_cpu, library)
    half = len(whole.losses) // 2
    assert start.losses == pytest.approx(whole.losses[:half], rel=1e-3, abs=1e-4)
    assert resumed.losses == pytest.approx(whole.losses[half:], rel=1e-3, abs=1e-4)
    for name, weight in whole.weights.items():
        torch.testing.assert_close(resumed.weights[name], weight, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "library, precision", [("lightning", "bf16-true"), ("pytorch_lightning", 16)]
)
def test_half_precision_is_bfloat16(program, on_cpu, library, precision):
    run = program.run(
        SCRIPT,
        *("--library", library, *trainer(accelerator="tpu", devices=1, precision=precision)),
        variables=device_environment(1),
    )
    run.check_learned()
    run.check_on_device()
    for weight in run.weights.values():
        assert weight.dtype in (torch.float32, torch.bfloat16)
        assert torch.equal(weight, weight.bfloat16().to(weight.dtype))
    full = reference(on_cpu, library)
    assert run.losses == pytest.approx(full.losses, rel=0.1, abs=0.1)
    assert run.losses != pytest.approx(full.losses, rel=1e-4)


@pytest.mark.parametrize("library", ["lightning", "pytorch_lightning"])
def test_tied_weights_stay_tied(program, on_cpu, library):
    run = program.run(
        SCRIPT,
        *("--library", library, *trainer(accelerator="tpu", devices=1), "--tied"),
        variables=device_environment(1),
    )
    run.check_equal(reference(on_cpu, library, "--tied"))
    run.check_on_device()
    assert run.report["tied"]
    assert run.report["parameters"] == 2


@pytest.mark.parametrize("library", ["lightning", "pytorch_lightning"])
def test_xla_profiler(program, on_cpu, library):
    run = program.run(
        SCRIPT,
        *("--library", library, "--validate"),
        *trainer(accelerator="tpu", devices=1, profiler="xla"),
        variables=device_environment(1),
    )
    run.check_equal(reference(on_cpu, library))
    run.check_on_device()
