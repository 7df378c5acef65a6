"""`torch_xla.core.xla_model`, `runtime` and the functions of the package, with one process."""

import collections
import multiprocessing
import threading

import pytest
import torch

import torch_xla
import torch_xla.core.functions as xf
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.distributed.xla_multiprocessing as xmp
import torch_xla.runtime as xr
from torch_xla.utils import utils as xu


def test_devices(device):
    assert device == torch.device("xla", 0) == xm.xla_device() == torch_xla.devices()[0]
    assert (
        torch_xla.device_count() == len(torch_xla.real_devices()) == xr.addressable_device_count()
    )
    assert xm.get_xla_supported_devices()[0] == "xla:0"
    assert xm.get_xla_supported_devices("TPU") == []
    assert (
        xm.get_xla_supported_devices(max_devices=1) == xm.get_xla_supported_devices(1) == ["xla:0"]
    )
    kind, _, ordinal = torch_xla.real_devices()[0].partition(":")
    assert ordinal == "0" and xm.xla_device_hw(device) == kind
    assert xm.xla_device_hw("cpu") == "CPU"
    assert xm.is_xla_tensor(torch.ones(1, device=device)) and not xm.is_xla_tensor(torch.ones(1))
    assert torch_xla._XLAC._xla_get_default_device() == "xla:0"


def test_device_that_does_not_exist():
    with pytest.raises(IndexError, match="99"):
        torch_xla.device(99)
    with pytest.raises(RuntimeError, match="99"):
        torch.ones(1, device="xla:99")
    with pytest.raises(RuntimeError, match="TPU"):
        xm.xla_device(devkind="TPU")


def test_memory_info(device):
    kept = torch.ones(1 << 20, device=device)
    torch_xla.sync(wait=True)
    info = xm.get_memory_info(device)
    assert {"bytes_used", "bytes_limit", "kb_free", "kb_total"} <= set(info)
    assert info["bytes_used"] >= kept.numel() * 4
    assert 0 < info["kb_free"] <= info["kb_total"]


def test_collectives_of_one_process_are_identities(device):
    value = torch.arange(6.0, device=device).reshape(2, 3)
    for result in (
        xm.all_reduce(xm.REDUCE_SUM, value),
        xm.all_gather(value, dim=1),
        xm.reduce_scatter(xm.REDUCE_MAX, value, 1.0, 0, 1),
        xm.all_to_all(value, 0, 1, 1),
        xm.collective_permute(value, [[0, 0]]),
        xm.all_gather(value, groups=[[0]]),
    ):
        torch.testing.assert_close(result.cpu(), value.cpu())
    assert xm.all_reduce("sum", value, 0.5).sum().item() == 7.5
    assert xm.all_reduce("sum", [value], scale=2.0) is None
    assert value.sum().item() == 30
    output = torch.zeros_like(value)
    assert xm.all_gather(value, output=output) is output
    torch.testing.assert_close(output.cpu(), value.cpu())
    larger = torch.zeros(7, 5, device=value.device)
    assert xm.reduce_scatter(xm.REDUCE_SUM, value, 1.0, 0, 1, output=larger) is larger
    torch.testing.assert_close(larger.cpu(), value.cpu())
    xm.collective_broadcast([value])
    assert xm.mesh_reduce("tag", value, lambda parts: [part.device.type for part in parts]) == [
        "cpu"
    ]
    assert xm.rendezvous("", b"payload") == [b"payload"]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: xm.all_reduce("average", x), ValueError, "average"),
        (lambda x: xm.all_reduce("sum", x, groups=[[0], [1]]), ValueError, "below 1"),
        (lambda x: xm.all_gather(x, dim=2), IndexError, "got 2"),
        (lambda x: xm.reduce_scatter("sum", x, 1.0, 0, 2), ValueError, "shard_count=2"),
        (lambda x: xm.reduce_scatter("sum", x, 1.0, -3, 1), IndexError, "got -3"),
        (lambda x: xm.all_to_all(x, 0, 0, 2), ValueError, "split_count=2"),
        (lambda x: xm.all_to_all(x, 2, 0, 1), IndexError, "got 2"),
        (lambda x: xm.all_to_all(x, 0, 2, 1), IndexError, "got 2"),
        (lambda x: xf.distributed_mm(x, x.mT, split=0), ValueError, "split=0"),
        (lambda x: xm.reduce_gradients(torch.optim.SGD([x]), [[1]]), ValueError, "below 1"),
        (lambda x: xm.rendezvous("here", b"", [1]), ValueError, "below 1"),
    ],
)
def test_one_process_refuses_what_several_would(device, call, error, text):
    with pytest.raises(error, match=text):
        call(torch.ones(2, 3, device=device))


