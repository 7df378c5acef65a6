"""Names of the binding that PyTorch/XLA has in C++, and that are a line of Python here."""

import importlib
from types import ModuleType

import torch

from torch_xla import _XLAC
from torch_xla.version import __version__


def _get_xla_tensor_dimension_size(tensor: torch.Tensor, dimension: int) -> torch.Tensor:
    """A size as a scalar on the tensor's device."""
    return torch.tensor(tensor.size(dimension), dtype=torch.int32, device=tensor.device)


def _get_xla_tensor_shape_type(tensor: torch.Tensor) -> str:
    """The element type as HLO spells it: "f32"."""
    return _XLAC._xla_op_tensor_shape(tensor, "")["type"]


def _get_git_revs() -> dict[str, str]:
    """The versions of this package and of torch."""
    return {"xla": __version__, "torch": torch.version.git_version or torch.__version__}


def _xla_get_all_devices() -> list[str]:
    """The devices of all processes, as "CPU:0"."""
    return [device["name"] for device in _XLAC._xla_global_device_attributes()]


def _get_base_seed_as_tensor(device: str = "") -> torch.Tensor:
    """The seed of the numbers that are drawn next, as a tensor on the device."""
    return torch.tensor(_XLAC._xla_get_rng_seed(device), device=device or "xla")


def _get_seed_info_id() -> int:
    """What PyTorch/XLA has as the identity of the seed among a graph's inputs. Here the seed is none of them."""
    return -127389


def _get_xla_sharding_spec(tensor: torch.Tensor) -> str:
    """How a tensor is sharded, as HLO spells it; empty, as with one device none is."""
    return ""


def _init_xla_lazy_backend() -> None:
    """Loading the binding has registered the device; again there is nothing to do."""


def _ensure_xla_coordinator_initialized(
    global_rank: int, world_size: int, master_addr: str, master_port: str = ""
) -> None:
    """The processes find each other without a coordinator of XLA's, so there is none to start."""


def _activate_preemption_sync_manager() -> None:
    """SIGTERM ends the process no more, and `_sync_point_reached` tells of it."""
    _preemption().watch()


def _deactivate_preemption_sync_manager() -> None:
    """SIGTERM ends the process again."""
    _preemption().unwatch()


def _sync_point_reached(step: int) -> bool:
    """Whether a SIGTERM has come to one of the processes, which all ask at this step."""
    return _preemption().is_told()


def _preemption() -> ModuleType:
    # Importing this package does not import torch's checkpoints.
    return importlib.import_module("torch_xla.experimental.distributed_checkpoint._preemption")


def register() -> None:
    """Puts them into the binding."""
    for function in (
        _get_xla_tensor_dimension_size,
        _get_xla_tensor_shape_type,
        _get_git_revs,
        _xla_get_all_devices,
        _get_base_seed_as_tensor,
        _get_seed_info_id,
        _get_xla_sharding_spec,
        _init_xla_lazy_backend,
        _ensure_xla_coordinator_initialized,
        _activate_preemption_sync_manager,
        _deactivate_preemption_sync_manager,
        _sync_point_reached,
    ):
        setattr(_XLAC, function.__name__, function)
