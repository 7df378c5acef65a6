"""`torch.compile` without a backend's name."""

import pytest
import torch


@pytest.mark.slow
def test_default_compilation_is_ours(device):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU()).to(device)
    compiled = torch.compile(model, mode="reduce-overhead")
    x = torch.randn(2, 3).to(device)
    result = compiled(x)
    torch.testing.assert_close(result, model(x))
    result.sum().backward()
    assert model[0].weight.grad.device.type == "xla"
    made = torch.compile(lambda: torch.arange(3, device=device) * 2)
    assert made().tolist() == [0, 2, 4]
    on_cpu = torch.compile(lambda x: x * 2, backend="inductor", options={"compile_threads": 1})
    assert on_cpu(torch.ones(2)).tolist() == [2, 2]
