"""`torch_xla.debug.metrics`: names and text as tools expect them."""

import contextlib
import gc
import itertools
import re

import pytest
import torch
import torch.nn.functional as F

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met

sizes = itertools.count(3)


@contextlib.contextmanager
def interpretation(when):
    before = torch_xla._XLAC._xla_get_interpretation()
    torch_xla._XLAC._xla_set_interpretation(when)
    try:
        yield
    finally:
        torch_xla._XLAC._xla_set_interpretation(before)


def run_a_step(device) -> None:
    # A size of its own, so that it is a new graph.
    size = next(sizes)
    t = torch.randn(size, size).to(device)
    (t @ t).relu().cpu()
    torch_xla.sync()


@pytest.mark.usefixtures("programs_only")
def test_report_names_what_happened(device):
    met.clear_all()
    run_a_step(device)
    assert met.counter_value("MarkStep") == 1
    assert {"xla::mm", "xla::relu"} <= set(met.counter_names())
    assert {
        "ProgramCompileTime",
        "ExecuteTime",
        "TransferToDeviceTime",
        "TransferFromDeviceTime",
    } <= set(met.metric_names())
    assert met.counter_value("NoSuchCounter") is None and met.metric_data("NoSuchMetric") is None


def test_interpreted_graphs_are_named(device):
    met.clear_all()
    run_a_step(device)
    assert met.counter_value("InterpretedGraph") == met.counter_value("UncachedCompile") == 1
    assert met.metric_data("InterpretTime")[0] == met.metric_data("ExecuteTime")[0] == 1
    assert met.counter_value("ProgramCompile") is None


@pytest.mark.usefixtures("programs_only")
def test_loops_of_further_sizes_are_found(device):
    """Each size is a program; the first two are loops for all."""
    met.clear_all()
    loops = []
    for size in (1009, 1013, 1019, 1021):
        t = torch.randn(size, 3).to(device)
        (t.relu() * 2).cpu()
        loops.append(met.counter_value("LoopCompile"))
    assert met.counter_value("ProgramCompile") == 4
    assert 0 < loops[0] < loops[1] == loops[2] == loops[3]


# Some that share a lowering with another.
NAMES = {
    "nll_loss_forward": lambda x: F.nll_loss(x, x.argmax(1)),
    "nll_loss2d_forward": lambda x: F.nll_loss(x[..., None, None], x.argmax(1)[..., None, None]),
    "_adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x[None], 3),
    "_adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x[None, None], (1, 2, 2)),
    "reflection_pad1d": lambda x: F.pad(x, (1, 1), "reflect"),
    "reflection_pad2d": lambda x: F.pad(x[None], (1, 1, 1, 1), "reflect"),
    "replication_pad2d": lambda x: F.pad(x[None], (1, 1, 1, 1), "replicate"),
    "replication_pad3d": lambda x: F.pad(x[None, None], (1,) * 6, "replicate"),
    "hardshrink_backward": lambda x: torch.ops.aten.hardshrink_backward(x, x, 0.5),
    "softshrink_backward": lambda x: torch.ops.aten.softshrink_backward(x, x, 0.5),
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "maximum": lambda x: torch.maximum(x, -x),
    "minimum": lambda x: torch.minimum(x, -x),
    "clamp_min": lambda x: x.clamp_min(0.5),
    "clamp_max": lambda x: x.clamp_max(-x),
    "bitwise_left_shift": lambda x: torch.bitwise_left_shift(x.long(), x.long()),
    "__rshift__": lambda x: x.long() >> 1,
    "i0": torch.i0,
    "special_modified_bessel_i1": torch.special.modified_bessel_i1,
}


@pytest.mark.parametrize("name", NAMES)
def test_an_operator_counts_by_its_own_name(device, name):
    x = torch.rand(4, 4).to(device)
    met.clear_all()
    result = NAMES[name](x)
    assert met.counter_value(f"xla::{name}") == 1, met.counter_names()
    assert f" aten::{name}(" in torch_xla._XLAC._get_xla_tensors_text([result])


def test_aliases_are_counted_where_a_graph_is_new(device):
    """Whether it is compiled then or later."""
    x = torch.ones(7, 3).to(device)
    torch_xla.sync()
    met.clear_all()
    x += 1
    torch_xla.sync()
    x += 1
    torch_xla.sync()
    assert met.metric_data("InputOutputAliasCount")[:2] == (1, 1.0)


@pytest.mark.slow
def test_what_a_step_costs_by_parts(device):
    """As PyTorch/XLA names them; both where a graph is interpreted and where it has a program."""
    for when in ("auto", "never"):
        gc.collect()  # no tensor of another test ends meanwhile
        with interpretation(when):
            met.clear_all()
            size = next(sizes)
            t = torch.ones(size, size).to(device)
            t = t * 3 + t * 0.5
            torch_xla.sync()
            del t
        parts = {"UnwrapXlaData", "WrapXlaData", "DeviceLockWait", "LazyTracing", "TensorToData"}
        assert parts <= set(met.metric_names())
        assert met.metric_data("UnwrapXlaData")[0] == met.metric_data("WrapXlaData")[0] == 1
        assert met.metric_data("LazyTracing")[0] >= 4  # an upload, and three operations
        assert met.counter_value("DeviceDataCacheMiss") >= 2
        assert met.counter_value("DestroyXlaTensor") == met.counter_value("CreateXlaTensor")


