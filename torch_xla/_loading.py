"""How tensors come from the device to files and other processes, and back.

`torch.save` writes storages, each once, and so those of the device. `torch.load` gives storages that have memory, and xla tensors
have none. A storage that is to be loaded to an xla device stays on the CPU with a note of the device, and the tensors that are
made of it are made on the device; those that share it share their memory there too. Queues between processes carry a copy on the
CPU, and so do the arguments of a process.
"""

import functools
import pickle
from collections import OrderedDict
from collections.abc import Callable
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
from torch.utils.data._utils import collate

from torch_xla import _XLAC


def _here(location: str) -> torch.device:
    """Where something goes that another process, or another time, had on the device of that name.

    A process with one device puts all of it there: by what name others call theirs is no matter here.
    """
    own = _XLAC._xla_get_devices()
    return torch.device(own[0] if len(own) == 1 else location)


def _restore(storage: Any, location: str) -> Any:
    if location.split(":")[0] != "xla":
        return None
    storage._xla_device = _here(location)
    return storage


def _rebuild(storage: Any, offset: int, size: Any, stride: Any) -> torch.Tensor:
    on_cpu = torch.empty(0, dtype=storage.dtype).set_(
        storage._untyped_storage, offset, size, stride
    )
    untyped = storage._untyped_storage
    whole = getattr(untyped, "_xla_whole", None)
    if whole is None:
        # Mostly one tensor is all of a storage; else its memory comes as one dimension.
        is_dense = torch._debug_has_internal_overlap(on_cpu) == 0
        if not is_dense or on_cpu.nbytes != untyped.nbytes():
            on_cpu = torch.empty(0, dtype=storage.dtype).set_(untyped)
        whole = untyped._xla_whole = _whole(on_cpu, untyped)
        if whole.shape == torch.Size(size) and whole.stride() == stride:
            return whole.data
    if whole.dtype != storage.dtype:
        whole = whole.as_strided((whole.numel(),), (1,), 0).view(storage.dtype)
    # The data: for autograd, tensors of one storage are no views of each other, whichever of them requires a gradient.
    return whole.as_strided(size, stride, offset).data


def _whole(on_cpu: torch.Tensor, untyped: Any) -> torch.Tensor:
    if getattr(untyped, "_torch_load_uninitialized", False):
        return torch.empty_like(on_cpu, device=untyped._xla_device)
    return on_cpu.to(untyped._xla_device)


def _fill_what_was_rebuilt_before() -> None:
    """In files older than torch 1.6, or written in their format, the numbers come behind the tensors."""
    set_from_file = torch.UntypedStorage._set_from_file

    @functools.wraps(set_from_file)
    def set_storage_and_tensors(self: Any, *arguments: Any) -> Any:
        result = set_from_file(self, *arguments)
        vars(self).pop("_torch_load_uninitialized", None)
        whole = getattr(self, "_xla_whole", None)
        if whole is not None:
            on_cpu = torch.empty(0, dtype=whole.dtype)
            whole.copy_(on_cpu.set_(self, 0, whole.shape, whole.stride()))
        return result

    torch.UntypedStorage._set_from_file = set_storage_and_tensors


def _rebuild_tensors_on_the_device() -> None:
    rebuild, rebuild_with_type = torch._utils._rebuild_tensor, torch._utils._rebuild_tensor_v3

    @functools.wraps(rebuild)
    def rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> torch.Tensor:
        if hasattr(storage._untyped_storage, "_xla_device"):
            return _rebuild(storage, storage_offset, size, stride)
        return rebuild(storage, storage_offset, size, stride)

    @functools.wraps(rebuild_with_type)
    def rebuild_tensor_with_type(storage: Any, *arguments: Any, **keywords: Any) -> torch.Tensor:
        tensor = rebuild_with_type(storage, *arguments, **keywords)
        device = getattr(storage._untyped_storage, "_xla_device", None)
        return tensor if device is None else tensor.to(device)

    for name in (
        "_rebuild_device_tensor_from_cpu_tensor",
        "_rebuild_device_tensor_from_numpy",  # what PyTorch/XLA has saved
    ):
        setattr(torch._utils, name, _rebuilding_here(getattr(torch._utils, name)))
    torch._utils._rebuild_tensor = rebuild_tensor
    torch._utils._rebuild_tensor_v3 = rebuild_tensor_with_type


def _load_scripts() -> None:
    """torch's loader of scripts names the devices that it has: a module comes to the CPU, and then to the device."""
    load = torch.jit.load

    @functools.wraps(load)
    def load_anywhere(f: Any, map_location: Any = None, *arguments: Any, **keywords: Any) -> Any:
        place = map_location
        if place is None:
            is_stream = hasattr(f, "read")
            begin = f.tell() if is_stream and f.seekable() else None
            try:
                return load(f, None, *arguments, **keywords)
            except RuntimeError as error:  # one that was saved on the device
                if "got XLA" not in str(error) or (is_stream and begin is None):
                    raise
            if is_stream:
                f.seek(begin)
            place = "xla"
        # What names no place torch refuses in its own words.
        if not isinstance(place, (str, torch.device)) or torch.device(place).type != "xla":
            return load(f, place, *arguments, **keywords)
        return load(f, "cpu", *arguments, **keywords).to(_here(str(place)))

    torch.jit.load = load_anywhere


