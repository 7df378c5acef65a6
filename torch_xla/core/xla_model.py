"""Devices, steps, collectives, random state and checkpoints, under the names of PyTorch/XLA.

Collectives are recorded as any operation is, and run with the next sync, in the order of recording, on every process of
their group. With one process each of them is the identity, up to `scale`. `groups` are lists of ranks that work among
themselves; all ranks are one group by default, and groups that leave out this process, name a rank twice, or one that is
not there raise ValueError, as groups of different sizes do where a result's size follows from them. `pin_layout`,
`channel_id` and `use_global_device_ids` have no effect.
"""

import contextlib
import io
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from typing import IO, Any

import torch
from torch.nn.utils.rnn import PackedSequence

import torch_xla
from torch_xla import _XLAC, _atomic_file
from torch_xla import runtime as xr
from torch_xla._internal import job_secret, world
from torch_xla.core._collectives import *  # noqa: F403
from torch_xla.core._collectives import _fetch_gradients as _fetch_gradients
from torch_xla.core._collectives import reduce_gradients
from torch_xla.utils import closures as xc
from torch_xla.utils import utils as xu

# --- Devices ---


def _device(n: int | None) -> torch.device:
    """The current device, or the one with this index, which becomes the current one of this thread."""
    if n is None:
        return torch.device(_XLAC._xla_get_default_device())
    _check_index(n)
    name = f"xla:{n}"
    _XLAC._xla_set_default_device(name)
    return torch.device(name)


def _check_index(n: int) -> None:
    names = _XLAC._xla_get_devices()
    if f"xla:{n}" not in names:
        raise IndexError(f"there is no device xla:{n}; this process has {', '.join(names)}")


def xla_device(n: int | None = None, devkind: str | None = None) -> torch.device:
    """See `torch_xla.device`. A `devkind` other than this machine's raises RuntimeError."""
    if devkind is not None and devkind not in _kinds():
        raise RuntimeError(
            f"There is no device of the kind {devkind}: this runtime has {_kinds()}."
        )
    return _device(n)


def _kinds() -> list[str]:
    return sorted({real.partition(":")[0] for real in _XLAC._xla_real_devices([])})


def get_xla_supported_devices(
    devkind: str | int | None = None, max_devices: int | None = None
) -> list[str]:
    """The devices of this process, as `["xla:0", …]`; none when they are of another kind than asked for."""
    if isinstance(devkind, int):
        # Since torch_xla 2.9 the first argument is the number.
        devkind, max_devices = None, devkind
    if devkind is not None and devkind not in (*_kinds(), xr.device_type()):
        return []
    return _XLAC._xla_get_devices()[:max_devices]


def xla_real_devices(devices: list[torch.device | str] | None = None) -> list[str]:
    """What stands behind the devices, as `["CPU:0", …]`."""
    return _XLAC._xla_real_devices([str(device) for device in devices or []])


def xla_device_hw(device: torch.device | str) -> str:
    """The kind of a device: "CPU", "TPU", "CUDA"; "CPU" for torch's own."""
    device = torch.device(device)
    if device.type != "xla":
        return device.type.upper()
    return xla_real_devices([_name(device)])[0].partition(":")[0]


def xla_device_kind(device: torch.device | str | None = None) -> str:
    """What the plugin calls the hardware, as "cpu" or "NVIDIA H100"."""
    return _XLAC._xla_device_kind(_name(device))


def _name(device: torch.device | str | None) -> str:
    """A device as the binding takes it: `xla:0`, and an empty string for the current one."""
    if device is None:
        return ""
    device = torch.device(device)
    if device.type != "xla":
        raise ValueError(f"An xla device is expected, not {device}.")
    if device.index:  # of the first one there is no doubt, and to ask starts the runtime
        _check_index(device.index)
    return _XLAC._xla_get_default_device() if device.index is None else str(device)


