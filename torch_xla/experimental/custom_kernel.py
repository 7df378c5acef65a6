"""Kernels that PyTorch/XLA writes by hand for TPUs, computed here by the operations that they stand for."""

from typing import Any

import torch
import torch.nn.functional as F

from torch_xla.distributed.spmd import xla_sharding
from torch_xla.experimental._grouped_matmul import gmm as gmm
from torch_xla.experimental._grouped_matmul import gmm_backward as gmm_backward
from torch_xla.experimental._grouped_matmul import tgmm as tgmm
from torch_xla.experimental._paged_attention import (
    multi_queries_paged_attention as multi_queries_paged_attention,
)
from torch_xla.experimental._paged_attention import paged_attention as paged_attention
from torch_xla.experimental._paged_attention import ragged_paged_attention as ragged_paged_attention

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
      partition_spec, mesh: how the operands are sharded; the mesh, by default the global one, has one device.
    """
    if partition_spec is not None:
        mesh = mesh or xla_sharding.get_global_mesh()
        if mesh is None:
            raise ValueError(
                "flash_attention: give the mesh of partition_spec, or set a global one."
            )
    if mesh is not None:
        xla_sharding.check_one_device("flash_attention", mesh)
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


def quantized_matmul_int8(
    x: torch.Tensor,
    w: torch.Tensor,
    scalar: torch.Tensor,
    zero_point: torch.Tensor | None = None,
    quant_block_size: int | None = None,
    quantize_activation: bool = False,
    batch_block_size: int | None = None,
    out_block_size: int | None = None,
    in_block_size: int | None = None,
) -> torch.Tensor:
    """x · dequantized(w)ᵀ, in x's type; also `torch.ops.xla.quantized_matmul_int8`.

    Args:
      x: [..., in], floating-point.
      w: int8, [out, in].
      scalar: the weight's scales, [out].
      zero_point: what is taken from each scaled weight, [out].
      quant_block_size: None; `xla_quantized_matmul.quantized_matmul` has scales of blocks.
      quantize_activation: round each row of x to 8-bit integers and multiply integers.
      batch_block_size, out_block_size, in_block_size: how a kernel would cut the work; the result is the same.

    Raises:
      TypeError, ValueError: for other types and shapes.
      NotImplementedError: for a quant_block_size.
    """
    from torch_xla.experimental.xla_quantized_matmul import quantized_matmul

    if quant_block_size is not None:
        raise NotImplementedError(
            "quantized_matmul_int8: scales of blocks are xla_quantized_matmul.quantized_matmul's, with block_size."
        )
    return quantized_matmul(x, w, scalar, zero_point, quantize_activation=quantize_activation)


_OPERATORS = {
    "quantized_matmul_int8(Tensor x, Tensor w, Tensor scalar, Tensor? zero_point=None, int? quant_block_size=None, "
    "bool quantize_activation=False, int? batch_block_size=None, int? out_block_size=None, int? in_block_size=None) -> Tensor": quantized_matmul_int8,
    "paged_attention(Tensor q, Tensor k_pages, Tensor v_pages, Tensor lengths, Tensor page_indices, "
    "int pages_per_compute_block, str? megacore_mode=None, float? attn_logits_soft_cap=None) -> Tensor": paged_attention,
    "multi_queries_paged_attention(Tensor q, Tensor k_pages, Tensor v_pages, Tensor lengths, Tensor page_indices, "
    "Tensor effective_q_lens, int num_kv_pages_per_compute_block, int num_queries_per_compute_block, bool use_kernel=True, "
    "float? attn_logits_soft_cap=None) -> Tensor": multi_queries_paged_attention,
    "ragged_paged_attention(Tensor q, Tensor kv_pages, Tensor kv_lens, Tensor page_indices, Tensor cu_q_lens, "
    "Tensor num_seqs, *, float sm_scale=1, int? sliding_window=None, float? soft_cap=None, float? mask_value=None, "
    "float? k_scale=None, float? v_scale=None, bool use_kernel=True, int? num_kv_pages_per_block=None, "
    "int? num_queries_per_block=None, int? vmem_limit_bytes=None) -> Tensor": ragged_paged_attention,
}
for _schema, _function in _OPERATORS.items():
    XLA_LIB.define(_schema)
    XLA_LIB.impl(_schema.partition("(")[0], _function, "CompositeImplicitAutograd")


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
