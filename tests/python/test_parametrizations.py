"""`torch.nn.utils.parametrizations` on the device: weights and gradients as in eager, none on the CPU."""

import pytest
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize

import torch_xla
import torch_xla.debug.metrics as metrics


class Symmetric(nn.Module):
    """Makes a matrix of its upper triangle."""

    def forward(self, x):
        return x.triu() + x.triu(1).mT

    def right_inverse(self, x):
        return x.triu()


def orthogonal(kind):
    return lambda layer: parametrizations.orthogonal(layer, orthogonal_map=kind)


def symmetric(layer):
    parametrize.register_parametrization(layer, "weight", Symmetric())
    return layer


PARAMETRIZATIONS = {
    "weight_norm": parametrizations.weight_norm,
    "spectral_norm": parametrizations.spectral_norm,
    "matrix_exp": orthogonal("matrix_exp"),
    "cayley": orthogonal("cayley"),
    "householder": orthogonal("householder"),
    "symmetric": symmetric,
}


def layer():
    torch.manual_seed(0)
    return nn.Linear(4, 4)


@pytest.mark.parametrize("name", PARAMETRIZATIONS)
def test_moved_to_the_device(name, device):
    def train(where):
        model = PARAMETRIZATIONS[name](layer()).to(where)
        x = torch.arange(8.0).reshape(2, 4).to(where)
        with parametrize.cached():
            model(x).sin().sum().backward()
        return [model.weight.detach(), *[p.grad for p in model.parameters()]]

    expected = train("cpu")
    metrics.clear_all()
    actual = train(device)
    torch_xla.sync()
    assert [
        name
        for name in metrics.counter_names()
        if name.startswith("aten::") and name != "aten::_local_scalar_dense"
    ] == []
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", PARAMETRIZATIONS)
def test_made_on_the_device(name, device):
    model = PARAMETRIZATIONS[name](layer().to(device))
    weight = model.weight.detach().cpu()
    if name == "symmetric":
        torch.testing.assert_close(weight, weight.mT)
    elif name == "spectral_norm":
        # The largest singular value, after few steps of the power method.
        assert torch.linalg.matrix_norm(weight, 2) == pytest.approx(1, abs=0.1)
    elif name == "weight_norm":
        torch.testing.assert_close(weight, layer().weight.detach())
    else:
        torch.testing.assert_close(weight @ weight.mT, torch.eye(4), rtol=0, atol=1e-4)
    parametrize.remove_parametrizations(model, "weight")
    # Each time that it is read, spectral_norm's weight goes a step of the power method further.
    close = {"rtol": 0, "atol": 1e-2} if name == "spectral_norm" else {}
    torch.testing.assert_close(model.weight.detach().cpu(), weight, **close)
