"""`torch.inference_mode` on the device: what is an inference tensor there is one here, and what raises raises."""

import copy

import pytest
import torch
from torch import nn

VIEWS = {
    "view": lambda x: x.view(-1),
    "reshape": lambda x: x.reshape(4, 6),
    "index": lambda x: x[1],
    "unbind": lambda x: x.unbind(0)[1],
    "split": lambda x: x.split(2)[1],
    "transpose": lambda x: x.mT,
    "permute": lambda x: x.permute(2, 0, 1),
    "expand": lambda x: x[None].expand(2, -1, -1, -1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(0, 2, 1),
    "as_strided": lambda x: x.as_strided((2, 2), (3, 1), 1),
    "detach": lambda x: x.detach(),
    "complex": lambda x: torch.view_as_complex(x.reshape(4, 3, 2)),
    "conjugate": lambda x: torch.view_as_complex(x.reshape(4, 3, 2)).conj(),
}


def values():
    return torch.arange(24.0).reshape(4, 3, 2)


@pytest.mark.parametrize("view", VIEWS.values(), ids=VIEWS)
@pytest.mark.parametrize("base_inside", [True, False])
@pytest.mark.parametrize("view_inside", [True, False])
def test_views(view, base_inside, view_inside):
    results = []
    for device in ("cpu", "xla"):
        with torch.inference_mode(base_inside):
            base = values().to(device) + 0
        with torch.inference_mode(view_inside):
            result = view(base)
        results.append((base.is_inference(), result.is_inference(), result.requires_grad))
        torch.testing.assert_close(result.cpu(), view(values()))
    assert results[0] == results[1]


def test_a_network():
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0, batch_first=True)
    network = nn.Sequential(
        nn.Conv1d(4, 8, 3, padding=1),
        nn.BatchNorm1d(8),
        nn.Flatten(1),
        nn.Unflatten(1, (6, 8)),
        layer,
    ).eval()
    device = copy.deepcopy(network).to("xla")
    x = torch.randn(2, 4, 6)
    with torch.inference_mode():
        torch.testing.assert_close(device(x.to("xla")).cpu(), network(x), rtol=1e-4, atol=1e-5)


def test_writes_reach_the_base():
    x = values().to("xla")
    with torch.inference_mode():
        x[1] += 1
        x.mT.mul_(2)
    expected = values()
    expected[1] += 1
    torch.testing.assert_close(x.cpu(), expected * 2)
    # The base is an ordinary tensor still.
    x.requires_grad_().square().sum().backward()
    torch.testing.assert_close(x.grad.cpu(), expected * 4)


def saving_for_backward(device):
    with torch.inference_mode():
        inside = values().to(device) + 0
    return (torch.ones(4, 3, 2, device=device, requires_grad=True) * inside).sum()


def writing_outside(device):
    with torch.inference_mode():
        inside = values().to(device) + 0
    inside[0].add_(1)


def writing_a_view_outside(device):
    base = torch.ones(4, device=device, requires_grad=True) * 2
    with torch.inference_mode():
        view = base[:2]
    view.mul_(2)


@pytest.mark.parametrize("use", [saving_for_backward, writing_outside, writing_a_view_outside])
def test_misuse_raises_as_on_the_cpu(use):
    with pytest.raises(RuntimeError) as expected:
        use("cpu")
    with pytest.raises(RuntimeError, match=str(expected.value)[:40]):
        use("xla")
