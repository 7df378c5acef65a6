"""Checkpoints of a training as it goes on: which are there, what an interruption leaves, and what SIGTERM does."""

import os
import threading

import pytest
import torch
import torch.distributed.checkpoint

import torch_xla
from torch_xla.experimental.distributed_checkpoint import CheckpointManager, prime_optimizer

ADAM = {"lr": 0.1, "weight_decay": 0.1}


def manager(folder, interval=10, **options):
    return CheckpointManager(str(folder), interval, **{"chkpt_on_preemption": False, **options})


def state(value):
    return {"weight": torch.full((2, 3), value, device="xla"), "step": int(value)}


def restored(checkpoints, step):
    found = state(0.0)
    checkpoints.restore(step, found)
    assert found["weight"].device.type == "xla"
    assert found["weight"].unique().tolist() == [float(found["step"])]
    return found["step"]


def test_steps_that_are_due_and_how_many_stay(tmp_path):
    checkpoints = manager(tmp_path / "new", max_to_keep=2)
    assert checkpoints.all_steps() == []
    assert [checkpoints.save(step, state(step)) for step in (0, 5, 10, 20)] == [
        True,
        False,
        True,
        True,
    ]
    assert checkpoints.all_steps() == [10, 20]
    assert checkpoints.save(5, state(5.0), force=True)
    checkpoints.save(20, state(21.0))
    again = manager(tmp_path / "new", max_to_keep=2)
    assert again.all_steps() == [5, 20]
    assert [restored(again, step) for step in (5, 20)] == [5, 21]
    with pytest.raises(ValueError, match=r"no checkpoint of step 10 .*\[5, 20\]"):
        again.restore(10, state(0.0))


def test_what_is_written_meanwhile_is_what_was_there(tmp_path, monkeypatch):
    checkpoints = manager(tmp_path, max_pending_async=2)
    go_on, write = threading.Event(), checkpoints._save

    def slowly(*arguments):
        assert go_on.wait(60)
        write(*arguments)

    monkeypatch.setattr(checkpoints, "_save", slowly)
    values = state(1.0)
    assert checkpoints.save_async(10, values) and checkpoints.save_async(20, values)
    values["weight"].fill_(7.0)
    assert not checkpoints.save_async(25, values)
    assert checkpoints.all_steps() == []
    go_on.set()
    checkpoints.join()
    assert checkpoints.all_steps() == [10, 20]
    assert restored(checkpoints, 20) == 1


def test_a_failed_save_leaves_the_checkpoint_before_and_is_told(tmp_path, monkeypatch):
    checkpoints = manager(tmp_path)
    checkpoints.save(10, state(1.0))

    def fail(*_, storage_writer, **__):
        os.makedirs(storage_writer.path)
        raise OSError("full")

    with monkeypatch.context() as patched:
        patched.setattr(torch.distributed.checkpoint, "save", fail)
        with pytest.raises(OSError, match="full"):
            checkpoints.save(10, state(2.0))
        checkpoints.save_async(20, state(2.0))
        with pytest.raises(OSError, match="full"):
            checkpoints.join()
    assert checkpoints.all_steps() == [10]
    assert restored(checkpoints, 10) == 1
    checkpoints.save(20, state(2.0))
    assert [restored(checkpoints, step) for step in (10, 20)] == [1, 2]


def test_into_a_file_system_that_has_an_address(tmp_path):
    checkpoints = CheckpointManager("memory://checkpoints", 1, chkpt_on_preemption=False)
    checkpoints.save(3, state(3.0))
    assert checkpoints.all_steps() == [3] and restored(checkpoints, 3) == 3


@pytest.mark.parametrize(
    "options",
    [{"interval": 0}, {"max_to_keep": -1}, {"max_pending_async": -1}, {"num_of_threads": -1}],
)
def test_numbers_that_are_out_of_range(tmp_path, options):
    with pytest.raises(AssertionError, match="at least"):
        manager(tmp_path, **options)


