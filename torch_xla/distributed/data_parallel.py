"""A model on several devices of one process, a thread for each."""

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import nn

from torch_xla.core import xla_model as xm
from torch_xla.distributed import parallel_loader as pl


class Context:
    """What a loop keeps from epoch to epoch on its device.

    Args:
      device: the device.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def getattr_or(self, name: str, defval: Any) -> Any:
        """An attribute; where it is missing or None it becomes `defval`, or what that gives if it is a function."""
        value = getattr(self, name, None)
        if value is None:
            value = defval() if callable(defval) else defval
            setattr(self, name, value)
        return value


class DataParallel:
    """Copies of a model on devices of this process. Gradients are averaged by the loop (`xm.optimizer_step`).

    Args:
      network: a module, or a function that makes one.
      device_ids: the devices; all of this process by default. With none the model stays where it is, and is run there.
      kwargs: arguments of `parallel_loader.ParallelLoader`.
    """

    def __init__(
        self,
        network: nn.Module | Callable[[], nn.Module],
        device_ids: Sequence[str | torch.device] | None = None,
        **kwargs: Any,
    ) -> None:
        module = network if isinstance(network, nn.Module) else network()
        if device_ids is None:
            device_ids = xm.get_xla_supported_devices()
        self._loader_arguments = kwargs
        self._native_run = not device_ids
        self._device_ids = [str(device) for device in device_ids] or [_device_of(module)]
        self._models = (
            [module]
            if self._native_run
            else [copy.deepcopy(module).to(device) for device in self._device_ids]
        )
        self._contexts = [Context(torch.device(device)) for device in self._device_ids]

    @property
    def devices(self) -> list[str]:
        """The devices' names."""
        return self._device_ids

    @property
    def models(self) -> list[nn.Module]:
        """The copies, in the order of the devices."""
        return self._models

    def __call__(
        self, loop_fn: Callable[..., Any], loader: Any, batchdim: int = 0, **kwargs: Any
    ) -> list[Any]:
        """Runs `loop_fn(model, device_loader, device, context, **kwargs)` on every device at once.

        Args:
          loop_fn: goes through its loader once.
          loader: gives batches, which the devices share among them.
          batchdim: the batches' dimension of samples.

        Returns:
          What the loops return, in the order of the devices. An exception of one of them is raised when all have ended.
        """
        if self._native_run:
            [model], [context] = self._models, self._contexts
            return [loop_fn(model, enumerate(loader), context.device, context, **kwargs)]
        xm.wait_device_ops()
        parallel = pl.ParallelLoader(
            loader, self._device_ids, batchdim=batchdim, **self._loader_arguments
        )

        def run(model: nn.Module, device: str, context: Context) -> Any:
            batches = parallel.per_device_loader(device)
            try:
                return loop_fn(model, batches, context.device, context, **kwargs)
            except BaseException:
                parallel.close()  # so that the others end
                raise

        try:
            with ThreadPoolExecutor(max_workers=len(self._models)) as threads:
                return list(threads.map(run, self._models, self._device_ids, self._contexts))
        finally:
            parallel.close()


def _device_of(module: nn.Module) -> str:
    devices = {str(parameter.device) for parameter in module.parameters()}
    if len(devices) > 1:
        raise RuntimeError(f"Model uses more than one device: {sorted(devices)}")
    return devices.pop() if devices else "cpu"
