"""Sums of many numbers keep what each of them adds: in eager they are sums of sums, and running ones are kept in f64.

Added one after the other, a million equal numbers of f32 are wrong by a hundredth, and beyond 2^24 nothing is added any more.
"""

import pytest
import torch

import torch_xla  # noqa: F401 - the device

MILLION = 1 << 20


def normalized(x):
    """The means that batch normalization keeps."""
    mean, variance = (torch.zeros(x.shape[1], device=x.device, dtype=x.dtype) for _ in range(2))
    torch.nn.functional.batch_norm(x, mean, variance, training=True, momentum=1.0)
    return mean


def bias_gradient(x):
    bias = torch.zeros(x.shape[-1], device=x.device, dtype=x.dtype, requires_grad=True)
    ((x.detach() + bias) * x).sum().backward()
    return bias.grad


# What is summed, and the shape that it has.
SUMS = {
    "all": (torch.sum, (MILLION + 7,)),
    "rows": (lambda x: x.sum(1), (2, MILLION // 2 + 3)),
    "a large row": (lambda x: x.sum(1), (2, 1 << 23)),
    "columns": (lambda x: x.sum(0), (MILLION, 3)),
    "columns, no parts": (lambda x: x.sum(0), (1000003, 3)),
    "columns of few": (lambda x: x.sum(1), (2, MILLION // 8, 5)),
    "columns, twice": (lambda x: x.sum((0, 2)), (700, 2, 700, 2)),
    "pixels": (lambda x: x.sum((0, 2)), (7, 3, 100_003)),
    "pixels of few rows": (lambda x: x.sum((0, 2)), (3000, 3, 100)),
    "channels last": (lambda x: x.mean((0, 1)), (16, MILLION // 16, 4)),
    "with others": (lambda x: (x * 2).sum(0) + x.amax(0) + x.prod(0), (MILLION, 3)),
    "of products": (lambda x: (x * x).sum(0), (MILLION, 3)),
    "variance": (lambda x: (x + 1e3 * (x - 0.1)).std(0) + x.mean(0), (MILLION, 3)),
    "statistics": (normalized, (8, 3, 60_000)),
    "gradient of a bias": (bias_gradient, (MILLION, 3)),
    "running": (lambda x: x.cumsum(0), (MILLION,)),
    "running, rows": (lambda x: x.cumsum(1), (3, MILLION // 2)),
    "running, columns": (lambda x: x.cumsum(0), (MILLION // 2, 3)),
    "running backwards": (lambda x: x.flip(0).cumsum(0).flip(0), (MILLION,)),
    "running products": (lambda x: (x * 0 + (1 + 2**-20)).cumprod(0), (MILLION,)),
}


@pytest.mark.parametrize("name", SUMS)
def test_keep_what_is_small(name):
    function, shape = SUMS[name]
    x = torch.full(shape, 0.1)
    expected = function(x.double())
    torch.testing.assert_close(function(x.to("xla")).cpu().double(), expected, rtol=1.5e-5, atol=0)


@pytest.mark.parametrize("shape, dimension", [((2**24 + 100, 2), 0), ((2**24 + 100,), 0)])
def test_do_not_stop(shape, dimension):
    x = torch.ones(shape, device="xla")
    assert (x.sum(dimension) == 2**24 + 100).all()
    assert (x.cumsum(dimension)[-1] == 2**24 + 100).all()


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(MILLION, 3), (1000003, 3), (3, MILLION)])
def test_of_other_types(shape, dtype):
    x = torch.full(shape, 0.1, dtype=dtype)
    dimension = shape.index(max(shape))
    wide = torch.complex128 if dtype.is_complex else torch.float64
    expected = x.to(wide).mean(dimension).to(dtype)
    torch.testing.assert_close(x.to("xla").mean(dimension).cpu(), expected, rtol=1e-5, atol=0)