def test_gradients_come_as_an_iterator(device):
    gradients = [torch.ones(2, device=device), torch.ones(3, device=device)]
    xm.all_reduce_bucketized_gradients(reversed(gradients), scale=0.5)
    assert [gradient.tolist() for gradient in gradients] == [[0.5] * 2, [0.5] * 3]


@pytest.mark.parametrize("where", ["xla", "cpu"])
def test_tensors_that_share_memory(where):
    x = torch.rand(16, device=where)
    xm.check_view_sharing([x, {"again": x}, x.clone(), torch.ones(0), torch.ones(0)])
    with pytest.raises(RuntimeError, match=r"shapes \(10,\) and \(2, 5\) share memory"):
        xm.check_view_sharing({"a": x[:10], "b": [x[6:].view(2, 5)]})


def test_collectives_have_gradients(device):
    value = torch.ones(3, device=device, requires_grad=True)
    (xf.all_reduce("sum", value, scale=2.0) + xf.all_gather(value)).sum().backward()
    assert value.grad.tolist() == [3.0] * 3


def test_optimizer_step(device):
    weight = torch.nn.Parameter(torch.ones(2, device=device))
    optimizer = torch.optim.SGD([weight], lr=0.5)
    weight.sum().backward()
    assert len(xm._fetch_gradients(optimizer)) == 1
    assert xm.optimizer_step(optimizer, barrier=True) is None
    assert weight.tolist() == [0.5, 0.5]
    assert xm.optimizer_step(optimizer, optimizer_args={"closure": lambda: 3}) == 3


def test_random_state(device):
    xm.set_rng_state(11)
    first = torch.rand(4, device=device).tolist()
    torch_xla.manual_seed(11)
    assert torch.rand(4, device=device).tolist() == first
    state = xm.get_rng_state()
    assert isinstance(state, int)
    with xm.fork_rng():
        torch.rand(4, device=device).tolist()
    assert xm.get_rng_state() == state
    torch.manual_seed(11)
    one = torch.rand(4, device=device).tolist()
    torch.manual_seed(11)
    assert torch.rand(4, device=device).tolist() == one
    torch.manual_seed(12)
    assert torch.rand(4, device=device).tolist() != one


def test_seeds_are_those_of_torch(device):
    for seed in (-1, -(2**63), 2**64 - 1):
        torch_xla.manual_seed(seed)
        drawn = torch.rand(4, device=device).tolist()
        torch.manual_seed(seed)
        assert torch.rand(4, device=device).tolist() == drawn
    for seed in (2**64, -(2**63) - 1):
        with pytest.raises(RuntimeError, match="below 2"):
            torch_xla.manual_seed(seed)


@pytest.mark.parametrize(
    "call", [lambda: xm.set_rng_state(1, "xla:9"), lambda: xm.wait_device_ops(["xla:9"])]
)
def test_devices_that_are_not_there(call):
    with pytest.raises(IndexError, match="no device xla:9"):
        call()


def test_the_type_that_runs_may_be_chosen_again(device, monkeypatch):
    monkeypatch.delenv("PJRT_DEVICE", raising=False)
    xr.set_device_type("CPU")
    monkeypatch.setenv("PJRT_DEVICE", "CPU")  # for monkeypatch to take back
    with pytest.raises(RuntimeError, match="runs on CPU already"):
        xr.set_device_type("TPU")


def test_step_closures_run_after_the_step(device):
    seen = []
    value = torch.ones(1, device=device) + 1
    xm.add_step_closure(lambda t: seen.append(t.item()), args=(value,))
    event = threading.Event()
    xm.add_step_closure(event.set, run_async=True)
    assert seen == []
    xm.mark_step()
    assert seen == [2.0]
    assert event.wait(5)


