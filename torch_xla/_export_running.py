"""Running sums, products, logarithms of sums and extremes along a dimension of any size, in an export.

The window in which a program computes them otherwise is as long as the dimension, and no window's length can vary. Here each
element meets the one 1, 2, 4, … places before it, in a loop that ends when there is none so far away.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._higher_order_ops.while_loop import while_loop_op

_Elements = tuple[torch.Tensor, ...]

# By operator: what joins two elements, and what leaves the other one as it is.
_JOINS: dict[Any, tuple[Callable[..., torch.Tensor], float]] = {
    torch.ops.aten.cumsum.default: (torch.add, 0),
    torch.ops.aten.cumprod.default: (torch.mul, 1),
    torch.ops.aten.logcumsumexp.default: (torch.logaddexp, -math.inf),
}
# What tells that an element stays the extreme before a later one.
_EXTREMES: dict[Any, Callable[..., torch.Tensor]] = {
    torch.ops.aten.cummax.default: torch.gt,
    torch.ops.aten.cummin.default: torch.lt,
}


def is_of_any_length(node: torch.fx.Node) -> bool:
    """Whether a node computes such sums or extremes along a dimension whose size varies."""
    if node.target not in _JOINS and node.target not in _EXTREMES:
        return False
    x, dim = node.args[:2]
    shape = x.meta["val"].shape
    return len(shape) > 0 and isinstance(shape[dim], torch.SymInt)


def running(
    operator: Any, x: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """What the operator gives of [..., n, ...]: one of `_JOINS` (of integers as int64), or values and places of `_EXTREMES`."""
    if operator in _EXTREMES:
        return _extremes(x, dim, _EXTREMES[operator])
    join, neutral = _JOINS[operator]
    is_whole = not (x.is_floating_point() or x.is_complex())
    dtype = dtype or (torch.int64 if is_whole else x.dtype)
    # As in eager, numbers of 16 bits are rounded once.
    inner = torch.float32 if dtype.is_floating_point and dtype.itemsize < 4 else dtype

    def with_before(there: torch.Tensor, before: _Elements, joined: _Elements) -> _Elements:
        return (join(joined[0], torch.where(there, before[0], neutral)),)

    return _doubled((x.to(inner),), dim, with_before)[0].to(dtype)


def _extremes(
    x: torch.Tensor, dim: int, stays: Callable[..., torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last of equal elements counts, and of those that are NaN."""
    place = _along(torch.arange(x.shape[dim], device=x.device), x, dim).expand(x.shape)

    def with_before(there: torch.Tensor, before: _Elements, joined: _Elements) -> _Elements:
        is_left = (stays(before[0], joined[0]) | before[0].isnan()) & ~joined[0].isnan() & there
        return tuple(torch.where(is_left, *pair) for pair in zip(before, joined, strict=True))

    values, places = _doubled((x, place), dim, with_before)
    return values, places


def _doubled(
    first: _Elements,
    dim: int,
    with_before: Callable[[torch.Tensor, _Elements, _Elements], _Elements],
) -> _Elements:
    """Joins each element with all before it: `with_before` gets whether there is one so far away, that one, and this one."""
    x = first[0]
    length = x.shape[dim]
    place = torch.arange(length, device=x.device)

    def goes_on(distance: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return distance < length

    def double(distance: torch.Tensor, *joined: torch.Tensor) -> _Elements:
        source = place - distance
        before = tuple(each.index_select(dim, source.clamp(min=0)) for each in joined)
        there = _along(source >= 0, x, dim)
        return (distance * 2, *with_before(there, before, joined))

    one = torch.ones((), dtype=torch.int64, device=x.device)
    return while_loop_op(goes_on, double, (one, *first), ())[1:]


def _along(row: torch.Tensor, x: torch.Tensor, dim: int) -> torch.Tensor:
    """A row as one of x's dimension, beside whose others it is broadcast."""
    sizes = [1] * x.dim()
    sizes[dim] = x.shape[dim]
    return row.view(sizes)