def xla_replication_devices(local_devices: list[torch.device | str]) -> list[str]:
    """The devices that replicate a computation, one per process."""
    return [str(device) for device in local_devices]


def set_replication(device: torch.device | str, devices: list[torch.device | str]) -> None:
    """Names the devices that replicate a computation. Replicas are processes here, so nothing needs to be set."""


def is_xla_tensor(tensor: torch.Tensor) -> bool:
    """Whether the tensor is on an xla device."""
    return tensor.device.type == "xla"


def get_local_ordinal() -> int:
    """The rank of this process on its machine."""
    return xr.local_ordinal()


def get_ordinal(defval: int = 0) -> int:
    """The rank of this process (a name of torch_xla 2.6 and before)."""
    return xr.global_ordinal()


def xrt_world_size(defval: int = 1) -> int:
    """The number of processes (a name of torch_xla 2.6 and before)."""
    return xr.world_size()


def is_master_ordinal(local: bool = True) -> bool:
    """Whether this process is the first one of its machine, or of all."""
    return (xr.local_ordinal() if local else xr.global_ordinal()) == 0


def master_print(
    *args: Any, fd: IO[str] | None = None, local: bool = False, flush: bool = False
) -> None:
    """Prints, on the first process only."""
    if is_master_ordinal(local=local):
        print(*args, file=fd if fd is not None else sys.stdout, flush=flush)


# --- Steps ---


def mark_step(wait: bool = False, reset_scope: bool = True) -> None:
    """See `torch_xla.sync`."""
    torch_xla.sync(wait=wait, reset_scope=reset_scope)


def wait_device_ops(devices: list[str] | None = None) -> None:
    """Waits until the executions in flight have ended, on all devices if none are given.

    Calls of functions that `torch.compile` has compiled are run first. Other recorded operations wait for `torch_xla.sync()`.
    """
    _XLAC._xla_wait_device_ops([_name(device) for device in devices or []])


def unlazy(tensors: list[torch.Tensor]) -> None:
    """Runs what the tensors need, and waits for it."""
    _XLAC._sync_devices_of(tensors, wait=True)


def optimizer_step(
    optimizer: torch.optim.Optimizer,
    barrier: bool = False,
    optimizer_args: dict[str, Any] | None = None,
    groups: list[list[int]] | None = None,
    pin_layout: bool = True,
) -> Any:
    """Averages the gradients over the processes and runs `optimizer.step(**optimizer_args)`, whose value it returns.

    With `barrier` it ends the step too; a data loader of `parallel_loader` does that by itself.
    """
    reduce_gradients(optimizer, groups=groups, pin_layout=pin_layout)
    loss = optimizer.step(**(optimizer_args or {}))
    if barrier:
        torch_xla.sync()
    return loss


def optimization_barrier_(tensors: list[torch.Tensor]) -> None:
    """Keeps the compiler from moving operations across this point of the tensors' computation."""
    _XLAC._xla_optimization_barrier_(tensors)


_step_closures: list[Callable[[], None]] = []
_async_step_closures: list[Callable[[], None]] = []


def add_step_closure(
    closure: Callable[..., None], args: tuple[Any, ...] = (), run_async: bool = False
) -> None:
    """Calls `closure(*args)` after the next sync, when the tensors among the arguments can be read at no cost.

    With `run_async` a thread calls it, and the program goes on; the order of such calls is kept.
    """
    queue = _async_step_closures if run_async else _step_closures
    queue.append(lambda a=args: closure(*a))


def _run_step_closures() -> None:
    if _async_step_closures:
        pending = _async_step_closures.copy()
        _async_step_closures.clear()
        xc.AsyncClosureHandler.instance().run_all(pending)
    if _step_closures:
        pending = _step_closures.copy()
        _step_closures.clear()
        for closure in pending:
            closure()


