"""The backend `xla` of torch.distributed; worlds/process_group.py holds the checks."""

import pathlib

import pytest

WORLDS = pathlib.Path(__file__).parent / "worlds"


@pytest.mark.parametrize(("count", "methods"), [(2, ["xla://", "env://"]), (4, ["xla://"])])
def test_process_group(program, count, methods):
    result = program.run(
        str(WORLDS / "process_group.py"), *methods, CPU_NUM_DEVICES=str(count), timeout=240
    )
    assert result.stdout.splitlines()[-1] == "passed"


def test_groups_of_ranks_that_are_not_started_only_record(program):
    """What they record can be looked at, stands in nobody's way, and says why it cannot run."""
    output = program.run_code(
        """
import torch, torch.distributed as dist, torch_xla, torch_xla.distributed.xla_backend as backend
groups = backend._groups_like
assert groups([4, 5, 6, 7], 12) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
assert groups([1, 5, 9], 12) == [[0, 4, 8], [1, 5, 9], [2, 6, 10], [3, 7, 11]]
for ranks in ([4, 5, 6], [0, 1, 2, 3, 4], [1, 5], [1, 5, 10]):
    try:
        groups(ranks, 12)
        raise AssertionError(ranks)
    except ValueError:
        pass
group = backend.ProcessGroupXla(None, 1, 2, dist.default_pg_timeout, [2, 3], groups([2, 3], 6))
tensor = torch.ones(2, device="xla")
group.allreduce([tensor], dist.AllreduceOptions())
text = torch_xla._XLAC._get_xla_tensors_hlo([tensor])
assert "replica_groups={{0,1},{2,3},{4,5}}" in text, text
gathered = [torch.zeros(2, device="xla") for _ in range(2)]
group.allgather([gathered], [torch.ones(2, device="xla")])
assert "all-gather(" in torch_xla._XLAC._get_xla_tensors_hlo(gathered)
by_input = [[torch.zeros(size, device="xla") for _ in range(2)] for size in (1, 4, 5)]
group.allgather_coalesced(by_input, [outputs[0] + 1 for outputs in by_input])
text = torch_xla._XLAC._get_xla_tensors_hlo(sum(by_input, []))
assert text.count(" all-gather(") == 1, text
assert "= (f32[2]{0}, f32[8]{0}, f32[10]{0}) all-gather(f32[1]{0} " in text, text
del tensor, gathered, by_input
torch_xla.sync()
alone = backend.ProcessGroupXla(None, 0, 1, dist.default_pg_timeout, [1])
flags = torch.ones(2, device="xla")
alone.broadcast([flags], dist.BroadcastOptions())
assert flags.sum().item() == 2
try:
    group.allreduce([torch.ones(2)], dist.AllreduceOptions())
except RuntimeError as error:
    print(error)
"""
    ).stdout
    assert "[2, 3] can only record" in output and "rank 0 of 1" in output


def test_a_group_of_nobody_in_particular_is_of_those_that_run(program):
    """As in PyTorch/XLA, whose instructions then name no ranks: a gather gives as many parts as processes run."""
    program.run_code(
        """
import torch, torch.distributed as dist, torch_xla, torch_xla.distributed.xla_backend as backend
group = backend.ProcessGroupXla(None, 3, 8, dist.default_pg_timeout)
tensors = [torch.arange(2, device="xla") + 1, torch.arange(5, device="xla") + 1]
outputs = [[torch.zeros_like(tensor)] * 8 for tensor in tensors]
group.allgather_coalesced(outputs, tensors)
text = torch_xla._XLAC._get_xla_tensors_hlo([each[0] for each in outputs])
assert "= (s64[2]{0}, s64[5]{0}) all-gather(s64[2]{0} " in text, text
assert [each[0].tolist() for each in outputs] == [[1, 2], [1, 2, 3, 4, 5]]
group.allreduce([tensors[0]], dist.AllreduceOptions())
assert tensors[0].tolist() == [1, 2]
try:
    group.reduce_scatter([torch.zeros(2, device="xla")], [tensors[:1] * 8], dist.ReduceScatterOptions())
except ValueError as error:
    assert "shard_count=8" in str(error), error
else:
    raise AssertionError("an eighth of what one process has")
""",
        XLA_ALWAYS_ALLREDUCE="1",
    )


