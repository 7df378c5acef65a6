"""Collective operations between the processes that train together.

`xla_model` offers them, and says what they have in common.
"""

import contextlib
import contextvars
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch

from torch_xla import _XLAC
from torch_xla import runtime as xr
from torch_xla.core import _traced_collectives as traced

REDUCE_SUM = "sum"
REDUCE_MUL = "mul"
REDUCE_AND = "and"
REDUCE_OR = "or"
REDUCE_MIN = "min"
REDUCE_MAX = "max"

_REDUCE_TYPES = (REDUCE_SUM, REDUCE_MUL, REDUCE_AND, REDUCE_OR, REDUCE_MIN, REDUCE_MAX)

# The gradients that travel together: large enough to use the network well, small enough that the first leave while
# backward still runs.
_GRADIENT_BUCKET_MEGABYTES = 4.0


# (size, rank) of a world that is not started, while its operations are recorded to be looked at.
_planned: contextvars.ContextVar[tuple[int, int] | None] = contextvars.ContextVar(
    "_planned", default=None
)


@contextlib.contextmanager
def planned_world(size: int, rank: int) -> Iterator[None]:
    """What is recorded meanwhile is of process `rank` of a world of that size, which is not started; it cannot run."""
    token = _planned.set((size, rank))
    try:
        yield
    finally:
        _planned.reset(token)


def _place_in_world() -> tuple[int, int]:
    """How many processes there are, and which one this is."""
    return _planned.get() or (xr.world_size(), xr.global_ordinal())


def _alone(ranks: list[list[int]] | None = None) -> bool:
    """Whether nobody else takes part in an operation, of these groups."""
    if ranks is not None and _planned.get() is not None and len(_own(ranks)) == 1:
        return True
    return _place_in_world()[0] == 1 and not os.environ.get("XLA_ALWAYS_ALLREDUCE")


def _checked(reduce_type: str) -> str:
    if reduce_type not in _REDUCE_TYPES:
        raise ValueError(f"Unknown reduction {reduce_type!r}; it is one of {_REDUCE_TYPES}.")
    return reduce_type


def _ranks(operation: str, groups: Sequence[Any] | None) -> list[list[int]]:
    """The groups, this process's among them."""
    size, rank = _place_in_world()
    if not groups:
        return [list(range(size))]
    if isinstance(groups[0], int):
        groups = [groups]
    named = [int(member) for group in groups for member in group]
    if len(set(named)) != len(named) or not set(named) <= set(range(size)):
        raise ValueError(
            f"{operation}: groups={groups} must name ranks below {size}, none of them twice."
        )
    if rank not in named:
        raise ValueError(f"{operation}: groups={groups} leave out this process, rank {rank}.")
    return [[int(member) for member in group] for group in groups]


def _equal_ranks(operation: str, groups: Sequence[Any] | None) -> list[list[int]]:
    """The same of an operation whose result has a size that the groups must share."""
    ranks = _ranks(operation, groups)
    if len({len(group) for group in ranks}) > 1:
        raise ValueError(f"{operation}: groups={groups} must be of one size.")
    return ranks


def _own(groups: list[list[int]]) -> list[int]:
    _, rank = _place_in_world()
    return next(group for group in groups if rank in group)


def _place(operation: str, groups: Sequence[Any] | None) -> int:
    """This process's place in its group."""
    return _own(_ranks(operation, groups)).index(_place_in_world()[1])


def _scaled(tensor: torch.Tensor, scale: float) -> torch.Tensor:
    return tensor.clone() if scale == 1.0 else (tensor * scale).to(tensor.dtype)


