"""Collective operations with gradients."""

from typing import Any

import torch
from torch.autograd import Function

from torch_xla import runtime as xr
from torch_xla.core import xla_model as xm


class AllReduce(Function):
    """Reduces over the processes; the gradient is the sum of theirs."""

    @staticmethod
    def forward(
        ctx: Any, value: torch.Tensor, reduce_type: str, scale: float, groups: Any, pin_layout: bool
    ):
        ctx.reduce_type, ctx.scale, ctx.groups = reduce_type, scale, groups
        return xm.all_reduce(reduce_type, value, scale=scale, groups=groups, pin_layout=pin_layout)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        if ctx.reduce_type != xm.REDUCE_SUM:
            raise RuntimeError(
                f"all_reduce has a gradient for {xm.REDUCE_SUM!r} only, not {ctx.reduce_type!r}."
            )
        reduced = xm.all_reduce(xm.REDUCE_SUM, gradient, scale=ctx.scale, groups=ctx.groups)
        return reduced, None, None, None, None


class AllGather(Function):
    """Concatenates the processes' values; each gets the sum of the gradients of its part."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, dim: int):
        ctx.dim = dim
        return xm.all_gather(value, dim=dim)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        count = xr.world_size()
        return xm.reduce_scatter(xm.REDUCE_SUM, gradient, 1.0, ctx.dim, count), None


def all_reduce(
    reduce_type: str,
    value: torch.Tensor,
    scale: float = 1.0,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
) -> torch.Tensor:
    """See `xla_model.all_reduce`; gradients pass through a sum."""
    return AllReduce.apply(value, reduce_type, scale, groups, pin_layout)


def all_gather(value: torch.Tensor, dim: int = 0) -> torch.Tensor:
    """See `xla_model.all_gather`; gradients pass through."""
    return AllGather.apply(value, dim)


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """Batch normalization whose statistics are those of the batches of all processes together."""

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(
                f"SyncBatchNorm expects at least 2 dimensions, not the shape {tuple(input.shape)}."
            )

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        # Counting the world raises where statistics would have to be exchanged.
        xr.world_size()
        return super().forward(input)
