"""Where the maxima of windows stand: of NaN the last, of equal numbers the first, as eager's pools have it."""

import pytest
import torch
import torch.nn.functional as F

import torch_xla  # noqa: F401 - the device

NAN, INF = float("nan"), float("inf")
DTYPES = [torch.float32, torch.float64, torch.bfloat16]
POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}
ADAPTIVE_POOLS = {1: F.adaptive_max_pool1d, 2: F.adaptive_max_pool2d, 3: F.adaptive_max_pool3d}
FRACTIONAL_POOLS = {2: F.fractional_max_pool2d, 3: F.fractional_max_pool3d}


def image(rank: int, dtype: torch.dtype) -> torch.Tensor:
    """Few different numbers, and NaN, several of each in a window."""
    generator = torch.Generator().manual_seed(rank)
    sizes = (2, 3) + (6,) * rank
    x = torch.randint(0, 3, sizes, generator=generator).to(dtype)
    draw = torch.rand(sizes, generator=generator)
    return x.masked_fill(draw > 0.7, NAN).masked_fill(draw < 0.1, -INF)


def assert_as_eager(function, x, *others):
    """The maxima, their positions and the gradient."""
    outcomes = []
    for device in ("cpu", "xla"):
        operand = x.to(device).requires_grad_()
        values, positions = function(operand, *(other.to(device) for other in others))
        # Exact in 16 bits, and no two of a window alike.
        weights = torch.arange(values.numel(), device=device).reshape(values.shape) % 251 + 1
        (gradient,) = torch.autograd.grad(values, operand, weights.to(values.dtype))
        outcomes.append([y.detach().cpu() for y in (values, positions, gradient)])
    for result, expected in zip(*reversed(outcomes), strict=True):
        torch.testing.assert_close(result, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rank", POOLS)
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"), [(3, 3, 0, 1), (2, 2, 1, 1), (2, 3, 0, 3)]
)
def test_of_windows(rank, dtype, kernel, stride, padding, dilation):
    def pool(x):
        return POOLS[rank](x, kernel, stride, padding, dilation, return_indices=True)

    assert_as_eager(pool, image(rank, dtype))


def test_of_overlapping_windows():
    x = image(2, torch.float64)
    assert_as_eager(lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True), x)
    x = x.contiguous(memory_format=torch.channels_last)
    assert_as_eager(lambda x: F.max_pool2d(x, 3, 1, 1, return_indices=True), x)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last], ids=str)
@pytest.mark.parametrize(("kernel", "stride", "padding"), [(7, 1, 3), (8, 3, 4), (7, 7, 2)])
def test_of_large_windows(kernel, stride, padding, memory_format):
    x = torch.cat([image(2, torch.float32)] * 3, -1).contiguous(memory_format=memory_format)
    assert_as_eager(lambda x: F.max_pool2d(x, kernel, stride, padding, return_indices=True), x)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("rank", ADAPTIVE_POOLS)
@pytest.mark.parametrize("size", [1, 2, 4])
def test_of_adaptive_windows(rank, dtype, size):
    pool = ADAPTIVE_POOLS[rank]
    assert_as_eager(lambda x: pool(x, size, return_indices=True), image(rank, dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("rank", FRACTIONAL_POOLS)
def test_of_fractional_windows(rank, dtype):
    def pool(x, samples):
        return FRACTIONAL_POOLS[rank](x, 2, 4, _random_samples=samples, return_indices=True)

    assert_as_eager(pool, image(rank, dtype), torch.full((2, 3, rank), 0.5, dtype=dtype))


@pytest.mark.parametrize("size", range(1, 8))
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"), [(3, 2, 1, 2), (2, 1, 0, 3), (5, 3, 2, 1)]
)
def test_how_many_windows_there_are(size, kernel, stride, padding, dilation):
    """Also with ceil_mode there is none where the window is longer than what it would reach over."""
    for ceil_mode in (False, True):
        for pool in (F.max_pool1d, F.max_pool2d):
            sizes = []
            for device in ("cpu", "xla"):
                x = torch.ones((1, 1) + (size,) * (2 if pool is F.max_pool2d else 1), device=device)
                try:
                    y = pool(x, kernel, stride, padding, dilation, ceil_mode, return_indices=True)
                    sizes.append(y[0].shape)
                except RuntimeError as error:
                    assert "Output size is too small" in str(error)
                    sizes.append(None)
            assert sizes[0] == sizes[1]
