"""This process's place among those that train together, and the store over which they find each other.

The environment says it, as `torchrun` and `xla_multiprocessing.spawn` set it: RANK, WORLD_SIZE, LOCAL_RANK,
LOCAL_WORLD_SIZE, GROUP_RANK. Nothing here starts the runtime.
"""

import atexit
import contextlib
import datetime
import os
import sys
import time
from collections.abc import Callable, Sequence

import torch.distributed as dist

from torch_xla import _XLAC
from torch_xla.core import xla_env_vars as xenv

# "host:port" of the store that `spawn` keeps for its processes.
STORE_VARIABLE = "TORCH_XLA_STORE"
TIMEOUT_VARIABLE = "TORCH_XLA_COLLECTIVE_TIMEOUT"
DEFAULT_TIMEOUT_SECONDS = 1800.0
_CONNECT_TIMEOUT = datetime.timedelta(seconds=300)
# How often a process that waits looks whether the others have failed.
_POLL_SECONDS = 10.0
# How long the process that keeps the store stays for the others at its end.
_FAREWELL_SECONDS = 30.0


def _number(name: str, default: int) -> int:
    return int(os.environ.get(name) or default)


def size() -> int:
    """The number of processes."""
    return _number(xenv.WORLD_SIZE, 1)


def rank() -> int:
    """The rank of this process among all."""
    return _number(xenv.RANK, 0)


def local_rank() -> int:
    """The rank of this process on its machine."""
    return _number(xenv.LOCAL_RANK, 0)


def local_size() -> int:
    """The number of processes on this machine."""
    return _number(xenv.LOCAL_WORLD_SIZE, 1)


def host_index() -> int:
    """The rank of this machine."""
    return _number("GROUP_RANK", rank() // max(local_size(), 1))


def timeout() -> datetime.timedelta:
    """How long a process waits for the others: TORCH_XLA_COLLECTIVE_TIMEOUT seconds, half an hour by default."""
    seconds = float(os.environ.get(TIMEOUT_VARIABLE) or DEFAULT_TIMEOUT_SECONDS)
    if seconds <= 0:
        raise ValueError(
            f"{TIMEOUT_VARIABLE}={seconds}: a number of seconds above zero is expected."
        )
    return datetime.timedelta(seconds=seconds)


class _Connection:
    """The connection of one process to its world's store; a forked child makes its own."""

    def __init__(self) -> None:
        self.process = 0
        self.address = ""
        self.store: dist.Store | None = None
        # Whether one of the world's processes, that of rank 0, keeps the store.
        self.is_kept = False
        self.meetings: dict[str, int] = {}


_connection = _Connection()
# A store of the parent's process cannot be closed in a forked child: its threads are not there.
_inherited: list[dist.Store | None] = []


def store() -> dist.Store:
    """The store that all processes of the world share.

    `spawn` keeps one for its processes; otherwise it stands at MASTER_ADDR:MASTER_PORT, where torchrun's agent keeps
    it, or the process of rank 0.
    """
    address, port, is_kept = _where()
    where = f"{address}:{port}"
    if _connection.process != os.getpid() or _connection.address != where:
        _inherited.append(_connection.store)
        _connection.store = _connect(address, port, is_kept and rank() == 0)
        _connection.is_kept = is_kept
        _connection.process, _connection.address = os.getpid(), where
        _connection.meetings.clear()
    assert _connection.store is not None
    return _connection.store


def _where() -> tuple[str, int, bool]:
    """The store's address and port, and whether the process of rank 0 keeps it."""
    kept = os.environ.get(STORE_VARIABLE)
    if kept:
        address, _, port = kept.rpartition(":")
        return address, int(port), False
    for name in (xenv.MASTER_ADDR, xenv.MASTER_PORT):
        if not os.environ.get(name):
            raise RuntimeError(
                f"WORLD_SIZE={size()}, but {name} is not set: the processes cannot find each other. Start them with "
                "torchrun or torch_xla.launch, or set MASTER_ADDR and MASTER_PORT to an address of rank 0's machine."
            )
    by_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True)
    port = int(os.environ[xenv.MASTER_PORT])
    return os.environ[xenv.MASTER_ADDR], port, not by_agent


def _connect(address: str, port: int, is_master: bool) -> dist.Store:
    # Several users of one port in a process share the server: init_process_group("env://") is another.
    connected = dist.TCPStore(
        address,
        port,
        is_master=is_master,
        timeout=_CONNECT_TIMEOUT,
        wait_for_workers=False,
        multi_tenant=True,
    )
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return dist.PrefixStore(f"torch_xla/{attempt}", connected)


