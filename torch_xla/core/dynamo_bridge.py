"""What `torch.compile(backend="openxla")` calls for the graphs that dynamo and AOTAutograd make.

A graph is run once on placeholders; what it records is kept, and a call of it is then one recorded operation. Like all
recorded work it runs at the next `torch_xla.sync()` or read, together with what is around it; a program that never syncs runs
step by step, as each step begins with the first graph of the one before.
"""

import contextlib
import warnings
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._ops import HigherOrderOperator
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from torch_xla import _XLAC
from torch_xla._dynamo import config
from torch_xla.experimental.dynamo_set_buffer_donor import wishes_of

# A graph that is called with other numbers again and again is captured for each: indices among them compile nothing. So many
# are kept.
_KEPT = 64


class _CapturingInterpreter(fx.Interpreter):
    """Runs a graph on placeholders, those of its own tensors included."""

    def __init__(self, module: fx.GraphModule, own: dict[str, torch.Tensor]) -> None:
        super().__init__(module)
        self._own = own

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._own.get(target, super().get_attr(target, args, kwargs))


class _RefusingDrawsOnTheCpu(TorchDispatchMode):
    """Numbers that the CPU draws would be the same in each call; those of the device are drawn anew."""

    supports_higher_order_operators = True  # they are captured by themselves

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, HigherOrderOperator):
            return func(*args, **kwargs)
        if torch.Tag.nondeterministic_seeded in func.tags:
            tensors = (x for x in pytree.tree_leaves(args) if isinstance(x, torch.Tensor))
            device = kwargs.get("device") or next((x.device for x in tensors), "cpu")
            if torch.device(device).type != "xla":
                raise RuntimeError("a captured graph draws numbers on the CPU")
        return func(*args, **kwargs)


class _Capture:
    """A captured graph, and what its results are made of."""

    def __init__(
        self,
        module: fx.GraphModule,
        names: list[str],
        constants: list[torch.Tensor],
        arguments: Sequence[Any],
    ) -> None:
        self._own = [_attribute(module, name) for name in names]
        self._constants = constants  # as long as they live, no other tensor has their identity
        self._places = [i for i, x in enumerate(arguments) if isinstance(x, torch.Tensor)]

        def run(placeholders: list[torch.Tensor]) -> list[torch.Tensor]:
            given = list(arguments)
            for place, placeholder in zip(self._places, placeholders, strict=False):
                given[place] = placeholder
            own = dict(zip(names, placeholders[len(self._places) :], strict=True))
            versions = [x._version for x in placeholders]
            with torch.no_grad(), _RefusingDrawsOnTheCpu():
                result = _CapturingInterpreter(module, own).run(*given)
            self._written = [i for i, x in enumerate(placeholders) if x._version != versions[i]]
            leaves, self._structure = pytree.tree_flatten(result)
            self._leaves = [None if isinstance(x, torch.Tensor) else x for x in leaves]
            self._results = [i for i, x in enumerate(leaves) if isinstance(x, torch.Tensor)]
            return [leaves[i] for i in self._results]

        self._graph = _XLAC.CapturedGraph(self._tensors(arguments), run)

    def _tensors(self, arguments: Sequence[Any]) -> list[torch.Tensor]:
        return [arguments[i] for i in self._places] + self._own

    def writes_into_shared(self, arguments: Sequence[Any]) -> bool:
        """Whether what it writes into one argument is to be read in another, of which a capture knows nothing."""
        if not self._written:
            return False
        places = [tensor.untyped_storage()._cdata for tensor in self._tensors(arguments)]
        counts = Counter(places)
        return any(counts[places[i]] > 1 for i in self._written)

    def call(self, arguments: Sequence[Any]) -> tuple[bool, Any]:
        """Whether it took the arguments, and the results."""
        results = self._graph.call(self._tensors(arguments))
        if results is None:
            return False, None
        leaves = list(self._leaves)
        for place, result in zip(self._results, results, strict=True):
            leaves[place] = result
        return True, pytree.tree_unflatten(leaves, self._structure)


def _attribute(module: fx.GraphModule, name: str) -> Any:
    value: Any = module
    for part in name.split("."):
        value = getattr(value, part)
    return value


