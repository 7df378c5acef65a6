"""Powers of two in f32: whole ones are exact, to the smallest number; the others as exact as f32 is."""

import pytest
import torch

# The first step would run by torch's own kernels.
pytestmark = pytest.mark.usefixtures("programs_only")

FUNCTIONS = {"exp2": torch.exp2, "pow": lambda x: torch.pow(2.0, x)}


@pytest.fixture(params=FUNCTIONS)
def power(request):
    return FUNCTIONS[request.param]


def test_whole_powers_are_exact(power, device):
    x = torch.arange(-160, 140, dtype=torch.float32)
    expected = torch.pow(2.0, x.double()).float()
    assert torch.equal(power(x.to(device)).cpu(), expected)


def test_powers_are_as_exact_as_the_type(power, device):
    torch.manual_seed(1)
    x = torch.cat([torch.rand(10000) * 250 - 125, torch.rand(10000) - 0.5, torch.rand(50) * 1e-6])
    expected = torch.pow(2.0, x.double())
    error = (power(x.to(device)).cpu().double() / expected - 1).abs().max()
    assert error < 2**-22


def test_ends(power, device):
    x = torch.tensor([float("inf"), -float("inf"), float("nan"), 128, -151, 1e30, -1e30, -149.5])
    expected = torch.exp2(x)
    assert torch.equal(
        torch.nan_to_num(power(x.to(device)).cpu(), 7.0), torch.nan_to_num(expected, 7.0)
    )
