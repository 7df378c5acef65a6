"""What of a state lies in parts."""

import copy
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from torch.utils import _pytree

# What has the parts that lie in this process, on the device as on the CPU.
_CpuShards = DTensor


def _is_sharded_tensor(value: Any) -> bool:
    """Whether the processes have a part of the value each, and not all of it."""
    return isinstance(value, DTensor) and any(
        placement.is_shard() and value.device_mesh.size(dimension) > 1
        for dimension, placement in enumerate(value.placements)
    )


def _sharded_cpu_state_dict(state_dict: dict[str, Any]) -> dict[str, Any]:
    """The state as it is now, on the CPU; what lies in parts stays in parts."""
    return _pytree.tree_map(_copied, state_dict)


def _copied(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return copy.deepcopy(value)
    with torch.no_grad():
        return value.detach().clone() if value.device.type == "cpu" else value.detach().cpu()


def _separated(state_dict: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What lies in parts, and what does not, of a flat state."""
    sharded = {name: value for name, value in state_dict.items() if _is_sharded_tensor(value)}
    whole = {name: value for name, value in state_dict.items() if name not in sharded}
    return sharded, whole