def test_recording_is_timed_once_somebody_looks(program):
    code = """
import torch, torch_xla
import torch_xla.debug.metrics as met
x = torch.ones(3).to("xla") + 1
{looks}
print("LazyTracing" in met.metric_names(), (x * 2).tolist(), "LazyTracing" in met.metric_names())
"""
    for looks, expected in (("", "False"), ("met.metrics_report()", "True")):
        output = program.run_code(code.format(looks=looks)).stdout.strip()
        assert output == f"False [4.0, 4.0, 4.0] {expected}"


def test_the_time_of_an_execution_is_there_when_it_has_been_waited_for(device):
    with interpretation("never"):
        t = torch.ones(512, 512).to(device)
        for _ in range(50):
            met.clear_all()
            t = (t @ t).clamp(max=1)
            torch_xla.sync()
            xm.wait_device_ops()
            assert met.metric_data("ExecuteTime")[0] == 1


TIME = r"(\d+d)?(\d\dh)?(\d\dm)?(\d\ds)?(\d\d\dms)?\d\d\d\.\d\d\dus"


@pytest.mark.usefixtures("programs_only")
def test_report_has_the_known_form(device):
    met.clear_all()
    run_a_step(device)
    report = met.metrics_report()
    assert re.search(
        rf"^Metric: CompileTime\n  TotalSamples: \d+\n  Accumulator: {TIME}\n", report, re.MULTILINE
    )
    assert re.search(rf"^  Percentiles: 1%={TIME}; 5%={TIME}; 10%=", report, re.MULTILINE)
    assert re.search(r"^Counter: MarkStep\n  Value: 1$", report, re.MULTILINE)
    short = met.short_metrics_report()
    assert "Counter: MarkStep" in short and "xla::mm" not in short


@pytest.mark.usefixtures("programs_only")
def test_metric_data_are_samples(device):
    met.clear_all()
    run_a_step(device)
    count, total, samples = met.metric_data("ExecuteTime")
    assert count == len(samples) >= 1
    assert abs(sum(value for _, value in samples) - total) < 1e-6 * max(total, 1)


def test_clear(device):
    run_a_step(device)
    met.clear_all()
    assert not met.counter_value("MarkStep")
    assert (
        met.metric_data("ProgramCompileTime") is None
        or met.metric_data("ProgramCompileTime")[0] == 0
    )


def test_metrics_file(program):
    program.run_code(
        """
import torch, torch_xla
t = torch.ones(2, device="xla") + 1
torch_xla.sync()
torch_xla.sync()
""",
        XLA_METRICS_FILE="metrics.txt",
    )
    text = (program.folder / "metrics.txt").read_text()
    assert text.startswith("[MetricsData; step=1]\n") and "[MetricsData; step=2]\n" in text


def test_fallbacks_are_counted(device):
    met.clear_all()
    values = torch.tensor([3.0, 1.0, 2.0], device=device)
    # An operator that no lowering or decomposition covers.
    torch._standard_gamma_grad(values, values)
    assert "aten::_standard_gamma_grad" in met.executed_fallback_ops()


def test_a_graph_that_comes_again_is_a_cached_one(device):
    x = torch.arange(37.0).to(device)
    torch_xla.sync()
    met.clear_all()
    for expected in (None, 1, 2):
        y = (x * 3).sin()
        torch_xla.sync()
        assert met.counter_value("UncachedCompile") == 1
        assert met.counter_value("CreateCompileHandles") == 1
        assert met.counter_value("CachedCompile") == expected
    assert met.metric_data("CompileTime")[0] >= 1
    assert "CompileTime" in met.short_metrics_report()
    assert met.executed_fallback_ops() == []
    assert y.sum().item() and "aten::_local_scalar_dense" in met.short_metrics_report()
    assert met.executed_fallback_ops() == ["aten::_local_scalar_dense"]


def test_tensors_are_counted_as_pytorch_xla_makes_them(device):
    """There zeros are empty memory that is filled, a number beside a tensor is one, and what is written in place is new."""
    gc.collect()
    torch_xla.sync(wait=True)
    met.clear_all()
    counts = []

    def note(live):
        made, destroyed = (
            met.counter_value(f"{word}XlaTensor") or 0 for word in ("Create", "Destroy")
        )
        counts.append(destroyed)
        assert made - destroyed == live

    x = torch.zeros(50, device=device)
    note(1)
    x += 1
    note(1)
    y = x * 2
    note(2)
    y.mul_(x)
    note(2)
    del y
    note(1)
    assert counts == [1, 3, 4, 5, 6]
