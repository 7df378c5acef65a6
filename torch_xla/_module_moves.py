"""What `Module.to` would lose on the way to the device, where it replaces parameters by new ones.

- A parameter that several modules share stays one parameter (an embedding and the layer that predicts words).
- Modules that learn their shapes from their first input (`nn.LazyLinear`) may be moved before that input: their
  parameters, whose class says that they wait, are moved in place, as between other devices.
"""

import collections
import functools
import threading
from typing import Any

import torch
from torch.nn.parameter import is_lazy

_moving = threading.local()

Place = tuple[torch.nn.Module, str]


def _shared(module: torch.nn.Module) -> list[list[Place]]:
    """The places of each parameter that has more than one."""
    places: dict[int, list[Place]] = collections.defaultdict(list)
    for owner in module.modules():
        for name, parameter in owner._parameters.items():
            if parameter is not None:
                places[id(parameter)].append((owner, name))
    return [found for found in places.values() if len(found) > 1]


def _share_again(shared: list[list[Place]]) -> None:
    for (owner, name), *others in shared:
        parameter = owner._parameters[name]
        if parameter is None or parameter.device.type != "xla":
            continue
        for other, other_name in others:
            other._parameters[other_name] = parameter


def _keep_shared_parameters() -> None:
    apply = torch.nn.Module._apply

    @functools.wraps(apply)
    def _apply(self: torch.nn.Module, fn: Any, recurse: bool = True) -> torch.nn.Module:
        if getattr(_moving, "active", False) or not recurse:
            return apply(self, fn, recurse)
        shared = _shared(self)
        _moving.active = True
        try:
            return apply(self, fn, recurse)
        finally:
            _moving.active = False
            _share_again(shared)

    torch.nn.Module._apply = _apply


def _move_uninitialized_parameters_in_place() -> None:
    compatible = torch._has_compatible_shallow_copy_type

    @functools.wraps(compatible)
    def has_compatible_shallow_copy_type(tensor: torch.Tensor, moved: torch.Tensor) -> bool:
        return is_lazy(tensor) or compatible(tensor, moved)

    torch._has_compatible_shallow_copy_type = has_compatible_shallow_copy_type


def register() -> None:
    _keep_shared_parameters()
    _move_uninitialized_parameters_in_place()
