"""Profiles of this process: what is in them, and what they cost a program that nobody profiles."""

import os
import threading

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.profiler as xp
from torch_xla.debug import trace_events

# What is counted, and shown, are programs.
pytestmark = pytest.mark.usefixtures("module_of_programs")


@pytest.fixture(scope="module")
def training(module_of_programs):
    """A function that does a step; all that it runs is compiled."""
    device = torch_xla.device()
    model = torch.nn.Sequential(
        torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 4)
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)

    def step(number):
        with xp.StepTrace("train", step_num=number):
            with xp.Trace("forward", phase="first", scale=0.5):
                loss = model(torch.randn(16, 32).to(device)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss

    for number in range(3):
        step(number)
    torch_xla.sync(wait=True)
    return step


def collect(run):
    trace_events.start()
    try:
        run()
        torch_xla.sync(wait=True)
    finally:
        xspace = trace_events.stop()
    space = trace_events.parse(xspace)
    assert not space.errors and not space.warnings
    return space


def names(line):
    return [event.name for event in line.events]


def test_host_spans(training):
    space = collect(lambda: [training(number) for number in range(3)])
    steps = list(space.events("train"))
    assert [step.stats["step_num"] for step in steps] == [0, 1, 2]
    forward = list(space.events("forward"))
    assert [event.stats["phase"] for event in forward] == ["first"] * 3
    assert forward[0].stats["scale"] == 0.5
    for name in ["xla::sync", "xla::cut", "xla::cache_lookup", "xla::execute", "xla::upload"]:
        events = list(space.events(name))
        assert len(events) >= 3, name
        for step, event in zip(steps, events, strict=False):
            assert step.start_ps <= event.start_ps <= event.end_ps <= step.end_ps
    assert next(space.events("xla::upload")).stats["bytes"] == 16 * 32 * 4
    assert next(space.events("xla::sync")).stats["reason"].startswith("torch_xla.sync when exit")
    assert all(event.stats["hit"] == 1 for event in space.events("xla::cache_lookup"))
    assert not list(space.events("xla::compile"))
    recording = [line for line in space.host.lines if line.name.startswith("recording")]
    assert len(recording) == 1 and len(recording[0].events) == 3
    assert recording[0].events[0].stats["operations"] > 10


def test_compile_and_fallback():
    def run():
        x = torch.arange(7.0, device="xla") * 3
        torch_xla.sync()
        torch._standard_gamma_grad(x, x)
        assert x[1].item() == 3

    space = collect(run)
    assert len(list(space.events("xla::compile"))) >= 1
    assert len(list(space.events("xla::lower"))) >= 1
    fallback = next(space.events("xla::fallback aten::_standard_gamma_grad"))
    download = next(space.events("xla::download"))
    assert fallback.start_ps <= download.start_ps <= download.end_ps <= fallback.end_ps
    assert download.stats["bytes"] == 7 * 4
    assert len(list(space.events("xla::read aten::_local_scalar_dense"))) == 1


def test_device_plane(training):
    space = collect(lambda: [training(number) for number in range(2)])
    (device,) = space.devices
    assert device.stats["device_type_string"] == "CPU"
    steps, modules, operations = device.lines
    assert [line.name for line in device.lines] == ["Steps", "XLA Modules", "XLA Ops"]
    launched = [event.stats["run_id"] for event in space.events("xla::execute")]
    assert [event.stats["run_id"] for event in modules.events] == launched
    assert len(steps.events) == len(launched)
    products = [event for event in operations.events if event.stats["hlo_category"] == "dot"]
    # Forward: two products; backward: three, as the input needs no gradient.
    assert len(products) == 5 * len(launched)
    # Bias and ReLU belong to the first.
    assert products[0].stats["flops"] == 2 * 16 * 32 * 64 + 2 * 16 * 64
    assert products[0].stats["bytes_accessed"] == 4 * (16 * 32 + 32 * 64 + 64 + 16 * 64)
    assert products[0].stats["tf_op"] == "aten::addmm"
    for module, launch in zip(modules.events, space.events("xla::execute"), strict=True):
        # One time axis: a program runs after it was asked for.
        assert module.start_ps > launch.start_ps
        inside = [e for e in operations.events if e.stats["run_id"] == module.stats["run_id"]]
        assert module.start_ps <= inside[0].start_ps and inside[-1].end_ps <= module.end_ps
        assert sum(e.duration_ps for e in inside) <= module.duration_ps


def test_one_at_a_time():
    trace_events.start()
    try:
        assert trace_events.is_running()
        with pytest.raises(RuntimeError, match="Only one profile may be run at a time"):
            trace_events.start()
    finally:
        trace_events.stop()
    assert not trace_events.is_running()
    with pytest.raises(RuntimeError, match="No profile started"):
        trace_events.stop()


def test_what_is_no_folder_and_no_address():
    with pytest.raises(TypeError, match="PathLike"):
        xp.start_trace(3)
    with pytest.raises(RuntimeError, match="No profile started"):
        xp.stop_trace()
    for address in ("localhost", "localhost:port", "", "localhost:1,"):
        with pytest.raises(RuntimeError, match="is no server's address"):
            xp.trace(address, "nowhere")


def test_a_forked_process_has_no_part_in_its_parents_profile():
    weight = torch.ones(4, 4, device="xla")

    def step(number):
        with xp.StepTrace("train", step_num=number):
            weight.mul_(0.5)

    step(0)
    torch_xla.sync(wait=True)
    trace_events.start()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer = b"failed"
        try:
            assert not trace_events.is_running()
            space = collect(lambda: step(5))
            assert [event.stats["step_num"] for event in space.events("train")] == [5]
            assert len(space.devices) == 1
            answer = b"good"
        finally:
            os.write(writer, answer)
            os._exit(0)
    step(6)
    torch_xla.sync(wait=True)
    space = trace_events.parse(trace_events.stop())
    assert os.read(reader, 10) == b"good"
    os.waitpid(child, 0)
    assert [event.stats["step_num"] for event in space.events("train")] == [6]


def test_a_step_ends_outside_of_sections():
    @xp.trace_me("whole")
    def step():
        torch_xla.sync()

    with pytest.raises(RuntimeError, match=r"Expecting scope to be empty but it is whole\.1:"):
        step()
    with xp.Trace("outer"), xp.Trace("inner"):
        with pytest.raises(RuntimeError, match=r"outer\.1/inner\.1: end the step after"):
            torch_xla.sync()
        torch_xla.sync(reset_scope=False)
        with xp.StepTrace("step"):
            assert (torch.ones(2, device="xla") + 1).tolist() == [2, 2]
    torch_xla.sync()


def test_what_ends_no_step_may_stand_within_a_section(tmp_path):
    with xp.Trace("saving"):
        assert xm.rendezvous("within", b"payload") == [b"payload"]
        xm.save({"x": torch.ones(2, device="xla") + 1}, tmp_path / "x.pt")
    assert torch.load(tmp_path / "x.pt")["x"].tolist() == [2, 2]
    torch_xla.sync()


def test_a_section_ends_with_its_trace():
    def section():
        with xp.Trace("of a generator"):
            yield

    generators = [section()]
    next(generators[0])
    thread = threading.Thread(target=generators.clear)  # closes it there
    thread.start()
    thread.join()
    torch_xla.sync()
    trace = xp.Trace("entered twice")
    trace.__enter__()
    with trace:
        pass
    torch_xla.sync()
    trace.__enter__()
    del trace
    torch_xla.sync()


def test_malformed_profiles():
    with pytest.raises(RuntimeError, match="no valid trace"):
        trace_events.parse(b"\x0a\xff")
    assert trace_events.parse(b"").planes == []


def test_torch_profiler_sees_spans(training):
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        training(0)
        torch_xla.sync(wait=True)
    seen = {event.name for event in prof.events()}
    assert {"train", "forward", "xla::sync", "xla::execute", "xla::cut"} <= seen
