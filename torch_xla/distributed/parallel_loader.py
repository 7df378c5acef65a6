"""Data loaders that move batches to the device in the background, while the steps before them run."""

import atexit
import sys
import threading
import time
import weakref
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from typing import Any

import torch

import torch_xla
from torch_xla import _XLAC
from torch_xla._internal import fork_lock
from torch_xla.core import xla_model as xm
from torch_xla.debug import observers
from torch_xla.distributed.spmd import xla_sharding
from torch_xla.torch_xla import _sync
from torch_xla.utils import keyd_queue as kq


class PerDeviceLoader:
    """The iterator over one device's batches. Each `next` first ends the step of the batch before."""

    def __init__(self, loader: "ParallelLoader", device: torch.device) -> None:
        self._loader = loader
        self._device = device
        self._batches_per_execution = loader.batches_per_execution
        self._pending_batches = 0

    def __iter__(self) -> "PerDeviceLoader":
        return self

    def __next__(self) -> Any:
        return self.next()

    def __len__(self) -> int:
        return self._loader.per_device_samples()

    def next(self) -> Any:
        """The next batch, on the device; StopIteration at the end."""
        if self._pending_batches >= self._batches_per_execution:
            self._end_step()
        try:
            batch = self._loader.next_item(self._device)
        except StopIteration:
            if self._pending_batches:
                self._end_step()
            raise
        self._pending_batches += 1
        return batch

    def close(self) -> None:
        """Ends the background threads. Leaving a `for` statement early does the same."""
        self._loader.close()

    def _end_step(self) -> None:
        self._pending_batches = 0
        _sync("torch_xla.sync in parallel loader at step end")


class ParallelLoader:
    """Loads batches in one thread and moves them to the devices in others.

    The first batch is loaded by the thread that makes this object, so that what the loader's sampler draws from torch's random numbers
    does not depend on the threads' timing. An exception of the loader is raised by `next_item` at its batch's turn.

    Args:
      cpu_loader: yields batches: tensors, or nested structures with tensors.
      devices: the devices, which get the batches by turns.
      batchdim: the dimension of a tensor that counts the samples, which the loader says again.
      batches_per_execution: how many batches a step takes.
      loader_prefetch_size: how many batches may wait on the host.
      device_prefetch_size: how many batches may wait on each device.
      host_to_device_transfer_threads: how many threads move batches to each device.
      input_sharding: the `ShardingSpec` of a batch's tensors, or a dictionary of them; over one device, where it decides nothing.

    Raises ValueError for no device, and for sizes and counts below 1.
    """

    def __init__(
        self,
        cpu_loader: Iterable[Any],
        devices: list[torch.device | str],
        batchdim: int = 0,
        batches_per_execution: int = 1,
        loader_prefetch_size: int = 16,
        device_prefetch_size: int = 8,
        host_to_device_transfer_threads: int = 1,
        input_sharding: Any = None,
    ) -> None:
        xla_sharding.check_input_sharding(input_sharding)
        _check_counts(
            batches_per_execution=batches_per_execution,
            loader_prefetch_size=loader_prefetch_size,
            device_prefetch_size=device_prefetch_size,
            host_to_device_transfer_threads=host_to_device_transfer_threads,
        )
        if not devices:
            raise ValueError("ParallelLoader: devices is empty; the batches go to one at least.")
        self._cpu_loader = cpu_loader
        self.batches_per_execution = batches_per_execution
        self._batchdim = batchdim
        self._pipes = {
            torch.device(device): _Pipe(loader_prefetch_size, device_prefetch_size)
            for device in devices
        }
        pipes = list(self._pipes.values())
        # The threads know the queues only, so that an abandoned loader is collected and closes them.
        self._finalizer = weakref.finalize(self, _close, pipes)
        batches = iter(cpu_loader)
        ahead = _ahead(cpu_loader) if len(pipes) == 1 else sys.maxsize
        self._start(_Reader(_next_batch(batches), batches, pipes, ahead).run)
        for device, pipe in self._pipes.items():
            for _ in range(host_to_device_transfer_threads):
                self._start(_Uploader(device, pipe).run)

    def _start(self, target: Any) -> None:
        thread = threading.Thread(target=target, name="parallel_loader", daemon=True)
        _threads.add(thread)
        thread.start()

    @property
    def batch_dim(self) -> int:
        """The dimension of a tensor that counts the samples."""
        return self._batchdim

    def per_device_loader(self, device: torch.device | str) -> PerDeviceLoader:
        """The iterator over a device's batches."""
        device = torch.device(device)
        if device not in self._pipes:
            raise ValueError(
                f"This loader has the devices {list(map(str, self._pipes))}, not {device}."
            )
        return PerDeviceLoader(self, device)

    def per_device_samples(self) -> int:
        """The number of batches that each device gets."""
        return len(self._cpu_loader) // len(self._pipes)  # type: ignore[arg-type]

    def next_item(self, device: torch.device) -> Any:
        """The device's next batch; StopIteration at the end, and what the loader raised in its place."""
        pipe = self._pipes[device]
        pipe.demand.ask()
        with observers.section("input"), _XLAC._TraceMe("xla::input"):
            future = pipe.device.get()
            if future is None:
                raise StopIteration
            try:
                return future.result()
            except BaseException:
                self.close()
                raise

    def close(self) -> None:
        """Ends the background threads."""
        self._finalizer()


