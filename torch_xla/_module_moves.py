"""`Module.to` keeps the parameters themselves on the way to the device and back, as between torch's own devices.

So they keep their class, attributes and hooks, those that modules share stay shared, and an optimizer that was made before the
move trains them.
"""

import functools

import torch

from torch_xla import _XLAC


def register() -> None:
    """Makes torch set a parameter's data where it would make a new parameter."""
    compatible = torch._has_compatible_shallow_copy_type

    @functools.wraps(compatible)
    def has_compatible_shallow_copy_type(tensor: torch.Tensor, moved: torch.Tensor) -> bool:
        return compatible(tensor, moved) or _XLAC._xla_can_set_data(tensor, moved)

    torch._has_compatible_shallow_copy_type = has_compatible_shallow_copy_type
