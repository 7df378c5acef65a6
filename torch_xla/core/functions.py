"""Collective operations with gradients.

`groups` and `pin_layout` are those of `xla_model`.
"""

from typing import Any

import torch
from torch.autograd import Function

from torch_xla import runtime as xr
from torch_xla.core import _collectives
from torch_xla.core import xla_model as xm


class AllReduce(Function):
    """Reduces over the processes; each gets the sum of their gradients with respect to its own value."""

    @staticmethod
    def forward(
        ctx: Any, value: torch.Tensor, reduce_type: str, scale: float, groups: Any, pin_layout: bool
    ):
        """Called by `apply`."""
        ctx.reduce_type, ctx.scale, ctx.groups = reduce_type, scale, groups
        reduced = xm.all_reduce(reduce_type, value, groups=groups, pin_layout=pin_layout)
        ctx.save_for_backward(value, reduced)
        return reduced if scale == 1.0 else (reduced * scale).to(value.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        """Called by autograd with the gradient of the result."""
        value, reduced = ctx.saved_tensors
        total = xm.all_reduce(xm.REDUCE_SUM, gradient, scale=ctx.scale, groups=ctx.groups)
        if ctx.reduce_type in (xm.REDUCE_MIN, xm.REDUCE_MAX):
            # Those who hold the extreme value.
            total = torch.where(value == reduced, total, 0)
        elif ctx.reduce_type == xm.REDUCE_MUL:
            total = total * _product_of_the_others(value, ctx.groups)
        elif ctx.reduce_type != xm.REDUCE_SUM:
            raise RuntimeError(f"all_reduce has no gradient for {ctx.reduce_type!r}.")
        return total, None, None, None, None


def _product_of_the_others(value: torch.Tensor, groups: Any) -> torch.Tensor:
    """Rather than a quotient, which a zero would spoil."""
    every = xm.all_gather(value.unsqueeze(0), groups=groups)
    every[_collectives._place("all_reduce", groups)] = 1
    return every.prod(0)


class AllGather(Function):
    """Concatenates the processes' values; each gets the sum of the gradients of its part."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, dim: int):
        """Called by `apply`."""
        ctx.dim = dim
        return xm.all_gather(value, dim=dim)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        """Called by autograd with the gradient of the result."""
        count = xr.world_size()
        return xm.reduce_scatter(xm.REDUCE_SUM, gradient, 1.0, ctx.dim, count), None


def all_reduce(
    reduce_type: str,
    value: torch.Tensor,
    scale: float = 1.0,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
) -> torch.Tensor:
    """See `xla_model.all_reduce`; with gradients, but for "and" and "or"."""
    return AllReduce.apply(value, reduce_type, scale, groups, pin_layout)


def all_gather(value: torch.Tensor, dim: int = 0) -> torch.Tensor:
    """See `xla_model.all_gather`; gradients pass through."""
    return AllGather.apply(value, dim)


def distributed_mm(w: torch.Tensor, x: torch.Tensor, split: int = 1) -> torch.Tensor:
    """The product with a matrix of which each process holds some columns; with gradients.

    Args:
      w: this process's columns, of the shape N x K.
      x: this process's operand, of the shape (K * world size) x M.
      split: into how many products the work is split along M, to need less memory at a time.

    Returns:
      the whole matrix times `x`, of the shape N x M.
    """
    count = xr.world_size()
    if x.size(0) != w.size(1) * count or split < 1 or x.size(1) % split:
        raise ValueError(
            f"distributed_mm: w of the shape {tuple(w.shape)} in {count} processes needs x with {w.size(1) * count} "
            f"rows and a number of columns that split={split} divides, not the shape {tuple(x.shape)}."
        )
    products = [_product_by_columns(w, part) for part in x.chunk(split, 1)]
    return torch.cat(products, 1)


def _product_by_columns(w: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    # Each process multiplies its columns with all operands, and adds up the products with its own.
    operands = AllToAll.apply(x, 0, 1)
    return ReduceScatter.apply(w @ operands, 1)


class AllToAll(Function):
    """Sends part i along one dimension to process i; what arrives is concatenated along another."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, split_dimension: int, concat_dimension: int):
        """Called by `apply`."""
        ctx.dimensions = split_dimension, concat_dimension
        return xm.all_to_all(value, split_dimension, concat_dimension, xr.world_size())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        """Called by autograd with the gradient of the result."""
        split_dimension, concat_dimension = ctx.dimensions
        back = xm.all_to_all(gradient, concat_dimension, split_dimension, xr.world_size())
        return back, None, None


class ReduceScatter(Function):
    """Adds up the processes' values, of which each keeps its part along a dimension."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, dim: int):
        """Called by `apply`."""
        ctx.dim = dim
        return xm.reduce_scatter(xm.REDUCE_SUM, value, 1.0, dim, xr.world_size())

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor):
        """Called by autograd with the gradient of the result."""
        return xm.all_gather(gradient, dim=ctx.dim), None


class SyncBatchNorm(torch.nn.modules.batchnorm._BatchNorm):
    """Batch normalization whose statistics are those of the batches of all processes together.

    Takes what `torch.nn.BatchNorm2d` does, and inputs of 2 and more dimensions.
    """

    def _check_input_dim(self, input: torch.Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(
                f"SyncBatchNorm expects at least 2 dimensions, not the shape {tuple(input.shape)}."
            )

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """Normalizes each channel of [batch, channels, …] over the batches of all processes; returns the same shape.

        Raises ValueError for fewer than 2 dimensions.
        """
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
