"""Small modules that programs of PyTorch/XLA import."""

import logging
import re
import sys
import types

import pytest
import torch
from torch import nn

import torch_xla
import torch_xla.backends
import torch_xla.debug.metrics as met
import torch_xla.debug.metrics_compare_utils as mcu
import torch_xla.debug.model_comparator as mc
import torch_xla.distributed.data_parallel as dp
import torch_xla.distributed.spmd.xla_sharding as xs
import torch_xla.utils.checkpoint as checkpoint
import torch_xla.utils.utils as xu
from torch_xla import _XLAC
from torch_xla._dynamo import dynamo_backend2
from torch_xla._dynamo.dynamo_bridge import NoneRemover
from torch_xla._internal import pjrt
from torch_xla._internal.utils import parse_xla_device
from torch_xla.distributed.fsdp.utils import apply_xla_patch_to_nn_linear
from torch_xla.distributed.spmd.xla_sharding import (
    EinsumLinear,
    XLAPatchedLinear,
    xla_patched_nn_linear_forward,
)
from torch_xla.experimental import deprecation
from torch_xla.experimental.custom_kernel import repeat_with_fixed_output_size
from torch_xla.experimental.gru import GRU


def test_helpers(capsys):
    assert xu.as_list(1) == [1] and xu.as_list((1, 2)) == (1, 2)
    assert xu.list_copy_append((1,), 2) == [1, 2]
    assert xu.flatten_nested_tuple([1, (2, [3])]) == (1, 2, 3)
    assert xu.shape([[1, 2, 3], [4, 5, 6]]) == [2, 3] and xu.shape(7) == []
    with pytest.raises(AssertionError):
        xu.shape([[1], [2, 3]])
    made = []
    lazy = xu.LazyProperty(lambda: made.append(1) or 5)
    assert (lazy.value, lazy.value, made) == (5, 5, [1])
    folder = xu.TmpFolder()
    import os

    name = folder.name
    assert os.path.isdir(name)
    del folder
    assert not os.path.exists(name)
    lines = []
    assert xu.timed(lambda: 3, "took ", lines.append) == 3
    assert re.fullmatch(r"took \d+\.\d{3}ms", lines[0])
    xu.get_print_fn(1)("to the errors")
    xu.get_print_fn(0)("nowhere")
    assert capsys.readouterr().err == "to the errors\n"
    assert parse_xla_device("CPU:3") == ("CPU", 3) and parse_xla_device("xla:0") is None


def test_old_names_warn_once(caplog):
    module = types.ModuleType("a_module")

    def new(x):
        return x + 1

    old = deprecation.deprecated(module, new, "old", extra_msg="It goes.")
    with caplog.at_level(logging.WARNING):
        assert old(1) == 2 and old(2) == 3
    assert [r.getMessage() for r in caplog.records] == [
        f"a_module.old is deprecated. Use {__name__}.new instead. It goes."
    ]

    @deprecation.mark_deprecated(new)
    def older(x):
        return -x

    assert older(1) == 2
    deprecation.register_deprecated(module, new)
    assert module.new(4) == 5


def test_matmul_precision_warns(caplog):
    before = torch_xla.backends.get_mat_mul_precision()
    with caplog.at_level(logging.WARNING, torch_xla.backends.logger.name):
        torch_xla.backends.set_mat_mul_precision(before)
    assert torch_xla.backends._WARNING_MESSAGE in caplog.text


@pytest.mark.parametrize("preserve", [True, False])
def test_checkpoints_compute_again_with_the_same_draws(preserve):
    torch.manual_seed(3)
    layer = nn.Sequential(nn.Linear(16, 64), nn.Dropout(0.5), nn.Linear(64, 16)).to("xla")
    x = torch.randn(8, 16, device="xla", requires_grad=True)
    calls = []

    def run(v, scale):
        calls.append(scale)
        return layer(v) * scale

    torch_xla.manual_seed(7)
    y = checkpoint.checkpoint(run, x, 2.0, preserve_rng_state=preserve)
    y.square().sum().backward()
    got = x.grad.cpu()
    assert calls == [2.0, 2.0]
    draws = torch.rand(4, device="xla").cpu()
    weight = layer[0].weight.grad.cpu()
    x.grad = None
    layer.zero_grad()
    torch_xla.manual_seed(7)
    expected = layer(x) * 2.0
    if preserve:
        torch.testing.assert_close(y.cpu(), expected.cpu())
        expected.square().sum().backward()
        torch.testing.assert_close(got, x.grad.cpu())
        torch.testing.assert_close(weight, layer[0].weight.grad.cpu())
        # Numbers go on as if nothing had been computed again.
        torch.testing.assert_close(draws, torch.rand(4, device="xla").cpu())


