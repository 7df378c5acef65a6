"""Attention over pages against attention over each sequence by itself, and products of groups against their own."""

import pytest
import torch

from torch_xla.experimental.custom_kernel import (
    gmm,
    gmm_backward,
    multi_queries_paged_attention,
    paged_attention,
    ragged_paged_attention,
    tgmm,
)

PAGE, SIZE, HEADS, QUERY_HEADS = 4, 8, 2, 6


def reference(q, k, v, scale=1.0, window=None, cap=None):
    """Of one sequence: its last queries [n, heads, size] over all of its keys [length, heads, size]."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = torch.einsum("qhd,khd->hqk", q, k) * scale
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    rows = torch.arange(k.shape[0] - q.shape[0], k.shape[0])[:, None]
    keys = torch.arange(k.shape[0])
    seen = keys <= rows
    if window is not None:
        seen = seen & (keys > rows - window)
    return torch.einsum("hqk,khd->qhd", scores.masked_fill(~seen, -torch.inf).softmax(-1), v)


def paged(sequences, pages_of_one):
    """Pages in no order, [pages, PAGE, …], and whose they are; what no sequence has is NaN."""
    count = len(sequences) * pages_of_one
    order = torch.randperm(count).reshape(len(sequences), pages_of_one)
    pages = torch.full((count, PAGE, *sequences[0].shape[1:]), torch.nan)
    for sequence, indices in zip(sequences, order, strict=True):
        for place, row in enumerate(sequence):
            pages[indices[place // PAGE], place % PAGE] = row
    return pages, order


def on_device(*values):
    return [x.to("xla") if isinstance(x, torch.Tensor) else x for x in values]


@pytest.mark.parametrize(
    "options", [{}, {"sliding_window": 3}, {"soft_cap": 2.0}, {"k_scale": 0.5, "v_scale": 2.0}]
)
@pytest.mark.parametrize("as_operator", [False, True])
def test_ragged(options, as_operator):
    lengths = [5, 11, 1]
    k, v = ([torch.randn(n, HEADS, SIZE) for n in lengths] for _ in range(2))
    q = torch.randn(10, QUERY_HEADS, SIZE)  # two tokens behind the last sequence
    pages, indices = paged(
        [torch.stack([a, b], 2).flatten(1, 2) for a, b in zip(k, v, strict=True)], 3
    )
    indices = torch.cat([indices, torch.full((1, 3), 99)])  # there may be a fourth sequence
    starts = torch.tensor([0, 5, 7, 8, 8], dtype=torch.int32)
    function = torch.ops.xla.ragged_paged_attention if as_operator else ragged_paged_attention
    result = function(
        *on_device(q, pages, torch.tensor([*lengths, 0], dtype=torch.int32), indices.int(), starts),
        torch.tensor([3], dtype=torch.int32).to("xla"),
        sm_scale=0.3,
        **options,
    ).cpu()
    for i in range(3):
        expected = reference(
            q[starts[i] : starts[i + 1]],
            k[i] * options.get("k_scale", 1),
            v[i] * options.get("v_scale", 1),
            0.3,
            options.get("sliding_window"),
            options.get("soft_cap"),
        )
        torch.testing.assert_close(result[starts[i] : starts[i + 1]], expected)
    assert result.shape == q.shape


def test_ragged_without_tokens():
    result = ragged_paged_attention(
        *on_device(
            torch.randn(0, QUERY_HEADS, SIZE),
            torch.randn(4, PAGE, 2 * HEADS, SIZE),
            torch.tensor([0], dtype=torch.int32),
            torch.tensor([[0, 1]], dtype=torch.int32),
            torch.tensor([0, 0], dtype=torch.int32),
            torch.tensor([0], dtype=torch.int32),
        )
    )
    assert result.shape == (0, QUERY_HEADS, SIZE)


def test_ragged_in_parts_is_the_same(monkeypatch):
    arguments = on_device(
        torch.randn(7, QUERY_HEADS, SIZE).bfloat16(),
        torch.randn(4, PAGE, 2 * HEADS, SIZE).bfloat16(),
        torch.tensor([8, 5], dtype=torch.int32),
        torch.tensor([[0, 1], [3, 2]], dtype=torch.int32),
        torch.tensor([0, 4, 7], dtype=torch.int32),
        torch.tensor([2], dtype=torch.int32),
    )
    whole = ragged_paged_attention(*arguments).cpu()
    assert whole.dtype == torch.bfloat16
    monkeypatch.setattr("torch_xla.experimental._paged_attention._MOST_GATHERED", 2 * 8 * 4 * SIZE)
    torch.testing.assert_close(ragged_paged_attention(*arguments).cpu(), whole)


@pytest.mark.parametrize("cap", [None, 1.5])
def test_one_query_and_several(cap):
    lengths, counts = [5, 12, 1], [3, 1, 1]
    k, v = ([torch.randn(n, HEADS, SIZE) for n in lengths] for _ in range(2))
    both, indices = paged([torch.stack(pair, 1) for pair in zip(k, v, strict=True)], 3)
    k_pages, v_pages = (both[:, :, i].permute(2, 0, 1, 3) for i in range(2))
    q = torch.randn(3, 3, QUERY_HEADS, SIZE)
    shared = on_device(k_pages, v_pages, torch.tensor(lengths), indices)
    several = multi_queries_paged_attention(
        q.to("xla"), *shared, torch.tensor(counts).to("xla"), 1, 1, attn_logits_soft_cap=cap
    ).cpu()
    one = torch.ops.xla.paged_attention(q[:, 0].to("xla"), *shared, 1, None, cap).cpu()
    torch.testing.assert_close(
        paged_attention(q[:, 0].to("xla"), *shared, 1, attn_logits_soft_cap=cap).cpu(), one
    )
    for i, n in enumerate(counts):
        torch.testing.assert_close(several[i, :n], reference(q[i, :n], k[i], v[i], cap=cap))
        torch.testing.assert_close(one[i], reference(q[i, :1], k[i], v[i], cap=cap)[0])


@pytest.mark.parametrize("transpose_rhs", [False, True])
def test_rows_times_the_matrix_of_their_group(transpose_rhs):
    sizes = torch.tensor([3, 0, 4], dtype=torch.int32)
    lhs, rhs = torch.randn(8, 5), torch.randn(3, 5, 6)  # the last row is of no group
    a, b = lhs.to("xla").requires_grad_(), rhs.to("xla").requires_grad_()
    given = b.transpose(1, 2) if transpose_rhs else b
    result = gmm(a, given, sizes.to("xla"), transpose_rhs=transpose_rhs)
    expected = torch.cat([lhs[:3] @ rhs[0], lhs[3:7] @ rhs[2], torch.zeros(1, 6)])
    torch.testing.assert_close(result.cpu(), expected)
    weights = torch.randn(8, 6)
    result.backward(weights.to("xla"))
    zero = torch.zeros(1, 5)
    for_lhs = torch.cat([weights[:3] @ rhs[0].T, weights[3:7] @ rhs[2].T, zero])
    for_rhs = torch.stack([lhs[:3].T @ weights[:3], torch.zeros(5, 6), lhs[3:7].T @ weights[3:7]])
    torch.testing.assert_close(a.grad.cpu(), for_lhs)
    torch.testing.assert_close(b.grad.cpu(), for_rhs)
    by_hand = gmm_backward(*on_device(weights, lhs, rhs, sizes))
    torch.testing.assert_close([x.cpu() for x in by_hand], [for_lhs, for_rhs])


def test_groups_from_one_on():
    sizes, offset = torch.tensor([3, 2, 3]), torch.tensor([1])
    lhs, rhs = torch.randn(8, 5), torch.randn(2, 5, 6)
    result = gmm(*on_device(lhs, rhs, sizes), group_offset=offset.to("xla")).cpu()
    torch.testing.assert_close(result[:3], torch.zeros(3, 6))
    torch.testing.assert_close(result[3:5], lhs[3:5] @ rhs[0])
    torch.testing.assert_close(result[5:], lhs[5:] @ rhs[1])
    grad = torch.randn(8, 6)
    parts = tgmm(
        *on_device(lhs.T, grad, sizes), group_offset=offset.to("xla"), num_actual_groups=2
    ).cpu()
    torch.testing.assert_close(parts[0], lhs[3:5].T @ grad[3:5])
    torch.testing.assert_close(parts[1], lhs[5:].T @ grad[5:])


def test_what_is_infinite_stays_in_its_group():
    sizes = torch.tensor([3, 4], dtype=torch.int32)
    lhs, rhs, grad = torch.randn(8, 5), torch.randn(2, 5, 6), torch.randn(8, 6)
    lhs[7], grad[7], rhs[1, 0, 0] = torch.nan, torch.nan, torch.inf  # the last row is of no group
    a, b = (x.to("xla").requires_grad_() for x in (lhs, rhs))
    result = gmm(a, b, sizes.to("xla"))
    torch.testing.assert_close(result[:3].cpu(), lhs[:3] @ rhs[0])
    assert torch.equal(result[7].cpu(), torch.zeros(6))
    expected = torch.stack([lhs[:3].T @ grad[:3], lhs[3:7].T @ grad[3:7]])
    torch.testing.assert_close(tgmm(*on_device(lhs.T, grad, sizes)).cpu(), expected)
    result.backward(grad.to("xla"))
    torch.testing.assert_close(a.grad[:3].cpu(), grad[:3] @ rhs[0].T)
    torch.testing.assert_close(b.grad.cpu(), expected)
