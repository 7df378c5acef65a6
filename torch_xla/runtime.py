"""The runtime: which kind of device it drives, how many there are, and this process's place among the others."""

import os
from typing import Any

import torch

from torch_xla import _XLAC
from torch_xla._internal import world
from torch_xla.core import xla_env_vars as xenv
from torch_xla.utils import utils as xu

DEFAULT_DEVICE_TYPE = "CPU"


def set_device_type(pjrt_device: str) -> None:
    """Chooses the device type (as PJRT_DEVICE does). Must be called before the runtime starts."""
    running = os.environ.get(xenv.PJRT_DEVICE) or device_type()
    if _XLAC._xla_runtime_is_initialized() and running != pjrt_device:
        raise RuntimeError(
            f"The runtime runs on {device_type()} already; call set_device_type({pjrt_device!r}) before the first "
            "operation on an xla device."
        )
    os.environ[xenv.PJRT_DEVICE] = pjrt_device


def device_type() -> str | None:
    """The kind of device, PJRT_DEVICE up to its first underscore: "CPU", "TPU", "CUDA", a plugin's name.

    None where none is named and PJRT_SELECT_DEFAULT_DEVICE=0 asks for no default.
    """
    has_default = os.environ.get(xenv.PJRT_SELECT_DEFAULT_DEVICE) != "0"
    named = os.environ.get(xenv.PJRT_DEVICE, DEFAULT_DEVICE_TYPE if has_default else "")
    return named.split("_")[0] or None


def using_pjrt() -> bool:
    """Always true: there is no other runtime. Kept for programs written for torch_xla 2.0."""
    return True


def is_bf16_supported() -> bool:
    """Whether bfloat16 tensors can be used. Every engine computes with them, if not faster."""
    return True


def world_size() -> int:
    """The number of processes that train together. Starts no runtime."""
    return world.size()


def global_ordinal() -> int:
    """The rank of this process among all."""
    return world.rank()


def local_ordinal() -> int:
    """The rank of this process on this machine."""
    return world.local_rank()


def local_process_count() -> int:
    """The number of processes on this machine."""
    return world.local_size()


def process_index() -> int:
    """The rank of this process among all processes."""
    return world.rank()


def process_count() -> int:
    """The number of processes."""
    return world.size()


def host_index() -> int:
    """The rank of this machine."""
    return world.host_index()


def global_device_count() -> int:
    """The number of devices of all processes."""
    return addressable_device_count() * process_count()


def local_device_count() -> int:
    """The number of devices of this machine's processes."""
    return addressable_device_count() * local_process_count()


def addressable_device_count() -> int:
    """The number of devices that this process can use."""
    return _XLAC._xla_num_devices()


def global_runtime_device_count() -> int:
    """The number of devices that the runtime knows, those of other processes included."""
    return global_device_count()


def addressable_runtime_device_count() -> int:
    """The number of devices of the runtime that this process can use."""
    return addressable_device_count()


def runtime_device_attributes(device: torch.device | str) -> dict[str, Any]:
    """What the plugin says about a device, given as `"xla:0"` or `"CPU:0"`. Raises ValueError for one that is not there."""
    device = str(device)
    if device == "xla":
        device = _XLAC._xla_get_default_device()
    if device.startswith("xla:"):
        return {**_XLAC._xla_device_attributes(device), "name": device}
    for attributes in global_runtime_device_attributes():
        if attributes["name"] == device:
            return attributes
    raise ValueError(f"The runtime has no device {device!r}.")


def global_runtime_device_attributes() -> list[dict[str, Any]]:
    """What the plugin says about each device, those of other processes included."""
    return _XLAC._xla_global_device_attributes()


def use_spmd(auto: bool = False) -> None:
    """From now on one program runs on all devices; there can be one only. Sets XLA_USE_SPMD, which does the same.

    Args:
      auto: let the compiler decide what is sharded (XLA_AUTO_SPMD); with one device there is nothing to decide.

    Raises NotImplementedError where there are more.
    """
    if global_runtime_device_count() > 1:
        raise NotImplementedError(
            f"use_spmd: one program over {global_runtime_device_count()} devices is not implemented. Train with one process "
            "per device instead (torch_xla.launch)."
        )
    os.environ[xenv.XLA_USE_SPMD] = "1"
    if auto:
        os.environ[xenv.XLA_AUTO_SPMD] = "1"


def is_spmd() -> bool:
    """Whether `use_spmd` was called, or XLA_USE_SPMD is set."""
    return xu.check_env_flag(xenv.XLA_USE_SPMD)


def get_master_ip() -> str:
    """The address of the process of rank 0."""
    return os.environ.get("MASTER_ADDR", "localhost")


def initialize_cache(path: str | os.PathLike[str], readonly: bool = False) -> None:
    """Keeps compiled programs in a folder, for this program's next runs too.

    Must be called before the first compilation. With `readonly` nothing is written there.
    """
    if _XLAC._xla_computation_cache_is_initialized():
        raise RuntimeError("initialize_cache must be called before the first computation.")
    path = os.fspath(path)
    os.environ["XLA_PERSISTENT_CACHE_PATH"] = path
    os.environ["XLA_PERSISTENT_CACHE_READ_ONLY"] = "1" if readonly else "0"
    _XLAC._xla_initialize_cache(path, readonly)


def get_num_cached_compilation_graph() -> int:
    """The number of compiled graphs that this process holds."""
    return _XLAC._xla_get_num_cached_compilation_graph()


def clear_computation_cache() -> None:
    """Forgets the compiled graphs of this process, which frees their memory."""
    _XLAC._xla_clear_computation_cache()
