"""accelerate, unmodified: in a program of its own, and through `accelerate launch --tpu`."""

import pytest
from conftest import check_weight, device_environment

SCRIPT = "train_accelerate.py"
LAUNCH = ("-m", "accelerate.commands.launch", "--tpu", "--main_training_function", "main")


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
    """The last batches of an epoch are fewer than are accumulated: accelerate must see that they are the last."""
    run = program.run(SCRIPT, "--accumulate", "3", variables=device_environment(1))
    run.check_equal(on_cpu(SCRIPT, "--cpu", "--accumulate", "3"), learned=0.9)
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
        check_weight(name, resumed.weights[name], weight)


LAUNCHERS = {
    "launch": LAUNCH,
    "torchrun": ("-m", "torch.distributed.run", "--nproc_per_node", "2"),
}


@pytest.mark.parametrize("launcher", LAUNCHERS.values(), ids=LAUNCHERS)
def test_two_processes(program, on_cpu, launcher):
    run = program.run(SCRIPT, variables=device_environment(2), launcher=launcher)
    expected = on_cpu(SCRIPT, "--cpu", "--batch-size", "128")
    run.check_equal(expected)
    run.check_on_device(2)
    check_exchanges(run, 2)
    assert run.report["accuracy"] == pytest.approx(expected.report["accuracy"], abs=0.011)


@pytest.mark.parametrize("kind", ["TPU", "CPU"])
def test_bfloat16(program, on_cpu, kind):
    """On a TPU accelerate sets XLA_USE_BF16; elsewhere it enters `torch.autocast("xla")`."""
    variables = device_environment(1) if kind == "TPU" else {"PJRT_DEVICE": "CPU"}
    run = program.run(SCRIPT, "--precision", "bf16", variables=variables)
    run.check_learned()
    run.check_on_device()
    full = on_cpu(SCRIPT, "--cpu")
    assert run.losses == pytest.approx(full.losses, rel=0.1, abs=0.1)
    assert run.losses != pytest.approx(full.losses, rel=1e-4)
    rounded = [weight.equal(weight.bfloat16().float()) for weight in run.weights.values()]
    assert all(rounded) if kind == "TPU" else not any(rounded)
