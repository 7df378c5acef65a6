"""Modules that learn their shapes from their first input (`nn.LazyLinear`) may be moved before that input.

`Module.to` replaces the parameters of a module that moves to the device by new ones of class `Parameter`, of which
such a module cannot tell any more that they wait for their shapes. These it moves in place, as it does between other
devices.
"""

import functools

import torch
from torch.nn.parameter import is_lazy


def register() -> None:
    compatible = torch._has_compatible_shallow_copy_type

    @functools.wraps(compatible)
    def has_compatible_shallow_copy_type(tensor: torch.Tensor, moved: torch.Tensor) -> bool:
        return is_lazy(tensor) or compatible(tensor, moved)

    torch._has_compatible_shallow_copy_type = has_compatible_shallow_copy_type
