"""Launching one process per device."""

import contextlib
import dataclasses
import os
import pathlib
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch
import torch.multiprocessing

from torch_xla import _XLAC
from torch_xla import runtime as xr
from torch_xla._internal import job_secret, orphans, world
from torch_xla._internal.machines import Machines, machines
from torch_xla._internal.private_folder import PrivateFolder
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
    """What all processes of one `spawn` share: their number, and their rendezvous."""

    def __init__(self, nprocs: int, machines: Machines | None) -> None:
        self.nprocs = nprocs
        self.folder = PrivateFolder()
        if machines is None:
            self.machines = Machines(
                1,
                0,
                os.environ.get(xenv.MASTER_ADDR) or "127.0.0.1",
                int(os.environ.get(xenv.MASTER_PORT) or _free_port()),
            )
            self.where = {
                world.STORE_VARIABLE: self.folder.path,
                # What gloo listens on, too, is for this machine alone.
                "GLOO_SOCKET_IFNAME": os.environ.get("GLOO_SOCKET_IFNAME") or "lo",
            }
            if not job_secret.is_set(os.environ):
                self.where[job_secret.SECRET_VARIABLE] = job_secret.new()
        else:
            # The process of rank 0 keeps it, where those of the other machines look for it.
            self.machines = machines
            self.where = {}

    def environment(self, index: int) -> dict[str, str]:
        """What tells process `index` of this machine its place."""
        machines = self.machines
        threads = max(_XLAC._usable_cpus() // self.nprocs, 1)
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
            # The processes share the processors that this one may use.
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


@dataclasses.dataclass(frozen=True)
class _Orders:
    """What a new process is told."""

    environment: dict[str, str]
    is_forked: bool
    # Where its exception is left, as `ProcessContext` expects it. It unpickles what is there, so only this user may
    # write it.
    error_file: str
    launcher: int
    # Whether the thread that starts the process lives as long as the launcher.
    by_lasting_thread: bool


def _run(fn: Callable[..., Any], index: int, args: tuple[Any, ...], orders: _Orders) -> None:
    """What a new process does."""
    orphans.end_with(orders.launcher)
    if orders.by_lasting_thread:
        orphans.end_with_parent(orders.launcher)
    try:
        os.environ.update(orders.environment)
        if orders.is_forked:
            # The threads of torch's own pool did not come along: waiting for them would never end.
            torch.set_num_threads(1)
            _XLAC._leave_runtime()
        # A launched process may call `init_process_group("xla", init_method="xla://")` without importing the backend.
        import torch_xla.distributed.xla_backend  # noqa: F401

        _call(fn, index, args)
        world.leave()
    except KeyboardInterrupt:
        pass  # The parent ends this process, and says why.
    except Exception:
        with open(orders.error_file, "wb") as file:
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


class _Context(torch.multiprocessing.ProcessContext):
    """The processes of one `spawn`; nothing of them is left when they have been waited for."""

    def __init__(self, processes: list[Any], error_files: list[str], launch: _Launch) -> None:
        super().__init__(processes, error_files)
        self._launch = launch

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """See `ProcessContext.join`."""
        try:
            return super().join(timeout, grace_period)
        finally:
            if not any(process.is_alive() for process in self.processes):
                self._launch.folder.close()

    def end(self) -> None:
        """Ends what still runs."""
        _end(self.processes, self._launch)


def _start(
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    launch: _Launch,
    daemon: bool,
    start_method: str,
    will_join: bool,
) -> _Context:
    context = torch.multiprocessing.get_context(start_method)
    is_forked = start_method == "fork"
    is_main = threading.current_thread() is threading.main_thread()
    processes, error_files = [], []
    try:
        for index in range(launch.nprocs):
            orders = _Orders(
                launch.environment(index),
                is_forked,
                os.path.join(launch.folder.path, f"error-{index}.pickle"),
                os.getpid(),
                start_method != "forkserver" and (will_join or is_main),
            )
            process = context.Process(target=_run, args=(fn, index, args, orders), daemon=daemon)
            # A new interpreter imports the program's module before it calls anything: it must know its place by then.
            with contextlib.ExitStack() as before:
                if not is_forked:
                    before.enter_context(_environment(orders.environment))
                if orders.by_lasting_thread:
                    before.enter_context(orphans.interpreters_end_with_this_thread())
                process.start()
            processes.append(process)
            error_files.append(orders.error_file)
    except BaseException:
        # An argument that cannot be pickled, Ctrl-C.
        _end(processes, launch)
        raise
    return _Context(processes, error_files, launch)


def _end(processes: list[Any], launch: _Launch) -> None:
    """Ends what still runs, and leaves nothing behind."""
    for process in processes:
        if process.is_alive():
            process.kill()
        process.join()
    launch.folder.close()


class _TerminationError(BaseException):
    """A signal asks this process to end.

    Args:
      number: the signal's.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def _termination_as_exception() -> Iterator[None]:
    """SIGTERM and SIGHUP raise _TerminationError, where the program does nothing else with them."""
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [
        number
        for number in (signal.SIGTERM, signal.SIGHUP)
        if is_main and signal.getsignal(number) is signal.SIG_DFL
    ]

    def stop(number: int, _frame: object) -> None:
        for each in numbers:
            signal.signal(each, signal.SIG_IGN)
        raise _TerminationError(number)

    for number in numbers:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)


def _join(context: _Context) -> None:
    try:
        with _termination_as_exception():
            while not context.join(grace_period=_GRACE_SECONDS):
                pass
    except _TerminationError as termination:
        _ask_to_end(context)
        context.end()
        os.kill(os.getpid(), termination.number)
    finally:
        context.end()


def _ask_to_end(context: _Context) -> None:
    """Lets the processes do what they do on SIGTERM."""
    for process in context.processes:
        if process.is_alive():
            process.terminate()
    end = time.monotonic() + _GRACE_SECONDS
    for process in context.processes:
        process.join(max(0.0, end - time.monotonic()))


# How long processes may go on after one of them has failed, or SIGTERM asks for the end, to say what they have to.
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
    (`_internal.machines`), the same call on each of them makes one world. The processes end when this one does, however
    it ends.

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
      ValueError: more processes than devices, or another start method.
    """
    torch.multiprocessing.get_context(start_method)
    count = _device_count() if nprocs is None else nprocs
    _check_count(count)
    together = machines()
    if count == 1 and together is None:
        name_hosts("1", "0")
        fn(0, *args)
        return None
    context = _start(fn, args, _Launch(count, together), daemon, start_method, join)
    if not join:
        return context
    _join(context)
    return None


def _write_result(
    index: int, folder: str, fn: Callable[..., Any], args: tuple, kwargs: dict
) -> None:
    """Leaves what `fn` gives or raises in the folder, which only this user can write: the launcher unpickles it."""
    path = os.path.join(folder, f"result-{index}.pickle")
    try:
        outcome = pickle.dumps((fn(*args, **kwargs), None))
    except Exception as error:
        if _travels(error):
            pathlib.Path(path).write_bytes(pickle.dumps((None, error)))
        raise
    pathlib.Path(path).write_bytes(outcome)


def _travels(error: Exception) -> bool:
    """Whether the exception can be raised in another process; its text always can."""
    try:
        return type(pickle.loads(pickle.dumps(error))) is type(error)
    except Exception:
        return False


def _read_result(folder: str, index: int) -> tuple[Any, Exception | None]:
    path = os.path.join(folder, f"result-{index}.pickle")
    if not os.path.exists(path):
        return None, None
    with open(path, "rb") as file:
        return pickle.load(file)


def results(
    fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any], start_method: str = "spawn"
) -> dict[int, T]:
    """What `fn(*args, **kwargs)` gives in one new process per device of this machine, by the process's number.

    What it raises in one of them is raised here. Values travel pickled.
    """
    count = _device_count()
    folder = PrivateFolder()
    try:
        arguments = (folder.path, fn, args, kwargs)
        context = _start(
            _write_result, arguments, _Launch(count, machines()), False, start_method, True
        )
        try:
            _join(context)
        except torch.multiprocessing.ProcessRaisedException as failure:
            errors = [_read_result(folder.path, index)[1] for index in range(count)]
            for error in filter(None, errors):
                raise error from failure
            raise
        return {index: _read_result(folder.path, index)[0] for index in range(count)}
    finally:
        folder.close()


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
