"""Programs built from Python one operation at a time, and called on tensors.

    import torch, torch_xla
    import torch_xla.core.xla_builder as xb

    def relu(x):
        return x.max(x.zeros_like())

    computation = xb.create_computation("relu", relu, [xb.mkshape(xb.Type.F32, (2, 3))])
    call = xb.xla_computation_as_func(computation)
    [y] = call([torch.randn(2, 3, device="xla")])

A call is recorded like any other operation and becomes a part of the step's program. The operations are StableHLO's;
scalars stretch to the other operand's shape.
"""

from collections.abc import Sequence

import torch

from torch_xla import _XLAC

from ._builder_op import Op as Op
from ._builder_op import create_builder as create_builder
from ._builder_op import create_computation as create_computation
from ._builder_op import mkleaf as mkleaf
from ._builder_op import mkop as mkop
from ._builder_op import mkparam as mkparam
from ._builder_op import mkshape as mkshape
from ._builder_op import tensor_shape as tensor_shape
from ._builder_shape import _XLA_PT_TYPE_MAP as _XLA_PT_TYPE_MAP
from ._builder_shape import Shape as Shape
from ._builder_shape import Type as Type
from ._computation_calls import FlattenedInputFunc as FlattenedInputFunc
from ._computation_calls import XlaCallable as XlaCallable
from ._computation_calls import computation_from_module_proto as computation_from_module_proto
from ._computation_calls import get_computation_hlo as get_computation_hlo
from ._computation_calls import xla_computation_as_func as xla_computation_as_func
from ._jax_calls import JaxCallable as JaxCallable
from ._jax_calls import (
    _jax_to_xla_computation_cache_elements as _jax_to_xla_computation_cache_elements,
)
from ._jax_calls import call_jax as call_jax


def create_placeholder_tensor(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    """A tensor on the current device without a value: to record work on, and to look at its program.

    Reading it, or running what depends on it, raises RuntimeError.
    """
    return _XLAC._xla_create_placeholder_tensor(mkshape(Op.from_torch_type(dtype), shape).shape)
