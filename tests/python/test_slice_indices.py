"""Indices of gather and scatter that are stretched, as message passing writes them: whole slices move."""

import pytest
import torch

from torch_xla import _XLAC

pytestmark = pytest.mark.usefixtures("programs_only")

REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]
# The shape of what is read or written along a dimension, the dimension, and the index's shape.
INDICES = {
    "rows": ((7, 40), 0, (9, 1)),
    "columns": ((40, 7), 1, (1, 9)),
    "rows of each batch": ((3, 7, 40), 1, (3, 9, 1)),
    "planes": ((7, 8, 5), 0, (9, 1, 1)),
    "the middle one": ((8, 7, 5), 1, (1, 9, 1)),
    "lines of each column": ((40, 7, 5), 1, (1, 9, 5)),
    "a column of its own": ((7, 1), 0, (9, 1)),
    "narrow rows, element by element": ((7, 5), 0, (9, 1)),
}


def stretched(name):
    shape, dimension, narrow = INDICES[name]
    wide = [9 if d == dimension else size for d, size in enumerate(shape)]
    index = torch.randint(7, narrow, generator=torch.Generator().manual_seed(0))
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) % 11 - 5, index, wide


@pytest.mark.parametrize("name", INDICES)
def test_gather(name, device):
    x, index, wide = stretched(name)
    dimension = INDICES[name][1]
    result = x.to(device).gather(dimension, index.to(device).expand(wide))
    assert torch.equal(result.cpu(), x.gather(dimension, index.expand(wide)))


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("reduce", REDUCTIONS)
@pytest.mark.parametrize("name", INDICES)
def test_scatter_reduce(name, reduce, include_self, device):
    x, index, wide = stretched(name)
    updates = torch.arange(float(torch.Size(wide).numel())).reshape(wide) % 7 - 3

    def outcome(device):
        operands = [y.to(device).requires_grad_() for y in (x, updates)]
        result = operands[0].scatter_reduce(
            INDICES[name][1], index.to(device).expand(wide), operands[1], reduce,
            include_self=include_self,
        )  # fmt: skip
        return [result, *torch.autograd.grad(result.square().sum(), operands)]

    for result, expected in zip(outcome(device), outcome("cpu"), strict=True):
        torch.testing.assert_close(result.detach().cpu(), expected.detach())


def test_slices_are_moved_whole(device):
    index = torch.tensor([[1], [0], [1]], device=device).expand(3, 40)
    x = torch.ones(2, 40, device=device)
    sums = torch.zeros_like(x).scatter_add(0, index, x.gather(0, index))
    text = _XLAC._get_xla_tensors_hlo([sums])
    assert "update_window_dims={1}" in text
    assert "offset_dims={1}" in text
