"""Kernels that PyTorch/XLA writes by hand for TPUs, computed here by the operations that they stand for."""

from typing import Any

import torch
import torch.nn.functional as F

# The library in which vendors' packages define operators of their own.
XLA_LIB = torch.library.Library("xla", "FRAGMENT")


def flash_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    causal: bool = False,
    q_segment_ids: torch.Tensor | None = None,
    kv_segment_ids: torch.Tensor | None = None,
    sm_scale: float = 1.0,
    *,
    ab: torch.Tensor | None = None,
    partition_spec: Any = None,
    mesh: Any = None,
) -> torch.Tensor:
    """softmax(q·kᵀ·sm_scale + ab)·v, with gradients.

    Args:
      q, k, v: [batch, heads, length, head size].
      causal: let position i see positions up to i only.
      q_segment_ids, kv_segment_ids: [batch, length]; a query sees the keys of its own segment only.
      sm_scale: multiplies the scores.
      ab: added to the scores, [batch, heads, query length, key length].
      partition_spec, mesh: how the operands are sharded; not supported.
    """
    if partition_spec is not None or mesh is not None:
        raise NotImplementedError("flash_attention: sharded operands are not implemented.")
    if (q_segment_ids is None) != (kv_segment_ids is None):
        raise ValueError("flash_attention: give the segments of both queries and keys, or neither.")
    bias = ab
    if q_segment_ids is not None and kv_segment_ids is not None:
        same = q_segment_ids[:, None, :, None] == kv_segment_ids[:, None, None, :]
        bias = _masked(same, bias, q.dtype)
    if causal and bias is not None:
        order = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
        bias = _masked(order, bias, q.dtype)
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=bias, is_causal=causal and bias is None, scale=sm_scale
    )


def repeat_with_fixed_output_size(
    input: torch.Tensor, repeats: torch.Tensor, total_repeat_length: int
) -> torch.Tensor:
    """The elements of `input` [n], each as often as `repeats` [n] says, cut or filled with the last element of `input`.

    Unlike `torch.repeat_interleave` its size, `total_repeat_length`, does not depend on the data.
    """
    ends = repeats.cumsum(0)
    places = torch.arange(total_repeat_length, dtype=ends.dtype, device=input.device)
    return input[torch.searchsorted(ends, places, right=True).clamp(max=input.size(0) - 1)]


def _masked(seen: torch.Tensor, bias: torch.Tensor | None, dtype: torch.dtype) -> torch.Tensor:
    zero = torch.zeros((), dtype=dtype, device=seen.device) if bias is None else bias
    return torch.where(seen, zero, torch.finfo(dtype).min)