def test_checkpoints_refuse_what_they_cannot():
    x = torch.ones(2, device="xla", requires_grad=True)
    with pytest.raises(ValueError, match="use_reentrant==False"):
        checkpoint.checkpoint(torch.sin, x, use_reentrant=False)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: colour"):
        checkpoint.checkpoint(torch.sin, x, colour=1)
    y = checkpoint.checkpoint(torch.sin, x)
    with pytest.raises(RuntimeError, match="backward"):
        torch.autograd.grad(y.sum(), x)
    with torch.autocast("xla", dtype=torch.bfloat16):
        y = checkpoint.checkpoint(nn.Linear(2, 2).to("xla"), x)
    assert y.dtype == torch.bfloat16
    y.sum().backward()
    assert x.grad is not None


def test_runs_are_compared(tmp_path, capsys, monkeypatch):
    first, second = tmp_path / "a", tmp_path / "b"
    x = torch.arange(6.0).reshape(2, 3)
    for folder, change in ((first, 0.0), (second, 0.5)):
        mc.configure(str(folder))
        assert mc.save("same", x.to("xla")).device.type == "xla"
        mc.save("layer", x + change * (x == 4))
        mc.save("layer", x, step=3)
        mc.save(None, x)
    mc.save("extra", x)
    mc.configure(None)
    mc.save("nowhere", x)
    report = mc.compare(str(first), str(second))
    assert 'Changes in saved tensor "layer" with id=0\n  [1, 1]: 4.0 vs. 4.5\terror=0.5\n' in report
    assert report.endswith(f"Mismatch: extra.0 not in {first}\n")
    assert len(report.splitlines()) == 3
    assert mc.compare(str(first), str(first)) == ""
    with pytest.raises(FileNotFoundError, match=r"no folder .*missing"):
        mc.compare(str(first), str(tmp_path / "missing"))
    assert mc.compare_tensors(x, x[:1]).startswith(
        "Tensors have different shape: [2, 3] vs. [1, 3]"
    )
    many = mc.compare_tensors(x, x + 1, max_diffs=2)
    assert len(many.splitlines()) == 3 and many.endswith("... aborting after 2 differences\n")
    assert mc.compare_tensors(x, x + 1, atol=2) == ""
    monkeypatch.setattr(sys, "argv", ["model_comparator", str(first), str(second)])
    assert mc._main() == 1
    assert capsys.readouterr().err == report


def test_models_on_all_devices_of_the_process():
    devices = torch_xla.core.xla_model.get_xla_supported_devices()

    def loop(model, loader, device, context):
        seen = context.getattr_or("seen", list)
        for (batch,) in loader:
            assert batch.device == device
            seen.append(model(batch).sum().item())
        return len(seen)

    data = xu.SampleGenerator([torch.ones(2, 4)], 3 * len(devices))
    parallel = dp.DataParallel(lambda: nn.Linear(4, 1), device_ids=devices)
    assert parallel(loop, data) == [3] * len(devices)
    assert parallel(loop, data) == [6] * len(devices)
    assert [str(next(m.parameters()).device) for m in parallel.models] == parallel.devices

    def failing(model, loader, device, context):
        raise RuntimeError("of the loop")

    with pytest.raises(RuntimeError, match="of the loop"):
        parallel(failing, data)
    here = dp.DataParallel(nn.Linear(4, 1), device_ids=[])
    assert here(lambda m, loader, device, context: str(device), []) == ["cpu"]


