"""Checkpoints that take no more host memory than their largest tensor.

`save(data, path)` writes each tensor of the structure to a file of its own, one after another, and then the rest of the structure to
`path`. The tensors' files stand in `path.tensors/`, each save in a folder of its own there, so that until the last moment, when `path`
is replaced, the checkpoint before it is whole.
"""

import os
import pathlib
import shutil
import uuid
from typing import Any

import torch

from torch_xla import _XLAC
from torch_xla.core import xla_model as xm
from torch_xla.utils import utils as xu


class TensorReference:
    """Stands for a tensor in the file of the structure."""

    def __init__(self, tid: int, dtype: torch.dtype, folder: str) -> None:
        self.tid = tid
        self.dtype = dtype
        self.folder = folder


def _tensors_root(path: str) -> pathlib.Path:
    return pathlib.Path(path + ".tensors")


def _tensor_file(path: str, reference: TensorReference) -> pathlib.Path:
    # Checkpoints of upstream have no folder for each save.
    folder = getattr(reference, "folder", "")
    return _tensors_root(path) / folder / f"tensor_{reference.tid}.pt"


def save(
    data: Any, path: str | os.PathLike[str], master_only: bool = True, global_master: bool = False
) -> None:
    """Saves a nested structure with tensors.

    Args:
      data: the structure; for example a state dictionary.
      path: the file of the structure. The tensors' folder stands beside it.
      master_only: let only the first process write.
      global_master: that process is the first of all, not the first of each machine.
    """
    path = os.fspath(path)
    if not master_only or xm.is_master_ordinal(local=not global_master):
        _write(data, path)
    xm.rendezvous("torch_xla.utils.serialization.save")


def _write(data: Any, path: str) -> None:
    root = _tensors_root(path)
    name = uuid.uuid4().hex[:16]
    folder = root / name
    folder.mkdir(parents=True)
    partial = f"{path}.{name}.partial"
    try:
        torch.save(_write_tensors(data, folder), partial)
        os.replace(partial, path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        pathlib.Path(partial).unlink(missing_ok=True)
        raise
    for other in root.iterdir():
        if other != folder:
            shutil.rmtree(other, ignore_errors=True) if other.is_dir() else other.unlink()


def _write_tensors(data: Any, folder: pathlib.Path) -> Any:
    tensors: list[torch.Tensor] = []
    xu.for_each_instance(data, _is_xla_tensor, tensors.append)
    # All that is pending runs as one graph, not as one for each tensor.
    _XLAC._xla_sync_multi(tensors, devices=[], wait=False, sync_xla_data=False)
    written: dict[int, TensorReference] = {}

    def write(tensor: torch.Tensor) -> TensorReference:
        identity = _identity(tensor)
        if identity not in written:
            reference = TensorReference(len(written), tensor.dtype, folder.name)
            torch.save(tensor.detach().cpu(), folder / f"tensor_{reference.tid}.pt")
            written[identity] = reference
        return written[identity]

    return xu.for_each_instance_rewrite(data, _is_tensor, write)


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)


def _is_xla_tensor(value: Any) -> bool:
    return _is_tensor(value) and value.device.type == "xla"


def _identity(tensor: torch.Tensor) -> Any:
    """Equal for two tensors that are one, as tied parameters are."""
    if tensor.device.type == "xla":
        return _XLAC._xla_get_tensor_id(tensor)
    return (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride(), "cpu")


def load(path: str | os.PathLike[str], weights_only: bool = True) -> Any:
    """Loads what `save` has written; the tensors are on the CPU.

    Args:
      path: the file of the structure.
      weights_only: as in `torch.load`; False also loads objects of any class, which can run code.

    Raises:
      RuntimeError: a tensor's file is missing or unreadable.
    """
    path = os.fspath(path)
    with torch.serialization.safe_globals([TensorReference]):
        structure = torch.load(path, map_location="cpu", weights_only=weights_only)

    def read(reference: TensorReference) -> torch.Tensor:
        file = _tensor_file(path, reference)
        try:
            return torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            raise RuntimeError(
                f"The checkpoint {path} is not complete: its tensor {file} cannot be read ({error})."
            ) from error

    return xu.for_each_instance_rewrite(
        structure, lambda value: isinstance(value, TensorReference), read
    )
