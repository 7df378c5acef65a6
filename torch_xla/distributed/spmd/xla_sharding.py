"""One program on many devices, whose tensors are sharded.

The names exist, so that libraries can be imported that use them only where sharding is asked for. A mesh of one device works: there
is nothing to shard. More devices raise NotImplementedError.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from torch_xla import _XLAC
from torch_xla import runtime as xr

PartitionSpec = tuple[Any, ...]


class ShardingType(enum.IntEnum):
    """How a tensor is spread over a mesh."""

    REPLICATED = 0
    MAXIMAL = 1
    TUPLE = 2
    TILED = 3
    MANUAL = 4
    PARTIAL = 5
    UNKNOWN = 6


class Mesh:
    """The devices as an array with named dimensions.

    Args:
      device_ids: the devices' numbers, as many as the product of `mesh_shape`, and below it.
      mesh_shape: the array's dimensions.
      axis_names: their names.

    Raises AssertionError for other numbers and names.
    """

    def __init__(
        self,
        device_ids: Sequence[int] | np.ndarray,
        mesh_shape: tuple[int, ...],
        axis_names: tuple[str, ...] | None = None,
    ) -> None:
        self.device_ids = np.asarray(device_ids)
        self.mesh_shape = tuple(mesh_shape)
        self.axis_names = axis_names
        self._check()

    def _check(self) -> None:
        names, ids, shape = self.axis_names, self.device_ids.flatten(), self.mesh_shape
        # The words of PyTorch/XLA's errors, and their class.
        for holds, rule in (
            (
                names is None or len(names) == len(shape),
                f"Number of axis names {names} must match mesh dimensions {shape}",
            ),
            (names is None or len(set(names)) == len(names), f"Axis names must be unique: {names}"),
            (
                len(ids) == np.prod(shape),
                f"Number of device IDs ({len(ids)}) must match mesh size {shape}",
            ),
            (len(set(ids)) == len(ids), f"Device IDs must be unique: {ids}"),
            (
                all(0 <= number < len(ids) for number in ids),
                f"Device IDs must be less than mesh size: {ids}",
            ),
        ):
            if not holds:
                raise AssertionError(f"Mesh: {rule}")

    def size(self) -> int:
        """The number of devices."""
        return int(self.device_ids.size)

    def shape(self) -> dict[str, int]:
        """The dimensions by name."""
        names = self.axis_names or tuple(map(str, range(len(self.mesh_shape))))
        return dict(zip(names, self.mesh_shape, strict=True))

    def get_logical_mesh(self) -> np.ndarray:
        """The devices' numbers in the array's shape."""
        return self.device_ids.reshape(self.mesh_shape)


class ShardingSpec:
    """How an input is sharded: which dimension of the mesh cuts each of its own.

    Args:
      mesh: the mesh.
      partition_spec: for each dimension of the input a dimension of the mesh, by name or number, several, or None.
      minibatch: the input is a part of the batch, this host's.

    Raises ValueError for a dimension that the mesh has not, or that is named twice.
    """

    def __init__(
        self, mesh: Mesh, partition_spec: PartitionSpec, minibatch: bool | None = False
    ) -> None:
        _check_axes(mesh, partition_spec)
        self.mesh = mesh
        self.partition_spec = partition_spec
        self.minibatch = minibatch

    def can_apply(self, t: torch.Tensor) -> bool:
        """Whether a tensor has the dimensions that this cuts."""
        return t.dim() == len(self.partition_spec)

    def apply(self, t: torch.Tensor) -> None:
        """Shards a tensor so."""
        mark_sharding(t, self.mesh, self.partition_spec)


def _check_axes(mesh: Mesh, partition_spec: PartitionSpec) -> None:
    known = [*(mesh.axis_names or ()), *range(len(mesh.mesh_shape))]
    axes = [
        axis
        for entry in partition_spec
        for axis in (entry if isinstance(entry, tuple | list) else (entry,))
        if axis is not None
    ]
    for place, axis in enumerate(axes):
        if axis not in known or axis in axes[:place]:
            raise ValueError(
                f"The partition {partition_spec} is to name dimensions of the mesh {mesh.shape()}, each at most once, and "
                f"{axis!r} is {'none' if axis not in known else 'there twice'}."
            )


_global_mesh: Mesh | None = None


def set_global_mesh(mesh: Mesh) -> None:
    """Sets the mesh that functions use to which none is given."""
    global _global_mesh
    _global_mesh = mesh


def get_global_mesh() -> Mesh | None:
    """What `set_global_mesh` has set."""
    return _global_mesh


def get_1d_mesh(axis_name: str | None = None) -> Mesh:
    """All devices in one dimension."""
    count = xr.global_runtime_device_count()
    return Mesh(range(count), (count,), None if axis_name is None else (axis_name,))


def mark_sharding(
    t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec, **kwargs: Any
) -> torch.Tensor:
    """Shards a tensor over a mesh; `partition_spec` is as for `ShardingSpec`, of no more dimensions than the tensor has."""
    check_one_device("mark_sharding", mesh)
    _check_axes(mesh, partition_spec)
    if len(partition_spec) > t.dim():
        raise ValueError(
            f"mark_sharding: {partition_spec} has more entries than the shape {tuple(t.shape)}."
        )
    return t


def mark_sharding_with_gradients(
    t: torch.Tensor, mesh: Mesh, partition_spec: PartitionSpec
) -> torch.Tensor:
    """A copy of a tensor, sharded over a mesh as its gradient is, too."""
    return mark_sharding(t, mesh, partition_spec).clone()


def clear_sharding(t: torch.Tensor) -> torch.Tensor:
    """Undoes `mark_sharding`."""
    return t


class _LinearOfAnyRank(torch.autograd.Function):
    """A linear layer as one contraction, whose input keeps its dimensions: sharded programs find their axes there."""

    @staticmethod
    def forward(ctx: Any, input: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(input, weight)
        return _XLAC._xla_dot_general(input, weight, (((input.dim() - 1,), (1,)), ((), ())))

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:  # type: ignore[override]
        input, weight = ctx.saved_tensors
        rows = gradient.reshape(-1, gradient.shape[-1])
        return gradient @ weight, rows.t() @ input.reshape(-1, input.shape[-1])


def _is_transformed() -> bool:
    """Whether operations are traced or transformed, by what sees only those of torch."""
    return (
        torch.compiler.is_compiling()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch._C._len_torch_dispatch_stack() > 0
        or torch.autograd.forward_ad._current_level >= 0
    )


def _is_one_contraction(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None
) -> bool:
    """Whether the layer can be recorded as it is: what is transformed, refused or complex goes to torch's own."""
    tensors = [input, weight] if bias is None else [input, weight, bias]
    return (
        not _is_transformed()
        and all(type(tensor) in (torch.Tensor, nn.Parameter) for tensor in tensors)
        and all(tensor.is_xla and tensor.dtype == input.dtype for tensor in tensors)
        and input.is_floating_point()
        and input.dim() >= 2
        and weight.dim() == 2
        and input.shape[-1] == weight.shape[-1]
        and (bias is None or bias.shape == weight.shape[:1])
    )


