"""Launching one process per device."""

import contextlib
import os
import pickle
import socket
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
import torch.distributed as dist
import torch.multiprocessing

from torch_xla import _XLAC
from torch_xla import runtime as xr
from torch_xla._internal import world
from torch_xla._internal.machines import Machines, machines
from torch_xla.core import xla_env_vars as xenv
from torch_xla.experimental import plugins

T = TypeVar("T")

_THREADS_VARIABLE = "TORCH_XLA_NUM_THREADS"


def _device_count() -> int:
    """How many devices this machine has, without starting the runtime, which must not happen before a fork."""
    return max(plugins.default().physical_chip_count(), 1)


def _check_count(nprocs: int) -> None:
    if nprocs < 1:
        raise ValueError(f"spawn: nprocs={nprocs} must be at least 1.")
    # A CPU is as many devices as one wants, unless one has said how many.
    limited = xr.device_type() != "CPU" or xenv.CPU_NUM_DEVICES in os.environ
    if limited and nprocs > _device_count():
        raise ValueError(
            f"spawn: nprocs={nprocs}, but this machine has {_device_count()} {xr.device_type()} devices."
        )


class _Launch:
    """What all processes of one `spawn` share: their number, and where they meet."""

    def __init__(self, nprocs: int, machines: Machines | None) -> None:
        self.nprocs = nprocs
        if machines is None:
            self.machines = Machines(
                1,
                0,
                os.environ.get(xenv.MASTER_ADDR) or "127.0.0.1",
                int(os.environ.get(xenv.MASTER_PORT) or _free_port()),
            )
            # This process keeps the store of its processes.
            self.store = dist.TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
            self.where = {world.STORE_VARIABLE: f"127.0.0.1:{self.store.port}"}
        else:
            # The process of rank 0 keeps it, where those of the other machines look for it.
            self.machines = machines
            self.where = {}

    def environment(self, index: int) -> dict[str, str]:
        """What tells process `index` of this machine its place."""
        machines = self.machines
        threads = max((os.cpu_count() or 1) // self.nprocs, 1)
        return {
            xenv.RANK: str(machines.index * self.nprocs + index),
            xenv.WORLD_SIZE: str(machines.count * self.nprocs),
            xenv.LOCAL_RANK: str(index),
            xenv.LOCAL_WORLD_SIZE: str(self.nprocs),
            "GROUP_RANK": str(machines.index),
            xenv.HOST_WORLD_SIZE: str(machines.count),
            xenv.HOST_ORDINAL: str(machines.index),
            xenv.MASTER_ADDR: machines.master_address,
            xenv.MASTER_PORT: str(machines.master_port),
            # The processes share the machine's processors.
            _THREADS_VARIABLE: os.environ.get(_THREADS_VARIABLE) or str(threads),
            **self.where,
        }


def _free_port() -> int:
    """A port for programs that call `init_process_group("env://")`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def _environment(variables: dict[str, str]) -> Iterator[None]:
    """The variables in this process's environment, for the processes that it starts meanwhile."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _run(
    fn: Callable[..., Any],
    index: int,
    args: tuple[Any, ...],
    environment: dict[str, str],
    is_forked: bool,
    error_file: str,
) -> None:
    """What a new process does. An exception is left in `error_file`, as `ProcessContext` expects it."""
    try:
        os.environ.update(environment)
        if is_forked:
            # The threads of torch's own pool did not come along: waiting for them would never end.
            torch.set_num_threads(1)
            _XLAC._leave_runtime()
        _call(fn, index, args)
        world.leave()
    except KeyboardInterrupt:
        pass  # The parent ends this process, and says why.
    except Exception:
        with open(error_file, "wb") as file:
            pickle.dump(traceback.format_exc(), file)
        sys.stderr.flush()
        sys.exit(1)


def _call(fn: Callable[..., Any], index: int, args: tuple[Any, ...]) -> None:
    if xenv.TORCH_XLA_DOCTOR not in os.environ:
        fn(index, *args)
        return
    from torch_xla.doctor import launched

    launched.run(lambda: fn(index, *args))


def name_hosts(count: str, index: str) -> None:
    """Sets the variables by which older clients recognize a process of a world, unless they are there."""
    os.environ.setdefault(xenv.HOST_WORLD_SIZE, count)
    os.environ.setdefault(xenv.HOST_ORDINAL, index)


def finish() -> None:
    """Runs the collectives that are recorded, which other processes wait for, and waits for all that runs."""
    world.finish()


def _start(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    launch: _Launch,
    daemon: bool,
    start_method: str,
) -> torch.multiprocessing.ProcessContext:
    context = torch.multiprocessing.get_context(start_method)
    is_forked = start_method == "fork"
    processes, error_files = [], []
    try:
        for index in range(launch.nprocs):
            environment = launch.environment(index)
            # Only the name: the file comes into being when there is an error.
            descriptor, error_file = tempfile.mkstemp(prefix="torch_xla-error-", suffix=".pickle")
            os.close(descriptor)
            os.unlink(error_file)
            arguments = (fn, index, args, environment, is_forked, error_file)
            process = context.Process(target=_run, args=arguments, daemon=daemon)
            # A new interpreter imports the program's module before it calls anything: it must know its place by then.
            with contextlib.nullcontext() if is_forked else _environment(environment):
                process.start()
            processes.append(process)
            error_files.append(error_file)
    except BaseException:
        # An argument that cannot be pickled, Ctrl-C.
        _end(processes, error_files)
        raise
    started = torch.multiprocessing.ProcessContext(processes, error_files)
    started.launch = launch
    return started


def _end(processes: list[Any], error_files: list[str]) -> None:
    """Ends what still runs, and leaves nothing behind."""
    for process in processes:
        if process.is_alive():
            process.kill()
        process.join()
    for file in error_files:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(file)


def _join(context: torch.multiprocessing.ProcessContext) -> None:
    try:
        while not context.join(grace_period=_GRACE_SECONDS):
            pass
    finally:
        _end(context.processes, context.error_files)


# How long processes may go on after one of them has failed, to say what they have to.
_GRACE_SECONDS = 3.0


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int | None = None,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> Any:
    """Runs `fn(index, *args)` in one process per device.

    With one process `fn` is called in place, and None is returned. Where the environment names several machines
    (`_internal.machines`), the same call on each of them makes one world.

    Args:
      fn: what each process runs.
      args: its arguments after the index. With "fork" nothing is pickled.
      nprocs: the number of processes of this machine, the same on all machines; by default the number of devices.
      join: wait for the processes; else return a `torch.multiprocessing.ProcessContext`.
      daemon: end the processes with this one.
      start_method: "spawn", "fork" or "forkserver".

    Raises:
      torch.multiprocessing.ProcessRaisedException: a process raised; its traceback is in the message. The others are
        ended.
      torch.multiprocessing.ProcessExitedException: a process ended otherwise.
      ValueError: more processes than devices.
    """
    count = _device_count() if nprocs is None else nprocs
    _check_count(count)
    together = machines()
    if count == 1 and together is None:
        name_hosts("1", "0")
        fn(0, *args)
        return None
    context = _start(fn, args, _Launch(count, together), daemon, start_method)
    if not join:
        return context
    _join(context)
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


def create_optimized_replica_groups() -> list[list[int]] | None:
    """The groups in which all-reduces are fastest on the device; none are known to be."""
    return None
