"""See `torch_xla.core.dynamo_bridge`. Beside it, parts that clients of PyTorch/XLA's bridge build upon."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from torch_xla import _XLAC
from torch_xla.core.dynamo_bridge import extract_compiled_graph as extract_compiled_graph
from torch_xla.utils.buffer_donor_context import (
    alias_with_buffer_donor_config as alias_with_buffer_donor_config,
)


class GraphInputMatcher:
    """What a graph that is kept by its hash (`_XLAC._xla_warm_up_cache`) takes: a call's arguments, and tensors of its own.

    Args:
      tensor_id_to_arg_idx: where each argument of a call stands, by its identity when the graph was recorded.
      graph_input_tensor_ids: the identities of what the graph takes, in its order.
      graph_input_xla_values: the same as tensors, of which those that are no arguments are kept.
      xla_args_tensor_ids: the identities of all arguments.
    """

    def __init__(
        self,
        tensor_id_to_arg_idx: Mapping[int, int],
        graph_input_tensor_ids: Sequence[int],
        graph_input_xla_values: Sequence[torch.Tensor],
        xla_args_tensor_ids: Collection[int],
    ) -> None:
        self.tensor_id_to_arg_idx = tensor_id_to_arg_idx
        self.graph_input_tensor_ids = list(graph_input_tensor_ids)
        self.graph_input_xla_values = [
            None if identity in xla_args_tensor_ids else value
            for identity, value in zip(graph_input_tensor_ids, graph_input_xla_values, strict=True)
        ]

    def __call__(self, args: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """The graph's inputs for a call with these arguments."""
        return [
            args[self.tensor_id_to_arg_idx[identity]] if value is None else value
            for identity, value in zip(
                self.graph_input_tensor_ids, self.graph_input_xla_values, strict=True
            )
        ]


class UnsupportedNodesCollector(fx.Interpreter):
    """Runs a graph, and finds its nodes that the CPU computes."""

    def __init__(self, module: fx.GraphModule) -> None:
        super().__init__(module)
        self._unsupported: dict[fx.Node, None] = {}

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The graph's results."""
        _XLAC._set_fallback_observer(self._note)
        try:
            return super().run(*args, **kwargs)
        finally:
            _XLAC._set_fallback_observer(None)

    def run_node(self, n: fx.Node) -> Any:
        """The node's value."""
        self._node = n
        return super().run_node(n)

    def get_unsupported_nodes(self) -> list[fx.Node]:
        """Those that the CPU has computed, in order."""
        return list(self._unsupported)

    def _note(self, operator: str) -> None:
        self._unsupported[self._node] = None


class NoneRemover:
    """Takes each `None` out of a list or tuple, and puts it back where it was."""

    def __init__(self) -> None:
        self.none_poslist: list[int] = []

    def remove_nones(self, value_list: Any) -> Any:
        """The values that are not None: a list in place, a tuple as a new one. Where the others were is remembered."""
        self.none_poslist = [i for i, value in enumerate(value_list) if value is None]
        rest = [value for value in value_list if value is not None]
        return _in_place_of(value_list, rest)

    def add_nones(self, value_list: Any) -> Any:
        """The values with the Nones that were removed last: a list in place, a tuple as a new one."""
        all_values = list(value_list)
        for place in self.none_poslist:
            all_values.insert(place, None)
        return _in_place_of(value_list, all_values)


def _in_place_of(old: Any, values: list[Any]) -> Any:
    if not isinstance(old, list):
        return tuple(values)
    old[:] = values
    return old
