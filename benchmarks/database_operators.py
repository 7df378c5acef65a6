"""The operators of torch's database (`op_db`), as calls of about a million numbers.

The samples of the database are small. Each of its tensors is enlarged, all sizes by one factor, with numbers drawn from its own:
so what they may be (positive, within bounds, distinct or not) stays as it was.
"""

import functools
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

Call = Callable[[], Any]

_ELEMENTS = (1_000_000, 100_000, 10_000)
_MOST_SAMPLES = 12
_MOST_SECONDS = 0.3  # of one call in eager; what takes longer is measured with fewer numbers


def names() -> list[str]:
    """What they are called, with the variant where there are several."""
    return [operator.formatted_name for operator in op_db]


@functools.cache
def _by_name() -> dict[str, Any]:
    return {operator.formatted_name: operator for operator in op_db}


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, list | tuple):
        return [tensor for part in value for tensor in _tensors(part)]
    if isinstance(value, dict):
        return _tensors(list(value.values()))
    return []


def _mapped(value: Any, change: Callable[[torch.Tensor], torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return change(value)
    if type(value) in (list, tuple):
        return type(value)(_mapped(part, change) for part in value)
    if type(value) is dict:
        return {key: _mapped(part, change) for key, part in value.items()}
    return value


def _enlarged(tensor: torch.Tensor, factor: float) -> torch.Tensor:
    """The same kind of numbers, in a larger shape."""
    shape = [size if size <= 1 else round(size * factor) for size in tensor.shape]
    if tensor.numel() <= 1 or shape == list(tensor.shape):
        return tensor
    chosen = torch.randint(tensor.numel(), shape)
    return tensor.detach().flatten()[chosen].requires_grad_(tensor.requires_grad)


def _arguments(sample: Any, elements: int) -> Any:
    arguments = ([sample.input, *sample.args], sample.kwargs)
    largest = max(_tensors(arguments), key=torch.Tensor.numel)
    dimensions = sum(size > 1 for size in largest.shape)
    if dimensions == 0:
        raise ValueError("a sample of one number")
    factor = (elements / largest.numel()) ** (1 / dimensions)
    torch.manual_seed(0)
    return _mapped(arguments, lambda tensor: _enlarged(tensor, max(factor, 1.0)))


def _call(operator: Any, arguments: Any, with_gradient: bool) -> Call:
    def forward() -> Any:
        with torch.no_grad():
            return operator(*arguments[0], **arguments[1])

    if not with_gradient:
        return forward
    leaves = [tensor for tensor in _tensors(arguments) if tensor.requires_grad]

    def backward() -> Any:
        results = [
            result
            for result in _tensors(operator(*arguments[0], **arguments[1]))
            if result.requires_grad
        ]
        cotangents = [torch.ones_like(result) for result in results]
        return torch.autograd.grad(results, leaves, cotangents, allow_unused=True)

    return backward


def _on(arguments: Any, device: str) -> Any:
    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().to(device).requires_grad_(tensor.requires_grad)

    return _mapped(arguments, move)


def calls(name: str, dtype: torch.dtype, with_gradient: bool) -> list[Call]:
    """The operator's call in eager and on the device; raises where no sample can be enlarged."""
    operator = _by_name()[name]
    failure: Exception = ValueError("no samples of this type")
    if dtype not in operator.supported_dtypes("cpu"):
        raise failure
    samples = operator.sample_inputs("cpu", dtype, requires_grad=with_gradient)
    for _, sample in zip(range(_MOST_SAMPLES), samples, strict=False):
        for elements in _ELEMENTS:
            try:
                arguments = _arguments(sample, elements)
                eager = _call(operator, arguments, with_gradient)
                eager()
                start = time.process_time()
                eager()
            except Exception as error:  # sizes among its numbers do not fit
                failure = error
                break
            if time.process_time() - start < _MOST_SECONDS:
                device = _call(operator, _on(arguments, "xla"), with_gradient)
                return [eager, device]
    raise failure
