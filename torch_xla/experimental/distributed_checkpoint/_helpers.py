"""State dictionaries as they are written while the training goes on."""

from typing import Any

import torch
import torch.utils._pytree as pytree


class _CpuShards(list[torch.Tensor]):
    """On the CPU, the parts of a tensor that is spread over devices. A process has one device, so no tensor is."""


def _is_sharded_tensor(value: Any) -> bool:
    """Whether it is spread over devices."""
    return False


def _sharded_cpu_state_dict(state_dict: dict[str, Any]) -> dict[str, Any]:
    """A state dictionary with copies of its tensors, on the CPU: what becomes of the originals does not matter any more."""
    return pytree.tree_map_only(torch.Tensor, _copied, state_dict)


def _copied(tensor: torch.Tensor) -> torch.Tensor:
    detached = tensor.detach()
    return detached.clone() if detached.device.type == "cpu" else detached.cpu()
