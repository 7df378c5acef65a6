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
        self._check_input_dim(input)
        if xr.world_size() == 1 or not (self.training or self.running_mean is None):
            return super().forward(input)
        over = [dimension for dimension in range(input.dim()) if dimension != 1]
        values = input.float() if input.dtype in (torch.float16, torch.bfloat16) else input
        own_count = values.new_full((1,), input.numel() / input.size(1))
        sums = all_reduce(xm.REDUCE_SUM, torch.cat([values.sum(over), own_count]))
        count = sums[-1].detach()
        shape = [1, -1] + [1] * (input.dim() - 2)
        mean = sums[:-1] / count
        centered = values - mean.view(shape)
        variance = all_reduce(xm.REDUCE_SUM, centered.square().sum(over)) / count
        self._track(mean.detach(), variance.detach() * (count / (count - 1)))
        output = centered * torch.rsqrt(variance + self.eps).view(shape)
        if self.affine:
            output = output * self.weight.view(shape) + self.bias.view(shape)
        return output.to(input.dtype)

    @torch.no_grad()
    def _track(self, mean: torch.Tensor, variance: torch.Tensor) -> None:
        """Moves the running statistics towards those of a batch."""
        if self.running_mean is None or self.running_var is None:
            return
        self.num_batches_tracked.add_(1)
        share = 1.0 / self.num_batches_tracked if self.momentum is None else self.momentum
        self.running_mean.add_((mean - self.running_mean) * share)
        self.running_var.add_((variance - self.running_var) * share)
