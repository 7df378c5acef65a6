"""Positions of what is not zero, as eager's, for all shapes and types."""

import pytest
import torch

SHAPES = [(), (1,), (7,), (64,), (1001,), (3, 5), (1, 9), (9, 1), (2, 3, 4), (4, 1, 3, 5), (40, 33)]
SHARES = {"none": 0.0, "few": 0.1, "half": 0.5, "all": 1.0}


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_of_masks(shape, share, device):
    torch.manual_seed(1)
    mask = torch.rand(shape) < SHARES[share]
    expected = mask.nonzero()
    result = mask.to(device).nonzero()
    assert result.dtype == torch.int64 and result.shape == expected.shape
    assert result.stride() == expected.stride()
    assert torch.equal(result.cpu(), expected)
    for of_result, of_eager in zip(
        mask.to(device).nonzero(as_tuple=True), mask.nonzero(as_tuple=True), strict=True
    ):
        assert torch.equal(of_result.cpu(), of_eager)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 4), (2, 0, 3)], ids=str)
def test_of_no_elements(shape, device):
    x = torch.zeros(shape)
    assert x.to(device).nonzero().shape == x.nonzero().shape


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64),
        *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
    ],
    ids=str,
)
def test_of_numbers(dtype, device):
    x = torch.tensor([[0, 1, 0, 2], [3, 0, 0, 0], [0, 0, 0, 5]]).to(dtype)
    if dtype.is_floating_point:
        x[0, 0], x[1, 1], x[2, 2] = -0.0, float("nan"), float("inf")
    assert torch.equal(x.to(device).nonzero().cpu(), x.nonzero())


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint64, torch.float8_e5m2], ids=str)
def test_of_numbers_that_eager_refuses(dtype, device):
    x = torch.tensor([0, 1, 2]).to(dtype)
    with pytest.raises(NotImplementedError) as expected:
        x.nonzero()
    with pytest.raises(NotImplementedError) as raised:
        x.to(device).nonzero()
    assert str(raised.value).splitlines()[0] == str(expected.value).splitlines()[0]


def test_of_a_view(device):
    mask = torch.rand(6, 10) < 0.5
    view, expected = mask.to(device).t()[1::3], mask.t()[1::3]
    assert torch.equal(view.nonzero().cpu(), expected.nonzero())


def test_of_bytes_that_are_read_as_booleans(device):
    numbers = torch.tensor([0, 1, 2, 127, 128, 255, 0, 0, 0, 64, 3], dtype=torch.uint8)
    expected = numbers.view(torch.bool).nonzero()
    assert torch.equal(numbers.to(device).view(torch.bool).nonzero().cpu(), expected)
