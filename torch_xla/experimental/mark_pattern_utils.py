"""Composites of StableHLO, made from operations of PyTorch."""

import uuid
from typing import Any

import torch

from . import xla_marker


@torch._dynamo.assume_constant_result
def _new_id() -> str:
    return uuid.uuid4().hex


class StableHLOCompositeBuilder:
    """Makes one composite of what is computed between its marked inputs and its marked outputs.

        builder = StableHLOCompositeBuilder("vendor.gelu", {"approximate": True})
        x = builder.mark_inputs(x)
        y = builder.mark_outputs(torch.nn.functional.gelu(x))

    A compiler that knows the name may use a kernel of its own; every other one takes the operations.

    Args:
      name: the composite's.
      attr: its attributes: strings, numbers, bools and lists of numbers.
    """

    def __init__(self, name: str, attr: dict[str, Any] | None = None) -> None:
        self.attr = attr
        self.name = name
        self.id = _new_id()

    def mark_inputs(self, *tensors: torch.Tensor) -> Any:
        """The tensors, marked; one for one, otherwise a tuple. Once for each builder and call of the model.

        Raises:
          ValueError: for what is no tensor.
        """
        return self._mark(tensors, is_input=True)

    def mark_outputs(self, *tensors: torch.Tensor) -> Any:
        """The tensors, marked; one for one, otherwise a tuple. Once for each builder and call of the model.

        Raises:
          ValueError: for what is no tensor.
        """
        return self._mark(tensors, is_input=False)

    def _mark(self, tensors: tuple[torch.Tensor, ...], is_input: bool) -> Any:
        for tensor in tensors:
            if not isinstance(tensor, torch.Tensor):
                raise ValueError(f"input must be a torch tensor. Got {type(tensor)}.")
        attributes = None if is_input else xla_marker.serialize_composite_attr(self.attr)
        marked = tuple(
            torch.ops.xla.mark_tensor(
                tensor, name=self.name, pos=i, id=self.id, is_input=is_input, attr=attributes
            )
            for i, tensor in enumerate(tensors)
        )
        return marked[0] if len(marked) == 1 else marked
