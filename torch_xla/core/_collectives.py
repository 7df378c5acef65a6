"""Collective operations between the processes that train together; `xla_model` offers them.

With one process each of them is the identity, up to `scale`. More processes raise NotImplementedError where the
world is counted (`torch_xla.runtime.world_size`).
"""

from typing import Any

import torch

from torch_xla import runtime as xr

REDUCE_SUM = "sum"
REDUCE_MUL = "mul"
REDUCE_AND = "and"
REDUCE_OR = "or"
REDUCE_MIN = "min"
REDUCE_MAX = "max"

_REDUCE_TYPES = (REDUCE_SUM, REDUCE_MUL, REDUCE_AND, REDUCE_OR, REDUCE_MIN, REDUCE_MAX)


def _check_alone(operation: str) -> None:
    if xr.world_size() != 1:
        raise NotImplementedError(f"{operation} between processes is not implemented.")


def _check_groups(operation: str, groups: Any) -> None:
    if groups and sorted(rank for group in groups for rank in group) != [0]:
        raise ValueError(f"{operation}: groups={groups}, but the only process has rank 0.")


def _scaled(tensor: torch.Tensor, scale: float) -> torch.Tensor:
    return tensor.clone() if scale == 1.0 else tensor * scale


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
      reduce_type: one of the REDUCE_ constants.
      inputs: a tensor, whose reduction is returned, or a list of tensors, which are reduced in place.
      scale: multiplies the result.
      groups: lists of ranks that reduce among themselves; all of them by default.
      cctx, pin_layout: of no effect.
    """
    if reduce_type not in _REDUCE_TYPES:
        raise ValueError(f"all_reduce: unknown type {reduce_type!r}; it is one of {_REDUCE_TYPES}.")
    _check_alone("all_reduce")
    _check_groups("all_reduce", groups)
    if isinstance(inputs, torch.Tensor):
        return _scaled(inputs, scale)
    if scale != 1.0:
        with torch.no_grad():
            for tensor in inputs:
                tensor.mul_(scale)
    return None


def all_gather(
    value: torch.Tensor | list[torch.Tensor],
    dim: int = 0,
    groups: list[list[int]] | None = None,
    output: torch.Tensor | list[torch.Tensor] | None = None,
    pin_layout: bool = True,
    channel_id: int | None = None,
    use_global_device_ids: bool | None = None,
) -> Any:
    """Concatenates the processes' values on dimension `dim`, in the order of their ranks."""
    _check_alone("all_gather")
    _check_groups("all_gather", groups)
    return _identity(value, output)


def all_gather_bucketized(
    input_list: list[torch.Tensor],
    dim: int = 0,
    groups: list[list[int]] | None = None,
    output: list[torch.Tensor] | None = None,
    pin_layout: bool = False,
    bucket_cap_mb: int = 160,
) -> list[torch.Tensor]:
    """`all_gather` of many tensors, a few transfers at a time."""
    return all_gather(input_list, dim, groups, output, pin_layout)


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
    """Reduces over the processes, of which each keeps its part along `scatter_dim`."""
    if reduce_type not in _REDUCE_TYPES:
        raise ValueError(f"reduce_scatter: unknown type {reduce_type!r}.")
    _check_alone("reduce_scatter")
    _check_groups("reduce_scatter", groups)
    if shard_count != 1:
        raise ValueError(f"reduce_scatter: shard_count={shard_count}, but there is one process.")
    if isinstance(input, torch.Tensor):
        return _identity(_scaled(input, scale), output, copy=False)
    return _identity([_scaled(tensor, scale) for tensor in input], output, copy=False)


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
    """`reduce_scatter` of many tensors, a few transfers at a time."""
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
    """Splits the value along one dimension, sends part i to rank i, and concatenates what arrives along another."""
    _check_alone("all_to_all")
    _check_groups("all_to_all", groups)
    if split_count != 1:
        raise ValueError(f"all_to_all: split_count={split_count}, but there is one process.")
    return value.clone()


def collective_permute(value: torch.Tensor, pairs: list[list[int]]) -> torch.Tensor:
    """Sends the value along (source, target) pairs of ranks; who receives nothing gets zeros."""
    _check_alone("collective_permute")
    if any(tuple(pair) != (0, 0) for pair in pairs):
        raise ValueError(f"collective_permute: pairs={pairs}, but the only process has rank 0.")
    return value.clone() if pairs else torch.zeros_like(value)


def collective_broadcast(
    tensors: list[torch.Tensor],
    root_ordinal: int = 0,
    groups: list[int] | None = None,
    pin_layout: bool = True,
) -> None:
    """Overwrites the tensors, in place, with those of the root."""
    _check_alone("collective_broadcast")
    if root_ordinal != 0:
        raise ValueError(f"collective_broadcast: no process has rank {root_ordinal}.")


def send(value: torch.Tensor, channel_id: int) -> torch.Tensor:
    """Would send a value to another process."""
    raise NotImplementedError("xla_model.send: transfers between processes are not implemented.")


def recv(output: torch.Tensor, channel_id: int) -> torch.Tensor:
    """Would receive a value from another process."""
    raise NotImplementedError("xla_model.recv: transfers between processes are not implemented.")


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
    """Averages the gradients over the processes, in place."""
    count = xr.world_size()
    if count > 1:
        all_reduce(REDUCE_SUM, _fetch_gradients(optimizer), scale=1.0 / count, groups=groups)


def all_reduce_bucketized_gradients(
    gradients: list[torch.Tensor],
    scale: float,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
    bucket_cap_mb: int = 0,
) -> None:
    """Sums the gradients over the processes, in place, a few transfers at a time."""
    all_reduce(REDUCE_SUM, gradients, scale=scale, groups=groups)


def broadcast_master_param(model: torch.nn.Module) -> None:
    """Overwrites the model's parameters and buffers with those of rank 0."""
    collective_broadcast([*model.parameters(), *model.buffers()])


def _identity(value: Any, output: Any, copy: bool = True) -> Any:
    if output is None:
        if not copy:
            return value
        return value.clone() if isinstance(value, torch.Tensor) else [v.clone() for v in value]
    targets, sources = ([output], [value]) if isinstance(value, torch.Tensor) else (output, value)
    with torch.no_grad():
        for target, source in zip(targets, sources, strict=True):
            target.copy_(source)
    return output


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
