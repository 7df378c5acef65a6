"""`torch_xla.debug.metrics`: names and text as tools expect them."""

import itertools
import re

import pytest
import torch

import torch_xla
import torch_xla.debug.metrics as met

sizes = itertools.count(3)


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
