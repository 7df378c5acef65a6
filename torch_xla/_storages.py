"""`data_ptr()` of tensors on the device and of their storages: a number that stands for an address, as there is no memory to read.

Equal numbers are the same place of the same storage; libraries find by it which tensors share memory (tied weights).
"""

import functools
from collections.abc import Callable
from typing import Any

import torch

from torch_xla import _XLAC


def _or_ours(torchs: Callable[[Any], int], ours: Callable[[Any], int]) -> Callable[[Any], int]:
    """torch's function; where that raises for something on the device, ours."""

    @functools.wraps(torchs)
    def data_ptr(self: Any) -> int:
        try:
            return torchs(self)
        except RuntimeError:
            if self.device.type != "xla":
                raise
        return ours(self)

    return data_ptr


def register() -> None:
    """Answers where torch's own functions raise; C++ code, which would read there, goes on getting their error.

    torch's older format of files, which is pickle's, too, writes storages by a function of its own.
    """
    to_cpu = torch.UntypedStorage.cpu

    @functools.wraps(to_cpu)
    def copy_to_cpu(self: torch.UntypedStorage) -> torch.UntypedStorage:
        if self.device.type != "xla":
            return to_cpu(self)
        return _XLAC._xla_storage_contents(self._cdata).untyped_storage()

    write_file = torch.UntypedStorage._write_file

    @functools.wraps(write_file)
    def write_copy(self: torch.UntypedStorage, *arguments: Any) -> None:
        write_file(self.cpu() if self.device.type == "xla" else self, *arguments)

    torch.UntypedStorage.cpu = copy_to_cpu
    torch.UntypedStorage._write_file = write_copy
    torch.Tensor.data_ptr = _or_ours(torch.Tensor.data_ptr, _XLAC._xla_data_ptr)
    torch.UntypedStorage.data_ptr = _or_ours(
        torch.UntypedStorage.data_ptr, lambda storage: _XLAC._xla_storage_data_ptr(storage._cdata)
    )
