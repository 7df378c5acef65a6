"""`torch.accelerator` and `torch.xla` answer what programs written for CUDA ask, and act."""

import time

import pytest
import torch

import torch_xla

xla = torch.get_device_module("xla")


def test_the_accelerator_is_the_device(device):
    assert torch.accelerator.is_available()
    assert torch.accelerator.current_accelerator() == torch.device("xla")
    assert torch.accelerator.device_count() == torch_xla.device_count()
    assert torch.accelerator.current_device_index() == 0
    torch.accelerator.set_device_index(0)
    with torch.accelerator.device_index(0):
        assert torch.ones(2, device=torch.accelerator.current_accelerator()).device == device
    assert torch.float32 in torch.accelerator.get_device_capability()["supported_dtypes"]


@pytest.mark.parametrize(("there", "accelerator"), [(False, "xla"), (True, "cuda")])
def test_an_accelerator_that_torch_was_built_for_need_not_be_there(program, there, accelerator):
    code = f"""
import os, torch
asked = []
torch._C._accelerator_getAccelerator = lambda: torch.device("cuda")
torch.cuda.is_available = lambda: asked.append(os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"]) or {there}
import torch_xla
print(torch.accelerator.current_accelerator(), asked, "PYTORCH_NVML_BASED_CUDA_CHECK" in os.environ)
"""
    output = program.run_code(code, anew=True).stdout
    assert output == f"{accelerator} ['1'] False\n"


def test_the_accelerator_waits_and_counts(device):
    x = torch.ones(1000, 1000, device=device)
    torch_xla.sync()
    y = x + 1
    torch.accelerator.synchronize()
    assert "Data" in torch_xla._XLAC._get_xla_tensor_debug_info(y)
    used = torch.accelerator.memory_allocated()
    assert used == xla.memory_allocated() >= 8_000_000
    assert torch.accelerator.max_memory_allocated() >= torch.accelerator.memory_reserved() >= used
    free, total = torch.accelerator.get_memory_info()
    assert 0 < free < total
    del x, y
    torch.accelerator.empty_cache()
    torch.accelerator.reset_peak_memory_stats()
    assert xla.memory_allocated() <= xla.max_memory_allocated() < used


def test_asking_starts_nothing(program):
    code = """
import torch, torch_xla
assert torch.accelerator.is_available() and torch.accelerator.current_accelerator().type == "xla"
torch.accelerator.current_device_index(), torch.accelerator.current_stream()
torch.accelerator.synchronize(), torch.xla.memory_allocated(), torch.xla.reset_peak_memory_stats()
optimizer = torch.optim.Adam([torch.ones(2, requires_grad=True)])
optimizer.step()
print(torch.xla.is_initialized())
"""
    assert program.run_code(code).stdout == "False\n"


def test_streams_are_one(device):
    stream = xla.Stream()
    with xla.stream(stream), stream, xla.device(0):
        x = torch.ones(2, device=device)
    xla.current_stream().wait_stream(stream)
    stream.synchronize()
    assert stream.query() and not xla.is_current_stream_capturing()
    assert isinstance(torch.accelerator.current_stream(), torch.Stream)
    torch.accelerator.set_stream(stream)
    x.record_stream(stream)
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize("make", [xla.Event, lambda **how: torch.Event("xla", **how)])
def test_events_measure_what_ran_between(make, device):
    x = torch.rand(1500, 1500, device=device)
    torch_xla.sync(wait=True)
    start, end = make(enable_timing=True), make(enable_timing=True)
    begin = time.perf_counter()
    start.record()
    y = x @ x
    end.record()
    outside = 1000 * (time.perf_counter() - begin)
    end.synchronize()
    assert "Data" in torch_xla._XLAC._get_xla_tensor_debug_info(y)
    assert 0 < start.elapsed_time(end) <= outside
    mark = make()
    z = y + 1
    mark.record()
    mark.wait()
    assert mark.query()
    assert "Data" in torch_xla._XLAC._get_xla_tensor_debug_info(z)


def test_what_a_device_is(device):
    properties = xla.get_device_properties(device)
    assert properties.name == xla.get_device_name() != ""
    assert properties.total_memory > 0 and properties.multi_processor_count >= 1
    assert xla.get_device_capability() == (properties.major, properties.minor)
    assert xla.is_bf16_supported() and not xla.is_tf32_supported()
    assert "bytes used" in xla.memory_summary()
    assert xla.amp.autocast is torch_xla.amp.autocast


def test_loaders_pin_memory(device):
    data = torch.utils.data.TensorDataset(torch.arange(4.0))
    for workers in (0, 1):
        loader = torch.utils.data.DataLoader(data, 2, pin_memory=True, num_workers=workers)
        moved = [x.to(device, non_blocking=True).tolist() for (x,) in loader]
        assert moved == [[0, 1], [2, 3]]
    assert torch.ones(2).pin_memory().tolist() == [1, 1]


def test_half_precision_training_as_written_for_cuda(device):
    kind = torch.accelerator.current_accelerator().type
    model = torch.nn.Linear(4, 2).to(kind)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler(kind, init_scale=2.0**10)
    before = model.weight.detach().cpu().clone()
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast(kind, dtype=torch.float16):
            loss = model(torch.ones(3, 4, device=kind)).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
    assert scaler.get_scale() == 2.0**10
    assert not torch.equal(model.weight.cpu(), before)


def test_forks_of_random_numbers(device):
    torch.manual_seed(1)
    expected = torch.rand(2, device=device)
    torch.manual_seed(1)
    with torch.random.fork_rng():
        torch.rand(3, device=device)
    assert torch.equal(torch.rand(2, device=device), expected)
