"""Running sums, products and logarithms of sums along a dimension of any size, in an export.

The window in which a program computes them otherwise is as long as the dimension, and no window's length can vary. Here each
element meets the one 1, 2, 4, … places before it, in a loop that ends when there is none so far away.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops.while_loop import while_loop_op

# By operator: what joins two elements, and what leaves the other one as it is.
_JOINS: dict[Any, tuple[Callable[..., torch.Tensor], float]] = {
    torch.ops.aten.cumsum.default: (torch.add, 0),
    torch.ops.aten.cumprod.default: (torch.mul, 1),
    torch.ops.aten.logcumsumexp.default: (torch.logaddexp, -math.inf),
}


def is_of_any_length(node: torch.fx.Node) -> bool:
    """Whether a node computes such sums along a dimension whose size varies."""
    if node.target not in _JOINS:
        return False
    x, dim = node.args[:2]
    shape = x.meta["val"].shape
    return len(shape) > 0 and isinstance(shape[dim], torch.SymInt)


def running(
    operator: Any, x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """What the operator gives, one of `_JOINS`: [..., n, ...], of integers as int64."""
    join, neutral = _JOINS[operator]
    is_whole = not (x.is_floating_point() or x.is_complex())
    dtype = dtype or (torch.int64 if is_whole else x.dtype)
    # As in eager, numbers of 16 bits are rounded once.
    inner = torch.float32 if dtype.is_floating_point and dtype.itemsize < 4 else dtype
    length = x.shape[dim]
    place = torch.arange(length, device=x.device)
    along = [1] * x.dim()
    along[dim] = length

    def goes_on(distance: torch.Tensor, _: torch.Tensor) -> torch.Tensor:
        return distance < length

    def double(distance: torch.Tensor, joined: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        source = place - distance
        before = joined.index_select(dim, source.clamp(min=0))
        before = torch.where((source >= 0).view(along), before, neutral)
        return distance * 2, join(joined, before)

    first = torch.ones((), dtype=torch.int64, device=x.device)
    _, result = while_loop_op(goes_on, double, (first, x.to(inner)), ())
    return result.to(dtype)
