"""`torch.xla`: what `torch.get_device_module("xla")` returns, with the functions that torch expects of a device's module."""

import contextlib
import importlib
import os
import sys
from collections.abc import Iterable
from typing import Any, NamedTuple

import torch

from torch_xla import _XLAC


def register() -> None:
    """Makes this module `torch.xla`, and lets `torch.manual_seed` seed xla devices as it does torch's own."""
    if not hasattr(torch, "xla"):
        torch._register_device_module("xla", sys.modules[__name__])
    seed_custom_device = torch.random._seed_custom_device

    def seed_devices(seed: int) -> None:
        seed_custom_device(seed)
        manual_seed_all(seed)

    torch.random._seed_custom_device = seed_devices
    _allow_fused_and_foreach()


def _allow_fused_and_foreach() -> None:
    """Adds xla to the devices that torch takes `fused=True` and `foreach=True` for; torch has no other way to say so."""
    from torch.optim import optimizer
    from torch.utils import _foreach_utils

    devices_of_torch = _foreach_utils._get_fused_kernels_supported_devices

    def devices() -> list[str]:
        return [*devices_of_torch(), "xla"]

    foreach_of_torch = _foreach_utils._get_foreach_kernels_supported_devices

    def foreach_devices() -> list[str]:
        return [*foreach_of_torch(), "xla"]

    _foreach_utils._get_foreach_kernels_supported_devices = foreach_devices
    _foreach_utils._get_fused_kernels_supported_devices = devices
    optimizer._get_fused_kernels_supported_devices = devices


def is_available() -> bool:
    """Whether xla devices can be used. Starts no runtime."""
    return True


def is_initialized() -> bool:
    """Whether the runtime runs."""
    return _XLAC._xla_runtime_is_initialized()


def __getattr__(name: str) -> Any:
    # Whether there are random numbers to bring back, asked by torch.utils.checkpoint.
    if name == "_initialized":
        return is_initialized()
    if name == "amp":  # which imports this package
        return importlib.import_module("torch_xla.amp")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def device_count() -> int:
    """The number of devices that can be named: this process's, or where devices are named by ranks, this machine's."""
    _lazy_init()
    return _XLAC._xla_ordinal_count()


def current_device() -> int:
    """The index of the current device."""
    return _XLAC._xla_get_default_device_ordinal()


def set_device(device: Any) -> None:
    """Makes a device, given by its index or as a device, the current one."""
    index = device if isinstance(device, int) else torch.device(device).index
    # Which is current needs no runtime, where it stays the same.
    if index is not None and index >= 0 and index != current_device():
        _XLAC._xla_set_default_device(f"xla:{index}")


class device(contextlib.AbstractContextManager[None]):  # noqa: N801, named as in torch.cuda
    """A context in which a device is the current one."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def __enter__(self) -> None:
        self._previous = current_device()
        set_device(self._device)

    def __exit__(self, *exception: Any) -> None:
        set_device(self._previous)


class device_of(device):  # noqa: N801, named as in torch.cuda
    """A context in which a tensor's device is the current one; one of the CPU changes nothing."""

    def __init__(self, tensor: torch.Tensor) -> None:
        super().__init__(tensor.device.index if tensor.device.type == "xla" else current_device())


def init() -> None:
    """Starts the runtime, which the first use of a device does, too."""
    _lazy_init()


def synchronize(device: Any = None) -> None:
    """Runs what is pending and waits for it."""
    _XLAC._xla_step_marker("", [], wait=True, reset_scope=False)
    _XLAC._xla_wait_device_ops([])


class Stream(torch.Stream):
    """The order in which a device runs its work. There is one, so that what runs on several waits for nobody."""

    def __new__(cls, device: Any = None, priority: int = 0, **_: Any) -> "Stream":
        return super().__new__(cls, device=torch.device("xla", _index(device)))

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *exception: Any) -> None:
        pass


def Event(  # noqa: N802, named as in torch.cuda
    enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
) -> torch.Event:
    """A moment between operations. One that measures time runs what is before it, and waits until that is over."""
    return torch.Event("xla", enable_timing=enable_timing)


def current_stream(device: Any = None) -> Stream:
    """The device's stream."""
    return Stream(device)


default_stream = current_stream


def set_stream(stream: torch.Stream) -> None:
    """Has no effect: there is one stream."""


def stream(stream: torch.Stream | None) -> contextlib.AbstractContextManager[Any]:
    """A context in which work goes to a stream; to the only one."""
    return contextlib.nullcontext(stream)


StreamContext = stream


def is_current_stream_capturing() -> bool:
    """Whether a graph is captured, as CUDA's graphs are: no."""
    return False


def manual_seed(seed: int) -> None:
    """Seeds the current device."""
    manual_seed_all(seed) if not is_initialized() else _XLAC._xla_set_rng_seed(
        _unsigned(seed), _XLAC._xla_get_default_device()
    )


def manual_seed_all(seed: int) -> None:
    """Seeds every device, those of a runtime that has not started included."""
    _XLAC._xla_set_rng_seed(_unsigned(seed), "")


def _unsigned(seed: int) -> int:
    return int(seed) & 0xFFFF_FFFF_FFFF_FFFF


