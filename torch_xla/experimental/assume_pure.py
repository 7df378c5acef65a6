"""Functions that depend on their arguments alone, which need not be traced again."""

import functools
import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from torch_xla import _XLAC
from torch_xla.core._computation_calls import static_key

# By the function, and by the shapes and types of the tensors and the other arguments that it was traced with.
_XLA_COMPUTATION_CACHE: "weakref.WeakKeyDictionary[Any, dict[Any, _Traced]]" = (
    weakref.WeakKeyDictionary()
)


def assume_pure_torch(func: Callable[..., Any], use_cache: bool = False) -> Callable[..., Any]:
    """`func` as a function whose calls, once it is traced, run none of its Python.

    Args:
      func: takes and gives tensors on xla in any structure, and reads nothing else that changes: a module's parameters
        come in as an argument (`torch.func.functional_call`). Forward only.
      use_cache: trace it once for each combination of shapes, types and arguments that are no tensors. Otherwise, and on
        other devices, it is called each time.

    Raises (the function that is given back):
      NotImplementedError: where gradients are to flow through it.
      RuntimeError: where it reads a value while it is traced, or a tensor of xla that is no argument.
    """
    if not use_cache:
        return _without_gradients(func)
    return _without_gradients(functools.wraps(func)(functools.partial(_call_traced, func)))


def _without_gradients(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.is_grad_enabled() and any(
            isinstance(leaf, torch.Tensor) and leaf.requires_grad
            for leaf in pytree.tree_leaves((args, kwargs))
        ):
            raise NotImplementedError(
                "assume_pure_torch has no gradients: call it under torch.no_grad(), or use "
                'torch.compile(backend="openxla"), which traces once and has them.'
            )
        with torch.no_grad():
            return func(*args, **kwargs)

    return call


class _Traced:
    """What a function records of its arguments, as one operation."""

    def __init__(self, func: Callable[..., Any], leaves: list[Any], spec: Any) -> None:
        def run(placeholders: list[torch.Tensor]) -> list[torch.Tensor]:
            given = iter(placeholders)
            args, kwargs = pytree.tree_unflatten(
                [next(given) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves], spec
            )
            results, self._spec = pytree.tree_flatten(func(*args, **kwargs))
            self._is_tensor = [isinstance(result, torch.Tensor) for result in results]
            tensors = _tensors_of(results)
            # Those that are no tensors are the same in every call.
            self._others = [None if isinstance(x, torch.Tensor) else x for x in results]
            return tensors

        self._graph = _XLAC.CapturedGraph(_tensors_of(leaves), run)

    def __call__(self, leaves: list[Any]) -> Any:
        computed = self._graph.call(_tensors_of(leaves))
        assert computed is not None, "the key of the cache has the shapes and types"
        given = iter(computed)
        results = [
            next(given) if is_tensor else other
            for is_tensor, other in zip(self._is_tensor, self._others, strict=True)
        ]
        return pytree.tree_unflatten(results, self._spec)


def _tensors_of(leaves: list[Any]) -> list[torch.Tensor]:
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _key_of(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (leaf.shape, leaf.stride(), leaf.dtype, leaf.device)
    return static_key(leaf)


def _call_traced(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    leaves, spec = pytree.tree_flatten((args, kwargs))
    devices = {tensor.device for tensor in _tensors_of(leaves)}
    if len(devices) != 1 or devices.pop().type != "xla":
        return func(*args, **kwargs)
    key = (spec, *map(_key_of, leaves))
    traced = _XLA_COMPUTATION_CACHE.setdefault(func, {})
    if key not in traced:
        traced[key] = _Traced(func, leaves, spec)
    return traced[key](leaves)