class RateTracker:
    """Counts events and says how many there are per second: since the start, and smoothed."""

    def __init__(self, smooth_factor: float | None = None) -> None:
        if smooth_factor is None:
            smooth_factor = xu.getenv_as("RATE_TRACKER_SMOOTHING", float, 0.4)
        self._smooth_factor = smooth_factor
        self._start_time = time.monotonic()
        self._partial_time = self._start_time
        self._partial_count = 0.0
        self._partial_rate: float | None = None
        self._count = 0.0

    def add(self, count: float) -> None:
        """Counts so many events more."""
        self._count += count

    def rate(self) -> float:
        """Events per second since the last call, smoothed with the rates of earlier calls."""
        now = time.monotonic()
        new = self._count - self._partial_count
        rate = new / max(now - self._partial_time, 1e-9)
        if self._partial_rate is not None:
            rate = rate * (1 - self._smooth_factor) + self._partial_rate * self._smooth_factor
        self._partial_time, self._partial_count, self._partial_rate = now, self._count, rate
        return rate

    def global_rate(self) -> float:
        """Events per second since the start."""
        return self._count / max(time.monotonic() - self._start_time, 1e-9)


# --- Between processes, on the host ---


def rendezvous(tag: str, payload: bytes = b"", replicas: list[int] | None = None) -> list[bytes]:
    """Waits until all processes have come here; returns the payloads in the order of the ranks.

    What is recorded runs first. `replicas` are the ranks that take part, all by default. Raises RuntimeError when a
    process does not come in time (TORCH_XLA_COLLECTIVE_TIMEOUT), or has come to another rendezvous; ValueError for
    `replicas` that leave out this process or name one that is not there; TypeError for a payload other than bytes.
    """
    if not isinstance(payload, bytes):
        raise TypeError(f"rendezvous {tag!r}: the payload is bytes, not {type(payload).__name__}.")
    every = range(xr.world_size())
    ranks = sorted({int(rank) for rank in replicas}) if replicas else list(every)
    if not set(ranks) <= set(every):
        raise ValueError(f"rendezvous {tag!r}: {ranks} must name ranks below {len(every)}.")
    if xr.global_ordinal() not in ranks:
        raise ValueError(f"rendezvous {tag!r}: rank {xr.global_ordinal()} is not among {ranks}.")
    torch_xla.sync(wait=True, reset_scope=False)  # no step ends here
    return [payload] if len(every) == 1 else world.exchange(tag, payload, ranks)


def xla_rendezvous(
    payload: bytes = b"", ordinals: list[int] | None = None, tag: str | None = None
) -> list[bytes]:
    """See `rendezvous`."""
    return rendezvous(tag or "", payload, ordinals)


def mesh_reduce(tag: str, data: Any, reduce_fn: Callable[[list[Any]], Any]) -> Any:
    """Gathers copies of `data` on the CPU, in the order of the ranks, and returns `reduce_fn` of their list.

    Where the processes have a secret (`torch_xla.launch` and `xla_dist` give them one; elsewhere TORCH_XLA_JOB_SECRET
    does), `data` is anything that can be pickled. Otherwise strangers may have a hand in what arrives, and only tensors,
    numbers, strings and lists, tuples and dictionaries of them travel; others raise RuntimeError.
    """
    cpu_data = _maybe_convert_to_cpu(data)
    if xr.world_size() == 1:
        return reduce_fn([cpu_data])
    stream = io.BytesIO()
    torch.save(cpu_data, stream)
    payloads = rendezvous(tag, stream.getvalue())
    return reduce_fn([_received(tag, rank, payload) for rank, payload in enumerate(payloads)])


