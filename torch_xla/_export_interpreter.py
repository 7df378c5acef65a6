"""Exported programs of torch, interpreted on the device, so that what they compute is recorded."""

import json
from collections.abc import Callable, Collection, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from . import _XLAC, _export_running
from ._errors import MissingValueError


class XLAExportInterpreter(torch.fx.Interpreter):
    """Runs a graph's operations on the device.

    Args:
      module: the graph.
      device: where; what the graph says of devices does not count.
      custom_ops_allowed_in_graph: namespaces of operators that become custom calls, which some compiler knows.
      gm_serializer: what a node's location in the program says of it; None: nothing.
    """

    def __init__(
        self,
        module: torch.fx.GraphModule,
        device: torch.device,
        custom_ops_allowed_in_graph: Collection[str] = (),
        gm_serializer: Callable[[torch.fx.Node], str] | None = None,
    ) -> None:
        super().__init__(module)
        self._device = device
        self._custom_ops_allowed_in_graph = frozenset(custom_ops_allowed_in_graph)
        self._gm_serializer = gm_serializer

    def run_node(self, n: torch.fx.Node) -> Any:
        """The node's value.

        Raises:
          RuntimeError: for an operator whose result depends on values, which are not there yet.
        """
        try:
            result = self._value_of(n)
        # Nothing but the arguments, which are placeholders, can be missing.
        except MissingValueError as error:
            raise RuntimeError(
                f"the exported program reads values by {n.target} ({n.name}), which are there only when it runs. "
                "Say it with operators that compute on the device: none whose results' sizes depend on values (torch.where and "
                "masks have sizes that do not), none that a library runs on the CPU (torch.linalg.svd, eigh); or let an operator "
                "of your own be a custom call (custom_ops_allowed_in_graph)."
            ) from error
        if self._gm_serializer is None or n.op != "call_function":
            return result
        origin = self._gm_serializer(n)
        return pytree.tree_map_only(
            torch.Tensor, lambda tensor: _XLAC._xla_mark_location(tensor, origin), result
        )

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls an operator, on the device whatever device it names."""
        if "device" in kwargs:
            kwargs = {**kwargs, "device": self._device}
        args = tuple(self._device if isinstance(arg, torch.device) else arg for arg in args)
        return super().call_function(target, args, kwargs)

    def get_attr(self, target: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A constant of the graph, on the device, or what runs the body of a branch or loop there."""
        value = super().get_attr(target, args, kwargs)
        if isinstance(value, torch.fx.GraphModule):
            return XLAExportInterpreter(
                value, self._device, self._custom_ops_allowed_in_graph, self._gm_serializer
            ).run
        return value.to(self._device) if isinstance(value, torch.Tensor) else value

    def _value_of(self, node: torch.fx.Node) -> Any:
        if node.op != "call_function":
            return super().run_node(node)
        if node.target is torch.ops.higher_order.with_effects:
            return self._call_with_effects(node)
        if self._is_custom(node.target):
            args, kwargs = self.fetch_args_kwargs_from_env(node)
            return self._call_custom(node.target, args, kwargs, node.meta["val"])
        if _export_running.is_of_any_length(node):
            args, kwargs = self.fetch_args_kwargs_from_env(node)
            return _export_running.running(node.target, *args, **kwargs)
        return super().run_node(node)

    def _call_with_effects(self, node: torch.fx.Node) -> tuple[Any, ...]:
        """Calls an operator that a token puts in order with others. Programs have no tokens: it is None before and after."""
        (_, operator, *args), kwargs = self.fetch_args_kwargs_from_env(node)
        if operator is torch.ops.aten._linalg_check_errors.default:
            return None, None  # it judges values, and gives none
        if self._is_custom(operator):
            _, *like = node.meta["val"]
            results = self._call_custom(operator, tuple(args), kwargs, tuple(like))
        else:
            results = self.call_function(operator, tuple(args), kwargs)
        return (None, *results) if isinstance(results, tuple) else (None, results)

    def _is_custom(self, target: Any) -> bool:
        return (
            isinstance(target, torch._ops.OpOverload)
            and target.namespace in self._custom_ops_allowed_in_graph
        )

    @staticmethod
    def _call_custom(target: Any, args: Any, kwargs: Any, like: Any) -> Any:
        """The operator as a custom call, whose results are `like` these."""
        tensors = [
            leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)
        ]
        leaves, spec = pytree.tree_flatten(like)
        results = _XLAC._xla_custom_call(
            tensors,
            str(target),
            [[int(size) for size in leaf.shape] for leaf in leaves],
            [leaf.dtype for leaf in leaves],
        )
        return pytree.tree_unflatten(results, spec)


def node_origin(node: torch.fx.Node) -> str:
    """Where a node comes from, as JSON: its stack trace, and the modules and functions it lies in."""
    modules = node.meta.get("nn_module_stack") or {}
    functions = node.meta.get("source_fn_stack") or []
    return json.dumps(
        {
            "name": node.name,
            "stack_trace": node.meta.get("stack_trace"),
            "nn_module_stack": {
                key: [str(part) for part in value] for key, value in modules.items()
            },
            "source_fn_stack": [[str(part) for part in entry] for entry in functions],
        }
    )


def run_decompositions(exported: Any) -> Any:
    """The program in operators of ATen's core, less those that are better recorded as they are."""
    from torch._decomp import get_decompositions

    table = torch.export.default_decompositions()
    table.update(get_decompositions([torch.ops.aten.grid_sampler_2d]))
    table[torch.ops.aten._safe_softmax.default] = torch.softmax
    return exported.run_decompositions(table)


def states_of(exported: Any) -> dict[str, torch.Tensor]:
    """The tensors that the program takes beside its arguments, by the names that its signature gives them."""
    values = {**exported.state_dict, **exported.constants}
    return {name: values[name] for _, name in state_placeholders(exported)}


def state_placeholders(exported: Any) -> Iterator[tuple[int, str]]:
    """The placeholders that take a parameter, a buffer or a constant tensor, by index, and its name."""
    values = {**exported.state_dict, **exported.constants}
    for index, spec in enumerate(exported.graph_signature.input_specs):
        if spec.target is not None and isinstance(values.get(spec.target), torch.Tensor):
            yield index, spec.target
