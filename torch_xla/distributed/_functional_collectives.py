"""`torch.distributed`'s functional collectives on xla tensors, which are recorded as those of `xla_model` are.

They name their group by a name. Of one that is not made, "default" for example, all processes are taken for members.
"""

import contextlib
from typing import Any

import torch
import torch.distributed as dist

from torch_xla.core import xla_model as xm

_LIBRARY = torch.library.Library("_c10d_functional", "IMPL")

_REDUCTIONS = {
    "sum": xm.REDUCE_SUM,
    "avg": xm.REDUCE_SUM,
    "product": xm.REDUCE_MUL,
    "min": xm.REDUCE_MIN,
    "max": xm.REDUCE_MAX,
    "band": xm.REDUCE_AND,
    "bor": xm.REDUCE_OR,
}


def _group_of(name: Any) -> dist.ProcessGroup | None:
    if isinstance(name, dist.ProcessGroup):
        return name
    with contextlib.suppress(RuntimeError, LookupError):
        return dist.distributed_c10d._resolve_process_group(name)
    return None


def _ranks(name: Any) -> list[list[int]] | None:
    group = _group_of(name)
    return None if group is None else [dist.get_process_group_ranks(group)]


def _count(name: Any) -> int:
    group = _group_of(name)
    return xm.xrt_world_size() if group is None else group.size()


def _reduction(word: str, name: Any) -> tuple[str, float]:
    if word.lower() not in _REDUCTIONS:
        raise NotImplementedError(f"The reduction {word} is not implemented for xla tensors.")
    scale = 1.0 / _count(name) if word.lower() == "avg" else 1.0
    return _REDUCTIONS[word.lower()], scale


def all_reduce(input: torch.Tensor, reduce_op: str, group_name: Any) -> torch.Tensor:
    """The reduction of the processes' tensors."""
    reduction, scale = _reduction(reduce_op, group_name)
    return xm.all_reduce(reduction, input, scale, _ranks(group_name))


def all_reduce_(input: torch.Tensor, reduce_op: str, group_name: Any) -> torch.Tensor:
    """The same in place."""
    return input.copy_(all_reduce(input, reduce_op, group_name))


def all_reduce_coalesced(
    inputs: list[torch.Tensor], reduce_op: str, group_name: Any
) -> list[torch.Tensor]:
    """The reductions of several, which travel together."""
    return all_reduce_coalesced_([tensor.clone() for tensor in inputs], reduce_op, group_name)


def all_reduce_coalesced_(
    inputs: list[torch.Tensor], reduce_op: str, group_name: Any
) -> list[torch.Tensor]:
    """The same in place."""
    reduction, scale = _reduction(reduce_op, group_name)
    xm.all_reduce(reduction, inputs, scale, _ranks(group_name))
    return inputs


def all_gather_into_tensor(input: torch.Tensor, group_size: int, group_name: Any) -> torch.Tensor:
    """The processes' tensors, one after the other along the first dimension."""
    return xm.all_gather(input, 0, _ranks(group_name))


def all_gather_into_tensor_coalesced(
    inputs: list[torch.Tensor], group_size: int, group_name: Any
) -> list[torch.Tensor]:
    """The same of several, which travel together."""
    return xm.all_gather(list(inputs), 0, _ranks(group_name))


def reduce_scatter_tensor(
    input: torch.Tensor, reduce_op: str, group_size: int, group_name: Any
) -> torch.Tensor:
    """This process's part, along the first dimension, of the reduction."""
    reduction, scale = _reduction(reduce_op, group_name)
    return xm.reduce_scatter(reduction, input, scale, 0, group_size, _ranks(group_name))


def reduce_scatter_tensor_coalesced(
    inputs: list[torch.Tensor], reduce_op: str, group_size: int, group_name: Any
) -> list[torch.Tensor]:
    """The same of several."""
    return [reduce_scatter_tensor(tensor, reduce_op, group_size, group_name) for tensor in inputs]


def all_to_all_single(
    input: torch.Tensor,
    output_split_sizes: list[int],
    input_split_sizes: list[int],
    group_name: Any,
) -> torch.Tensor:
    """Part i of the first dimension goes to process i. Raises NotImplementedError for parts of several sizes."""
    if len({*output_split_sizes, *input_split_sizes}) > 1:
        raise NotImplementedError(
            f"all_to_all_single of parts of {input_split_sizes} to parts of {output_split_sizes}: programs exchange parts of "
            "one size; torch.distributed.all_to_all_single takes others."
        )
    return xm.all_to_all(input, 0, 0, _count(group_name), _ranks(group_name))


def broadcast(input: torch.Tensor, src: int, group_name: Any) -> torch.Tensor:
    """The tensor of process `src`, which is its rank in the group."""
    result = input.clone()
    ranks = _ranks(group_name)
    xm.collective_broadcast([result], ranks[0][src] if ranks else src, ranks)
    return result


def broadcast_(input: torch.Tensor, src: int, group_name: Any) -> torch.Tensor:
    """The same in place."""
    return input.copy_(broadcast(input, src, group_name))


def wait_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """What is recorded is there for whoever goes on recording."""
    return tensor


for _function in (
    all_reduce,
    all_reduce_,
    all_reduce_coalesced,
    all_reduce_coalesced_,
    all_gather_into_tensor,
    all_gather_into_tensor_coalesced,
    reduce_scatter_tensor,
    reduce_scatter_tensor_coalesced,
    all_to_all_single,
    broadcast,
    broadcast_,
    wait_tensor,
):
    _LIBRARY.impl(_function.__name__, _function, "XLA")