def test_a_patched_linear_layer_keeps_its_inputs_dimensions():
    layer = nn.Linear(4, 3).to("xla")
    x = torch.randn(2, 5, 4, device="xla")
    expected = layer(x)
    apply_xla_patch_to_nn_linear(nn.Sequential(layer), xla_patched_nn_linear_forward)
    output = layer(x)
    assert "reshape" not in _XLAC._get_xla_tensors_hlo([output])
    torch.testing.assert_close(output, expected)
    einsum = EinsumLinear(4, 3).to("xla")
    einsum.load_state_dict(layer.state_dict())
    torch.testing.assert_close(einsum(x), expected)
    # What refuses and what is one row is torch's own.
    torch.testing.assert_close(
        XLAPatchedLinear.apply(x[0, 0], layer.weight, layer.bias), expected[0, 0]
    )
    with pytest.raises(RuntimeError, match="mat1 and mat2 shapes cannot be multiplied"):
        layer(torch.ones(2, 5, device="xla"))


def test_a_patched_linear_layer_has_derivatives_of_derivatives():
    torch.manual_seed(0)
    operands = [torch.randn(shape, dtype=torch.double) for shape in ((2, 3, 4), (2, 4), (2,))]

    def gradients(apply, device):
        given = [operand.to(device).requires_grad_() for operand in operands]
        first = torch.autograd.grad(apply(*given).pow(3).sum(), given, create_graph=True)
        return [*first, *torch.autograd.grad(sum(part.pow(2).sum() for part in first), given)]

    for ours, eager in zip(
        gradients(XLAPatchedLinear.apply, "xla"),
        gradients(nn.functional.linear, "cpu"),
        strict=True,
    ):
        torch.testing.assert_close(ours.cpu(), eager)


def test_a_patched_linear_layer_heeds_autocast():
    layer, x = nn.Linear(4, 3).to("xla"), torch.randn(2, 4, device="xla")
    with torch.autocast("xla"):
        output = XLAPatchedLinear.apply(x, layer.weight, layer.bias)
    assert output.dtype == torch.bfloat16
    output.sum().backward()
    assert layer.weight.grad.dtype == layer.bias.grad.dtype == torch.float32


def test_a_patched_linear_layer_is_torchs_where_that_is_asked_more():
    x, weight = torch.randn(2, 3, 4, device="xla"), torch.randn(5, 4, device="xla")

    def loss(weight):
        return XLAPatchedLinear.apply(x, weight).pow(2).sum()

    expected = torch.func.grad(lambda weight: nn.functional.linear(x, weight).pow(2).sum())(weight)
    torch.testing.assert_close(torch.func.grad(loss)(weight), expected)
    torch.testing.assert_close(torch.func.jvp(loss, (weight,), (weight,))[1], 2 * loss(weight))
    with torch.autograd.forward_ad.dual_level():
        dual = XLAPatchedLinear.apply(torch.autograd.forward_ad.make_dual(x, x), weight)
        tangent = torch.autograd.forward_ad.unpack_dual(dual).tangent
    torch.testing.assert_close(tangent, nn.functional.linear(x, weight))
    many = torch.vmap(XLAPatchedLinear.apply, (0, None))(x, weight)
    torch.testing.assert_close(many, nn.functional.linear(x, weight))
    traced = torch.fx.experimental.proxy_tensor.make_fx(loss)(weight)
    torch.testing.assert_close(traced(3 * weight), 9 * loss(weight))
    jacobians = [
        torch.autograd.functional.jacobian(loss, weight, vectorize=way) for way in (False, True)
    ]
    torch.testing.assert_close(*jacobians)


def test_a_patched_linear_layer_takes_and_refuses_what_torchs_does():
    x, weight = torch.randn(2, 4, device="xla"), torch.randn(3, 4, device="xla")
    torch.testing.assert_close(XLAPatchedLinear.apply(x, weight[0]), x @ weight[0])
    with pytest.raises(RuntimeError):
        XLAPatchedLinear.apply(x, weight, torch.ones(2, 2, 3, device="xla"))
    with pytest.raises(RuntimeError, match="same dtype"):
        XLAPatchedLinear.apply(x, weight, torch.ones(3, dtype=torch.half, device="xla"))
    derived = weight.as_subclass(type("Derived", (torch.Tensor,), {}))
    assert type(XLAPatchedLinear.apply(x, derived)) is type(derived)
    with torch.autocast("xla"):
        assert XLAPatchedLinear.apply(x.double(), weight.double()).dtype == torch.float64
        assert XLAPatchedLinear.apply(x.int(), weight.int()).dtype == torch.int32
    given = [part.to(torch.complex64).mul(1 + 2j).requires_grad_() for part in (x, weight)]
    ours, expected = (
        torch.autograd.grad(apply(*given).real.sum(), given)
        for apply in (XLAPatchedLinear.apply, nn.functional.linear)
    )
    torch.testing.assert_close(ours, expected)


