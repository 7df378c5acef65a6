"""`flex_attention` on the device: forward and backward, as its definition by dense masks says."""

import pytest
import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

SIZE = 32


def causal(batch, head, query, key):
    return query >= key


def window(batch, head, query, key):
    return (query - key).abs() < 5


def distance(score, batch, head, query, key):
    return score + 0.1 * (key - query)


def capped(score, batch, head, query, key):
    return 2 * torch.tanh(score / 2)


def scores_by_definition(q, k, score, mask):
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    rows, columns = torch.arange(SIZE).view(-1, 1), torch.arange(SIZE)
    if score is not None:
        scores = score(scores, 0, 0, rows, columns)
    if mask is not None:
        scores = scores.masked_fill(~mask(0, 0, rows, columns), -torch.inf)
    return scores


def run(f, leaves, place):
    leaves = [x.detach().to(place).requires_grad_() for x in leaves]
    result = f(*leaves)
    result.square().sum().backward()
    return [x.cpu() for x in (result.detach(), *(leaf.grad for leaf in leaves))]


@pytest.mark.parametrize("compiled", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("score", "mask"), [(None, None), (distance, None), (None, causal), (capped, window)]
)
def test_agrees_with_its_definition(score, mask, compiled, device):
    torch.manual_seed(0)
    torch._dynamo.reset()
    leaves = [torch.randn(2, 2, SIZE, 8) for _ in range(3)]
    blocks = mask and create_block_mask(mask, None, None, SIZE, SIZE, device="xla", BLOCK_SIZE=16)
    attention = torch.compile(flex_attention) if compiled else flex_attention
    result = run(lambda q, k, v: attention(q, k, v, score, blocks), leaves, device)
    expected = run(
        lambda q, k, v: scores_by_definition(q, k, score, mask).softmax(-1) @ v, leaves, "cpu"
    )
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-5)


def test_queries_in_groups(device):
    torch.manual_seed(0)
    q, k, v = torch.randn(1, 4, SIZE, 8), torch.randn(1, 2, SIZE, 8), torch.randn(1, 2, SIZE, 8)
    result = flex_attention(*(x.to(device) for x in (q, k, v)), enable_gqa=True)
    k, v = (x.repeat_interleave(2, 1) for x in (k, v))
    torch.testing.assert_close(
        result.cpu(), torch.nn.functional.scaled_dot_product_attention(q, k, v)
    )


def test_other_devices_are_still_refused():
    x = torch.empty(1, 1, 4, 4, device="meta")
    with pytest.raises(ValueError, match="only supported"):
        flex_attention(x, x, x)
