"""Attention that PyTorch/XLA computes by JAX's kernel for TPUs, computed here by the operations that it stands for."""

import dataclasses
import json
from typing import Any

import torch
import torch.nn.functional as F

Axes = tuple[tuple[str, ...] | str | None, ...]


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples that they were."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


@dataclasses.dataclass(eq=True, frozen=True)
class SplashAttentionConfig:
    """What the kernel is told of blocks, layouts and sharding, which decide nothing here, and of a window.

    With `attentiontype_local_sliding` position i sees those that are `slide_window_size` away at most.
    """

    sa_block_q: int = 2048
    sa_block_kv: int = 2048
    sa_block_kv_compute: int = 2048
    sa_block_q_dkv: int = 2048
    sa_block_kv_dkv: int = 2048
    sa_block_kv_dkv_compute: int = 2048
    sa_block_q_dq: int = 2048
    sa_block_kv_dq: int = 2048
    sa_use_fused_bwd_kernel: bool = True
    sa_q_layout: str = "HEAD_DIM_MINOR"
    sa_k_layout: str = "HEAD_DIM_MINOR"
    sa_v_layout: str = "HEAD_DIM_MINOR"
    mesh: str | None = None
    qkv_partition_spec: Axes = (("data", "fsdp"), None, None, None)
    segment_ids_partition_spec: Axes = (("data", "fsdp"), None)
    attentiontype_local_sliding: bool = False
    slide_window_size: int | None = None

    def to_json(self) -> str:
        """As `splash_attention` takes it."""
        return json.dumps(dataclasses.asdict(self))

    @classmethod
    def from_json(cls, data: str) -> "SplashAttentionConfig":
        """What `to_json` has written."""
        return cls(**{name: _tuples(value) for name, value in json.loads(data).items()})


def _seen(
    q: torch.Tensor,
    k: torch.Tensor,
    config: SplashAttentionConfig,
    segment_ids: torch.Tensor | None,
    causal: bool,
) -> torch.Tensor:
    """Which keys each query sees: [batch or 1, 1, query length, key length]."""
    distance = torch.arange(q.shape[-2], device=q.device)[:, None] - torch.arange(
        k.shape[-2], device=q.device
    )
    seen = distance >= 0 if causal else torch.ones_like(distance, dtype=torch.bool)
    if config.attentiontype_local_sliding:
        if config.slide_window_size is None:
            raise ValueError("splash_attention: a sliding window needs slide_window_size.")
        seen = seen & (distance.abs() <= config.slide_window_size)
    seen = seen[None, None]
    if segment_ids is not None:
        seen = seen & (segment_ids[:, None, :, None] == segment_ids[:, None, None, :])
    return seen


def splash_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    config: str,
    decoder_segment_ids: torch.Tensor | None = None,
    causal: bool = True,
    attn_logits_soft_cap: float | None = None,
) -> torch.Tensor:
    """softmax(q·kᵀ)·v, with gradients.

    Args:
      q: [batch, heads, length, head size]; scores are not scaled.
      k, v: [batch, heads, length, head size]; where q has more heads, groups of them share one.
      config: `SplashAttentionConfig.to_json()`.
      decoder_segment_ids: [batch, length]; a query sees the keys of its own segment only.
      causal: let position i see positions up to i only.
      attn_logits_soft_cap: scores become `cap·tanh(score/cap)`.
    """
    seen = _seen(q, k, SplashAttentionConfig.from_json(config), decoder_segment_ids, causal)
    groups, left = divmod(q.shape[1], k.shape[1])
    if left:
        raise ValueError(
            f"splash_attention: {q.shape[1]} heads of q cannot share {k.shape[1]} of k evenly."
        )
    if attn_logits_soft_cap is None:
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=seen, scale=1.0, enable_gqa=groups != 1
        )
    k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
    scores = attn_logits_soft_cap * torch.tanh(q @ k.mT / attn_logits_soft_cap)
    # The lowest number, unlike infinity, leaves a row that sees nothing a softmax, which is then taken away.
    weights = scores.masked_fill(~seen, torch.finfo(scores.dtype).min).softmax(-1)
    return weights.masked_fill(~seen, 0.0) @ v
