"""Operators whose results the databases cannot compare, since they draw: given what they drew they do as eager does."""

import pytest
import torch
from torch.nn import functional

POOLS = {2: functional.fractional_max_pool2d, 3: functional.fractional_max_pool3d}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("rank", POOLS)
def test_fractional_max_pool(rank, batch, dtype):
    sizes = (11, 9, 10)[:rank]
    x = torch.randn(*batch, 3, *sizes).to(dtype)
    samples = torch.rand(*(batch or (1,)), 3, rank).to(dtype)
    for output, window in [((4, 5, 3), 2), ((1, 1, 1), 3), ((5, 1, 7), (3, 2, 1))]:
        window = window[:rank] if isinstance(window, tuple) else window
        results = []
        for device in "cpu", "xla":
            leaf = x.to(device, copy=True).requires_grad_()
            values, positions = POOLS[rank](
                leaf,
                window,
                output_size=output[:rank],
                return_indices=True,
                _random_samples=samples.to(device),
            )
            weights = torch.arange(values.numel()).reshape(values.shape) % 5 + 1
            values.backward(weights.to(values))
            results.append([values, positions, leaf.grad])
        for expected, actual in zip(*results, strict=True):
            assert torch.equal(expected, actual.cpu())


def test_rrelu():
    x = torch.randn(1000)
    leaf = x.to("xla").requires_grad_()
    result = functional.rrelu(leaf, 0.1, 0.4, training=True)
    result.sum().backward()
    slope = leaf.grad.cpu()
    assert torch.equal(slope == 1, x > 0)
    drawn = slope[x <= 0]
    assert 0.1 <= drawn.min() < 0.12
    assert 0.38 < drawn.max() <= 0.4
    assert drawn.unique().numel() > 0.9 * drawn.numel()
    assert torch.equal(result.cpu(), x * slope)
    in_place = functional.rrelu_(x.to("xla"), 0.1, 0.4, training=True).cpu()
    assert torch.equal(in_place == x, x > 0)
