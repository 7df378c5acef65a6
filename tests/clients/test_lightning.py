"""Lightning 2.6 and its 1.9, unmodified: `Trainer` on one device and on several, as in its guides."""

import json

import pytest
import torch
from conftest import check_weight, device_environment

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
        check_weight(name, resumed.weights[name], weight)


def check_bfloat16(run, full, processes: int = 1) -> None:
    """Near the run in float32, and different; the weights hold numbers of bfloat16's precision."""
    run.check_learned()
    run.check_on_device(processes)
    for weight in run.weights.values():
        assert weight.dtype in (torch.float32, torch.bfloat16)
        assert torch.equal(weight, weight.bfloat16().to(weight.dtype))
    assert run.losses == pytest.approx(full.losses, abs=0.3)
    assert run.losses != pytest.approx(full.losses, rel=1e-4)


@pytest.mark.parametrize(
    "library, precision", [("lightning", "bf16-true"), ("pytorch_lightning", 16)]
)
def test_half_precision_is_bfloat16(program, on_cpu, library, precision):
    run = program.run(
        SCRIPT,
        *("--library", library, *trainer(accelerator="tpu", devices=1, precision=precision)),
        variables=device_environment(1),
    )
    check_bfloat16(run, reference(on_cpu, library))


@pytest.mark.parametrize("library", ["lightning", "pytorch_lightning"])
def test_tied_weights_stay_tied(program, on_cpu, library):
    run = program.run(
        SCRIPT,
        *("--library", library, *trainer(accelerator="tpu", devices=1), "--tied"),
        variables=device_environment(1),
    )
    run.check_equal(reference(on_cpu, library, "--tied"), learned=0.95)
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


# --- Several devices: a process for each, forked by the library ---

# What all processes together take at a step, drawn as the library's own sampler does; so the one on the CPU.
WHOLE_BATCH = ("--batch-size", "128", "--sampler")
EIGHT_CORES = ("--library", "pytorch_lightning", "--batch-size", "16", *trainer(tpu_cores=8))


def check_divided(run, expected, processes: int, learned: float = 0.8) -> None:
    """The processes have shared the work of one, and each has seen its part of the samples."""
    run.check_equal(expected, learned=learned)
    run.check_on_device(processes)
    assert run.report["sampler"] in ("DistributedSampler", "DistributedSamplerWrapper")
    assert run.report["rank_samples"] * processes == expected.report["rank_samples"]


@pytest.mark.parametrize("devices", [2, "auto"])
def test_lightning_two_devices(program, on_cpu, devices):
    run = program.run(
        SCRIPT,
        *trainer(accelerator="tpu", devices=devices),
        *("--validate", "--checkpoint"),
        variables=device_environment(2),
    )
    expected = reference(on_cpu, "lightning", "--validate", *WHOLE_BATCH)
    check_divided(run, expected, processes=2)
    assert run.report["strategy"] == "XLAStrategy"
    assert run.report["metrics"]["accuracy"] == pytest.approx(
        expected.report["metrics"]["accuracy"], abs=0.01
    )
    saved = torch.load(program.folder / "run1" / "last.ckpt", map_location="cpu")
    for name, weight in run.weights.items():
        torch.testing.assert_close(saved["state_dict"][name], weight)


@pytest.mark.parametrize("sampler", [(), ("--sampler",)], ids=["automatic", "own"])
def test_pytorch_lightning_eight_cores(program, on_cpu, sampler):
    """The guide's `Trainer(tpu_cores=8)`, with the sampler that it inserts and with one's own."""
    run = program.run(SCRIPT, *EIGHT_CORES, *sampler, variables=device_environment(8))
    check_divided(run, reference(on_cpu, "pytorch_lightning", *WHOLE_BATCH), processes=8)
    assert run.report["strategy"] == "TPUSpawnStrategy"


def test_pytorch_lightning_eight_cores_resume(program, on_cpu):
    variables = device_environment(8)
    start = program.run(SCRIPT, *EIGHT_CORES, "--checkpoint", "--epochs", "1", variables=variables)
    checkpoint = program.folder / "run1" / "last.ckpt"
    resumed = program.run(SCRIPT, *EIGHT_CORES, "--resume", str(checkpoint), variables=variables)
    whole = reference(on_cpu, "pytorch_lightning", *WHOLE_BATCH)
    assert start.losses + resumed.losses == pytest.approx(whole.losses, rel=1e-3, abs=1e-4)
    for name, weight in whole.weights.items():
        check_weight(name, resumed.weights[name], weight)


def test_pytorch_lightning_eight_cores_half_precision(program, on_cpu):
    """The guide's `Trainer(tpu_cores=8, precision=16)`."""
    run = program.run(
        SCRIPT,
        *("--library", "pytorch_lightning", "--batch-size", "16"),
        *trainer(tpu_cores=8, precision=16),
        variables=device_environment(8),
    )
    check_bfloat16(run, reference(on_cpu, "pytorch_lightning", *WHOLE_BATCH), processes=8)


@pytest.mark.parametrize("library, devices", [("lightning", 2), ("pytorch_lightning", 8)])
def test_tied_weights_stay_tied_in_several_processes(program, on_cpu, library, devices):
    run = program.run(
        SCRIPT,
        *("--library", library, *trainer(accelerator="tpu", devices=devices), "--tied"),
        *("--batch-size", str(128 // devices)),
        variables=device_environment(devices),
    )
    expected = reference(on_cpu, library, "--tied", *WHOLE_BATCH)
    check_divided(run, expected, processes=devices, learned=0.98)
    assert run.report["tied"]
    assert run.report["parameters"] == 2
