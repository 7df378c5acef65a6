"""Operations of tensors whose meaning is a function of `xla_builder.Op` values."""

import pickle
from collections.abc import Callable
from typing import Any

import torch

from torch_xla.core import xla_builder as xb


class Op:
    """An operation of tensors, built once for each combination of shapes and keyword arguments.

    Args:
      name: what the recorded operation is called.
      opfn: takes one `xla_builder.Op` for each tensor, and the keywords; gives an `Op`, `Op.tuple` of several.
    """

    def __init__(self, name: str, opfn: Callable[..., xb.Op]) -> None:
        self._name = name
        self._opfn = opfn
        self._computations: dict[Any, Any] = {}

    def __call__(self, *args: torch.Tensor, **kwargs: Any) -> Any:
        """The result's tensor, or the list of a tuple's tensors."""
        key = (tuple((arg.shape, arg.dtype) for arg in args), pickle.dumps(sorted(kwargs.items())))
        computation = self._computations.get(key)
        if computation is None:
            shapes = xb.tensor_shape(args)
            computation = xb.create_computation(self._name, self._opfn, shapes, **kwargs)
            self._computations[key] = computation
        results = xb.xla_computation_as_func(computation, self._name)(args)
        return results[0] if len(results) == 1 else results


def register(name: str, opfn: Callable[..., xb.Op]) -> Op:
    """The operation of tensors that `opfn` means; see `Op`."""
    return Op(name, opfn)
