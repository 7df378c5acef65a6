"""Launching one process per device."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch

from torch_xla import runtime as xr
from torch_xla.core import xla_env_vars as xenv

T = TypeVar("T")

_DEVICE_COUNT_VARIABLES = {"CPU": xenv.CPU_NUM_DEVICES, "TPU": xenv.TPU_NUM_DEVICES}


def _default_process_count() -> int:
    """How many devices there are, from the environment alone: the runtime must not start before a fork."""
    variable = _DEVICE_COUNT_VARIABLES.get(xr.device_type())
    return int(os.environ.get(variable, "1")) if variable else 1


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int | None = None,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Runs `fn(index, *args)` in one process per device.

    With one process `fn` is called in place, and None is returned.

    Args:
      fn: what each process runs.
      args: its arguments after the index.
      nprocs: the number of processes; by default the number of devices.
      join: wait for the processes.
      daemon: end the processes with this one.
      start_method: "spawn" or "fork".

    Raises:
      NotImplementedError: more than one process is asked for.
    """
    count = _default_process_count() if nprocs is None else nprocs
    if count < 1:
        raise ValueError(f"spawn: nprocs={nprocs} must be at least 1.")
    if count > 1:
        raise NotImplementedError(
            f"spawn: training with {count} processes is not implemented; use nprocs=1, or one device."
        )
    os.environ.setdefault(xenv.HOST_WORLD_SIZE, "1")
    os.environ.setdefault(xenv.HOST_ORDINAL, "0")
    fn(0, *args)
    return None


class MpModelWrapper:
    """Holds a model that forked processes share, and moves it to their devices one after another.

    That way the host holds one copy of it, whatever the number of processes.
    """

    def __init__(self, model: torch.nn.Module) -> None:
        self._model = model
        self._lock = torch.multiprocessing.Lock()

    def to(self, device: torch.device | str) -> torch.nn.Module:
        """The model, moved to the device."""
        with self._lock:
            self._model.to(device)
        return self._model


class MpSerialExecutor:
    """Lets a function run in one process at a time; each of them gets the value of its own call."""

    def __init__(self) -> None:
        self._lock = torch.multiprocessing.Lock()

    def run(self, fn: Callable[[], T]) -> T:
        """The value of `fn()`."""
        with self._lock:
            return fn()
