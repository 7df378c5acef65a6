"""The operator `torch.ops.xla.dynamo_set_buffer_donor_`: the next program that takes a tensor may have its memory."""

from typing import Any

import torch
from torch import fx

from torch_xla import _XLAC
from torch_xla.experimental.custom_kernel import XLA_LIB

XLA_LIB.define("dynamo_set_buffer_donor_(Tensor(a!) t, bool should_donoate) -> Tensor(a!)")
# The same as it stands in graphs without mutation, which have no results that are arguments.
XLA_LIB.define("wish_for_donation(Tensor t, bool should_donate) -> ()")
fx.node.has_side_effect(torch.ops.xla.wish_for_donation.default)


@torch.library.impl(XLA_LIB, "dynamo_set_buffer_donor_", "XLA")
def dynamo_set_buffer_donor_(t: torch.Tensor, should_donate: bool) -> torch.Tensor:
    """Wishes that the tensor's memory goes to a result of the next program, and returns the tensor.

    In a compiled function it is said of the function's argument, each time that the function is called.
    """
    _XLAC._set_buffer_donation(t, should_donate)
    return t


@torch.library.impl(XLA_LIB, "dynamo_set_buffer_donor_", "CompositeExplicitAutograd")
def _elsewhere(t: torch.Tensor, should_donate: bool) -> torch.Tensor:
    return t


@torch.library.impl(XLA_LIB, "dynamo_set_buffer_donor_", "Meta")
def _of_shapes(t: torch.Tensor, should_donate: bool) -> torch.Tensor:
    return t


@torch.ops.xla.dynamo_set_buffer_donor_.default.py_functionalize_impl
def _without_mutation(context: Any, t: torch.Tensor, should_donate: bool) -> torch.Tensor:
    with context.redispatch_to_next():
        torch.ops.xla.wish_for_donation(context.unwrap_tensors(t), should_donate)
    return t


@torch.library.impl(XLA_LIB, "wish_for_donation", "XLA")
def _wish_for_donation(t: torch.Tensor, should_donate: bool) -> None:
    _XLAC._set_buffer_donation(t, should_donate)


@torch.library.impl(XLA_LIB, "wish_for_donation", "CompositeExplicitAutograd")
def _nothing(t: torch.Tensor, should_donate: bool) -> None:
    pass


def wishes_of(graph: fx.Graph) -> list[tuple[int, bool]]:
    """The arguments, by their places, whose memory a graph without mutation wishes for, or no longer does."""
    places = {node: i for i, node in enumerate(graph.find_nodes(op="placeholder"))}
    wish = torch.ops.xla.wish_for_donation.default
    nodes = graph.find_nodes(op="call_function", target=wish)
    return [(places[node.args[0]], node.args[1]) for node in nodes if node.args[0] in places]