def all_reduce(
    reduce_type: str,
    inputs: torch.Tensor | list[torch.Tensor],
    scale: float = 1.0,
    groups: list[list[int]] | None = None,
    cctx: Any = None,
    pin_layout: bool = True,
) -> torch.Tensor | None:
    """Reduces over the processes.

    Args:
      reduce_type: one of the `REDUCE_` constants.
      inputs: a tensor, whose reduction is returned, or a list of tensors, which are reduced in place.
      scale: multiplies the result.
      groups: lists of ranks that reduce among themselves.
      cctx: of no effect.

    A result has its operand's shape and type; all processes must give the same. "and" and "or" work on the bits of
    integers, and on whether other numbers are zero. Raises ValueError for another reduction.
    """
    _checked(reduce_type)
    if torch.compiler.is_compiling():
        return _traced_all_reduce(reduce_type, inputs, scale, groups)
    ranks = _ranks("all_reduce", groups)
    if isinstance(inputs, torch.Tensor):
        if _alone(ranks):
            return _scaled(inputs, scale)
        return _XLAC._xla_all_reduce([inputs], reduce_type, scale, ranks)[0]
    inputs = list(inputs)
    if not _alone(ranks):
        _XLAC._xla_all_reduce_(inputs, reduce_type, scale, ranks)
    elif scale != 1.0:
        with torch.no_grad():
            for tensor in inputs:
                tensor.copy_(_scaled(tensor, scale))
    return None


def _check_cut(operation: str, tensor: torch.Tensor, dimension: int, parts: int) -> None:
    """Raises IndexError for a dimension that is not there, and ValueError for one that has no such number of equal parts."""
    size = tensor.size(dimension)
    if size % parts:
        raise ValueError(
            f"{operation}: dimension {dimension} of the shape {tuple(tensor.shape)} cannot be cut into {parts} equal parts."
        )