@pytest.mark.parametrize("optimizer_class", [torch.optim.AdamW, torch.optim.SGD])
def test_an_optimizer_goes_on_where_another_was(tmp_path, optimizer_class):
    def make():
        torch.manual_seed(0)
        model = torch.nn.Linear(3, 2).to("xla")
        options = ADAM if optimizer_class is torch.optim.AdamW else {"lr": 0.1, "momentum": 0.9}
        return model, optimizer_class(model.parameters(), **options)

    def step(model, optimizer):
        optimizer.zero_grad()
        model(torch.ones(4, 3, device="xla")).square().sum().backward()
        optimizer.step()
        torch_xla.sync()

    def states(model, optimizer):
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}

    first = make()
    step(*first)
    checkpoints = manager(tmp_path)
    checkpoints.save(0, states(*first))
    model, optimizer = make()
    before = model.weight.detach().clone()
    assert prime_optimizer(optimizer) is optimizer and optimizer.param_groups[0]["lr"] == 0.1
    assert torch.equal(model.weight, before) and model.weight.grad is None
    found = states(model, optimizer)
    checkpoints.restore(0, found)
    model.load_state_dict(found["model"])
    optimizer.load_state_dict(found["optimizer"])
    kept = optimizer.state_dict()["state"]
    assert prime_optimizer(optimizer).state_dict()["state"].keys() == kept.keys()
    for _ in range(2):
        step(*first)
        step(model, optimizer)
    torch.testing.assert_close(model.weight.cpu(), first[0].weight.cpu(), rtol=0, atol=0)


def test_the_end_of_the_machine_is_saved(program, tmp_path):
    program.run_code(
        """
import os, signal, torch, torch_xla
from torch_xla.experimental.distributed_checkpoint import CheckpointManager
before = []
signal.signal(signal.SIGTERM, lambda *_: before.append("told"))
checkpoints = CheckpointManager(os.environ["FOLDER"], 100)
state = {"weight": torch.ones(2, device="xla")}
assert not checkpoints.save(1, state) and not checkpoints.reached_preemption(1)
os.kill(os.getpid(), signal.SIGTERM)
assert before == ["told"]
assert checkpoints.save(2, state) and checkpoints.reached_preemption(2)
assert checkpoints.all_steps() == [2] and not checkpoints.save(3, state)
torch_xla._XLAC._deactivate_preemption_sync_manager()
os.kill(os.getpid(), signal.SIGTERM)
assert before == ["told"] * 2
try:
    CheckpointManager(os.environ["FOLDER"], 1, chkpt_on_preemption=False).reached_preemption(2)
    raise AssertionError
except RuntimeError as error:
    assert "chkpt_on_preemption" in str(error)
""",
        FOLDER=str(tmp_path),
    )


def test_processes_save_together_and_end_at_one_step(program, tmp_path):
    program.run_code(
        """
import os, signal, torch, torch.distributed as dist, torch_xla, torch_xla.core.xla_model as xm
import torch_xla.distributed.xla_backend
from torch_xla.experimental.distributed_checkpoint import CheckpointManager

def train(index):
    dist.init_process_group("xla", init_method="xla://")
    checkpoints = CheckpointManager(os.environ["FOLDER"], 4, max_to_keep=2)
    weight = torch.zeros(3, device="xla")
    for step in range(1, 100):
        weight += xm.all_reduce("sum", torch.full((3,), 1.0 + index, device="xla"))
        torch_xla.sync()
        checkpoints.save_async(step, {"weight": weight, "rank": {str(index): index}})
        if index == 1 and step == 9:
            os.kill(os.getpid(), signal.SIGTERM)
        if checkpoints.reached_preemption(step):
            break
    checkpoints.save(step, {"weight": weight, "rank": {str(index): index}}, force=True)
    steps = checkpoints.all_steps()
    assert 9 <= step <= 12 and steps == [8, step], (step, steps)
    found = {"weight": torch.zeros(3, device="xla"), "rank": {str(index): None}}
    checkpoints.restore(step, found)
    assert found["weight"].tolist() == [3.0 * step] * 3 and found["rank"] == {str(index): index}
    everyone = xm.mesh_reduce("steps", step, list)
    assert len(set(everyone)) == 1, everyone
    dist.destroy_process_group()

if __name__ == "__main__":
    torch_xla.launch(train, start_method="fork")
""",
        FOLDER=str(tmp_path),
        CPU_NUM_DEVICES="2",
    )
