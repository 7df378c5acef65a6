"""`torch.accelerator` answers for the xla device where torch knows no other accelerator, or one that is not there.

Its functions ask `torch._C`, which counts the accelerators that torch was built for; xla is none of those.
"""

import functools
import os
from typing import Any

import torch

from torch_xla import _device_module


def _allocator_is_initialized() -> bool:
    return _device_module.is_initialized()


def _capability(index: int) -> dict[str, Any]:
    return {"supported_dtypes": _device_module.supported_dtypes()}


def _statistics(index: int) -> dict[str, Any]:
    """As torch's allocators report them: by kind, by size of the block, and when."""
    now = _device_module.memory_stats(index)
    current, peak = now["bytes_used"], now["peak_bytes_used"]
    counts = {"all": {"current": current, "peak": peak, "allocated": peak, "freed": peak - current}}
    return {kind: counts for kind in ("allocated_bytes", "active_bytes", "reserved_bytes")}


def _exchange(index: int) -> int:
    previous = _device_module.current_device()
    if index >= 0:
        _device_module.set_device(index)
    return previous


def _is_there_another() -> bool:
    """Whether torch drives an accelerator itself. That it was built to, as the public build for CUDA, does not say so."""
    without_cuda = (
        "PYTORCH_NVML_BASED_CUDA_CHECK"  # whose start here would keep it from forked children
    )
    before = os.environ.get(without_cuda)
    os.environ[without_cuda] = "1"
    try:
        return torch.accelerator.current_accelerator(check_available=True) is not None
    finally:
        if before is None:
            del os.environ[without_cuda]
        else:
            os.environ[without_cuda] = before


def register() -> None:
    """Answers for xla, unless torch has an accelerator of its own."""
    if _is_there_another():
        return
    answers = {
        "getAccelerator": lambda: torch.device("xla"),
        "getDeviceIndex": _device_module.current_device,
        "setDeviceIndex": _device_module.set_device,
        "exchangeDevice": _exchange,
        "maybeExchangeDevice": _exchange,
        "getStream": _device_module.current_stream,
        "setStream": _device_module.set_stream,
        "synchronizeDevice": _device_module.synchronize,
        "getDeviceCapability": _capability,
        "isAllocatorInitialized": _allocator_is_initialized,
        "emptyCache": _device_module.empty_cache,
        "emptyHostCache": _device_module.empty_cache,
        "getDeviceStats": _statistics,
        "resetAccumulatedStats": _device_module.reset_accumulated_memory_stats,
        "resetPeakStats": _device_module.reset_peak_memory_stats,
        "getMemoryInfo": _device_module.mem_get_info,
    }
    for name, answer in answers.items():
        if hasattr(torch._C, f"_accelerator_{name}"):
            setattr(torch._C, f"_accelerator_{name}", answer)
    _pin_nothing()
    _hide_from_dynamo()


def _hide_from_dynamo() -> None:
    """Compiled functions ask for the current stream: how that is answered is nothing to compile."""
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP  # the function, and what it calls
    strategy = frames._FrameExecStrategy(skip, skip)
    frames.set_code_exec_strategy(_device_module.current_stream.__code__, strategy)


def _pin_nothing() -> None:
    """Memory of the host is as good as pinned: what is copied from it to a device is copied as it is."""
    pin_memory = torch.Tensor.pin_memory

    @functools.wraps(pin_memory)
    def pinned(self: torch.Tensor, device: Any = None) -> torch.Tensor:
        if self.device.type == "cpu" and (device is None or torch.device(device).type == "xla"):
            return self
        return pin_memory(self) if device is None else pin_memory(self, device)

    torch.Tensor.pin_memory = pinned