class _CompiledGraph:
    """Calls the capture for the given numbers and shapes, or records the graph anew where none can be made."""

    def __init__(self, module: fx.GraphModule) -> None:
        self._module = module
        self._names = sorted(
            {
                str(node.target)
                for node in module.graph.nodes
                if node.op == "get_attr" and _is_on_device(_attribute(module, str(node.target)))
            }
        )
        self._constants = [
            str(node.target)
            for node in module.graph.nodes
            if node.op == "get_attr" and _is_elsewhere(_attribute(module, str(node.target)))
        ]
        self._captures: OrderedDict[tuple[Any, ...], list[_Capture]] = OrderedDict()
        self._can_be_captured = not any(node.op == "call_module" for node in module.graph.nodes)
        self._wishes = wishes_of(module.graph)

    def __call__(self, *arguments: Any) -> Any:
        if config.skip_input_data_check and self._captures:
            _check_are_data(arguments)
        for place, should_donate in self._wishes:
            if _is_on_device(arguments[place]):
                _XLAC._set_buffer_donation(arguments[place], should_donate)
        if self._can_be_captured:
            constants = [_attribute(self._module, name) for name in self._constants]
            key = _key_of(arguments, constants)
            for capture in self._captures_for(key):
                if capture.writes_into_shared(arguments):
                    return self._module(*arguments)
                taken, results = capture.call(arguments)
                if taken:
                    return results
            try:
                capture = _Capture(self._module, self._names, constants, arguments)
            except RuntimeError:
                # It reads a value while it is recorded, or gives what a capture cannot.
                self._can_be_captured = False
            else:
                self._keep(key, capture)
                if not capture.writes_into_shared(arguments):
                    return capture.call(arguments)[1]
        return self._module(*arguments)

    def _captures_for(self, key: tuple[Any, ...]) -> list[_Capture]:
        """Those to try, which are used last by that."""
        captures = self._captures.get(key)
        if captures is None:
            return []
        with contextlib.suppress(KeyError):  # another thread has given them up meanwhile
            self._captures.move_to_end(key)
        return list(captures)

    def _keep(self, key: tuple[Any, ...], capture: _Capture) -> None:
        """Those of the numbers used last, and of each the shapes captured last."""
        captures = self._captures.setdefault(key, [])
        captures.insert(0, capture)
        del captures[_KEPT:]
        while len(self._captures) > _KEPT:
            self._captures.popitem(last=False)


def _key_of(arguments: Sequence[Any], constants: list[torch.Tensor]) -> tuple[Any, ...]:
    """Equal for calls that may share a capture: numbers, and tensors of the CPU that the graph holds, are constants of it."""
    numbers = [None if isinstance(x, torch.Tensor) else (type(x), repr(x)) for x in arguments]
    return (*numbers, *((id(tensor), tensor._version) for tensor in constants))


def _is_on_device(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type == "xla"


def _is_elsewhere(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.device.type != "xla"


def _check_are_data(arguments: Sequence[Any]) -> None:
    """Raises RuntimeError for a tensor that is recorded work."""
    tensors = [x for x in arguments if isinstance(x, torch.Tensor)]
    for place, is_pending in enumerate(_XLAC._check_tensor_need_materialization(tensors)):
        if is_pending:
            raise RuntimeError(
                f"input data to dynamo graph can not be a pending ir: tensor {place} of {len(tensors)}, of shape "
                f"{tuple(tensors[place].shape)}, is recorded work. Call torch_xla.sync() before, or leave "
                "torch_xla._dynamo.config.skip_input_data_check as it is."
            )


def _warn_of_the_cpu(arguments: Sequence[Any]) -> None:
    """Of each tensor that a graph takes, where none is on the device: the graph runs on the CPU then."""
    if any(map(_is_on_device, arguments)):
        return
    for tensor in filter(_is_elsewhere, arguments):
        warnings.warn(
            f"Found tensor with shape {tensor.size()} on {tensor.device}, as all that a compiled function takes: it "
            "runs there. Move model and inputs to xla first.",
            stacklevel=3,
        )


def extract_compiled_graph(
    xla_model: fx.GraphModule, xla_args: Sequence[Any]
) -> Callable[..., Any]:
    """Returns a function that computes what `xla_model` does, with arguments like `xla_args`.

    Args:
      xla_model: a graph of operators.
      xla_args: tensors on one xla device, and numbers.
    """
    _XLAC._xla_increment_counter("DynamoExtractCompiledGraph", 1)
    _warn_of_the_cpu(xla_args)
    return _CompiledGraph(xla_model)