def member() -> tuple[int, int, dist.Store] | None:
    """None for a process that is alone, or (rank, size, store)."""
    if size() == 1:
        return None
    # A connection of its own: one that waits lets no other thread through.
    return rank(), size(), dist.PrefixStore("client", store().clone())


def exchange(tag: str, payload: bytes, ranks: Sequence[int]) -> list[bytes]:
    """Waits until all of `ranks`, this process's among them, have come to the same call; the payloads in their order.

    Raises RuntimeError after `timeout()`, which names those that have not come, and where they are.
    """
    shared = store()
    group = ",".join(map(str, ranks))
    count = _connection.meetings[group] = _connection.meetings.get(group, 0) + 1
    place = f"exchange/{group}/{count}"
    shared.set(f"at/{rank()}", tag)
    # The tag travels with the payload, so that processes at different calls are told so.
    shared.set(f"{place}/{rank()}", len(tag.encode()).to_bytes(4, "big") + tag.encode() + payload)
    payloads = []
    for other, raw in zip(ranks, _await(shared, place, tag, ranks), strict=True):
        length = int.from_bytes(raw[:4], "big")
        their_tag = raw[4 : 4 + length].decode()
        if their_tag != tag:
            raise RuntimeError(
                f"rendezvous {tag!r} of rank {rank()} met {their_tag!r} of rank {other}: the processes have taken "
                "different ways through the program."
            )
        payloads.append(raw[4 + length :])
    _forget(shared, f"exchange/{group}/{count - 2}/{rank()}")
    return payloads


def _forget(shared: dist.Store, key: str) -> None:
    # Whoever has come to a meeting has read the one before it, so nobody needs the one before that.
    shared.delete_key(key)


def _await(shared: dist.Store, place: str, tag: str, ranks: Sequence[int]) -> list[bytes]:
    keys = [f"{place}/{other}" for other in ranks]
    allowed = timeout().total_seconds()
    end = time.monotonic() + allowed
    while True:
        left = end - time.monotonic()
        try:
            shared.wait(keys, datetime.timedelta(seconds=max(min(left, _POLL_SECONDS), 0.01)))
            return [shared.get(key) for key in keys]
        except dist.DistStoreError:
            if left > _POLL_SECONDS:
                continue
        missing = [other for other, key in zip(ranks, keys, strict=True) if not shared.check([key])]
        raise RuntimeError(
            f"rendezvous {tag!r}: rank {rank()} waited {allowed:g} s for "
            + ", ".join(f"rank {other} ({_whereabouts(shared, other)})" for other in missing)
            + f". {TIMEOUT_VARIABLE} sets how long."
        )


def _whereabouts(shared: dist.Store, other: int) -> str:
    key = f"at/{other}"
    if not shared.check([key]):
        return "which has come to no rendezvous yet"
    return f"last at {shared.get(key).decode()!r}"


def finish() -> None:
    """Runs the collectives that are recorded, which other processes wait for, and waits for all that runs."""
    if _XLAC._xla_has_pending_collectives():
        _XLAC._xla_step_marker("", [], wait=True)
    _XLAC._xla_wait_device_ops()


def leave() -> None:
    """At the end of the process, after its program has done all it had to."""
    if _XLAC._xla_runtime_is_initialized():
        finish()
    _stay_for_the_others()


def _stay_for_the_others() -> None:
    """The process that keeps the store waits until the others need it no more."""
    if _connection.process != os.getpid() or _connection.store is None or not _connection.is_kept:
        return
    shared = _connection.store
    end = time.monotonic() + _FAREWELL_SECONDS
    # Whoever has failed has been told of before.
    with contextlib.suppress(dist.DistError):
        left = shared.add("left", 1)
        while rank() == 0 and left < size() and time.monotonic() < end:
            time.sleep(0.01)
            left = shared.add("left", 0)


def _at_exit() -> None:
    # After an exception the collectives may be of any kind, and the others are told by this process's end.
    if getattr(sys, "last_value", None) is None:
        leave()


def register(prepare: Callable[[], None]) -> None:
    """When the runtime starts, it calls `prepare` and asks for this process's place."""

    def provide() -> tuple[int, int, dist.Store] | None:
        prepare()
        return member()

    _XLAC._set_world_provider(provide)
    atexit.register(_at_exit)
