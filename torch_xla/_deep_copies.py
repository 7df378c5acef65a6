"""Deep copies of tensors that share their memory share theirs, as eager's.

torch clones each tensor of a device that it takes for one without storages.
"""

import functools
from typing import Any

import torch

from torch_xla._loading import is_of_the_device


def _in_whole(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of all that the tensor's storage holds, as one dimension."""
    storage = tensor.untyped_storage()
    count = storage.nbytes() // tensor.element_size()
    return tensor.detach().as_strided((count,), (1,), 0).clone()


def _place(tensor: torch.Tensor) -> tuple[torch.Size, tuple[int, ...], int]:
    return tensor.size(), tensor.stride(), tensor.storage_offset()


def _share(tensor: torch.Tensor, twin: torch.Tensor, memo: dict[Any, Any]) -> None:
    """Puts the copy into the same memory as those of the tensor's storage that were copied before."""
    copies = memo.setdefault("torch_xla", {})
    storage = tensor.untyped_storage()._cdata
    first = copies.setdefault(storage, [tensor, twin, None])
    if first[1] is twin:
        return
    if first[2] is None:
        first[2] = _in_whole(first[0])
        first[1].data = first[2].as_strided(*_place(first[0]))
    twin.data = first[2].view(tensor.dtype).as_strided(*_place(tensor))


def register() -> None:
    """Puts a method of ours before torch's."""
    deep_copy = torch.Tensor.__deepcopy__

    @functools.wraps(deep_copy)
    def copied(self: torch.Tensor, memo: dict[Any, Any]) -> torch.Tensor:
        is_copied_before = id(self) in memo
        twin = deep_copy(self, memo)
        is_plain = type(self) is torch.Tensor and not (self.is_conj() or self.is_neg())
        if is_plain and not is_copied_before and is_of_the_device(self):
            _share(self, twin, memo)
        return twin

    torch.Tensor.__deepcopy__ = copied
