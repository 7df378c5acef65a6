"""Indices of triangles and coordinates of affine grids: computed on the device from each element's position."""

import itertools

import pytest
import torch
import torch.nn.functional as F

OFFSETS = (-(2**40), -9, -4, -1, 0, 1, 2, 5, 8, 2**40)


@pytest.mark.parametrize("indices", [torch.tril_indices, torch.triu_indices])
def test_triangle_indices(indices, device):
    for rows, columns, offset in itertools.product((0, 1, 4, 9), (0, 1, 5, 9), OFFSETS):
        result = indices(rows, columns, offset, device=device)
        expected = indices(rows, columns, offset)
        assert torch.equal(result.cpu(), expected), (rows, columns, offset)


def test_triangle_indices_are_integers(device):
    for dtype in (torch.bool, torch.int16, torch.float32):
        with pytest.raises(RuntimeError, match="not implemented for"):
            torch.tril_indices(2, 2, dtype=dtype, device=device)


@pytest.mark.parametrize("indices", [torch.tril_indices, torch.triu_indices])
@pytest.mark.parametrize(
    "size",
    [
        (3000, 2999),
        (2895, 2895),
        (2, 1_000_003),
        (1_000_003, 2),
        (4, 1 << 20, 1_000_000),
        (4, 1 << 20, -1_048_000),
    ],
)
def test_triangle_indices_of_many(indices, size, device):
    """Whose rows are found by roots that round."""
    result = indices(*size, dtype=torch.int32, device=device)
    assert torch.equal(result.cpu(), indices(*size, dtype=torch.int32))


@pytest.mark.parametrize(
    "size", [(2, 3, 5, 7), (1, 1, 1, 4), (3, 2, 4, 1), (2, 3, 4, 5, 6), (2, 1, 1, 1, 1)]
)
@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.filterwarnings("ignore:Since version 1.3.0, affine_grid behavior")
def test_affine_grids(size, align_corners, device):
    rank = len(size) - 2
    theta = torch.randn(size[0], rank, rank + 1, dtype=torch.float64)

    def derivatives(theta):
        theta = theta.detach().requires_grad_()
        grid = F.affine_grid(theta, size, align_corners)
        (first,) = torch.autograd.grad((grid**3).sum(), theta, create_graph=True)
        (second,) = torch.autograd.grad((first**2).sum(), theta)
        return grid.detach(), first.detach(), second

    result, expected = derivatives(theta.to(device)), derivatives(theta)
    for ours, eagers in zip(result, expected, strict=True):
        torch.testing.assert_close(ours.cpu(), eagers)


def test_affine_grids_of_16_bits(device):
    theta = torch.randn(2, 2, 3)
    for dtype in (torch.float16, torch.bfloat16):
        narrow = theta.to(dtype)
        grid = F.affine_grid(narrow.to(device), [2, 3, 8, 9], False)
        exact = F.affine_grid(narrow.float(), [2, 3, 8, 9], False)
        assert grid.dtype == dtype
        torch.testing.assert_close(grid.cpu().float(), exact, rtol=2**-8, atol=2**-7)