class _Pipe:
    """What one device's threads share."""

    def __init__(self, loader_prefetch_size: int, device_prefetch_size: int) -> None:
        self.host: kq.Queue[_Batch] = kq.Queue(loader_prefetch_size)
        self.device: kq.Queue[Future[Any]] = kq.Queue(device_prefetch_size)
        # Held while a batch is taken and its future queued, so that several uploaders keep the batches' order.
        self.order = fork_lock.Lock()
        self.demand = _Demand()
        _pipes.add(self)


class _Demand:
    """How many batches a device has been asked for."""

    def __init__(self) -> None:
        self._count = 0
        self._closed = False
        self._changed = fork_lock.Condition()

    def ask(self) -> None:
        """Counts one more."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait(self, count: int) -> bool:
        """Waits until so many have been asked for; False when nobody will ask any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._count >= count)
            return not self._closed

    def close(self) -> None:
        """Lets whoever waits go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


class _Batch:
    """A batch on the host, or what the loader raised instead."""

    def __init__(self, data: Any = None, error: BaseException | None = None) -> None:
        self.data = data
        self.error = error


_pipes: weakref.WeakSet[_Pipe] = weakref.WeakSet()
_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
# How long the end of the process waits for a loader that is in the middle of a batch.
_EXIT_SECONDS = 3.0


@atexit.register
def _end_threads() -> None:
    """Ends all threads: one that is in the middle of a C++ function when the interpreter ends would abort the process."""
    _close(list(_pipes))
    deadline = time.monotonic() + _EXIT_SECONDS
    for thread in list(_threads):
        thread.join(max(0.0, deadline - time.monotonic()))


def _close(pipes: list[_Pipe]) -> None:
    for pipe in pipes:
        pipe.host.close()
        pipe.device.close()
        pipe.demand.close()


def _ahead(loader: Iterable[Any]) -> int:
    """How many batches may be read before they are asked for.

    A loader with an attribute `end_of_dataloader` says by it whether the batch in use is the last one. accelerate truncates the last
    batch's results by it, and ends accumulation. So the last batch, and what comes after it, are read when they are wanted.
    """
    if not hasattr(loader, "end_of_dataloader"):
        return sys.maxsize
    try:
        return max(len(loader) - 1, 0)  # type: ignore[arg-type]
    except TypeError:
        return sys.maxsize


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise ValueError(f"{name}={count} must be at least 1.")


def _next_batch(batches: Iterator[Any]) -> _Batch | None:
    try:
        with observers.section("load"):
            return _Batch(next(batches))
    except StopIteration:
        return None
    except BaseException as error:
        return _Batch(error=error)


class _Reader:
    """Takes batches from the loader and deals them out to the devices."""

    def __init__(
        self, first: _Batch | None, batches: Iterator[Any], pipes: list[_Pipe], ahead: int
    ) -> None:
        self._batch = first
        self._batches = batches
        self._pipes = pipes
        self._ahead = ahead

    def run(self) -> None:
        turn = 0
        while self._batch is not None:
            batch, self._batch = self._batch, None
            if not self._pipes[turn % len(self._pipes)].host.put(batch) or batch.error:
                break
            turn += 1
            if turn >= self._ahead and not self._pipes[0].demand.wait(turn + 1):
                break
            self._batch = _next_batch(self._batches)
        for pipe in self._pipes:
            pipe.host.close_write()


class _Uploader:
    """Moves one device's batches."""

    def __init__(self, device: torch.device, pipe: _Pipe) -> None:
        self._device = device
        self._pipe = pipe

    def run(self) -> None:
        while True:
            future: Future[Any] = Future()
            with self._pipe.order:
                batch = self._pipe.host.get()
                if batch is None:
                    self._pipe.device.close_write()
                    return
                if not self._pipe.device.put(future):
                    return
            self._upload(batch, future)

    def _upload(self, batch: _Batch, future: Future[Any]) -> None:
        if batch.error is not None:
            future.set_exception(batch.error)
            return
        try:
            [moved] = xm.send_cpu_data_to_device([batch.data], self._device)
            future.set_result(moved)
        except BaseException as error:
            future.set_exception(error)


class MpDeviceLoader:
    """A data loader whose batches are on a device.

    It can be iterated as often as the loader that it wraps, has its length, and passes on its attributes.

    Args:
      loader: the loader.
      device: where the batches go.
      **kwargs: as for `ParallelLoader`.
    """

    def __init__(self, loader: Any, device: torch.device | str, **kwargs: Any) -> None:
        self._loader = loader
        self._device = device
        self._parallel_loader_kwargs = kwargs

    def __iter__(self) -> PerDeviceLoader:
        device = torch.device(self._device)
        if device.index is None:
            device = torch_xla.device()
        return ParallelLoader(
            self._loader, [device], **self._parallel_loader_kwargs
        ).per_device_loader(device)

    def __len__(self) -> int:
        return len(self._loader)

    def set_epoch(self, epoch: int) -> None:
        """Passes the number of the next epoch on to the loader, or else to its samplers, which shuffle by it.

        Libraries that look for a sampler to tell find this object instead.
        """
        samplers = [getattr(self._loader, name, None) for name in ("sampler", "batch_sampler")]
        for target in [self._loader] if hasattr(self._loader, "set_epoch") else samplers:
            if hasattr(target, "set_epoch"):
                target.set_epoch(epoch)

    def __getattr__(self, name: str) -> Any:
        # Only names that this object lacks come here; `_loader` does while it is being unpickled.
        if name == "_loader":
            raise AttributeError(name)
        return getattr(self._loader, name)