def _cast(tensor: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """As autocast does it."""
    return (
        tensor.to(dtype) if tensor.is_floating_point() and tensor.dtype != torch.float64 else tensor
    )


class XLAPatchedLinear:
    """The name that sharded programs use for a linear layer whose input keeps its dimensions."""

    @staticmethod
    def apply(
        input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
    ) -> torch.Tensor:
        """`torch.nn.functional.linear`, with gradients and under autocast, without a reshape of the input."""
        if input.is_xla and torch.is_autocast_enabled("xla"):
            dtype = torch.get_autocast_dtype("xla")
            input, weight = _cast(input, dtype), _cast(weight, dtype)
            bias = bias if bias is None else _cast(bias, dtype)
        if not _is_one_contraction(input, weight, bias):
            return F.linear(input, weight, bias)
        output = _LinearOfAnyRank.apply(input, weight)
        return output if bias is None else output + bias


def xla_patched_nn_linear_forward(m: nn.Linear, input: torch.Tensor) -> torch.Tensor:
    """The forward of a linear layer by `XLAPatchedLinear`."""
    return XLAPatchedLinear.apply(input, m.weight, m.bias)


class EinsumLinear(nn.Linear):
    """`torch.nn.Linear`, by `XLAPatchedLinear`."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """The layer's output."""
        return xla_patched_nn_linear_forward(self, input)


def apply_xla_patch_to_nn_linear(module: nn.Module) -> nn.Module:
    """The module as it is."""
    return module


def xla_distribute_tensor(
    tensor: torch.Tensor, device_mesh: Any, placements: Sequence[Any] | None = None
) -> torch.Tensor:
    """What `torch.distributed.tensor.distribute_tensor` calls for xla devices."""
    _check_device_mesh("distribute_tensor", device_mesh)
    return tensor.to("xla")


def xla_distribute_module(
    module: torch.nn.Module,
    device_mesh: Any | None = None,
    partition_fn: Callable[..., Any] | None = None,
    input_fn: Callable[..., Any] | None = None,
    output_fn: Callable[..., Any] | None = None,
) -> torch.nn.Module:
    """What `torch.distributed.tensor.distribute_module` calls for xla devices."""
    _check_device_mesh("distribute_module", device_mesh)
    return module.to("xla")


def check_one_device(what: str, mesh: Mesh) -> None:
    """Raises NotImplementedError for a mesh of several devices, over which `what` was asked for."""
    if mesh.size() > 1:
        raise NotImplementedError(
            f"{what}: one program over {mesh.size()} devices is not implemented. Train with one process per device "
            "instead (torch_xla.launch)."
        )


def check_input_sharding(input_sharding: Any) -> None:
    """Raises NotImplementedError for a `ShardingSpec`, or a dictionary of them, over several devices."""
    specs = input_sharding.values() if isinstance(input_sharding, dict) else [input_sharding]
    for spec in specs:
        if spec is not None:
            check_one_device("input_sharding", spec.mesh)


def _check_device_mesh(what: str, device_mesh: Any) -> None:
    size = 1 if device_mesh is None else device_mesh.size()
    if size > 1:
        raise NotImplementedError(f"{what}: sharding over {size} devices is not implemented.")