def seed() -> None:
    """Seeds the current device with a random number."""
    manual_seed(_random_seed())


def seed_all() -> None:
    """Seeds every device with one random number."""
    manual_seed_all(_random_seed())


def _random_seed() -> int:
    return int.from_bytes(os.urandom(7), "little")


def initial_seed() -> int:
    """The number that the current device was seeded with."""
    return _XLAC._xla_default_generator(current_device()).initial_seed()


def get_rng_state(device: Any = "xla") -> torch.Tensor:
    """The state of a device's random numbers, as a tensor of bytes."""
    return _generator(device).get_state()


def set_rng_state(new_state: torch.Tensor, device: Any = "xla") -> None:
    """Sets what `get_rng_state` has returned."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[torch.Tensor]:
    """The states of this process's devices."""
    return [get_rng_state(name) for name in _XLAC._xla_get_devices()]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets what `get_rng_state_all` has returned."""
    for name, state in zip(_XLAC._xla_get_devices(), new_states, strict=True):
        set_rng_state(state, name)


def _generator(device: Any) -> torch.Generator:
    """The numbers of this process's device are meant by another's, too: `torch.random.fork_rng` goes through all names."""
    index = _index(device)
    if index != current_device() and index < device_count():
        own = _XLAC._xla_get_devices()
        index = index if f"xla:{index}" in own else current_device()
    return _XLAC._xla_default_generator(index)


def _index(device: Any) -> int:
    index = device if isinstance(device, int | None) else torch.device(device).index
    return current_device() if index is None or index < 0 else index


def _name(device: Any) -> str:
    return f"xla:{_index(device)}"


class DeviceProperties(NamedTuple):
    """What a program asks of a device before it chooses its sizes."""

    name: str
    total_memory: int  # bytes; 0 if the plugin does not say
    multi_processor_count: int
    major: int = 0
    minor: int = 0


def get_device_name(device: Any = None) -> str:
    """The kind of the device, as its plugin calls it."""
    return _XLAC._xla_device_kind(_name(device))


def get_device_properties(device: Any = None) -> DeviceProperties:
    """The device's name, its memory, and how many parts of it compute at a time."""
    attributes = _XLAC._xla_device_attributes(_name(device))
    units = attributes.get("core_count", attributes.get("num_cores"))
    processors = units if isinstance(units, int) else _XLAC._usable_cpus()
    return DeviceProperties(get_device_name(device), mem_get_info(device)[1], processors)


def get_device_capability(device: Any = None) -> tuple[int, int]:
    """The version of the device's abilities in CUDA's numbers: none."""
    return 0, 0


def get_arch_list() -> list[str]:
    """The architectures that kernels were compiled for: none, since they are compiled when they are needed."""
    return []


def can_device_access_peer(device: Any, peer_device: Any) -> bool:
    """Whether a device reads the memory of another one."""
    return False


def is_tf32_supported() -> bool:
    """Whether products of float32 can be computed in TF32."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 tensors can be used."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that autocast can compute with."""
    return [torch.bfloat16, torch.float16]


def supported_dtypes() -> set[torch.dtype]:
    """The types that tensors on the device can have."""
    integers = {torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool}
    floats = {torch.float16, torch.bfloat16, torch.float32, torch.float64}
    return integers | floats | {torch.complex64, torch.complex128}


def memory_stats(device: Any = "xla") -> dict[str, int]:
    """What the plugin says about a device's memory, in bytes. Before the runtime has started, nothing is in use."""
    if not is_initialized():
        return {"bytes_used": 0, "bytes_limit": 0, "peak_bytes_used": 0}
    return dict(_XLAC._xla_memory_info(_name(device)))


def memory_allocated(device: Any = "xla") -> int:
    """Bytes in use."""
    return memory_stats(device)["bytes_used"]


def max_memory_allocated(device: Any = "xla") -> int:
    """The most bytes that were in use at a time, since the start or the last `reset_peak_memory_stats`."""
    return memory_stats(device)["peak_bytes_used"]


memory_reserved = memory_cached = memory_allocated
max_memory_reserved = max_memory_cached = max_memory_allocated


def mem_get_info(device: Any = None) -> tuple[int, int]:
    """A device's free and total bytes, (0, 0) if its plugin does not say."""
    info = dict(_XLAC._xla_memory_info(_name(device)))
    total = info["bytes_limit"]
    return max(total - info["bytes_used"], 0), total


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """The statistics of a device's memory as text."""
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in memory_stats(device).items()]
    return "\n".join([f"Memory of {_name(device)}, in bytes", *lines])


def reset_peak_memory_stats(device: Any = None) -> None:
    """Forgets the most bytes that were in use. Raises NotImplementedError where the plugin remembers it for ever."""
    if is_initialized():
        _XLAC._xla_clear_memory_statistics(_name(device))


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats
reset_accumulated_memory_stats = reset_peak_memory_stats


def empty_cache() -> None:
    """Has no effect: the engines manage their memory."""


def ipc_collect() -> None:
    """Has no effect: processes share no memory of a device."""


def _is_in_bad_fork() -> bool:
    return False


def _lazy_init() -> None:
    _XLAC._xla_num_devices()
