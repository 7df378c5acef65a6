"""Parameters and outputs that are sharded over the axis "fsdp" of a mesh, in one program over its devices (FSDPv2).

The mesh can have one device only, as everything of `distributed.spmd`: nothing is cut there, and programs that are written for
more run on it. `distributed.fsdp` shards over processes.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from torch_xla.distributed import spmd
from torch_xla.distributed.fsdp.wrap import recursive_wrap


def _spec_of(shape: torch.Size, dim: int, axis: str | tuple[str, str]) -> spmd.PartitionSpec:
    """The axis cuts a dimension of what has any."""
    return tuple(axis if i == dim else None for i in range(len(shape)))


def _checked_mesh(mesh: spmd.Mesh | None, extra_data_axis: str | None) -> spmd.Mesh:
    mesh = mesh or spmd.get_global_mesh()
    if mesh is None:
        raise ValueError("FSDPv2: give a mesh, as there is no global mesh (spmd.set_global_mesh).")
    names = mesh.axis_names or ()
    if "fsdp" not in names:
        raise ValueError(f"FSDPv2: the mesh's axes are {names}, and none of them is named 'fsdp'.")
    if extra_data_axis and extra_data_axis not in names:
        raise ValueError(
            f"FSDPv2: the mesh's axes are {names}, and extra_data_axis {extra_data_axis!r} is not in the mesh."
        )
    return mesh


class SpmdFullyShardedDataParallel(nn.Module):
    """A module whose parameters, and the first tensor of whose output, are sharded over the mesh's axis "fsdp".

    Args:
      module: it has a forward of its own, which a list of modules has not. Moved to the device.
      mesh: by default the one that `spmd.set_global_mesh` has set.
      shard_output: `(output, mesh)`, which shards the output instead.
      auto_wrap_policy: which submodules are wrapped by themselves (`distributed.fsdp.wrap`).
      auto_wrapper_callable: wraps them instead of this class.
      extra_data_axis: an axis over which outputs are cut, too.
    """

    def __init__(
        self,
        module: nn.Module,
        *,
        mesh: spmd.Mesh | None = None,
        shard_output: Callable[[Any, spmd.Mesh], None] | None = None,
        auto_wrap_policy: Callable[..., bool] | None = None,
        auto_wrapper_callable: Callable[..., nn.Module] | None = None,
        extra_data_axis: str | None = None,
    ) -> None:
        if isinstance(module, SpmdFullyShardedDataParallel):
            raise RuntimeError(
                "FSDPv2: the module is already wrapped; wrap inner modules before outer ones."
            )
        if type(module).forward is nn.Module.forward or isinstance(
            module, (nn.ModuleList, nn.ModuleDict)
        ):
            raise RuntimeError(
                "FSDPv2: the module has no `forward` of its own: wrap the modules of a list one by one."
            )
        mesh = _checked_mesh(mesh, extra_data_axis)
        super().__init__()
        if auto_wrap_policy is not None:
            _wrap_children(
                module,
                auto_wrap_policy,
                auto_wrapper_callable or SpmdFullyShardedDataParallel,
                {"mesh": mesh, "shard_output": shard_output},
            )
        self._orig_module = module.to("xla")
        self._mesh = mesh
        self._shard_output = shard_output or self._shard_first_tensor
        self._output_axis = (extra_data_axis, "fsdp") if extra_data_axis else "fsdp"
        for parameter in module.parameters():
            shape = parameter.shape
            longest = shape.index(max(shape)) if shape else 0
            spmd.mark_sharding(parameter, mesh, _spec_of(shape, longest, "fsdp"))

    @property
    def module(self) -> nn.Module:
        """What was wrapped."""
        return self._orig_module

    def _shard_first_tensor(self, output: Any, mesh: spmd.Mesh) -> None:
        first = output
        if isinstance(output, tuple) and output:
            warnings.warn(
                "FSDPv2: of the tuple that the module gives only the first element is sharded; shard_output can shard others.",
                stacklevel=3,
            )
            first = output[0]
        if not isinstance(first, torch.Tensor):
            raise RuntimeError(
                f"FSDPv2: an output type of {type(output).__name__} is sharded by your own shard_output only."
            )
        spmd.mark_sharding(first, mesh, _spec_of(first.shape, 0, self._output_axis))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The module's output, sharded."""
        output = self.module(*args, **kwargs)
        self._shard_output(output, self._mesh)
        return output

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.module, name)

    def __getitem__(self, key: int) -> Any:
        return self.module[key]  # type: ignore[index]


def _wrap_children(
    module: nn.Module,
    policy: Callable[..., bool],
    wrapper: Callable[..., nn.Module],
    options: dict[str, Any],
) -> None:
    for name, child in module.named_modules():
        if isinstance(child, SpmdFullyShardedDataParallel):
            raise ValueError(
                f"FSDPv2: auto_wrap_policy wraps submodules, and {name!r} is wrapped already"
            )
    recursive_wrap(module, policy, wrapper, only_wrap_children=True, **options)
