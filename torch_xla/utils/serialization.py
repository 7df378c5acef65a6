"""Checkpoints that take no more host memory than their largest tensor.

`save(data, path)` writes each tensor of the structure to a file of its own, one after another, and then the rest of the structure to
`path`. The tensors' files stand in `path.tensors/`, each save in a folder of its own there, so that until the last moment, when `path`
is replaced, the checkpoint before it is whole. A process that is killed at any moment leaves one or the other; the next save removes what
it left of a new one.
"""

import contextlib
import os
import pathlib
import re
import shutil
import uuid
from typing import Any

import torch

from torch_xla import _XLAC, _atomic_file
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
    # Whoever wrote the file may be a stranger: what it refers to lies in its own folder, and nowhere else.
    known = type(reference.tid) is int and isinstance(folder, str)
    if not known or not re.fullmatch("([0-9a-f]{16})?", folder):
        raise ValueError(
            f"The checkpoint {path} refers to a tensor at {folder!r}, number {reference.tid!r}, which this "
            "library never writes: it is damaged, or made to read other files."
        )
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
    writing = not master_only or xm.is_master_ordinal(local=not global_master)
    xm._save_together(
        "torch_xla.utils.serialization.save",
        path,
        # The other processes run what the tensors need too: collectives among it wait for all of them.
        (lambda: _write(data, path)) if writing else (lambda: _run_pending(data)),
    )


def _run_pending(data: Any) -> None:
    """Computes all that the tensors need as one graph, not as one for each tensor."""
    tensors: list[torch.Tensor] = []
    xu.for_each_instance(data, _is_xla_tensor, tensors.append)
    _XLAC._sync_devices_of(tensors)


def _write(data: Any, path: str) -> None:
    _run_pending(data)
    root = _tensors_root(path)
    root.mkdir(parents=True, exist_ok=True)
    _atomic_file.sync_folder(root.parent)
    folder = root / uuid.uuid4().hex[:16]
    with contextlib.ExitStack() as stack:
        # Under the root's lock no other save sees the folder between its making and its locking.
        with _atomic_file.locked(root):
            folder.mkdir()
            stack.enter_context(_atomic_file.locked(folder))
        try:
            structure = _write_tensors(data, folder)
            _atomic_file.sync_folder(folder)
            _atomic_file.sync_folder(root)
            with _atomic_file.locked(root):
                with _atomic_file.replacing(path) as file:
                    torch.save(structure, file)
                _remove_other_saves(root, folder)
        except BaseException:
            # An interrupt may come when the new checkpoint is in its place already.
            if not _refers_to(path, folder.name):
                shutil.rmtree(folder, ignore_errors=True)
            raise


def _refers_to(path: str, folder: str) -> bool:
    """Whether the tensors of a checkpoint stand in this folder of its own."""
    try:
        with open(path, "rb") as file:
            return folder.encode() in file.read()
    except OSError:
        return False


def _remove_other_saves(root: pathlib.Path, kept: pathlib.Path) -> None:
    """Drops the save before, and what killed processes have left; saves that other processes are writing stay."""
    for other in root.iterdir():
        if other == kept:
            continue
        if not other.is_dir():
            other.unlink()
        elif not _atomic_file.is_locked(other):
            shutil.rmtree(other, ignore_errors=True)


def _write_tensors(data: Any, folder: pathlib.Path) -> Any:
    written: dict[Any, TensorReference] = {}

    def write(tensor: torch.Tensor) -> TensorReference:
        identity = _identity(tensor)
        if identity not in written:
            reference = TensorReference(len(written), tensor.dtype, folder.name)
            with open(folder / f"tensor_{reference.tid}.pt", "xb") as file:
                torch.save(tensor.detach().cpu(), file)
                file.flush()
                os.fsync(file.fileno())
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
    while True:
        version = os.stat(path).st_ino
        try:
            return _read(path, weights_only)
        except _TensorMissingError:
            # Another process has replaced the checkpoint in the meantime, and removed this one's tensors.
            if os.stat(path).st_ino == version:
                raise


class _TensorMissingError(RuntimeError):
    """A checkpoint lacks a tensor."""


def _read(path: str, weights_only: bool) -> Any:
    with torch.serialization.safe_globals([TensorReference]):
        structure = torch.load(path, map_location="cpu", weights_only=weights_only)

    def read(reference: TensorReference) -> torch.Tensor:
        file = _tensor_file(path, reference)
        try:
            return torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:
            raise _TensorMissingError(
                f"The checkpoint {path} is not complete: its tensor {file} cannot be read ({error})."
            ) from error

    return xu.for_each_instance_rewrite(
        structure, lambda value: isinstance(value, TensorReference), read
    )