def test_a_tensor_in_place_of_a_list_is_refused(program):
    """Its rows would be taken for the list; and a broadcast to nobody is shown as XLA_ALWAYS_ALLREDUCE says."""
    program.run_code(
        """
import pytest, torch, torch.distributed as dist, torch_xla, torch_xla.distributed.xla_backend
dist.init_process_group("xla", init_method="xla://")
x = torch.arange(2, device="xla")
for name in ("allreduce_coalesced", "monitored_barrier"):
    with pytest.raises(NotImplementedError, match=name):
        getattr(dist.group.WORLD, name)(x)
dist.broadcast(x, 0)
assert torch_xla._XLAC._get_xla_tensors_hlo([x]).count(" all-reduce(") == 1
assert x.tolist() == [0, 1]
""",
        XLA_ALWAYS_ALLREDUCE="1",
    )


def test_each_thread_with_a_device_has_process_groups_of_its_own(program):
    # The lock lets one make its default group after the other has.
    code = """
import threading
import torch, torch.distributed as dist, torch_xla, torch_xla.distributed.xla_backend
from torch_xla._internal import pjrt

turn, said, names = threading.Lock(), {}, []

def train(index):
    with turn:
        was_there = dist.is_initialized()
        dist.init_process_group("xla", init_method="xla://")
        pair = dist.new_group([0])
    names.extend([dist.group.WORLD.group_name, pair.group_name])
    x = torch.full((2,), float(index), device="xla")
    dist.all_reduce(x)
    dist.all_reduce(x, group=pair)
    said[str(torch_xla.device())] = was_there, dist.get_world_size(), x.tolist()

for time in range(2):
    pjrt.spawn_threads(train)
print(sorted(said.items()), dist.is_initialized(), len(set(names)))
for name in names:
    try:
        torch._C._distributed_c10d._resolve_process_group(name)
        print("is there", name)
    except RuntimeError:
        pass
dist.init_process_group("xla", init_method="xla://")
print(dist.distributed_c10d._world.pg_names[dist.group.WORLD])
"""
    lines = program.run_code(code, CPU_NUM_DEVICES="2").stdout.splitlines()
    devices = [("xla:0", (False, 1, [0.0, 0.0])), ("xla:1", (False, 1, [0.0, 0.0]))]
    assert lines == [f"{devices} False 8", "0"]


def test_a_thread_that_destroys_its_groups_takes_no_others(program):
    # Collectives by name ask torch's list of the whole process, which the end of all groups clears.
    code = """
import threading
import torch, torch.distributed as dist, torch_xla, torch_xla.distributed.xla_backend
from torch.distributed import distributed_c10d as c10d
from torch_xla._internal import pjrt

dist.init_process_group("xla", init_method="xla://")
both, destroyed, said = threading.Barrier(2), threading.Event(), {}

def train(index):
    dist.init_process_group("xla", init_method="xla://")
    name = dist.group.WORLD.group_name
    both.wait()
    if str(torch_xla.device()) == "xla:0":
        dist.destroy_process_group()
        destroyed.set()
        return
    destroyed.wait()
    said["other thread"] = c10d._resolve_process_group(name) is dist.group.WORLD

pjrt.spawn_threads(train)
said["main"] = c10d._resolve_process_group(dist.group.WORLD.group_name) is dist.group.WORLD
dist.destroy_process_group()
try:
    c10d._resolve_process_group("0")
except RuntimeError:
    said["gone"] = True
print(sorted(said.items()))
"""
    lines = program.run_code(code, CPU_NUM_DEVICES="2").stdout.splitlines()
    assert lines == ["[('gone', True), ('main', True), ('other thread', True)]"]
