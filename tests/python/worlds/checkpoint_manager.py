"""CheckpointManager on two processes, each of which has a part of one tensor, and all of another."""

import concurrent.futures
import os
import signal
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard

import torch_xla
import torch_xla.distributed.xla_backend
from torch_xla.experimental.distributed_checkpoint import (
    CheckpointManager,
    SPMDSavePlanner,
    _preemption,
)
from torch_xla.experimental.distributed_checkpoint._helpers import (
    _CpuShards,
    _is_sharded_tensor,
    _sharded_cpu_state_dict,
)


def state(mesh, value, placement):
    rank, size = mesh.get_local_rank(), mesh.size()
    whole = torch.arange(8.0).view(4, 2) + value
    part = whole.chunk(size)[rank] if placement.is_shard() else whole
    return {
        "parts": DTensor.from_local(part.to("xla"), mesh, [placement]),
        "whole": torch.full((3,), float(value), device="xla"),
        f"of {rank}": torch.full((2,), float(rank + value), device="xla"),
    }


def check(mesh, loaded, value):
    torch.testing.assert_close(
        loaded["parts"].full_tensor().cpu(), torch.arange(8.0).view(4, 2) + value
    )
    assert loaded["whole"].tolist() == [value] * 3
    assert loaded[f"of {mesh.get_local_rank()}"].tolist() == [mesh.get_local_rank() + value] * 2


def check_planners(mesh):
    planner = SPMDSavePlanner()
    sharded = state(mesh, 0, Shard(0))
    planner.set_up_planner(sharded, mesh.get_local_rank() == 0)
    assert list(planner.sharded_state_dict) == ["parts"]
    assert list(planner.unsharded_state_dict) == ["whole", f"of {mesh.get_local_rank()}"]
    copied = _sharded_cpu_state_dict(sharded)
    assert isinstance(copied["parts"], _CpuShards) and copied["parts"].to_local().is_cpu
    assert _is_sharded_tensor(copied["parts"])
    assert not _is_sharded_tensor(state(mesh, 0, Replicate())["parts"])


def check_saving(mesh, folder):
    manager = CheckpointManager(folder, 2, max_to_keep=2)
    for step in range(1, 7):
        save = manager.save_async if step % 4 == 0 else manager.save
        assert save(step, state(mesh, step, Shard(0))) == (step % 2 == 0)
    manager.join()
    assert manager.all_steps() == [4, 6]
    for step in (4, 6):
        for placement in (Shard(0), Shard(1), Replicate()):  # saved by rows, loaded otherwise
            loaded = state(mesh, -1, Replicate() if placement.is_replicate() else Shard(0))
            if placement.is_shard(1):
                loaded["parts"] = loaded["parts"].redistribute(mesh, [placement])
            manager.restore(step, loaded)
            check(mesh, loaded, step)


def check_preemption(mesh, folder):
    """One process is told, and all save the same step."""
    manager = CheckpointManager(folder, 100)
    for step in range(1, 10):
        if step == 5 and mesh.get_local_rank() == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        manager.save(step, state(mesh, step, Shard(0)))
        if manager.reached_preemption(step):
            break
    assert step == 5 and manager.all_steps() == [5]


def check_answers(mesh, folder):
    """A signal after the question of a step is noticed at the next one, which is saved."""
    manager = CheckpointManager(folder, 100)
    _preemption.unwatch()  # SIGTERM of the check before
    _preemption.watch()
    for step in range(1, 10):
        saved = manager.save(step, state(mesh, step, Shard(0)))
        if step == 5 and mesh.get_local_rank() == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        assert manager.reached_preemption(step) == saved
        if saved:
            break
    assert step == 6 and manager.all_steps() == [6]


def raised_by(call, *arguments):
    try:
        call(*arguments)
    except Exception as error:
        return error
    raise AssertionError("it raised nothing")


def check_failures(mesh, folder):
    """What the first process fails of, all raise, by the same call."""

    class OwnError(Exception):  # cannot be pickled
        pass

    def fail(*_):
        raise OwnError("the disk is full")

    manager = CheckpointManager(folder, 1, chkpt_on_preemption=False)
    manager._finish = fail
    error = raised_by(manager.save, 1, state(mesh, 1, Shard(0)))
    assert "disk is full" in str(error)
    assert type(error) is (RuntimeError if mesh.get_local_rank() else OwnError)
    assert manager.all_steps() == []
    manager.save_async(2, state(mesh, 2, Shard(0)))
    if mesh.get_local_rank():  # the other one comes before it has failed
        concurrent.futures.wait(manager._pending)
    assert "disk is full" in str(raised_by(manager.save_async, 3, state(mesh, 3, Shard(0))))
    del manager._finish
    manager.save_async(4, state(mesh, 4, Shard(0)))
    manager.join()
    assert manager.all_steps() == [4]


def check_steps(mesh, folder):
    """Processes that name different steps write nothing."""
    manager = CheckpointManager(folder, 1, chkpt_on_preemption=False)
    error = raised_by(manager.save, 1 + mesh.get_local_rank(), state(mesh, 1, Shard(0)))
    assert type(error) is ValueError and "[1, 2]" in str(error)
    assert manager.save(3, state(mesh, 3, Shard(0))) and manager.all_steps() == [3]


def run(index, folder):
    dist.init_process_group("xla", init_method="xla://")
    mesh = init_device_mesh("xla", (dist.get_world_size(),))
    check_planners(mesh)
    check_saving(mesh, f"{folder}/steps")
    check_preemption(mesh, f"{folder}/preempted")
    check_answers(mesh, f"{folder}/answers")
    check_failures(mesh, f"{folder}/failed")
    check_steps(mesh, f"{folder}/mixed")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch_xla.launch(run, (folder,), start_method=(sys.argv[1:] or ["fork"])[0])
    print("passed")
