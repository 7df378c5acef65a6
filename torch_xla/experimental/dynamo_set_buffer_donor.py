"""The operator `torch.ops.xla.dynamo_set_buffer_donor_`: the next program that takes a tensor may have its memory."""

import torch

from torch_xla import _XLAC
from torch_xla.experimental.custom_kernel import XLA_LIB

XLA_LIB.define("dynamo_set_buffer_donor_(Tensor(a!) t, bool should_donoate) -> Tensor(a!)")


@torch.library.impl(XLA_LIB, "dynamo_set_buffer_donor_", "XLA")
def dynamo_set_buffer_donor_(t: torch.Tensor, should_donate: bool) -> torch.Tensor:
    """Wishes that the tensor's memory goes to a result of the next program, and returns the tensor.

    Inside a compiled function it has no effect: memory of tensors that are written in place is reused there anyway.
    """
    _XLAC._set_buffer_donation(t, should_donate)
    return t


@torch.library.impl(XLA_LIB, "dynamo_set_buffer_donor_", "CompositeExplicitAutograd")
def _elsewhere(t: torch.Tensor, should_donate: bool) -> torch.Tensor:
    return t


@torch.library.impl(XLA_LIB, "dynamo_set_buffer_donor_", "Meta")
def _of_shapes(t: torch.Tensor, should_donate: bool) -> torch.Tensor:
    return t
