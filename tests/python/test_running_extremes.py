"""cummax and cummin: the latest among equals, NaN that wins and stays, and a length that takes one pass."""

import time

import pytest
import torch

import torch_xla

# The first step would run by torch's own kernels.
pytestmark = pytest.mark.usefixtures("programs_only")

NAN = float("nan")


def assert_as_eager(function, x, device):
    for got, expected in zip(function(x.to(device), -1), function(x, -1), strict=True):
        assert torch.equal(got.cpu().nan_to_num(7.0), expected.nan_to_num(7.0))
        if expected.is_floating_point():
            known = ~expected.isnan()
            assert torch.equal(got.cpu().signbit()[known], expected.signbit()[known])


@pytest.mark.parametrize("function", [torch.cummax, torch.cummin])
@pytest.mark.parametrize(
    "numbers",
    [[0.0, -0.0, 0.0], [-0.0, 0.0], [1.0, NAN, 2.0, NAN, 3.0], [3.0, 3.0, 1.0, 3.0, 1.0, 4.0, 4.0]],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_picks_what_eager_picks(function, numbers, dtype, device):
    assert_as_eager(function, torch.tensor(numbers, dtype=dtype).expand(2, -1), device)


@pytest.mark.parametrize("function", [torch.cummax, torch.cummin])
@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool])
def test_of_integers(function, dtype, device):
    assert_as_eager(function, torch.tensor([[2, 0, 2, 1, 2], [0, 0, 1, 1, 0]]).to(dtype), device)


@pytest.mark.parametrize("function", [torch.cummax, torch.cummin])
@pytest.mark.parametrize("rows", [1, 3, 9])
@pytest.mark.parametrize("length", [7, 8, 16, 31, 32, 33, 64, 75])
def test_rows_of_vectors_and_more(function, rows, length, device):
    torch.manual_seed(length)
    x = torch.randint(-4, 5, (rows, length)).float()
    x[-1, length // 2] = NAN  # which the lanes before it do not see
    assert_as_eager(function, x, device)
    assert_as_eager(function, x.nan_to_num().long(), device)


@pytest.mark.parametrize("function", [torch.cummax, torch.cummin])
def test_takes_one_pass(function, device):
    """Work that grows with the square of the length would take minutes."""
    x = torch.randn(300_000)
    start = time.process_time()
    assert_as_eager(function, x, device)
    torch_xla.sync(wait=True)
    assert time.process_time() - start < 10
