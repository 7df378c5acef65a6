"""Concatenations within other kernels: at some of their places no part counts, and nothing of them is evaluated."""

import pytest
import torch
from torch.nn.functional import pad

pytestmark = pytest.mark.usefixtures("programs_only")


def numbers(*sizes, dtype=torch.float32):
    return torch.arange(torch.Size(sizes).numel()).reshape(sizes).to(dtype)


FUNCTIONS = {
    "padded on all sides": (
        lambda x: pad(torch.cat([x[:, None], x[:, None] * 2], -1), (1, 1, 1, 1)),
        numbers(3, 40),
    ),
    "padded and reversed": (
        lambda x: pad(torch.cat([x * 3, x], 0), (2, 2, 0, 2), value=7).flip(1) + 1,
        numbers(2, 100),
    ),
    "windows of integers": (
        lambda x: torch.cat([x, x * 2], 0).cumsum(0),
        numbers(3, 40, dtype=torch.int32),
    ),
    "windows of bytes": (
        lambda x: torch.cat([x, x + 1], 1).cumsum(1),
        numbers(40, 3, dtype=torch.uint8),
    ),
    "with an empty part": (
        lambda x: pad(torch.cat([x * 2, x + 1, x[:0]], 0), (1, 2, 1, 1)).flip(0, 1),
        numbers(3, 40),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gives_what_eager_gives(name, device):
    function, x = FUNCTIONS[name]
    assert torch.equal(function(x.to(device)).cpu(), function(x))
