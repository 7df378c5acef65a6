"""The operator `torch.ops.xla.mark_tensor`: the border of a composite of StableHLO.

What lies between marked inputs and outputs becomes one `stablehlo.composite`, which a compiler may know by its name; every other
one takes the operations themselves. `mark_pattern_utils` is the convenient way.
"""

from typing import Any

import torch

from torch_xla import _XLAC
from torch_xla.experimental.custom_kernel import XLA_LIB

XLA_LIB.define(
    "mark_tensor(Tensor x, str name, int pos, str id, bool is_input, Any? attr=None) -> Tensor"
)


def _is_value(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return len(value) > 0 and any(
            all(type(item) is kind for item in value) for kind in (int, float, bool)
        )
    return isinstance(value, str | float | int | bool)


def serialize_composite_attr(attr: dict[str, Any] | None) -> tuple[tuple[str, Any], ...] | None:
    """A composite's attributes as `mark_tensor` takes them.

    Raises:
      ValueError: for what is no dictionary of strings, numbers and lists of numbers.
    """
    if attr is None:
        return None
    if not isinstance(attr, dict):
        raise ValueError("Composite attr must be a Python dictionary.")
    for name, value in attr.items():
        if not isinstance(name, str):
            raise ValueError("Composite attr name must be a Python str.")
        if not _is_value(value):
            raise ValueError(
                "Composite attr value must be either Python str, float, int, bool, list[int], list[float], list[bool]."
            )
    return tuple(
        (name, tuple(value) if isinstance(value, list) else value) for name, value in attr.items()
    )


def deserialize_composite_attr(attr: Any) -> dict[str, Any]:
    """What `serialize_composite_attr` was given, with tuples for lists."""
    return dict(attr or ())


@torch.library.impl(XLA_LIB, "mark_tensor", "XLA")
def mark_tensor_xla(
    x: torch.Tensor, name: str, pos: int, id: str, is_input: bool, attr: Any = None
) -> torch.Tensor:
    """The tensor, marked in the recorded program."""
    return _XLAC._xla_mark_tensor(x, name, pos, id, is_input, deserialize_composite_attr(attr))


@torch.library.impl(XLA_LIB, "mark_tensor", "CompositeExplicitAutograd")
def mark_tensor(
    x: torch.Tensor, name: str, pos: int, id: str, is_input: bool, attr: Any = None
) -> torch.Tensor:
    """The tensor: only programs for xla have composites."""
    return x.clone()


@torch.library.impl(XLA_LIB, "mark_tensor", "Meta")
def mark_tensor_meta(
    x: torch.Tensor, name: str, pos: int, id: str, is_input: bool, attr: Any = None
) -> torch.Tensor:
    """A tensor of the same shape."""
    return torch.empty_like(x)


torch.library.register_autograd(
    "xla::mark_tensor",
    lambda _, gradient: (gradient, None, None, None, None, None),
    lib=XLA_LIB,
)
