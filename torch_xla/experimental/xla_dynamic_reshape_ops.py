"""`xla::dynamic_view` and `xla::dynamic_expand`: a view and an expansion, one of whose sizes is taken from another tensor.

A graph that has them says of each size that varies which tensor has it.
"""

from collections.abc import Callable, Sequence

import torch

from torch_xla.experimental.custom_kernel import XLA_LIB

XLA_LIB.define(
    "dynamic_view(Tensor(a) input, SymInt[] size, Tensor src_tensor, int src_dim, int target_dim, SymInt mul_scaler)"
    " -> Tensor(a)"
)
XLA_LIB.define(
    "dynamic_expand(Tensor(a) input, SymInt[] size, Tensor src_tensor, int src_dim, int target_dim) -> Tensor(a)"
)


def _sizes(size: Sequence[int], target_dim: int, value: int) -> list[int]:
    return [value if i == target_dim else wanted for i, wanted in enumerate(size)]


def dynamic_view(
    input: torch.Tensor,
    size: Sequence[int],
    src_tensor: torch.Tensor,
    src_dim: int,
    target_dim: int,
    mul_scaler: int,
) -> torch.Tensor:
    """The input with these sizes, but at `target_dim` the size of `src_tensor` at `src_dim`, times `mul_scaler`."""
    return input.reshape(_sizes(size, target_dim, src_tensor.shape[src_dim] * mul_scaler))


def dynamic_expand(
    input: torch.Tensor,
    size: Sequence[int],
    src_tensor: torch.Tensor,
    src_dim: int,
    target_dim: int,
) -> torch.Tensor:
    """The input expanded to these sizes, but at `target_dim` to the size of `src_tensor` at `src_dim`."""
    return input.expand(_sizes(size, target_dim, src_tensor.shape[src_dim]))


def _register(name: str, function: Callable[..., torch.Tensor]) -> None:
    XLA_LIB.impl(name, function, "CompositeImplicitAutograd")


_register("dynamic_view", dynamic_view)
_register("dynamic_expand", dynamic_expand)
