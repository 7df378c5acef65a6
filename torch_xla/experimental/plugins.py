"""PJRT plugins: how the package finds the library that drives a kind of device.

A vendor's package subclasses `DevicePlugin` and names the class in the entry point group `torch_xla.plugins`:

    [project.entry-points."torch_xla.plugins"]
    mydevice = "my_package:MyPlugin"

`PJRT_DEVICE=MYDEVICE` then selects it. Built in are CPU (the engine of this package), CUDA (the package
`jax-cuda13-pjrt` or `jax-cuda12-pjrt`), TPU (the package `libtpu`), REMOTE (the devices of a runtime server), and
LIBRARY, the plugin at PJRT_LIBRARY_PATH.
"""

import functools
import importlib.metadata
import importlib.util
import os
import pathlib
import warnings
from typing import Any

import torch_xla
from torch_xla import runtime
from torch_xla._binding import library_directory
from torch_xla._internal import remote, tpu, world
from torch_xla.runtime_server import REMOTE_PLUGIN
from torch_xla.utils.utils import getenv_as

ENTRY_POINT_GROUP = "torch_xla.plugins"

# The library of the built-in engine.
CPU_PLUGIN = "libpjrt_cpu.so"


def _own(plugin: str) -> str:
    """The path of a plugin that comes with this package."""
    return str(library_directory() / plugin)


class DevicePlugin(torch_xla._XLAC.PjRtPlugin):
    """Drives one kind of device. Subclasses override what differs from these defaults."""

    def library_path(self) -> str:
        """The path of the plugin's shared library, which exports `GetPjrtApi`."""
        raise NotImplementedError(f"{type(self).__name__} must override library_path().")

    def host_index(self) -> int:
        """The rank of this machine among those that train together."""
        return 0

    def configure_single_process(self) -> None:
        """Called before the runtime starts in a process that is alone: prepares its environment."""

    def configure_multiprocess(self, local_rank: int, local_world_size: int) -> int:
        """The same in one of several processes; returns how many threads it should use."""
        return 1

    def physical_chip_count(self) -> int:
        """The number of devices of this machine."""
        return 1

    def client_create_options(self) -> dict[str, Any]:
        """Options that the plugin gets when its client is created."""
        return {}

    def requires_xla_coordinator(self) -> bool:
        """Whether the plugin's processes exchange keys and values through a coordinator."""
        return False

    def starts_server(self) -> bool:
        """Whether `library_path` starts a server that the plugin needs when it finds none. One that it found at work
        may end before the client is there: the runtime then asks once more, after an error `UNAVAILABLE`.
        """
        return False


class CpuPlugin(DevicePlugin):
    """The CPU engine inside this package."""

    def library_path(self) -> str:
        return _own(CPU_PLUGIN)

    def client_create_options(self) -> dict[str, Any]:
        return {"cpu_device_count": self.physical_chip_count()}

    def physical_chip_count(self) -> int:
        return int(os.environ.get("CPU_NUM_DEVICES", "1"))


class CudaPlugin(DevicePlugin):
    """NVIDIA's GPUs, through the plugin that the package `jax-cuda13-pjrt` or `jax-cuda12-pjrt` carries."""

    def library_path(self) -> str:
        for package in ("jax_plugins.xla_cuda13", "jax_plugins.xla_cuda12"):
            for folder in _package_folders(package):
                file = folder / "xla_cuda_plugin.so"
                if file.exists():
                    return str(file)
        raise RuntimeError(
            "PJRT_DEVICE=CUDA needs the package jax-cuda13-pjrt (or jax-cuda12-pjrt), which is not installed: "
            "`pip install jax-cuda13-pjrt`."
        )

    def client_create_options(self) -> dict[str, Any]:
        """Of the device's memory, by default three quarters for this process, taken at once:

        - PJRT_ALLOCATOR_PREALLOCATE=0: taken as it is needed;
        - PJRT_ALLOCATOR_FRACTION=0.5: how much of it;
        - PJRT_ALLOCATOR_CUDA_ASYNC=1: managed by CUDA, for libraries beside this one.
        """
        chosen = {
            "allocator": "cuda_async" if getenv_as("PJRT_ALLOCATOR_CUDA_ASYNC", bool) else None,
            "preallocate": getenv_as("PJRT_ALLOCATOR_PREALLOCATE", bool),
            "memory_fraction": getenv_as("PJRT_ALLOCATOR_FRACTION", float),
        }
        options: dict[str, Any] = {
            name: value for name, value in chosen.items() if value is not None
        }
        if world.local_size() > 1:  # one process drives one device
            options["visible_devices"] = [world.local_rank()]
        return options

    def physical_chip_count(self) -> int:
        if os.environ.get("GPU_NUM_DEVICES"):
            return int(os.environ["GPU_NUM_DEVICES"])
        if "CUDA_VISIBLE_DEVICES" in os.environ:
            return len([name for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if name])
        return len(list(pathlib.Path("/proc/driver/nvidia/gpus").glob("*")))


