"""`data_ptr()` of tensors on the device and of their storages: a number that stands for an address, as there is no memory to read.

Equal numbers are the same place of the same storage; libraries find by it which tensors share memory (tied weights).
"""

import functools
from typing import Any

import torch

from torch_xla import _XLAC


def register() -> None:
    """Answers where torch's own functions raise; C++ code, which would read there, goes on getting their error.

    torch's older format of files, which is pickle's, too, writes storages by a function of its own.
    """
    of_tensor, of_storage = torch.Tensor.data_ptr, torch.UntypedStorage.data_ptr

    @functools.wraps(of_tensor)
    def tensor_data_ptr(self: torch.Tensor) -> int:
        try:
            return of_tensor(self)
        except RuntimeError:
            if self.device.type != "xla":
                raise
        return _XLAC._xla_data_ptr(self)

    @functools.wraps(of_storage)
    def storage_data_ptr(self: torch.UntypedStorage) -> int:
        try:
            return of_storage(self)
        except RuntimeError:
            if self.device.type != "xla":
                raise
        return _XLAC._xla_storage_data_ptr(self._cdata)

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
    torch.Tensor.data_ptr = tensor_data_ptr
    torch.UntypedStorage.data_ptr = storage_data_ptr