def _rebuilding_here(rebuild_of_torch: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    @functools.wraps(rebuild_of_torch)
    def rebuild(data: Any, dtype: torch.dtype, device: Any, *arguments: Any) -> torch.Tensor:
        if torch.device(device).type == "xla":
            device = str(_here(str(device)))
        # What requires a gradient would not become a leaf.
        detached = data.detach() if isinstance(data, torch.Tensor) else data
        return rebuild_of_torch(detached, dtype, device, *arguments)

    return rebuild


def _tag(storage: Any) -> str | None:
    return str(storage.device) if storage.device.type == "xla" else None


def _save_storages() -> None:
    reduce_of_torch = torch.Tensor._reduce_ex_internal

    @functools.wraps(reduce_of_torch)
    def reduce(self: torch.Tensor, protocol: int) -> Any:
        if not _is_of_the_device(self):
            return reduce_of_torch(self, protocol)
        torch.utils.hooks.warn_if_has_hooks(self)
        place = (self.storage_offset(), tuple(self.size()), self.stride(), self.requires_grad)
        metadata = torch._utils.get_tensor_metadata(self)
        further = (metadata,) if metadata else ()
        storage = self.untyped_storage()
        if self.dtype in torch.storage._new_dtypes():
            arguments = (storage, *place, OrderedDict(), self.dtype, *further)
            return torch._utils._rebuild_tensor_v3, arguments
        typed = torch.storage.TypedStorage(wrap_storage=storage, dtype=self.dtype, _internal=True)
        return torch._utils._rebuild_tensor_v2, (typed, *place, OrderedDict(), *further)

    torch.Tensor._reduce_ex_internal = reduce


def _is_of_the_device(tensor: torch.Tensor) -> bool:
    """Whether it has a storage there, as wrappers of tensors and those that torch traces with have not."""
    if tensor.device.type != "xla" or tensor.layout != torch.strided:
        return False
    own_dispatch = type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    return not own_dispatch and torch._C._functorch.maybe_get_level(tensor) == -1


def _received(
    cls: type[torch.Tensor], on_cpu: torch.Tensor, device: str, requires_grad: bool
) -> torch.Tensor:
    tensor = on_cpu.to(_here(device))
    if issubclass(cls, torch.nn.Parameter):
        return torch.nn.Parameter(tensor, requires_grad)
    return tensor.requires_grad_(requires_grad)


def _received_argument(
    cls: type[torch.Tensor], pickled: bytes, device: str, requires_grad: bool
) -> torch.Tensor:
    return _received(cls, pickle.loads(pickled), device, requires_grad)


def _send_copies_between_processes() -> None:
    from torch.multiprocessing.reductions import reduce_tensor

    def reduce(tensor: torch.Tensor) -> Any:
        # torch's own also refuses what autograd cannot follow.
        if tensor.device.type != "xla" or (tensor.requires_grad and not tensor.is_leaf):
            return reduce_tensor(tensor)
        on_cpu = tensor.detach().cpu()
        rest = (str(tensor.device), tensor.requires_grad)
        if get_spawning_popen() is not None:
            # The new process gets the files of shared memory when all its arguments are pickled: the copy's is closed by then.
            return _received_argument, (type(tensor), pickle.dumps(on_cpu), *rest)
        return _received, (type(tensor), on_cpu, *rest)

    for cls in (torch.Tensor, torch.nn.Parameter):
        ForkingPickler.register(cls, reduce)


def _collate_on_the_device() -> None:
    collate_tensors = collate.default_collate_fn_map[torch.Tensor]

    @functools.wraps(collate_tensors)
    def collate_anywhere(batch: Any, *arguments: Any, **keywords: Any) -> torch.Tensor:
        # A loader's worker would put a batch into memory that is shared with other processes.
        if _is_of_the_device(batch[0]):
            if torch.utils.data.get_worker_info() is not None and any(
                row.requires_grad for row in batch
            ):
                raise RuntimeError(
                    "a loader's worker cannot send rows that require a gradient: detach() them first"
                )
            return torch.stack(batch)
        return collate_tensors(batch, *arguments, **keywords)

    collate.default_collate_fn_map[torch.Tensor] = collate_anywhere


def register() -> None:
    """Teaches torch's saving, its loading, its queues and its loaders of data about the device."""
    torch.serialization.register_package(30, _tag, _restore)
    _save_storages()
    _rebuild_tensors_on_the_device()
    _fill_what_was_rebuilt_before()
    _load_scripts()
    _send_copies_between_processes()
    _collate_on_the_device()
