"""Process groups for torch's device meshes of xla devices.

torch makes a mesh of xla devices without them and without this process's place in it. With the backend `xla` there is a
process for each device, so these meshes are completed as those of other devices are.
"""

import functools
from typing import Any

import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh


def give_groups_to_xla_meshes() -> None:
    """From now on meshes of xla devices have groups, if the default process group has the backend `xla`."""
    made = DeviceMesh.__init__

    @functools.wraps(made)
    def init(mesh: DeviceMesh, *args: Any, **kwargs: Any) -> None:
        made(mesh, *args, **kwargs)
        if mesh.device_type != "xla" or not dist.is_initialized() or dist.get_backend() != "xla":
            return
        # A part of another mesh takes over the other's groups.
        if kwargs.get("_init_backend", True):
            _make_groups(mesh, kwargs.get("backend_override"))
        mesh._rank = dist.get_rank()
        mesh._coordinate_on_dim = mesh._compute_coordinate_on_dim()

    DeviceMesh.__init__ = init


def _make_groups(mesh: DeviceMesh, backends: Any) -> None:
    backends = backends or ((None, None),) * len(mesh._layout)
    mesh._dim_group_names = mesh._init_process_groups(
        mesh._layout, mesh._rank_map, mesh._mesh_dim_names, backends
    )
    root = mesh._root_mesh if mesh._root_mesh is not None else mesh
    for name in mesh._dim_group_names:
        root._pg_registry[name] = dist.distributed_c10d._resolve_process_group(name)
