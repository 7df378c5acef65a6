"""DLPack capsules, which hand memory from one library to another of the same device.

Whoever shares a value's memory must not write to it: programs write their results elsewhere, so that a tensor that is changed in
place afterwards, by either side, is another value.
"""

from typing import Any

import torch

from torch_xla import _XLAC


def to_dlpack(xla_tensor: torch.Tensor) -> Any:
    """A capsule of the memory of a tensor's value, which is computed first.

    Raises:
      RuntimeError: the device's memory is nobody else's, as that of TPUs and of a runtime server, or holds the value in an order of its
        own.
    """
    return _XLAC._to_dlpack(xla_tensor.detach().resolve_conj().resolve_neg())


def from_dlpack(ext_tensor: Any) -> torch.Tensor:
    """Another library's tensor, or a capsule, on the current xla device.

    What lies on the same accelerator is shared: nothing may write to it while the result is used. Anything else is copied.
    """
    tensor = torch.from_dlpack(ext_tensor)
    if tensor.device.type == "cpu" or not _XLAC._is_on_device(tensor):
        return tensor.to("xla")
    dense = tensor.contiguous()
    torch.accelerator.current_stream(dense.device).synchronize()
    try:
        return _XLAC._share_memory(dense)
    except NotImplementedError:  # a server's
        return tensor.to("xla")
