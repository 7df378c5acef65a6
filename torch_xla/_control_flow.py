"""Loops and branches on the device: torch's `while_loop`, `cond` and `scan` as one recorded operation each.

Their bodies are recorded once, into the program's `while` and `if`; nothing is read to decide how often one runs.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._C import DispatchKey
from torch._higher_order_ops.cond import cond_op, cond_op_dense
from torch._higher_order_ops.scan import scan_op
from torch._higher_order_ops.while_loop import while_loop_dense, while_loop_op
from torch.utils._python_dispatch import TorchDispatchMode

from torch_xla import _XLAC
from torch_xla.core.dynamo_bridge import _RefusingDrawsOnTheCpu

Tensors = Sequence[torch.Tensor]


def capture(
    device: torch.device, like: Tensors, function: Callable[..., Sequence[torch.Tensor]]
) -> _XLAC.CapturedFunction:
    """`function`, of tensors of these sizes and types, as the body of a loop or branch on `device`. It is called once.

    Raises:
      RuntimeError: for a function that reads values, writes into its arguments or into tensors from before, takes part in
        collectives, or draws numbers on the CPU.
    """

    def run(placeholders: list[torch.Tensor]) -> list[torch.Tensor]:
        with _RefusingDrawsOnTheCpu():
            results = function(*placeholders)
        return [x if x.device.type == "xla" else x.to(device) for x in results]

    return _XLAC.CapturedFunction(device, list(like), run)


def traced(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of which a trace has gradients and autocast in it already: it is called without both."""

    def call(*arguments: Any) -> Any:
        with torch.no_grad(), torch.autocast("xla", enabled=False):
            return function(*arguments)

    return call


_OTHER_MASK = (
    "backward draws random numbers, which are not those of forward: a checkpoint computes a function with dropout again, for "
    "example. Leave such functions out of it"
)


def draws(operation: Any) -> bool:
    """Whether an operator draws random numbers."""
    return torch.Tag.nondeterministic_seeded in getattr(operation, "tags", ())


def check_backward(joint: fx.Graph, result_count: int) -> None:
    """Raises RuntimeError where backward draws numbers of its own, as a loop's body has no state that it could set back.

    Args:
      joint: forward and backward; its first results are forward's.
      result_count: how many these are.
    """
    pending = [x for x in joint.output_node().args[0][:result_count] if isinstance(x, fx.Node)]  # type: ignore[index, union-attr]
    of_forward = set(pending)
    while pending:
        for node in pending.pop().all_input_nodes:
            if node not in of_forward:
                of_forward.add(node)
                pending.append(node)
    if any(draws(node.target) for node in joint.nodes if node not in of_forward):
        raise RuntimeError(f"scan: {_OTHER_MASK}")


class RefusingDraws(TorchDispatchMode):
    """The same for a backward that is being recorded."""

    supports_higher_order_operators = True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if draws(func):
            raise RuntimeError(f"gradient_accumulation: {_OTHER_MASK}")
        return func(*args, **(kwargs or {}))


def scan(
    body: _XLAC.CapturedFunction,
    carries: Tensors,
    xs: Tensors,
    invariants: Tensors,
    length: int,
    reverse: bool = False,
) -> list[torch.Tensor]:
    """The last carries and the stacked ys of `length` runs of `body`, see src/aten/control_flow.h."""
    return _XLAC._xla_scan(body, list(carries), list(xs), list(invariants), length, reverse)


def slices_like(xs: Tensors) -> list[torch.Tensor]:
    """Tensors of the sizes and types that one element of each along the first dimension has."""
    return [torch.empty(x.shape[1:], dtype=x.dtype, device="meta") for x in xs]


