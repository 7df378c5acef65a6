"""Attention over nested tensors on the device: torch's composition goes by way of a layout that it has for no xla tensor."""

import functools
import sys
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor


def _places(offsets: Tensor, most: int) -> tuple[Tensor, Tensor]:
    """[batch, most] each: where a sequence's elements are among all, and which are its own. An empty one has a first place."""
    place = torch.arange(most, device=offsets.device)
    starts, ends = offsets[:-1, None], offsets[1:, None]
    return starts + place, (starts + place < ends) | (place == 0)


def _padded(nested: Tensor) -> tuple[Tensor, Tensor]:
    """[batch, heads, most, width] of [batch, heads, each, width], and which elements are some."""
    most = nested._get_max_seqlen()  # a read, unless it is known
    index, is_own = _places(nested.offsets(), most)
    values = nested.transpose(1, 2).values()
    rows = values[index.clamp(max=max(values.shape[0] - 1, 0))]
    return rows.transpose(1, 2), is_own


def _attention(
    query: Tensor, key: Tensor, value: Tensor, dropout_p: float, is_causal: bool, **options: Any
) -> Tensor:
    from torch.nested._internal.nested_tensor import nested_view_from_values_offsets_lengths

    offsets, count = query.offsets(), query.transpose(1, 2).values().shape[0]
    (queries, _), (keys, is_key), (values, _) = map(_padded, (query, key, value))
    mask = is_key[:, None, None, :]
    if is_causal:
        mask = mask & mask.new_ones(queries.shape[2], keys.shape[2]).tril()
    attended = F.scaled_dot_product_attention(
        queries, keys, values, attn_mask=mask, dropout_p=dropout_p, **options
    )
    row = torch.arange(count, device=offsets.device)
    sequence = torch.searchsorted(offsets, row, right=True) - 1
    flat = attended.transpose(1, 2).flatten(0, 1)
    result = nested_view_from_values_offsets_lengths(
        flat[sequence * attended.shape[2] + row - offsets[sequence]],
        offsets,
        query.lengths(),
        min_seqlen=query._maybe_min_seqlen,
        max_seqlen=query._maybe_max_seqlen,
    )
    return result.transpose(1, 2)


def _is_ours(*tensors: Any) -> bool:
    """Sequences without holes, of tensors [batch, heads, each, width] on the device."""
    return all(
        isinstance(tensor, Tensor)
        and tensor.is_nested
        and tensor.layout == torch.jagged
        and tensor.device.type == "xla"
        and tensor.dim() == 4
        and tensor._ragged_idx == 2
        and tensor.lengths() is None
        for tensor in tensors
    )


def register() -> None:
    """Takes the place of torch's function for such tensors, where the autocast and the checks of arguments are the same."""
    from torch.nested._internal import sdpa

    of_torch = sdpa.jagged_scaled_dot_product_attention

    @functools.wraps(of_torch)
    def attention(
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if attn_mask is not None or not _is_ours(query, key, value):
            return of_torch(query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa)
        query, key, value, attn_mask = sdpa._autocast(query, key, value, attn_mask)
        sdpa._validate_sdpa_input(query, key, value, attn_mask, dropout_p, is_causal, scale)
        return _attention(
            query, key, value, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )

    sdpa.jagged_scaled_dot_product_attention = attention
    # What has it by name, if nested tensors were used before.
    if operators := sys.modules.get("torch.nested._internal.ops"):
        operators.jagged_scaled_dot_product_attention = attention