def test_gru_of_one_direction(caplog):
    gru, own = nn.GRU(4, 6, 2), GRU(4, 6, 2)
    own.load_state_dict(gru.state_dict())
    x = torch.randn(5, 3, 4)
    torch.testing.assert_close(own.to("xla")(x.to("xla"))[0].cpu(), gru(x)[0])
    with caplog.at_level(logging.WARNING):
        assert type(GRU(4, 6, bidirectional=True)) is nn.GRU
    assert "unidirectional" in caplog.text
    with pytest.raises(AssertionError):
        GRU(4, 6, proj_size=2)


def test_threads_and_results():
    assert pjrt._merge_replica_results([(0, "a"), (1, "b")]) == {0: "a", 1: "b"}
    with pytest.raises(AssertionError, match="2 results for replica 0"):
        pjrt._merge_replica_results([(0, "a"), (0, "b")])
    told = []
    results = pjrt._run_thread_per_device(0, 1, lambda: 5, lambda *rank: told.append(rank))
    assert results == dict.fromkeys(range(torch_xla.device_count()), 5) and told == [(0, 1)]
    assert pjrt._run_singleprocess(lambda x: x + 1, 2) == 3


def test_the_norm_of_no_gradients_is_on_the_device():
    x = torch.rand(3, device="xla")
    assert torch.nn.utils.clip_grad_norm_(x, 1.0).device.type == "xla"
    assert torch.nn.utils.clip_grad_norm_([torch.rand(3)], 1.0).device.type == "cpu"
    assert torch.nn.utils.clip_grad_norm_([], 1.0).item() == 0
    x.requires_grad_().grad = torch.full((3,), 2.0, device="xla")
    norm = torch.nn.utils.clip_grad_norm_((p for p in [x]), 1.0)
    torch.testing.assert_close(norm.cpu(), torch.tensor(12.0).sqrt())


def test_an_exception_ends_the_step_too():
    before = met.counter_value("MarkStep") or 0
    with pytest.raises(RuntimeError, match="of the body"), torch_xla.step():
        x = torch.ones(3, device="xla") + 1
        raise RuntimeError("of the body")
    assert met.counter_value("MarkStep") == before + 2
    assert _XLAC._check_tensor_need_materialization([x]) == [False]
    assert _XLAC._get_allow_execution()


def test_counters_are_counted_by_hand():
    before = met.counter_value("by hand") or 0
    _XLAC._xla_increment_counter("by hand", 3)
    assert met.counter_value("by hand") == before + 3


def test_metrics_reports_are_numbers():
    report = (
        "Metric: CompileTime\n  TotalSamples: 2\n  Accumulator: 01m02s003ms000.500us\n"
        "  Percentiles: 1%=001ms; 99%=02d\nMetric: InboundData\n  TotalSamples: 1\n"
        "  Accumulator: 12.50KB\nCounter: MarkStep\n  Value: 7\n"
    )
    assert mcu.parse_metrics_report("noise\n" + report) == pytest.approx(
        {
            "CompileTime__TotalSamples": 2,
            "CompileTime__Accumulator_sec": 62.0030005,
            "CompileTime__Percentile_1_sec": 0.001,
            "CompileTime__Percentile_99_sec": 172800,
            "InboundData__TotalSamples": 1,
            "InboundData__Accumulator_mb": 0.0125,
            "MarkStep__Value": 7,
        }
    )
    assert (
        mcu.parse_metrics_report(report, dehumanize=False)["InboundData__Accumulator"] == "12.50KB"
    )
    history = mcu.get_data_points_from_metrics_reports([report, report.replace("7", "9"), ""])
    assert history["MarkStep__Value"] == [7, 9, None]
    assert mcu.compare_metrics(history, report) == ""
    later = report.replace("7", "70") + "Counter: aten::nonzero\n  Value: 1\n"
    assert mcu.compare_metrics(history, later) == (
        "MarkStep__Value failed its expression check. Expression: v <= v_mean + (v_stddev * 2.0).  Mean: 8.0.  "
        "Stddev: 1.0.  Actual Value: 70\nFound new aten counter: aten::nonzero__Value: 1\n"
    )
    config = {"base_expression": "False", "MarkStep__Value_expression": "v > 60"}
    assert "MarkStep" not in mcu.compare_metrics(history, later, config)
    with pytest.raises(ValueError, match="1x"):
        mcu.parse_metrics_report("Metric: A\n  Accumulator: 1x\n")
    torch.ones(2, device="xla").add(1).cpu()
    assert "ExecuteTime__Percentile_99_sec" in mcu.parse_metrics_report(met.metrics_report())


