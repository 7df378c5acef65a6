"""What shards one program over devices runs on a single one, where nothing is cut, and is refused on more."""

import functools
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

import torch_xla.core.xla_model as xm
import torch_xla.distributed.parallel_loader as pl
import torch_xla.distributed.spmd as xs
from torch_xla import _XLAC
from torch_xla.distributed.fsdp.wrap import transformer_auto_wrap_policy
from torch_xla.experimental.custom_kernel import flash_attention
from torch_xla.experimental.spmd_fully_sharded_data_parallel import (
    SpmdFullyShardedDataParallel as FSDPv2,
)

FSDP_MESH = xs.Mesh(np.arange(1), (1, 1), ("fsdp", "model"))
TWO_DEVICES = xs.Mesh(np.arange(2), (2,), ("fsdp",))


class Layer(nn.Linear):
    """What the policy wraps."""


def make_model():
    torch.manual_seed(0)
    return nn.Sequential(Layer(4, 4), nn.Tanh(), Layer(4, 2))


def train(model, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    inputs = torch.linspace(-1, 1, 12).reshape(3, 4).to(device)
    for _ in range(3):
        optimizer.zero_grad()
        model(inputs).square().mean().backward()
        optimizer.step()
    return [parameter.detach().cpu() for parameter in model.parameters()]


def test_fully_sharded_training_equals_plain():
    policy = functools.partial(transformer_auto_wrap_policy, transformer_layer_cls={Layer})
    model = FSDPv2(make_model(), mesh=FSDP_MESH, auto_wrap_policy=policy)
    assert [type(child) for child in model.module] == [FSDPv2, nn.Tanh, FSDPv2]
    torch.testing.assert_close(train(model, "xla"), train(make_model(), "cpu"))
    assert isinstance(model[1], nn.Tanh)  # the module's own items and attributes are seen through
    assert model[0].in_features == 4


def test_a_marked_tensor_is_whole():
    x = torch.ones(3, 4, device="xla")
    assert xs.mark_sharding(x, FSDP_MESH, ("fsdp", None)) is x
    assert _XLAC._get_xla_sharding_spec(x) == ""


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([0], (1, 1), ("data",)), "Number of axis names .* must match mesh dimensions"),
        (([0], (1, 1), ("data", "data")), "Axis names must be unique"),
        (([0, 1], (1, 1)), "Number of device IDs .* must match mesh size"),
        (([0, 0], (2,)), "Device IDs must be unique"),
        (([1], (1,)), "Device IDs must be less than mesh size"),
        (([-1], (1,)), "Device IDs must be less than mesh size"),
    ],
)
def test_arrays_of_devices_that_are_none(arguments, text):
    with pytest.raises(AssertionError, match=text):
        xs.Mesh(*arguments)


@pytest.mark.parametrize(
    ("partition", "text"),
    [
        (("data", None), "'data' is none"),
        ((2, None), "2 is none"),
        (("fsdp", "fsdp"), "'fsdp' is there twice"),
        ((("fsdp", "data"), None), "'data' is none"),
        (("fsdp", "model", None), "more entries than the shape"),
    ],
)
def test_partitions_over_what_is_no_dimension(partition, text):
    with pytest.raises(ValueError, match=text):
        xs.mark_sharding(torch.ones(3, 4, device="xla"), FSDP_MESH, partition)
    if len(partition) == 2:
        with pytest.raises(ValueError, match=text):
            xs.ShardingSpec(FSDP_MESH, partition)


def test_output_is_given_to_the_callers_function():
    seen = []
    model = FSDPv2(
        make_model(), mesh=FSDP_MESH, shard_output=lambda output, mesh: seen.append(mesh)
    )
    model(torch.ones(3, 4, device="xla"))
    assert seen == [FSDP_MESH]


class TwoOutputs(nn.Module):
    def forward(self, x):
        return x, x.shape


class NoTensor(nn.Module):
    def forward(self, x):
        return {"x": x}