class _Operands:
    """The operands of a higher-order operator: tensors, and numbers, which are constants of its bodies."""

    def __init__(self, operands: Sequence[Any]) -> None:
        self._operands = list(operands)
        self._places = [i for i, x in enumerate(operands) if isinstance(x, torch.Tensor)]
        on_device = [operands[i].device for i in self._places if operands[i].device.type == "xla"]
        self.device = on_device[0]
        self.tensors = [operands[i].to(self.device) for i in self._places]

    def bind(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function` of all operands as one of the tensors among them."""

        def bound(*tensors: torch.Tensor) -> Any:
            arguments = list(self._operands)
            for place, tensor in zip(self._places, tensors, strict=True):
                arguments[place] = tensor
            with torch.no_grad():
                return function(*arguments)

        return bound


def _are_tensors(values: Sequence[Any]) -> bool:
    return all(isinstance(value, torch.Tensor) for value in values)


def _some_on_device(values: Sequence[Any]) -> bool:
    return any(isinstance(value, torch.Tensor) and value.is_xla for value in values)


def while_loop(
    cond_fn: Callable[..., Any],
    body_fn: Callable[..., Any],
    carried_inputs: Sequence[Any],
    additional_inputs: Sequence[Any] = (),
    **kwargs: Any,
) -> Any:
    """Runs `body_fn` as long as `cond_fn` is true, on the device; both take all inputs.

    Python numbers that are carried, tensors that the body writes into (which torch tells in a keyword), and none on the
    device make it a loop of Python's, as on other devices.

    Args:
      cond_fn: gives a bool, a tensor of one element.
      body_fn: gives the next carried inputs, of the same shapes and dtypes.
      carried_inputs, additional_inputs: tensors; the latter may be numbers.

    Returns:
      A tuple of what the last run has given.
    """
    on_device = _some_on_device([*carried_inputs, *additional_inputs])
    if kwargs or not on_device or not _are_tensors(carried_inputs):
        return while_loop_dense(cond_fn, body_fn, carried_inputs, additional_inputs, **kwargs)
    operands = _Operands([*carried_inputs, *additional_inputs])
    decide = operands.bind(cond_fn)
    run = operands.bind(body_fn)
    condition = capture(
        operands.device, operands.tensors, lambda *xs: [torch.as_tensor(decide(*xs))]
    )
    body = capture(operands.device, operands.tensors, run)
    carries = operands.tensors[: len(carried_inputs)]
    invariants = operands.tensors[len(carried_inputs) :]
    return tuple(_XLAC._xla_while(condition, body, carries, invariants))


def _cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Sequence[Any]
) -> Any:
    if not isinstance(pred, torch.Tensor) or pred.device.type != "xla":
        return cond_op_dense(pred, true_fn, false_fn, operands)
    taken = _Operands([pred, *operands])
    present: list[bool] = []  # whether each result is a tensor; the others are None in both

    def branch(function: Callable[..., Any]) -> _XLAC.CapturedFunction:
        bound = taken.bind(lambda _, *rest: function(*rest))

        def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
            results = bound(*tensors)
            present[:] = [isinstance(result, torch.Tensor) for result in results]
            return [result for result in results if isinstance(result, torch.Tensor)]

        return capture(taken.device, taken.tensors, run)

    on_true, on_false = branch(true_fn), branch(false_fn)
    results = iter(_XLAC._xla_branch(taken.tensors[0], on_true, on_false, taken.tensors))
    return tuple(next(results) if is_tensor else None for is_tensor in present)


def _scan(
    combine_fn: Callable[..., Any], init: Tensors, xs: Tensors, additional_inputs: Sequence[Any]
) -> Any:
    operands = _Operands([*init, *xs, *additional_inputs])
    carries, stacked = operands.tensors[: len(init)], operands.tensors[len(init) :][: len(xs)]
    invariants = operands.tensors[len(init) + len(xs) :]
    present: list[bool] = []
    bound = operands.bind(combine_fn)

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        results = bound(*tensors)
        present[:] = [isinstance(result, torch.Tensor) for result in results]
        return [result for result in results if isinstance(result, torch.Tensor)]

    body = capture(operands.device, [*carries, *slices_like(stacked), *invariants], run)
    results = iter(scan(body, carries, stacked, invariants, stacked[0].shape[0]))
    return tuple(next(results) if is_tensor else None for is_tensor in present)


def register() -> None:
    """Makes these the implementations on the device of torch's higher-order operators."""
    while_loop_op.py_impl(DispatchKey.XLA)(while_loop)
    cond_op.py_impl(DispatchKey.XLA)(_cond)
    scan_op.py_impl(DispatchKey.XLA)(_scan)
