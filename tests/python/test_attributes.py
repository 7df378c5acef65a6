"""Numbers that are part of a program are told apart by their bits: NaN is itself, and 0 is not -0."""

import math

import pytest
import torch
import torch.nn.functional as F

import torch_xla
import torch_xla.debug.metrics as metrics
from torch_xla import _XLAC

NAN = math.nan

OPERATORS = {
    "nan_to_num": lambda x, number: torch.nan_to_num(x, nan=number),
    "threshold": lambda x, number: F.threshold(x, number, number),
    "leaky_relu": F.leaky_relu,
    "elu": lambda x, number: F.elu(x, alpha=number),
    "hardtanh": lambda x, number: F.hardtanh(x, -1.0, number),
    "pow": torch.pow,
    "pow of a complex number": lambda x, number: torch.pow(x, complex(number, number)),
    "addmm": lambda x, number: torch.addmm(x, x, x, alpha=number),
    "pad": lambda x, number: F.pad(x, (1, 1), value=number),
    "full_like": torch.full_like,
    "linspace": lambda x, number: torch.linspace(0.0, number, 3, device=x.device),
    "multiplied": torch.mul,
}


def run(operator, x, number):
    result = operator(x, number)
    torch_xla.sync()
    return result


@pytest.mark.usefixtures("programs_only")
@pytest.mark.parametrize("name", OPERATORS)
def test_nan_is_the_same_program_in_every_step(device, name):
    x = torch.tensor([[1.0, -2.0], [NAN, 0.5]], device=device)
    run(OPERATORS[name], x, NAN)
    compiled, interned = metrics.counter_value("ProgramCompile"), _XLAC._xla_interned_counts()
    for _ in range(3):
        run(OPERATORS[name], x, NAN)
    assert metrics.counter_value("ProgramCompile") == compiled
    assert _XLAC._xla_interned_counts() == interned


def test_nan_in_a_captured_graph(device):
    x = torch.tensor([NAN, 2.0], device=device)

    @torch.compile(backend="openxla")
    def function(x):
        return torch.nan_to_num(x, nan=NAN) * 2

    for _ in range(2):  # compiled by dynamo in the first
        function(x)
        torch_xla.sync()
    compiled, interned = metrics.counter_value("ProgramCompile"), _XLAC._xla_interned_counts()
    for _ in range(3):
        function(x)
        torch_xla.sync()
    assert metrics.counter_value("ProgramCompile") == compiled
    assert _XLAC._xla_interned_counts() == interned


@pytest.mark.parametrize("name", ["nan_to_num", "threshold", "leaky_relu", "full_like", "pad"])
def test_zero_has_a_sign(device, name):
    x = torch.tensor([[-1.0, NAN], [-3.0, 0.0]])
    for number in (0.0, -0.0, 0.0):
        expected = OPERATORS[name](x, number)
        result = run(OPERATORS[name], x.to(device), number).cpu()
        torch.testing.assert_close(result, expected, equal_nan=True)
        zero = expected == 0
        assert result.signbit()[zero].tolist() == expected.signbit()[zero].tolist()
