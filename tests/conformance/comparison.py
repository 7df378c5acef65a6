"""One computation on the CPU and on the device: both give the same tensors, or both refuse."""

import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.testing._internal.common_utils import TestCase
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

import torch_xla.debug.metrics as metrics

Tree = Any


@dataclasses.dataclass
class Refusal:
    """An exception in place of a result."""

    error: Exception


class Differences:
    """What differed in some samples of a test, told together at its end."""

    def __init__(self) -> None:
        self._seen = 0
        self._found: list[str] = []

    @contextlib.contextmanager
    def of(self, sample: str) -> Iterator[None]:
        self._seen += 1
        try:
            yield
        except Exception as error:
            self._found.append(f"{type(error).__name__}: {error}\n  {sample}")

    def fail_if_any(self) -> None:
        if self._found:
            shown = "\n".join(self._found[:3])
            raise AssertionError(f"{len(self._found)} of {self._seen} samples differ:\n{shown}")


def to_device(tree: Tree, device: str) -> Tree:
    """Copies of a tree's tensors as leaves on `device`, which keep what they say of gradients, strides and conjugation."""

    def copy(x: Any) -> Any:
        if isinstance(x, torch.device) and x.type == "cpu":
            return torch.device(device)
        if not isinstance(x, torch.Tensor):
            return x
        return x.detach().clone().to(device).requires_grad_(x.requires_grad)

    return pytree.tree_map(copy, tree)


def tensors(tree: Tree) -> list[torch.Tensor]:
    return [x for x in pytree.tree_leaves(tree) if isinstance(x, torch.Tensor)]


def attempt(function: Callable[..., Tree], *args: Any) -> list[torch.Tensor] | Refusal:
    """The tensors of function(*args), or what it raised."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return tensors(function(*args))
    except Exception as error:
        return Refusal(error)


def gradients(
    outputs: list[torch.Tensor], inputs: list[torch.Tensor], by_value: bool = False
) -> list[torch.Tensor]:
    """The gradients of a weighted sum of the outputs; the weights differ, so that a permuted gradient is seen.

    Args:
      outputs: of the operator.
      inputs: of it; those that want no gradient are left out.
      by_value: each element's weight is its value, so that equal ones may stand for each other.
    """
    wanted = [x for x in outputs if x.requires_grad]
    inputs = [x for x in inputs if x.requires_grad]
    if not wanted or not inputs:
        return []
    weights = [
        x.detach() if by_value else (torch.arange(x.numel()).reshape(x.shape) % 7 + 1).to(x)
        for x in wanted
    ]
    found = torch.autograd.grad(wanted, inputs, weights, allow_unused=True)
    return [x for x in found if x is not None]


def to_host(result: list[torch.Tensor] | Refusal) -> list[torch.Tensor] | Refusal:
    if isinstance(result, Refusal):
        return result
    return [x.detach().cpu() for x in result]


def fallbacks() -> list[str]:
    """The operators that ran on the CPU since the counters were cleared."""
    return sorted(
        name
        for name in metrics.counter_names()
        if name.startswith("aten::") and name != "aten::_local_scalar_dense"
    )


class DrawWatch(TorchDispatchMode):
    """Sees whether random numbers are drawn under it."""

    drew = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.drew = self.drew or torch.Tag.nondeterministic_seeded in func.tags
        return func(*args, **(kwargs or {}))


def draws(function: Callable[..., Tree], *args: Any) -> bool:
    """Whether the function draws random numbers.

    Its results are not used: under a mode some operators of eager differ, as the pseudo-inverse of a complex matrix.
    """
    with DrawWatch() as watch:
        attempt(function, *args)
    return watch.drew


WIDER = {
    torch.bfloat16: torch.float32,
    torch.float16: torch.float32,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def widened(tree: Tree) -> Tree:
    """The tree with its numbers in the next wider type."""

    def widen(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and x.dtype in WIDER:
            return x.detach().to(WIDER[x.dtype]).requires_grad_(x.requires_grad)
        return WIDER.get(x, x) if isinstance(x, torch.dtype) else x

    return pytree.tree_map(widen, tree)


def is_as_exact(
    actual: torch.Tensor, expected: torch.Tensor, exact: torch.Tensor, most: float
) -> bool:
    """Whether the device's error is at most `most` times eager's.

    And eager's is small beside the result, or the exact result is nothing beside it: all there is, is roundings.
    """
    size = exact.abs().max()
    theirs, mine = ((x.to(exact.dtype) - exact).abs().max() for x in (expected, actual))
    is_right, is_noise = theirs <= 0.05 * size, size <= 0.01 * theirs
    return bool(mine <= most * theirs) and bool(is_right or is_noise)


def compare(
    case: TestCase,
    actual: list[torch.Tensor] | Refusal,
    expected: list[torch.Tensor] | Refusal,
    random: bool,
    tolerance: Callable[[torch.dtype], dict[str, float]],
    exact: Callable[[], list[torch.Tensor] | Refusal] | None = None,
    by_error: float | None = None,
) -> bool:
    """Fails the test case unless the device did what eager does; of random results, only shape and type count.

    A result that is out of tolerance of eager's is right only if it is within tolerance of what eager computes from the
    same arguments in the next wider type: then the device is the nearer one.

    Args:
      case: of torch's class.
      actual: what the device did.
      expected: what eager did.
      random: whether it drew random numbers.
      tolerance: the tolerances for results of a type.
      exact: computes the results in the next wider type.
      by_error: a result may also be so many times as far from the exact one as eager's; None: it may not.

    Returns:
      Whether eager's own results did not suffice.
    """
    if isinstance(expected, Refusal):
        case.assertIsInstance(actual, Refusal, f"eager raises {expected.error!r}")
        theirs, mine = expected.error, actual.error
        case.assertIs(type(mine), type(theirs), f"{mine}\neager: {theirs}")
        return False
    if isinstance(actual, Refusal):
        raise actual.error
    case.assertEqual(len(actual), len(expected))
    if random:
        kinds = [[(x.shape, x.dtype) for x in results] for results in (actual, expected)]
        case.assertEqual(*kinds)
        return False

    def check(x: torch.Tensor, y: torch.Tensor) -> None:
        case.assertEqual(x, y, exact_dtype=True, equal_nan=True, **tolerance(y.dtype))

    reference = None
    for i, (x, y) in enumerate(zip(actual, expected, strict=True)):
        try:
            check(x, y)
        except AssertionError:
            if exact is None or (x.shape, x.dtype) != (y.shape, y.dtype):
                raise
            reference = exact() if reference is None else reference
            if isinstance(reference, Refusal):
                raise
            if by_error is None or not is_as_exact(x, y, reference[i], by_error):
                check(x, reference[i].to(y.dtype))
    return reference is not None
