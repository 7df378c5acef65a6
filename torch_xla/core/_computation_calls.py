"""Computations, and functions of operations, as functions of tensors."""

import numbers
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree

from torch_xla import _XLAC

from ._builder_op import Op, create_computation, tensor_shape


def computation_from_module_proto(name: str, proto: bytes | str) -> Any:
    """A computation from a program: StableHLO as bytecode or text.

    Raises:
      ValueError: for anything else, an HLO proto for example.
    """
    program = proto.encode() if isinstance(proto, str) else proto
    return _XLAC._xla_op_computation_from_module_proto(name, program)


def get_computation_hlo(computation: Any) -> str:
    """A computation as text, for people."""
    return _XLAC._xla_computation_text(computation)


def xla_computation_as_func(
    computation: Any, name: str | None = None
) -> Callable[[Sequence[torch.Tensor]], list[torch.Tensor]]:
    """A computation as a function of xla tensors: of a list of arguments, giving a list of results."""
    name = name or "xla::computation"
    if "::" not in name:
        name = f"xla::{name}"

    def call(input_tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        return _XLAC._xla_user_computation(name, input_tensors, computation)

    return call


def static_key(value: Any) -> Any:
    """By which programs are told apart that were made for this argument.

    1, 1.0 and True are three, 0.0 is not -0.0, and one NaN is like another: of Python's numbers and of numpy's.
    """
    return (type(value), repr(value) if isinstance(value, numbers.Number) else value)


class FlattenedInputFunc:
    """A function of nested structures in three steps, of which the middle one takes and gives flat lists.

    For any arguments, `postprocess(flat_call(preprocess(args, kwargs)))` is what the function gives of them.

    Args:
      orig_func: the function.
    """

    def __init__(self, orig_func: Callable[..., Any]) -> None:
        self.orig_func = orig_func
        self.non_tensors: tuple[Any, ...] | None = None
        self.in_spec: Any = None
        self.out_spec: Any = None
        self._tensor = object()  # stands where a tensor was

    def preprocess(
        self, args: tuple[Any, ...], kwargs: dict[str, Any] | None = None
    ) -> tuple[torch.Tensor, ...]:
        """The tensors among the arguments; what else there is, is kept for `flat_call`."""
        leaves, self.in_spec = self.flatten((args, kwargs or {}))
        is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        self.non_tensors = tuple(
            self._tensor if tensor else leaf for leaf, tensor in zip(leaves, is_tensor, strict=True)
        )
        return tuple(leaf for leaf, tensor in zip(leaves, is_tensor, strict=True) if tensor)

    def flat_call(self, flat_input: Sequence[Any]) -> list[Any]:
        """The function's results as a list, of what stands for the tensors."""
        assert self.non_tensors is not None, "preprocess comes first"
        values = iter(flat_input)
        leaves = [next(values) if leaf is self._tensor else leaf for leaf in self.non_tensors]
        args, kwargs = self.unflatten(leaves, self.in_spec)
        results, self.out_spec = self.flatten(self.orig_func(*args, **kwargs))
        return results

    def postprocess(self, res_flattened: Sequence[Any]) -> Any:
        """The results in the structure in which the function gave them."""
        assert self.out_spec is not None, "flat_call comes first"
        return self.unflatten(res_flattened, self.out_spec)

    def flatten(self, inputs: Any) -> tuple[list[Any], Any]:
        """The leaves of a structure, and what brings it back."""
        return pytree.tree_flatten(inputs)

    def unflatten(self, flattened: Sequence[Any], spec: Any) -> Any:
        """The structure of these leaves."""
        return pytree.tree_unflatten(list(flattened), spec)


class XlaCallable:
    """A function of `Op` values as a function of tensors. It is built once for each combination of shapes and other arguments.

    Args:
      xla_func: takes an `Op` where it is called with a tensor; its results are of that class too, in any structure.
    """

    def __init__(self, xla_func: Callable[..., Any]) -> None:
        self._flat_input_func = FlattenedInputFunc(xla_func)
        self._cache: dict[Any, tuple[Callable[..., list[torch.Tensor]], Any]] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        flat = self._flat_input_func
        tensors = flat.preprocess(args, kwargs)
        shapes = tuple((tensor.shape, tensor.dtype) for tensor in tensors)
        key = (shapes, tuple(map(static_key, flat.non_tensors or ())), flat.in_spec)
        if key not in self._cache:
            self._cache[key] = (self.specialize(tensors), flat.out_spec)
        call, out_spec = self._cache[key]
        return flat.unflatten(call(tensors), out_spec)

    def specialize(
        self, sample_flat_args: Sequence[torch.Tensor]
    ) -> Callable[..., list[torch.Tensor]]:
        """The function for tensors of these shapes and types."""
        computation = create_computation(
            "computation",
            lambda *parameters: Op.tuple(self._flat_input_func.flat_call(parameters)),
            tensor_shape(list(sample_flat_args)),
        )
        return xla_computation_as_func(computation)