class TpuPlugin(DevicePlugin):
    """Google's TPUs, through the package `libtpu`; the CPU engine in their place with TORCH_XLA_SIMULATE_TPU."""

    def library_path(self) -> str:
        if tpu.simulated_device_count():
            return _own(CPU_PLUGIN)
        path = tpu.library_path()
        if path is None:
            raise RuntimeError(
                "PJRT_DEVICE=TPU needs the package libtpu, which is not installed (`pip install libtpu`), or "
                "TPU_LIBRARY_PATH. TORCH_XLA_SIMULATE_TPU=1 computes on the CPU instead."
            )
        return path

    def client_create_options(self) -> dict[str, Any]:
        simulated = tpu.simulated_device_count()
        return {"cpu_device_count": simulated} if simulated else {}

    def configure_multiprocess(self, local_rank: int, local_world_size: int) -> int:
        if not tpu.simulated_device_count():
            tpu.configure_topology(local_rank, local_world_size)
        return 1

    def host_index(self) -> int:
        return tpu.task_id() or 0

    def physical_chip_count(self) -> int:
        return tpu.num_available_chips()


class RemotePlugin(DevicePlugin):
    """The devices of a runtime server (`python -m torch_xla.runtime_server`), this machine's or another's."""

    def library_path(self) -> str:
        path = library_directory() / REMOTE_PLUGIN
        if not path.exists():
            raise RuntimeError(
                f"PJRT_DEVICE=REMOTE needs {path}, which this build lacks (TORCH_XLA_REMOTE=OFF)."
            )
        # The library reads the address from the environment, where other frameworks give it too.
        address = remote.address()
        os.environ["PJRT_REMOTE_ADDRESS"] = address
        remote.ensure_server(address)
        return str(path)

    def starts_server(self) -> bool:
        return remote.starts_here(remote.address())


class LibraryPlugin(DevicePlugin):
    """The plugin at PJRT_LIBRARY_PATH."""

    def library_path(self) -> str:
        path = os.environ.get("PJRT_LIBRARY_PATH")
        if not path:
            raise RuntimeError(
                "PJRT_DEVICE=LIBRARY needs PJRT_LIBRARY_PATH, the path of a PJRT plugin's library."
            )
        return path


# The core finds these two by itself, so that programs without Python have them too.
_plugins: dict[str, DevicePlugin] = {"CPU": CpuPlugin(), "LIBRARY": LibraryPlugin()}


def register_plugin(name: str, device_plugin: DevicePlugin) -> None:
    """Makes a plugin available as `PJRT_DEVICE=NAME`. Raises TypeError for what is no plugin."""
    if not isinstance(device_plugin, torch_xla._XLAC.PjRtPlugin):
        raise TypeError(f"register_plugin: {device_plugin!r} is no DevicePlugin.")
    torch_xla._XLAC._register_pjrt_plugin(name.upper(), device_plugin)
    _plugins[name.upper()] = device_plugin


def plugins() -> dict[str, DevicePlugin]:
    """The plugins by name."""
    return dict(_plugins)


def default() -> DevicePlugin:
    """The plugin of the current device type."""
    name = os.environ.get("PJRT_DEVICE", runtime.DEFAULT_DEVICE_TYPE).upper()
    plugin = _plugins.get(name) or _plugins.get((runtime.device_type() or "").upper())
    if plugin is None:
        raise RuntimeError(
            f"PJRT_DEVICE={name} names no plugin; there are {', '.join(sorted(_plugins))}."
        )
    return plugin


def prepare_process() -> None:
    """Lets the current plugin prepare this process's environment, before the runtime starts."""
    if world.size() == 1:
        default().configure_single_process()
    else:
        default().configure_multiprocess(world.local_rank(), world.local_size())


def use_dynamic_plugins() -> None:
    """Plugins are always dynamic; kept for programs that call it."""


def using_dynamic_plugins() -> bool:
    """Whether plugins are loaded from libraries: always."""
    return True


@functools.cache
def register_available_plugins() -> None:
    """Registers the built-in plugins, and those of installed packages unless XLA_REGISTER_INSTALLED_PLUGINS=0."""
    register_plugin("CUDA", CudaPlugin())
    register_plugin("TPU", TpuPlugin())
    register_plugin("REMOTE", RemotePlugin())
    if os.environ.get("XLA_REGISTER_INSTALLED_PLUGINS", "1").lower() in ("0", "false"):
        return
    for entry_point in importlib.metadata.entry_points(group=ENTRY_POINT_GROUP):
        # A broken plugin must not take `import torch_xla` with it: other devices work without it.
        try:
            register_plugin(entry_point.name, entry_point.load()())
        except Exception as error:
            warnings.warn(
                f"The plugin {entry_point.name} ({entry_point.value}) could not be loaded: {error!r}",
                stacklevel=2,
            )


def _package_folders(package: str) -> list[pathlib.Path]:
    try:
        specification = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return []
    if specification is None or not specification.submodule_search_locations:
        return []
    return [pathlib.Path(location) for location in specification.submodule_search_locations]