def test_outputs_that_are_no_tensor():
    x = torch.ones(2, device="xla")
    with pytest.warns(UserWarning, match="only the first element is sharded"):
        FSDPv2(TwoOutputs(), mesh=FSDP_MESH)(x)
    with pytest.raises(RuntimeError, match="output type of dict"):
        FSDPv2(NoTensor(), mesh=FSDP_MESH)(x)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: FSDPv2(make_model()), ValueError, "no global mesh"),
        (
            lambda: FSDPv2(make_model(), mesh=xs.Mesh([0], (1,), ("data",))),
            ValueError,
            "none of them is named 'fsdp'",
        ),
        (
            lambda: FSDPv2(make_model(), mesh=FSDP_MESH, extra_data_axis="data"),
            ValueError,
            "data' is not in the mesh",
        ),
        (
            lambda: FSDPv2(nn.ModuleList([make_model()]), mesh=FSDP_MESH),
            RuntimeError,
            "no `forward`",
        ),
        (
            lambda: FSDPv2(FSDPv2(make_model(), mesh=FSDP_MESH), mesh=FSDP_MESH),
            RuntimeError,
            "already",
        ),
        (
            lambda: FSDPv2(make_model(), mesh=TWO_DEVICES),
            NotImplementedError,
            "one process per device",
        ),
    ],
)
def test_refused(make, error, text):
    with pytest.raises(error, match=text):
        make()


def batches_of(sharding):
    loader = pl.MpDeviceLoader([{"x": torch.ones(2, 3)}], "xla", input_sharding=sharding)
    return [batch["x"].sum().item() for batch in loader]


def test_loader_takes_the_sharding_of_its_batches():
    spec = xs.ShardingSpec(xs.get_1d_mesh("data"), ("data", None))
    assert spec.can_apply(torch.ones(2, 3))
    assert not spec.can_apply(torch.ones(2))
    spec.apply(torch.ones(2, 3, device="xla"))
    assert batches_of(spec) == batches_of({"x": spec, "y": None}) == [6]
    [x] = xm.send_cpu_data_to_device(torch.ones(2, 3), "xla", spec)
    assert x.is_xla and x.sum().item() == 6
    over_two = xs.ShardingSpec(TWO_DEVICES, ("fsdp", None))
    with pytest.raises(NotImplementedError, match="input_sharding: one program over 2 devices"):
        batches_of(over_two)
    with pytest.raises(NotImplementedError, match="input_sharding: one program over 2 devices"):
        xm.send_cpu_data_to_device(torch.ones(2, 3), "xla", over_two)


def test_attention_takes_the_sharding_of_its_operands():
    q = torch.randn(1, 2, 4, 8).to("xla")
    spec = ("fsdp", None, None, None)
    sharded = flash_attention(q, q, q, partition_spec=spec, mesh=FSDP_MESH)
    torch.testing.assert_close(sharded.cpu(), flash_attention(q, q, q).cpu())
    with pytest.raises(NotImplementedError, match="one process per device"):
        flash_attention(q, q, q, partition_spec=spec, mesh=TWO_DEVICES)
    with pytest.raises(ValueError, match="mesh"):
        flash_attention(q, q, q, partition_spec=spec)
    xs.set_global_mesh(TWO_DEVICES)  # of operands that are whole it says nothing
    try:
        torch.testing.assert_close(flash_attention(q, q, q).cpu(), sharded.cpu())
    finally:
        xs.set_global_mesh(None)


USE_SPMD = """
from torch_xla import runtime as xr
assert not xr.is_spmd()
xr.use_spmd(auto=True)
assert xr.is_spmd()
import os, torch.distributed as dist, torch_xla.distributed.xla_backend
assert os.environ["XLA_AUTO_SPMD"] == "1"
try:
    dist.init_process_group("xla", init_method="xla://")
    raise SystemExit("a process group")
except AssertionError as error:
    assert "use_spmd" in str(error)
del os.environ["XLA_USE_SPMD"]
assert not xr.is_spmd()
dist.init_process_group("xla", init_method="xla://")
"""


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2])
def test_use_spmd(count, monkeypatch):
    monkeypatch.setenv("CPU_NUM_DEVICES", str(count))
    done = subprocess.run([sys.executable, "-c", USE_SPMD], capture_output=True, text=True)
    assert (done.returncode == 0) == (count == 1)
    assert count == 1 or "use_spmd: one program over 2 devices" in done.stderr
