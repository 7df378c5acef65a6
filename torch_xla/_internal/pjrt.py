"""Processes and threads that run a function on devices, by the names that vendors call them: doors to `xla_multiprocessing`."""

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from torch_xla import _XLAC, runtime
from torch_xla._internal.thread_worlds import own_groups
from torch_xla.core import xla_env_vars as xenv
from torch_xla.core import xla_model as xm
from torch_xla.distributed import xla_multiprocessing as xmp
from torch_xla.experimental import plugins

R = TypeVar("R")


def _merge_replica_results(replica_results: Iterable[tuple[int, R]]) -> dict[int, R]:
    """The results by replica; AssertionError where one has several."""
    results = list(replica_results)
    for replica, count in Counter(replica for replica, _ in results).items():
        assert count == 1, f"{count} results for replica {replica}"
    return dict(results)


def initialize_singleprocess() -> None:
    """Prepares the environment of a process that has the machine's devices to itself."""
    os.environ.setdefault(xenv.PJRT_LOCAL_PROCESS_COUNT, "1")
    if plugins.using_dynamic_plugins():
        plugins.default().configure_single_process()


def initialize_multiprocess(local_rank: int, local_world_size: int) -> None:
    """Prepares the environment of the process `local_rank` among `local_world_size` of this machine."""
    os.environ.setdefault(xenv.PJRT_LOCAL_PROCESS_RANK, str(local_rank))
    os.environ.setdefault(xenv.PJRT_LOCAL_PROCESS_COUNT, str(local_world_size))
    if plugins.using_dynamic_plugins():
        plugins.default().configure_multiprocess(local_rank, local_world_size)


def _run_thread_per_device(
    local_rank: int,
    local_world_size: int,
    fn: Callable[[], R],
    initializer_fn: Callable[[int, int], None],
) -> dict[int, R]:
    """What `fn` gives on a thread for each device of this process, whose current device it is, by the device's number.

    Where there are several, each thread has process groups of its own, as it would have in a process.
    """
    initializer_fn(local_rank, local_world_size)

    def run(device: str) -> tuple[int, R]:
        _XLAC._xla_set_default_device(device)
        with own_groups() if len(devices) > 1 else contextlib.nullcontext():
            return _XLAC._xla_get_default_device_ordinal(), fn()

    devices = xm.get_xla_supported_devices()
    with ThreadPoolExecutor(max_workers=len(devices)) as threads:
        return _merge_replica_results(list(threads.map(run, devices)))


def _run_singleprocess(fn: Callable[..., R], *args: Any, **kwargs: Any) -> R:
    """What `fn` gives in this process."""
    initialize_singleprocess()
    return fn(*args, **kwargs)


def spawn(
    fn: Callable[..., None],
    nprocs: int | None = None,
    start_method: str = "spawn",
    args: tuple[Any, ...] = (),
) -> Any:
    """See `torch_xla.distributed.xla_multiprocessing.spawn`."""
    return xmp.spawn(fn, args=args, nprocs=nprocs, start_method=start_method)


def spawn_threads(fn: Callable[..., None], args: tuple[Any, ...] = ()) -> None:
    """Calls `fn(ordinal, *args)` on a thread for each device of this process."""
    _run_thread_per_device(
        0, 1, lambda: fn(runtime.global_ordinal(), *args), lambda rank, size: None
    )


def run_multiprocess(
    fn: Callable[..., R], *args: Any, start_method: str = "spawn", **kwargs: Any
) -> dict[int, R]:
    """What `fn(*args, **kwargs)` gives in a new process for each device, by the process's ordinal.

    What it raises in one of them is raised here. Raises RuntimeError when the runtime has started in this process already.
    """
    if _XLAC._xla_runtime_is_initialized():
        raise RuntimeError(
            "Runtime is already initialized. Do not use the XLA device before calling xmp.spawn."
        )
    return xmp.results(fn, args, kwargs, start_method)