def _received(tag: str, rank: int, payload: bytes) -> Any:
    # Unpickling runs whatever the sender wants, so its sender must be known.
    trusted = world.is_authenticated()
    try:
        return torch.load(io.BytesIO(payload), weights_only=not trusted)
    except pickle.UnpicklingError as error:
        if trusted:
            raise
        raise RuntimeError(
            f"mesh_reduce {tag!r}: the data of rank {rank} is more than tensors, numbers, strings and lists, tuples and "
            "dictionaries of them, and loading it could run anybody's code: the processes have no secret by which they "
            f"know each other. Set {job_secret.SECRET_VARIABLE} to the same secret in all of them, or start them with "
            "torch_xla.launch or xla_dist."
        ) from error


def do_on_ordinals(
    target: Callable[..., Any], data: Any = (), ordinals: tuple[int, ...] = (0,)
) -> None:
    """Calls `target(*data)`, with the tensors moved to the CPU, on the processes of these ranks; all wait for it."""
    running = xr.global_ordinal() in ordinals
    cpu_data = _maybe_convert_to_cpu(data, convert=running)
    if running:
        target(*cpu_data)
    rendezvous("torch_xla.core.xla_model.do_on_ordinals")


# --- Moving and saving ---


class ToXlaTensorArena:
    """Moves the tensors of a nested structure that `select_fn` picks with `convert_fn`, all of them in one call."""

    def __init__(
        self,
        convert_fn: Callable[[list[torch.Tensor]], list[torch.Tensor]],
        select_fn: Callable[[Any], bool],
    ) -> None:
        self._convert_fn = convert_fn
        self._select_fn = select_fn

    def transform(self, inputs: Any) -> Any:
        """The structure with the tensors replaced; the rest of it is the same."""
        tensors: list[torch.Tensor] = []
        xu.for_each_instance(inputs, self._select_fn, tensors.append)
        moved = iter(self._convert_fn(tensors) if tensors else [])
        return xu.for_each_instance_rewrite(inputs, self._select_fn, lambda _: next(moved))


