"""The largest of each column: rows of columns side by side are compared with the last ones so far; as eager's values, and a stable sort's places."""

import pytest
import torch

import torch_xla  # noqa: F401

COLUMNS = 70  # more than a few vectors


def _keys(kind):
    generator = torch.Generator().manual_seed(0)
    if kind == "rising":  # each is the largest so far
        return torch.arange(200.0)[:, None] + torch.rand(200, COLUMNS, generator=generator)
    if kind == "falling":
        return -_keys("rising")
    keys = torch.randn(200, COLUMNS, generator=generator)
    if kind == "equal":
        return keys.round()
    if kind == "nan":
        keys[keys > 2] = torch.nan
    return keys


@pytest.mark.usefixtures("programs_only")
@pytest.mark.parametrize("kind", ["rising", "falling", "random", "equal", "nan"])
@pytest.mark.parametrize("count", [1, 5, 15, 16, 17, 33, 200])
def test_largest_of_columns(kind, count):
    keys = _keys(kind)
    values, places = (result.cpu() for result in keys.to("xla").topk(count, 0))
    expected = keys.sort(dim=0, descending=True, stable=True)
    torch.testing.assert_close(values, expected.values[:count], rtol=0, atol=0, equal_nan=True)
    assert torch.equal(places, expected.indices[:count])