def test_walks_visit_keys_numbers_and_what_is_wrapped():
    class Wrapped(xu.DataWrapper):
        def __init__(self, tensors):
            self.tensors = tensors

        def get_tensors(self):
            return self.tensors

        def from_tensors(self, tensors):
            return tuple(tensors)

    def is_tensor(value):
        return isinstance(value, torch.Tensor)

    key, a, b = torch.ones(1), torch.ones(2), torch.ones(3)
    data = {key: a, "wrapped": [Wrapped([b]), a]}
    moved = torch_xla.core.xla_model.ToXlaTensorArena(
        lambda tensors: [tensor.to("xla") for tensor in tensors], is_tensor
    ).transform(data)
    first, second = moved
    assert first.device.type == moved[first].device.type == "xla" and second == "wrapped"
    [wrapped], again = moved["wrapped"]
    assert wrapped.device.type == "xla" and again is moved[first]
    assert data[key] is a  # the structure itself is as it was
    numbers = []
    xu.for_each_instance({5001: [5002, "x"]}, lambda v: isinstance(v, int | str), numbers.append)
    assert numbers == [5001, 5002, "x"]


def test_repeats_of_a_fixed_size():
    x = torch.randn(5)
    repeats = torch.tensor([0, 2, 1, 0, 3])
    for size in (4, 6, 9):
        got = repeat_with_fixed_output_size(x.to("xla"), repeats.to("xla"), size)
        expected = torch.cat([torch.repeat_interleave(x, repeats), x[-1:].expand(9)])[:size]
        torch.testing.assert_close(got.cpu(), expected)


def test_names_of_the_binding():
    x = torch.zeros(2, 3, dtype=torch.half, device="xla")
    assert _XLAC._get_xla_tensor_dimension_size(x, 1).item() == 3
    assert _XLAC._get_xla_tensor_shape_type(x) == "f16"
    assert all(_XLAC._get_git_revs()[name] for name in ("xla", "torch"))
    _XLAC._init_xla_lazy_backend()


def test_nones_are_removed_and_come_back():
    remover, values = NoneRemover(), ["a", None, "b", None]
    assert remover.remove_nones(values) is values and values == ["a", "b"]
    assert remover.add_nones(tuple(values)) == ("a", None, "b", None)
    assert remover.add_nones(values) is values and values == ["a", None, "b", None]


def test_second_backend_is_the_first():
    before = met.counter_value("DynamoExtractCompiledGraph") or 0
    double = torch.compile(lambda x: x * 2, backend=dynamo_backend2.dynamo_backend)
    x = torch.ones(3, device="xla")
    assert double(x).tolist() == double(x + 0).tolist() == [2, 2, 2]
    assert met.counter_value("DynamoExtractCompiledGraph") == before + 1
    torch.ops.xla.dynamo_set_buffer_donor_(x, True)  # is defined


def test_marks_of_a_mesh_of_one_device():
    x = torch.ones(2, 2, device="xla", requires_grad=True)
    mesh = xs.Mesh([0], (1, 1), ("a", "b"))
    (xs.mark_sharding_with_gradients(x, mesh, ("a", None)) * 3).sum().backward()
    assert x.grad.tolist() == [[3, 3], [3, 3]]
