"""accelerate, unmodified: in a program of its own, and through `accelerate launch --tpu`."""

import pytest
import torch
from conftest import device_environment

SCRIPT = "train_accelerate.py"
LAUNCH = ("-m", "accelerate.commands.launch", "--tpu", "--num_processes", "1")


def check_exchanges(run, processes: int) -> None:
    assert run.report["total"] == processes
    assert run.report["name"] == "rank 0"
    assert run.report["distributed_type"].endswith("XLA")


@pytest.mark.parametrize("launcher", [(), LAUNCH], ids=["program", "launch"])
def test_one_device(program, on_cpu, launcher):
    run = program.run(SCRIPT, variables=device_environment(1), launcher=launcher)
    expected = on_cpu(SCRIPT, "--cpu")
    run.check_equal(expected)
    run.check_on_device()
    check_exchanges(run, 1)
    assert run.report["accuracy"] == pytest.approx(expected.report["accuracy"], abs=0.011)


def test_gradient_accumulation(program, on_cpu):
    run = program.run(SCRIPT, "--accumulate", "4", variables=device_environment(1))
    run.check_equal(on_cpu(SCRIPT, "--cpu", "--accumulate", "4"))
    run.check_on_device()


def test_save_state_and_load_state(program, on_cpu):
    variables = device_environment(1)
    start = program.run(SCRIPT, "--epochs", "1", variables=variables)
    state = program.folder / "run1" / "state"
    resumed = program.run(SCRIPT, "--epochs", "1", "--resume", str(state), variables=variables)
    whole = on_cpu(SCRIPT, "--cpu")
    losses = start.losses + resumed.losses
    assert losses == pytest.approx(whole.losses, rel=1e-3, abs=1e-4)
    for name, weight in whole.weights.items():
        torch.testing.assert_close(resumed.weights[name], weight, rtol=1e-3, atol=1e-4)
