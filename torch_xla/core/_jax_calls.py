"""Functions of JAX arrays as parts of programs of tensors."""

from collections.abc import Callable
from typing import Any

import torch

from ._computation_calls import (
    computation_from_module_proto,
    static_key,
    xla_computation_as_func,
)


class JaxCallable:
    """A function of JAX arrays as a function of tensors. It is lowered once for each combination of shapes and other arguments.

    Args:
      jax_func: what `jax.jit` takes. Arguments that are no tensors are static.
      name: what the call is called.
    """

    def __init__(self, jax_func: Callable[..., Any], name: str | None = None) -> None:
        self._jax_func = jax_func
        self._name = name or "jax_func"
        self._cache: dict[Any, tuple[Callable[..., list[torch.Tensor]], Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        import jax

        leaves, in_spec = jax.tree.flatten((args, kwargs))
        is_tensor = tuple(isinstance(leaf, torch.Tensor) for leaf in leaves)
        tensors = [leaf for leaf, tensor in zip(leaves, is_tensor, strict=True) if tensor]
        others = [leaf for leaf, tensor in zip(leaves, is_tensor, strict=True) if not tensor]
        shapes = tuple((tensor.shape, tensor.dtype) for tensor in tensors)
        key = (shapes, is_tensor, in_spec, *map(static_key, others))
        if key not in self._cache:
            self._cache[key] = self._lower(tensors, is_tensor, others, in_spec)
        call, out_spec = self._cache[key]
        return jax.tree.unflatten(out_spec, call(tensors))

    def _lower(
        self, tensors: list[torch.Tensor], is_tensor: tuple[bool, ...], others: list[Any], spec: Any
    ) -> tuple[Callable[..., list[torch.Tensor]], Any]:
        import jax

        out_spec = None

        def flat(*arrays: Any) -> list[Any]:
            nonlocal out_spec
            given, static = iter(arrays), iter(others)
            leaves = [next(given) if tensor else next(static) for tensor in is_tensor]
            args, kwargs = jax.tree.unflatten(spec, leaves)
            results, out_spec = jax.tree.flatten(self._jax_func(*args, **kwargs))
            return results

        samples = [
            jax.ShapeDtypeStruct(
                tuple(t.shape), jax.numpy.dtype(str(t.dtype).removeprefix("torch."))
            )
            for t in tensors
        ]
        program = jax.jit(flat, keep_unused=True).lower(*samples).as_text()
        computation = computation_from_module_proto("jax_callable", program.encode())
        return xla_computation_as_func(computation, self._name), out_spec


# Of the functions called last, so that those that are made anew in each step do not pile up.
_MOST_FUNCTIONS = 1024
_JAX_TO_XLA_COMPUTATION_CACHE: dict[Any, JaxCallable] = {}


def _jax_to_xla_computation_cache_elements() -> int:
    return sum(len(function._cache) for function in _JAX_TO_XLA_COMPUTATION_CACHE.values())


def call_jax(
    jax_func: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    name: str | None = None,
    override_hash: Any = None,
) -> Any:
    """What a function of JAX arrays gives of tensors, as a part of the step's program; forward only.

    Args:
      jax_func: what `jax.jit` takes. It is lowered once for each combination of shapes, types and arguments that are no
        tensors, and for as long as it is the same object: a function made anew in each step is lowered in each.
      args, kwargs: its arguments, nested structures with xla tensors.
      name: what the call is called.
      override_hash: what to know the function by, in place of its identity.

    Raises:
      AssertionError: where JAX is not installed.
      RuntimeError: for 64-bit tensors where JAX computes in 32 bits (`jax_enable_x64`).
    """
    try:
        from jax._src import config
    except ImportError as error:
        raise AssertionError("Jax is required for this feature") from error
    known_by = id(jax_func) if override_hash is None else override_hash
    key = (known_by, name, config.trace_context())
    callable_ = _JAX_TO_XLA_COMPUTATION_CACHE.pop(key, None) or JaxCallable(jax_func, name)
    _JAX_TO_XLA_COMPUTATION_CACHE[key] = callable_  # the newest
    if len(_JAX_TO_XLA_COMPUTATION_CACHE) > _MOST_FUNCTIONS:
        del _JAX_TO_XLA_COMPUTATION_CACHE[next(iter(_JAX_TO_XLA_COMPUTATION_CACHE))]
    return callable_(*args, **(kwargs or {}))