def all_gather(
    value: torch.Tensor | list[torch.Tensor],
    dim: int = 0,
    groups: list[list[int]] | None = None,
    output: torch.Tensor | list[torch.Tensor] | None = None,
    pin_layout: bool = True,
    channel_id: int | None = None,
    use_global_device_ids: bool | None = None,
) -> Any:
    """Concatenates the processes' values, of one shape, on dimension `dim` in the order of their ranks.

    The tensors of a list travel together, in one operation for each type; `output` receives the results. With n processes in
    the group, dimension `dim` of a result is n times as long; of numbers (0 dimensions) it is a vector of n. Raises IndexError
    for a dimension that is not there.
    """
    if torch.compiler.is_compiling():
        return _each(lambda x: _gather(x, dim, *traced.flat(groups)), value, output)
    ranks = _equal_ranks("all_gather", groups)

    def gather(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        for tensor in tensors:
            if tensor.dim() > 0:
                _check_cut("all_gather", tensor, dim, 1)
        if _alone(ranks):
            return [tensor.clone() if tensor.dim() else tensor.reshape(1) for tensor in tensors]
        return _XLAC._xla_all_gather(tensors, dim, ranks)

    return _together(gather, value, output)


def all_gather_bucketized(
    input_list: list[torch.Tensor],
    dim: int = 0,
    groups: list[list[int]] | None = None,
    output: list[torch.Tensor] | None = None,
    pin_layout: bool = False,
    bucket_cap_mb: int = 160,
) -> list[torch.Tensor]:
    """`all_gather` of many tensors, of which those that follow each other travel together, up to `bucket_cap_mb` megabytes."""

    def gather(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        buckets = _buckets(tensors, bucket_cap_mb * 1024 * 1024)
        return [result for bucket in buckets for result in all_gather(bucket, dim, groups)]

    return _together(gather, input_list, output)


def reduce_scatter(
    reduce_type: str,
    input: torch.Tensor | list[torch.Tensor],
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: list[list[int]] | None = None,
    output: torch.Tensor | list[torch.Tensor] | None = None,
    pin_layout: bool = True,
    channel_id: int | None = None,
    use_global_device_ids: bool | None = None,
) -> Any:
    """Reduces over the processes, of which each keeps its part, one of `shard_count`, along `scatter_dim`.

    Dimension `scatter_dim`, which `shard_count` divides, is that much shorter in the result; `scale` multiplies it. Raises
    ValueError unless `shard_count` is the number of processes in the group and divides the dimension, IndexError for a
    dimension that is not there.
    """
    _checked(reduce_type)
    if torch.compiler.is_compiling():
        numbers = (reduce_type, float(scale), scatter_dim, shard_count, *traced.flat(groups))
        return _each(lambda x: _scatter(x, *numbers), input, output)
    ranks = _equal_ranks("reduce_scatter", groups)
    if shard_count != len(_own(ranks)):
        raise ValueError(
            f"reduce_scatter: shard_count={shard_count}, but there are {len(_own(ranks))} processes in the group."
        )

    def scatter(tensor: torch.Tensor) -> torch.Tensor:
        _check_cut("reduce_scatter", tensor, scatter_dim, shard_count)
        if _alone(ranks):
            return _scaled(tensor, scale)
        return _XLAC._xla_reduce_scatter(tensor, reduce_type, scale, scatter_dim, ranks)

    return _each(scatter, input, output)


def reduce_scatter_bucketized(
    reduce_type: str,
    input_list: list[torch.Tensor],
    scale: float,
    scatter_dim: int,
    shard_count: int,
    groups: list[list[int]] | None = None,
    output: list[torch.Tensor] | None = None,
    pin_layout: bool = False,
    bucket_cap_mb: int = 160,
) -> list[torch.Tensor]:
    """`reduce_scatter` of many tensors; the engine sees all of them, so buckets are of no use."""
    return reduce_scatter(
        reduce_type, input_list, scale, scatter_dim, shard_count, groups, output, pin_layout
    )


def all_to_all(
    value: torch.Tensor,
    split_dimension: int,
    concat_dimension: int,
    split_count: int,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
) -> torch.Tensor:
    """Splits the value along one dimension, sends part i to rank i, and concatenates what arrives along another.

    `split_count` parts are made of `split_dimension`. Raises ValueError unless it is the number of processes in the group and
    divides the dimension, IndexError for dimensions that are not there.
    """
    if torch.compiler.is_compiling():
        return _exchange(
            value, split_dimension, concat_dimension, split_count, *traced.flat(groups)
        )
    ranks = _equal_ranks("all_to_all", groups)
    if split_count != len(_own(ranks)):
        raise ValueError(
            f"all_to_all: split_count={split_count}, but there are {len(_own(ranks))} processes in the group."
        )
    _check_cut("all_to_all", value, split_dimension, split_count)
    _check_cut("all_to_all", value, concat_dimension, 1)
    if _alone(ranks):
        return value.clone()
    return _XLAC._xla_all_to_all(value, split_dimension, concat_dimension, split_count, ranks)


def collective_permute(value: torch.Tensor, pairs: list[list[int]]) -> torch.Tensor:
    """Sends the value along (source, target) pairs of ranks; who receives nothing gets zeros.

    All processes give values of one shape, which is the result's. Raises ValueError for a rank that is not there, or that is
    the source, or the target, of two pairs.
    """
    if torch.compiler.is_compiling():
        return _permute(value, *traced.flat(pairs))
    size = xr.world_size()
    named = [[int(source), int(target)] for source, target in pairs]
    for side in zip(*named, strict=True):
        if len(set(side)) != len(side) or not set(side) <= set(range(size)):
            raise ValueError(
                f"collective_permute: pairs={pairs} must name ranks below {size}, each at most once as a source "
                "and once as a target."
            )
    if _alone():
        return value.clone() if named else torch.zeros_like(value)
    return _XLAC._xla_collective_permute(value, named)


def collective_broadcast(
    tensors: list[torch.Tensor],
    root_ordinal: int = 0,
    groups: list[int] | None = None,
    pin_layout: bool = True,
) -> None:
    """Overwrites the tensors, in place, with those of the root, of the same shapes and types.

    Raises ValueError if the root is not in this process's group.
    """
    ranks = _ranks("collective_broadcast", groups)
    own = _own(ranks)
    if root_ordinal not in own:
        raise ValueError(f"collective_broadcast: rank {root_ordinal} is not among {own}.")
    if _alone(ranks):
        return
    if len(own) == 1:  # shown as what XLA_ALWAYS_ALLREDUCE names
        all_reduce(REDUCE_SUM, tensors, groups=[own])
        return
    order = [root_ordinal, *(member for member in own if member != root_ordinal)]
    with torch.no_grad():
        for tensor in tensors:
            tensor.copy_(_XLAC._xla_collective_broadcast(tensor.detach(), [order]))


def _channel(channel_id: int) -> tuple[int, int]:
    source, target = divmod(channel_id, xr.world_size())
    if not 0 <= source < xr.world_size():
        raise ValueError(
            f"Channel {channel_id} names no pair of processes: channel s * {xr.world_size()} + t leads from rank s to "
            "rank t."
        )
    return source, target


def send(value: torch.Tensor, channel_id: int) -> torch.Tensor:
    """Sends a value to the process that calls `recv` with the same channel; returns the value.

    Channel `s * world_size + t` leads from rank s to rank t. Raises ValueError unless this process is rank s.
    """
    source, target = _channel(channel_id)
    if source != xr.global_ordinal():
        raise ValueError(
            f"send: channel {channel_id} leads from rank {source}, and this is rank {xr.global_ordinal()}."
        )
    _XLAC._xla_collective_permute(value, [[source, target]])
    return value


def recv(output: torch.Tensor, channel_id: int) -> torch.Tensor:
    """Receives a value, of the shape of `output`, into it, and returns it; see `send`.

    Raises ValueError unless the channel leads to this process.
    """
    source, target = _channel(channel_id)
    if target != xr.global_ordinal():
        raise ValueError(
            f"recv: channel {channel_id} leads to rank {target}, and this is rank {xr.global_ordinal()}."
        )
    with torch.no_grad():
        output.copy_(_XLAC._xla_collective_permute(output.detach(), [[source, target]]))
    return output


def _fetch_gradients(optimizer: torch.optim.Optimizer) -> list[torch.Tensor]:
    """The gradients that the optimizer's parameters have."""
    return [
        parameter.grad
        for group in optimizer.param_groups
        for parameter in group["params"]
        if parameter.grad is not None
    ]


def reduce_gradients(
    optimizer: torch.optim.Optimizer, groups: list[list[int]] | None = None, pin_layout: bool = True
) -> None:
    """Averages the gradients of the optimizer's parameters over the processes, in place.

    With `groups` each group's sum is divided by the number of all processes, as in PyTorch/XLA.
    """
    _ranks("reduce_gradients", groups)
    count = xr.world_size()
    if not _alone():
        all_reduce_bucketized_gradients(
            _fetch_gradients(optimizer), scale=1.0 / count, groups=groups, pin_layout=pin_layout
        )


def all_reduce_bucketized_gradients(
    gradients: Iterable[torch.Tensor],
    scale: float,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
    bucket_cap_mb: float = 0,
) -> None:
    """Sums the gradients, a list or an iterator, over the processes, in place, times `scale`.

    They travel in buckets of `bucket_cap_mb` megabytes (ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB, or 4, by default), those
    of the last parameters first: backward computes them first, so the first are under way while it goes on.
    """
    if not bucket_cap_mb:
        bucket_cap_mb = float(
            os.environ.get("ALLREDUCE_GRADIENTS_BUCKET_SIZE_MB") or _GRADIENT_BUCKET_MEGABYTES
        )
    for bucket in _buckets(list(gradients)[::-1], bucket_cap_mb * 1024 * 1024):
        all_reduce(REDUCE_SUM, bucket, scale=scale, groups=groups)


def _buckets(tensors: list[torch.Tensor], capacity: float) -> Iterator[list[torch.Tensor]]:
    """The tensors in runs of one type and at most so many bytes."""
    bucket: list[torch.Tensor] = []
    filled = 0
    for tensor in tensors:
        size = tensor.numel() * tensor.element_size()
        if bucket and (filled + size > capacity or tensor.dtype != bucket[0].dtype):
            yield bucket
            bucket, filled = [], 0
        bucket.append(tensor)
        filled += size
    if bucket:
        yield bucket


def broadcast_master_param(model: torch.nn.Module) -> None:
    """Overwrites the model's parameters and buffers with those of rank 0."""
    collective_broadcast([*model.parameters(), *model.buffers()])


def _each(function: Any, value: Any, output: Any) -> Any:
    """`function` of a tensor, or of each of a list; copied into `output` where there is one, which takes its shape."""
    return _together(lambda tensors: [function(tensor) for tensor in tensors], value, output)


def _together(function: Any, value: Any, output: Any) -> Any:
    """The same with a `function` of all the tensors of a list."""
    is_one = isinstance(value, torch.Tensor)
    results = function([value] if is_one else list(value))
    if output is None:
        return results[0] if is_one else results
    with torch.no_grad():
        for target, source in zip([output] if is_one else output, results, strict=True):
            if target.shape != source.shape:
                target.resize_(source.shape)
            target.copy_(source)
    return output


# --- The same as operators, for dynamo


def _traced_all_reduce(reduce_type: str, inputs: Any, scale: float, groups: Any) -> Any:
    if isinstance(inputs, torch.Tensor):
        return _reduce(inputs, reduce_type, float(scale), *traced.flat(groups))
    for tensor in inputs:
        tensor.copy_(_reduce(tensor, reduce_type, float(scale), *traced.flat(groups)))
    return None


def _reduced(x: torch.Tensor, reduce_type: str, scale: float, groups: Any) -> torch.Tensor:
    return all_reduce(reduce_type, x, scale, groups)


def _gathered(x: torch.Tensor, dim: int, groups: Any) -> torch.Tensor:
    return all_gather(x, dim, groups)


def _gathered_shape(x: torch.Tensor, dim: int, groups: Any) -> list[int]:
    sizes = list(x.shape) or [1]
    sizes[dim] *= len(_own(_ranks("all_gather", groups)))
    return sizes


def _scattered(
    x: torch.Tensor, reduce_type: str, scale: float, dim: int, count: int, groups: Any
) -> torch.Tensor:
    return reduce_scatter(reduce_type, x, scale, dim, count, groups)


def _scattered_shape(
    x: torch.Tensor, reduce_type: str, scale: float, dim: int, count: int, groups: Any
) -> list[int]:
    sizes = list(x.shape)
    sizes[dim] //= count
    return sizes


def _exchanged(
    x: torch.Tensor, split_dim: int, concat_dim: int, count: int, groups: Any
) -> torch.Tensor:
    return all_to_all(x, split_dim, concat_dim, count, groups)


def _exchanged_shape(
    x: torch.Tensor, split_dim: int, concat_dim: int, count: int, groups: Any
) -> list[int]:
    sizes = list(x.shape)
    sizes[split_dim] //= count
    sizes[concat_dim] *= count
    return sizes


def _permuted(x: torch.Tensor, pairs: Any) -> torch.Tensor:
    return collective_permute(x, pairs or [])


_reduce = traced.define("str reduce_type, float scale, ", _reduced, lambda x, *_: x.shape)
_gather = traced.define("int dim, ", _gathered, _gathered_shape)
_scatter = traced.define(
    "str reduce_type, float scale, int dim, int count, ", _scattered, _scattered_shape
)
_exchange = traced.define(
    "int split_dim, int concat_dim, int count, ", _exchanged, _exchanged_shape
)
_permute = traced.define("", _permuted, lambda x, *_: x.shape)


__all__ = [
    "REDUCE_AND",
    "REDUCE_MAX",
    "REDUCE_MIN",
    "REDUCE_MUL",
    "REDUCE_OR",
    "REDUCE_SUM",
    "all_gather",
    "all_gather_bucketized",
    "all_reduce",
    "all_reduce_bucketized_gradients",
    "all_to_all",
    "broadcast_master_param",
    "collective_broadcast",
    "collective_permute",
    "recv",
    "reduce_gradients",
    "reduce_scatter",
    "reduce_scatter_bucketized",
    "send",
]