def test_moves_structures(device):
    Point = collections.namedtuple("Point", "x y")
    data = collections.OrderedDict(a=torch.ones(2), b=Point(torch.zeros(1), 3), c="text")
    moved = xm.send_cpu_data_to_device(data, device)
    assert isinstance(moved, collections.OrderedDict) and isinstance(moved["b"], Point)
    assert moved["a"].is_xla and moved["b"].x.is_xla and moved["b"].y == 3 and moved["c"] == "text"
    back = xm._maybe_convert_to_cpu(moved)
    assert list(back) == ["a", "b", "c"] and back["b"].x.device.type == "cpu"
    [alone] = xm.send_cpu_data_to_device(torch.ones(2), device)
    assert alone.is_xla and alone.shape == (2,)


def test_attributes_of_a_device(device):
    name = torch_xla.real_devices()[0]
    assert xr.runtime_device_attributes(device) == xr.runtime_device_attributes("xla:0")
    assert xr.runtime_device_attributes("xla")["name"].startswith("xla:")
    assert xr.runtime_device_attributes(name)["name"] == name
    with pytest.raises(ValueError, match="no device 'TPU:7'"):
        xr.runtime_device_attributes("TPU:7")


def test_what_is_no_payload():
    with pytest.raises(TypeError, match="the payload is bytes, not str"):
        xm.rendezvous("tag", "text")


def test_debug_info(device):
    info = torch_xla._XLAC._get_xla_tensor_debug_info
    assert "Not a XLATensor" in info(torch.ones(5))
    y = torch.ones(5, device=device) + 1
    assert "XLA Shape: f32[5]" in info(y) and "XLAData: None" in info(y)
    torch_xla.sync()
    assert "Data Shape: f32[5]" in info(y) and "IR: None" in info(y)


def test_tied_parameters_have_one_identity(device):
    tensor, other = torch.ones(1, device=device), torch.ones(1, device=device)
    identity = torch_xla._XLAC._xla_get_tensor_id
    assert identity(tensor) == identity(tensor) != identity(other)


def test_shared_parameters_stay_shared(device):
    model = torch.nn.Sequential(torch.nn.Embedding(5, 3), torch.nn.Linear(3, 5, bias=False))
    model[1].weight = model[0].weight
    model.to(device)
    assert model[1].weight is model[0].weight
    assert model[0].weight.device.type == "xla"
    assert len(list(model.parameters())) == 1


def test_modules_that_wait_for_their_shapes_can_be_moved(device):
    model = torch.nn.Sequential(torch.nn.LazyLinear(3), torch.nn.ReLU()).to(device)
    assert model(torch.ones(2, 7, device=device)).shape == (2, 3)
    assert model[0].weight.shape == (3, 7) and model[0].weight.device.type == "xla"


def test_launch_and_spawn_of_one_process():
    seen = []
    torch_xla.launch(lambda index, x: seen.append((index, x)), args=("a",))
    xmp.spawn(lambda index: seen.append(index), nprocs=1, start_method="fork")
    assert seen == [(0, "a"), 0]
    # What cannot be pickled starts nothing.
    with pytest.raises(AttributeError, match="Can't pickle local object"):
        xmp.spawn(lambda index: None, nprocs=2)
    assert not multiprocessing.active_children()
    for count in (1, 2):
        with pytest.raises(ValueError, match="'thread'"):
            xmp.spawn(print, nprocs=count, start_method="thread")
    assert xmp.MpSerialExecutor().run(lambda: 3) == 3
    model = xmp.MpModelWrapper(torch.nn.Linear(1, 1)).to("xla")
    assert model.weight.is_xla


def test_launch_passes_on_an_exception():
    def fail(index):
        raise ValueError("a worker failed")

    with pytest.raises(ValueError, match="a worker failed"):
        torch_xla.launch(fail)


def graphs_met() -> int:
    return met.counter_value("UncachedCompile") or 0


def test_compile_makes_one_graph_of_a_function(device):
    @torch_xla.compile
    def step(x):
        return (x * 3.5 + 2.25).sin()

    before = graphs_met()
    for i in range(3):
        step(torch.full((5,), float(i)).to(device))
    assert graphs_met() - before == 1
    assert step.__name__ == "step"


