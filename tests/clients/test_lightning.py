"""Lightning 2.6, unmodified: `Trainer(accelerator="tpu")` on one device and on several."""

import pytest
import torch
from lightning_runs import (
    WHOLE_BATCH,
    Library,
    check_accuracy,
    check_bfloat16,
    check_divided,
    check_tied,
    trainer,
)

ONE_DEVICE = trainer(accelerator="tpu", devices=1)


@pytest.fixture
def lightning(program, on_cpu) -> Library:
    return Library("lightning", program, on_cpu)


def test_one_device(lightning):
    run = lightning.check_one_device(ONE_DEVICE)
    assert run.report["strategy"] == "SingleDeviceXLAStrategy"
    # The first step creates the optimizer's state; validation is a graph of its own.
    assert run.report["compilations"] <= 8


def test_resumes(lightning):
    lightning.check_resumed(1, ONE_DEVICE, lightning.reference())


def test_bfloat16(lightning):
    run = lightning.train(1, *trainer(accelerator="tpu", devices=1, precision="bf16-true"))
    check_bfloat16(run, lightning.reference())


def test_tied_weights(lightning):
    lightning.check_tied_weights(ONE_DEVICE)


@pytest.mark.parametrize("devices", [2, "auto"])
def test_two_devices(lightning, devices):
    options = trainer(accelerator="tpu", devices=devices)
    run = lightning.train(2, *options, "--validate", "--checkpoint")
    expected = lightning.reference(*WHOLE_BATCH)
    check_divided(run, expected, processes=2)
    check_accuracy(run, expected)
    assert run.report["strategy"] == "XLAStrategy"
    saved = torch.load(lightning.program.folder / "run1" / "last.ckpt", map_location="cpu")
    for name, weight in run.weights.items():
        torch.testing.assert_close(saved["state_dict"][name], weight)


def test_tied_weights_in_two_processes(lightning):
    run = lightning.train(2, *trainer(accelerator="tpu", devices=2), "--tied")
    check_divided(run, lightning.reference("--tied", *WHOLE_BATCH), processes=2, learned=0.98)
    check_tied(run)
