"""A mask of several dimensions as the only index: reads, writes and gradients as eager's."""

import pytest
import torch

SIZES = (3, 4, 5, 2)
MASKS = {  # the dimensions before the mask, and its own
    "rows": (0, 1),
    "first two": (0, 2),
    "first three": (0, 3),
    "all": (0, 4),
    "inner two": (1, 2),
    "last two": (2, 2),
}
CHOSEN = {
    "some": lambda m: m,
    "none": torch.zeros_like,
    "all": torch.ones_like,
}


def mask_of(name, chosen):
    before, rank = MASKS[name]
    torch.manual_seed(1)
    mask = CHOSEN[chosen](torch.rand(SIZES[before : before + rank]) > 0.6)
    return (slice(None),) * before, mask


@pytest.fixture(params=MASKS)
def name(request):
    return request.param


@pytest.fixture(params=CHOSEN)
def chosen(request):
    return request.param


def test_reads(name, chosen, device):
    before, mask = mask_of(name, chosen)
    x = torch.randn(SIZES)
    expected = x[(*before, mask)]
    for place in (device, "cpu"):  # eager takes masks of the host, too
        result = x.to(device)[(*before, mask.to(place))]
        assert torch.equal(result.cpu(), expected)


def test_gradients(name, chosen, device):
    before, mask = mask_of(name, chosen)
    x = torch.randn(SIZES, requires_grad=True)
    y = x.detach().to(device).requires_grad_()
    (x[(*before, mask)] ** 2).sum().backward()
    (y[(*before, mask.to(device))] ** 2).sum().backward()
    torch.testing.assert_close(y.grad.cpu(), x.grad)


@pytest.mark.parametrize("accumulate", [False, True])
def test_writes(name, chosen, accumulate, device):
    before, mask = mask_of(name, chosen)
    x = torch.randn(SIZES).transpose(0, 1).contiguous().transpose(0, 1)
    selected = torch.randn_like(x[(*before, mask)])
    for values in (selected, selected[..., :1] if before or mask.dim() < 4 else selected):
        put = torch.ops.aten.index_put
        all_of = [None] * len(before)
        expected = put(x, [*all_of, mask], values, accumulate)
        moved = x.to(device), [*all_of, mask.to(device)], values.to(device)
        result = put(*moved, accumulate)
        assert result.shape == expected.shape
        assert torch.equal(result.cpu(), expected)
        written, other = x.clone(), x.to(device)
        written[(*before, mask)] = values
        other[(*before, mask.to(device))] = values.to(device)
        assert torch.equal(other.cpu(), written)


def test_other_sizes_are_refused(device):
    x = torch.randn(SIZES)
    mask = torch.ones(3, 5, dtype=torch.bool)
    with pytest.raises(IndexError, match="does not match the shape of the indexed tensor"):
        x.to(device)[mask.to(device)]
