"""Attention over keys and values that lie in pages, as servers of language models keep them.

Off TPUs these are compositions: the pages of each sequence are gathered, and what a query may not see is masked.
"""

import torch

# Of the keys that one part of the queries gathers.
_MOST_GATHERED = 1 << 25


def paged_attention(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    lengths: torch.Tensor,
    page_indices: torch.Tensor,
    pages_per_compute_block: int,
    megacore_mode: str | None = None,
    attn_logits_soft_cap: float | None = None,
) -> torch.Tensor:
    """Attention of one query for each sequence; also `torch.ops.xla.paged_attention`.

    Args:
      q: [sequences, query heads, head size], scaled already.
      k_pages, v_pages: [heads, pages, page size, head size].
      lengths: [sequences], how many keys each query sees.
      page_indices: [sequences, pages of one], the pages of each sequence in order.
      attn_logits_soft_cap: scores become `cap·tanh(score/cap)`.
      pages_per_compute_block, megacore_mode: how a kernel would cut the work; the result is the same.
    """
    return multi_queries_paged_attention(
        q[:, None],
        k_pages,
        v_pages,
        lengths,
        page_indices,
        torch.ones_like(lengths),
        pages_per_compute_block,
        1,
        attn_logits_soft_cap=attn_logits_soft_cap,
    )[:, 0]


def multi_queries_paged_attention(
    q: torch.Tensor,
    k_pages: torch.Tensor,
    v_pages: torch.Tensor,
    lengths: torch.Tensor,
    page_indices: torch.Tensor,
    effective_q_lens: torch.Tensor,
    num_kv_pages_per_compute_block: int,
    num_queries_per_compute_block: int,
    use_kernel: bool = True,
    attn_logits_soft_cap: float | None = None,
) -> torch.Tensor:
    """Attention of several queries for each sequence, the last ones of it; also `torch.ops.xla.multi_queries_paged_attention`.

    Args:
      q: [sequences, queries, query heads, head size], scaled already.
      k_pages, v_pages: [heads, pages, page size, head size].
      lengths: [sequences], how many keys each sequence has, those of its queries included.
      page_indices: [sequences, pages of one], the pages of each sequence in order.
      effective_q_lens: [sequences], how many of the queries are some; what the others give has no meaning.
      attn_logits_soft_cap: scores become `cap·tanh(score/cap)`.
      num_kv_pages_per_compute_block, num_queries_per_compute_block, use_kernel: how a kernel would cut the work.
    """
    k, v = (_gathered(pages.permute(1, 2, 0, 3), page_indices) for pages in (k_pages, v_pages))
    queries = torch.arange(q.shape[1], device=q.device)
    last = torch.minimum((lengths - effective_q_lens)[:, None] + queries, lengths[:, None] - 1)
    seen = torch.arange(k.shape[1], device=q.device) <= last[..., None]
    return _attention(q, k, v, seen, 1.0, attn_logits_soft_cap, _MASK_VALUE)


def ragged_paged_attention(
    q: torch.Tensor,
    kv_pages: torch.Tensor,
    kv_lens: torch.Tensor,
    page_indices: torch.Tensor,
    cu_q_lens: torch.Tensor,
    num_seqs: torch.Tensor,
    *,
    sm_scale: float = 1.0,
    sliding_window: int | None = None,
    soft_cap: float | None = None,
    mask_value: float | None = None,
    k_scale: float | None = None,
    v_scale: float | None = None,
    use_kernel: bool = True,
    num_kv_pages_per_block: int | None = None,
    num_queries_per_block: int | None = None,
    vmem_limit_bytes: int | None = None,
) -> torch.Tensor:
    """Attention of sequences of different lengths, one behind the other; also `torch.ops.xla.ragged_paged_attention`.

    Args:
      q: [tokens, query heads, head size]; those behind the last sequence give what has no meaning.
      kv_pages: [pages, page size, 2·heads, head size], keys in the even heads and values in the odd ones.
      kv_lens: [most sequences], how many keys each has, those of its queries included.
      page_indices: [most sequences, pages of one], the pages of each sequence in order.
      cu_q_lens: [most sequences + 1], where the queries of each begin, and end.
      num_seqs: [1], how many sequences there are.
      sm_scale: multiplies the scores.
      sliding_window: how many keys a query sees, its own the last.
      soft_cap: scores become `cap·tanh(score/cap)`.
      mask_value: the score of what a query does not see.
      k_scale, v_scale: multiply the keys and the values.
      use_kernel, num_kv_pages_per_block, num_queries_per_block, vmem_limit_bytes: how a kernel would cut the work.
    """
    tokens = torch.arange(q.shape[0], device=q.device)
    most = kv_lens.shape[0]
    is_there = torch.arange(most, device=q.device) < num_seqs
    ends = torch.where(is_there, cu_q_lens[1:].long(), q.shape[0])
    sequence = torch.searchsorted(ends, tokens, right=True).clamp(max=most - 1)
    last = kv_lens[sequence] - cu_q_lens[sequence + 1] + tokens  # of the keys that each token sees
    keys = torch.arange(page_indices.shape[1] * kv_pages.shape[1], device=q.device)
    seen = keys <= last[:, None]
    if sliding_window is not None:
        seen = seen & (keys > last[:, None] - sliding_window)
    parts = []
    size = max(1, _MOST_GATHERED // (keys.shape[0] * kv_pages.shape[2] * kv_pages.shape[3]))
    for start in range(0, q.shape[0], size):
        part = slice(start, start + size)
        kv = _gathered(kv_pages, page_indices[sequence[part]]).float()
        k, v = kv[:, :, 0::2], kv[:, :, 1::2]
        if k_scale is not None:
            k = k * k_scale
        if v_scale is not None:
            v = v * v_scale
        masked = _MASK_VALUE if mask_value is None else mask_value
        parts.append(
            _attention(q[part, None], k, v, seen[part, None], sm_scale, soft_cap, masked)[:, 0]
        )
    return torch.cat([q[:0], *parts])


_MASK_VALUE = -0.7 * torch.finfo(torch.float32).max


def _gathered(pages: torch.Tensor, indices: torch.Tensor) -> torch.Tensor:
    """[n, length, heads, size] of [pages, page size, heads, size] and [n, pages of one]; unused indices may be anything."""
    chosen = pages[indices.clamp(0, pages.shape[0] - 1)]
    return chosen.flatten(1, 2)


def _attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    seen: torch.Tensor,
    scale: float,
    soft_cap: float | None,
    mask_value: float,
) -> torch.Tensor:
    """Of q [n, queries, query heads, size] over k and v [n, length, heads, size], `seen` [n, queries, length]."""
    # Slots that nobody wrote may hold a NaN, which a weight of 0 would not take away.
    unseen = ~seen.any(1)[..., None, None]
    k, v = k.masked_fill(unseen, 0), v.masked_fill(unseen, 0)
    grouped = q.float().unflatten(2, (k.shape[2], -1))
    scores = torch.einsum("nqhgd,nkhd->nqhgk", grouped, k.float()) * scale
    if soft_cap is not None:
        scores = soft_cap * torch.tanh(scores / soft_cap)
    scores = scores.masked_fill(~seen[:, :, None, None], mask_value)
    result = torch.einsum("nqhgk,nkhd->nqhgd", scores.softmax(-1), v.float())
    return result.flatten(2, 3).to(q.dtype)