def send_cpu_data_to_device(
    datas: Any, device: torch.device | str, input_sharding: Any = None
) -> Any:
    """A nested structure with its CPU tensors moved to the device; of a tensor alone, a list of one.

    `input_sharding` is as for `parallel_loader.ParallelLoader`.
    """
    if input_sharding is not None:
        from torch_xla.distributed.spmd import xla_sharding

        xla_sharding.check_input_sharding(input_sharding)

    def convert(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        return [tensor.to(device) for tensor in tensors]

    def select(value: Any) -> bool:
        # A packed sequence moves as a whole: its batch sizes stay on the CPU.
        tensor = value.data if isinstance(value, PackedSequence) else value
        return isinstance(tensor, torch.Tensor) and tensor.device.type == "cpu"

    structure = [datas] if isinstance(datas, torch.Tensor) else datas
    return ToXlaTensorArena(convert, select).transform(structure)


def _maybe_convert_to_cpu(data: Any, convert: bool = True) -> Any:
    """A nested structure with its xla tensors moved to the CPU.

    Without `convert` what the tensors need is only run, which keeps the graphs of all processes alike.
    """

    def move(tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        _XLAC._sync_devices_of(tensors)
        return [tensor.cpu() for tensor in tensors] if convert else tensors

    def select(value: Any) -> bool:
        return isinstance(value, torch.Tensor) and is_xla_tensor(value)

    return ToXlaTensorArena(move, select).transform(data)


def save(
    data: Any,
    file_or_path: Any,
    master_only: bool = True,
    global_master: bool = False,
    sync: bool = True,
) -> None:
    """`torch.save` of a structure whose tensors have been moved to the CPU.

    All processes call it. A file that stands at the path already is replaced at the end, when the new one is whole and
    on the disk.

    Args:
      data: what to save; a nested structure with tensors.
      file_or_path: where; a path or a file opened for writing.
      master_only: let only the first process write.
      global_master: that process is the first of all, not the first of each machine.
      sync: wait for the other processes. When one of them cannot write, all raise.
    """
    writing = not master_only or is_master_ordinal(local=not global_master)

    def write() -> None:
        # The other processes run what the tensors need too: collectives among it wait for all of them.
        cpu_data = _maybe_convert_to_cpu(data, convert=writing)
        if writing:
            _write_file(cpu_data, file_or_path)

    if sync:
        _save_together("torch_xla.core.xla_model.save", file_or_path, write)
    else:
        write()


def _write_file(data: Any, file_or_path: Any) -> None:
    if not isinstance(file_or_path, (str, os.PathLike)):
        torch.save(data, file_or_path)
        return
    with _atomic_file.replacing(file_or_path) as file:
        torch.save(data, file)


def _save_together(tag: str, target: Any, write: Callable[[], None]) -> None:
    """Calls `write` and waits for the other processes. What it raises is raised; where it raises elsewhere, RuntimeError."""
    error = None
    try:
        write()
    except Exception as raised:
        error = raised
    message = "" if error is None else f"{type(error).__name__}: {error}"
    messages = rendezvous(tag, message.encode())
    if error is not None:
        raise error
    for rank, text in enumerate(messages):
        if text:
            raise RuntimeError(
                f"The process of rank {rank} could not save {target}: {text.decode()}"
            )


def check_view_sharing(obj: Any) -> None:
    """Raises RuntimeError when several tensors of a structure share memory, which a move to a device would end."""
    seen: dict[int, torch.Tensor] = {}

    def check(tensor: torch.Tensor) -> None:
        other = seen.setdefault(tensor.untyped_storage()._cdata, tensor)
        if other is not tensor:
            raise RuntimeError(
                f"Tensors of shapes {tuple(other.shape)} and {tuple(tensor.shape)} share memory; moved to another device "
                "they no longer do."
            )

    xu.for_each_instance(obj, lambda value: type(value) is torch.Tensor, check)


# --- Memory, random numbers, programs ---


def get_memory_info(device: torch.device | str | None = None) -> dict[str, int]:
    """The memory of a device: `bytes_used`, `bytes_limit`, `peak_bytes_used`, and in KiB `kb_free` and `kb_total`."""
    info = dict(_XLAC._xla_memory_info(_name(device)))
    info["kb_total"] = info["bytes_limit"] // 1024
    info["kb_free"] = max(info["bytes_limit"] - info["bytes_used"], 0) // 1024
    return info


def set_rng_state(seed: int, device: torch.device | str | None = None) -> None:
    """Sets the state of a device's random numbers, an integer.

    As for `torch.manual_seed` it is at least -2**63, and below 2**64: negative ones count from there back. Raises
    RuntimeError for others, and IndexError for a device that is not there.
    """
    seed = int(seed)
    if not -(1 << 63) <= seed < 1 << 64:
        raise RuntimeError(f"A seed is at least -2**63 and below 2**64, and not {seed}.")
    _XLAC._xla_set_rng_seed(seed % (1 << 64), _name(device) or _XLAC._xla_get_default_device())


def get_rng_state(device: torch.device | str | None = None) -> int:
    """The state of a device's random numbers, an integer."""
    return _XLAC._xla_get_rng_seed(_name(device) or _XLAC._xla_get_default_device())


@contextlib.contextmanager
def fork_rng(device: torch.device | str | None = None, enabled: bool = True) -> Iterator[None]:
    """Restores the state of a device's random numbers at its end."""
    if not enabled:
        yield
        return
    state = get_rng_state(device)
    try:
        yield
    finally:
        set_rng_state(state, device)


def get_stablehlo(tensors: list[torch.Tensor] | None = None) -> str:
    """The StableHLO text of what the tensors need, or of all that is pending. Runs nothing."""
    return _XLAC._get_stablehlo(tensors or [], _XLAC._xla_get_default_device(), [], False)


def get_stablehlo_bytecode(tensors: list[torch.Tensor] | None = None) -> bytes:
    """The same as bytecode."""
    return _XLAC._get_stablehlo(tensors or [], _XLAC._xla_get_default_device(), [], True)