def test_full_graph_refuses_to_be_cut(device):
    def branch(x):
        return x + 1 if (x.sum() > 0).item() else x

    step = torch_xla.compile(branch, full_graph=True)
    with pytest.raises(RuntimeError):
        step(torch.ones(3, device=device))
    # Outside of it values can be read as before.
    assert (torch.ones(3, device=device) + 1).sum().item() == 6


def test_too_many_graphs_are_an_error(device):
    step = torch_xla.compile(lambda x: x * 1.5 - 7, max_different_graphs=1, name="scale")
    step(torch.ones(11).to(device))
    step(torch.ones(11).to(device))
    with pytest.raises(
        RuntimeError, match=r"exceeded: 1\nGot: .*f32\[12\].*\nExpected: .*f32\[11\]"
    ):
        step(torch.ones(12).to(device))


def test_a_function_has_one_limit_however_often_it_is_wrapped(device):
    def grow(x, step):
        y = x + x
        return y * 2 if step == 0 else y + x if step == 1 else y

    x = torch.ones(4).to(device)
    for step in (0, 1, 0):
        torch_xla.compile(grow, max_different_graphs=2)(x, step)
    ended = r"Reached the end of the function at: .*aten::add.*\nExpected either of:\n  - .*mul.*\n  - .*add"
    with pytest.raises(RuntimeError, match=ended):
        torch_xla.compile(grow, max_different_graphs=2)(x, 2)


def test_step_is_a_context(device):
    with torch_xla.step():
        t = torch.ones(2, device=device) * 4
    assert t.tolist() == [4.0, 4.0]


def test_changing_scalars_are_one_graph(device):
    weight = torch.ones(7, device=device)
    torch_xla.sync()
    before = graphs_met()
    for step in range(1, 6):
        weight.add_(torch.full((7,), 0.5).to(device), alpha=-1.0 / step)
        torch_xla.sync()
    assert graphs_met() - before == 1


def test_structure_walks():
    class Holder:
        def __init__(self, tensor):
            self.tensor = tensor

    def is_tensor(value):
        return isinstance(value, torch.Tensor)

    tensor = torch.ones(1)
    data = [tensor, {"k": (tensor, 3)}, Holder(tensor), {1, 2}]
    data.append(data)
    found = []
    xu.for_each_instance(data, is_tensor, found.append)
    assert len(found) == 1
    result = xu.for_each_instance_rewrite(data[:4], is_tensor, lambda t: t + 1)
    assert result[0].item() == result[1]["k"][0].item() == result[2].tensor.item() == 2
    assert result[0] is result[1]["k"][0]
    assert data[2].tensor is tensor and result[3] == {1, 2}


def test_sample_generator():
    generator = xu.SampleGenerator(data=("d",), sample_count=3)
    assert len(generator) == 3
    assert list(generator) == list(generator) == [("d",)] * 3


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [("1", bool, True), ("0", bool, False), ("false", bool, False), ("7", int, 7), ("", int, 5)],
)
def test_getenv_as(monkeypatch, text, type_, value):
    monkeypatch.setenv("TORCH_XLA_TEST_VARIABLE", text)
    assert xu.getenv_as("TORCH_XLA_TEST_VARIABLE", type_, 5) == value


def test_torch_knows_the_device_module(device):
    module = torch.get_device_module("xla")
    assert module is torch.xla and module.is_available()
    assert module.device_count() == torch_xla.device_count() and module.current_device() == 0
    with torch.xla.device(0):
        pass
    torch.xla.synchronize()
    state = torch.xla.get_rng_state()
    first = torch.rand(3, device=device).tolist()
    torch.xla.set_rng_state(state)
    assert torch.rand(3, device=device).tolist() == first
    with torch.random.fork_rng(devices=[0], device_type="xla"):
        torch.rand(1, device=device)


def test_activation_checkpoints(device):
    layer = torch.nn.Linear(4, 4).to(device)
    x = torch.ones(2, 4, device=device, requires_grad=True)
    torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), layer.weight.detach().cpu().sum(0).expand(2, 4))
