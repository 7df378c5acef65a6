"""`torch.xla`: what `torch.get_device_module("xla")` returns, with the functions that torch expects of a device's module."""

import contextlib
import os
import sys
from collections.abc import Iterable
from typing import Any

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
    """Adds xla to the devices that torch takes `fused=True` and `foreach=True` for; torch has no other way to say so.

    Optimizers take `foreach=True` for all; what they do by default stays as it is.
    """
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
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def device_count() -> int:
    """The number of devices of this process."""
    return _XLAC._xla_num_devices()


def current_device() -> int:
    """The index of the current device."""
    return _XLAC._xla_get_default_device_ordinal()


def set_device(device: Any) -> None:
    """Makes a device, given by its index or as a device, the current one."""
    index = device if isinstance(device, int) else torch.device(device).index
    if index is not None and index >= 0:
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


def synchronize(device: Any = None) -> None:
    """Runs what is pending and waits for it."""
    _XLAC._xla_step_marker("", [], wait=True, reset_scope=True)
    _XLAC._xla_wait_device_ops([])


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
    """The states of all devices."""
    return [get_rng_state(index) for index in range(device_count())]


def set_rng_state_all(new_states: Iterable[torch.Tensor]) -> None:
    """Sets what `get_rng_state_all` has returned."""
    for index, state in enumerate(new_states):
        set_rng_state(state, index)


def _generator(device: Any) -> torch.Generator:
    index = device if isinstance(device, int) else torch.device(device).index
    return _XLAC._xla_default_generator(current_device() if index is None else index)


def _name(device: Any) -> str:
    if isinstance(device, int):
        return f"xla:{device}"
    device = torch.device(device)
    return _XLAC._xla_get_default_device() if device.index is None else str(device)


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether bfloat16 tensors can be used."""
    return True


def get_amp_supported_dtype() -> list[torch.dtype]:
    """The types that autocast can compute with."""
    return [torch.bfloat16, torch.float16]


def memory_stats(device: Any = "xla") -> dict[str, int]:
    """What the plugin says about a device's memory, in bytes."""
    return dict(_XLAC._xla_memory_info(_name(device)))


def memory_allocated(device: Any = "xla") -> int:
    """Bytes in use."""
    return memory_stats(device).get("bytes_used", 0)


def max_memory_allocated(device: Any = "xla") -> int:
    """The most bytes that were in use at a time."""
    return memory_stats(device).get("peak_bytes_used", 0)


def empty_cache() -> None:
    """Has no effect: the engines manage their memory."""


def _is_in_bad_fork() -> bool:
    return False


def _lazy_init() -> None:
    _XLAC._init_computation_client()
