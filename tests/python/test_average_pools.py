"""Means of windows that stand side by side, and of large ones, which are taken along one dimension after the other."""

import pytest
import torch
import torch.nn.functional as F

from torch_xla import _XLAC

pytestmark = pytest.mark.usefixtures("programs_only")

POOLS = {1: F.avg_pool1d, 2: F.avg_pool2d, 3: F.avg_pool3d}
CASES = [
    (1, (2, 3, 40), {"kernel_size": 7}),
    (2, (2, 3, 17, 40), {"kernel_size": 8}),
    (2, (2, 3, 17, 40), {"kernel_size": (8, 5), "padding": (2, 1)}),
    (2, (2, 3, 17, 40), {"kernel_size": 8, "padding": 3, "count_include_pad": False}),
    (2, (2, 3, 17, 41), {"kernel_size": 8, "ceil_mode": True}),
    (2, (3, 17, 41), {"kernel_size": 8, "ceil_mode": True, "padding": 4, "divisor_override": 5}),
    (2, (2, 3, 17, 40), {"kernel_size": 9, "stride": 1, "padding": 4}),
    (2, (2, 3, 37, 40), {"kernel_size": 7, "stride": 3, "padding": 2, "ceil_mode": True}),
    (2, (2, 3, 37, 40), {"kernel_size": 5, "stride": 8}),
    (3, (2, 3, 8, 9, 10), {"kernel_size": 3}),
    (3, (2, 3, 8, 9, 10), {"kernel_size": 3, "stride": 2, "padding": 1}),
]


def both(rank, shape, options, device):
    x = (torch.arange(float(torch.Size(shape).numel())).reshape(shape) % 97 - 40).to(device)
    x.requires_grad_()
    means = POOLS[rank](x, **options)
    weights = (torch.arange(means.numel()).reshape(means.shape) % 13 - 5.0).to(device)
    return means, *torch.autograd.grad(means, x, weights)


@pytest.mark.parametrize(("rank", "shape", "options"), CASES, ids=str)
def test_is_as_in_eager(rank, shape, options, device):
    results = both(rank, shape, options, device)
    for result, expected in zip(results, both(rank, shape, options, "cpu"), strict=True):
        torch.testing.assert_close(result.detach().cpu(), expected.detach())


def test_gradients_of_windows_side_by_side_are_spread(device):
    gradient = both(*CASES[1], device)[1]
    assert "reduce-window" not in _XLAC._get_xla_tensors_hlo([gradient])
