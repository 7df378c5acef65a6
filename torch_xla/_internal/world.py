"""This process's place among those that train together, and the store over which they find each other.

The environment says it, as `torchrun` and `xla_multiprocessing.spawn` set it: RANK, WORLD_SIZE, LOCAL_RANK,
LOCAL_WORLD_SIZE, GROUP_RANK. Nothing here starts the runtime.

The store of one machine's launch is a folder of the user's own, and nothing listens; otherwise it is a server on the
network. Where the job has a secret (`_internal.job_secret`) all values in the store are authenticated with it.
"""

import atexit
import contextlib
import dataclasses
import datetime
import os
import sys
import time
from collections.abc import Callable, Sequence

import torch.distributed as dist

from torch_xla import _XLAC
from torch_xla._internal import fork_lock, job_secret, orphans
from torch_xla._internal.authenticated_store import AuthenticatedStore, ForeignValueError
from torch_xla._internal.folder_store import FolderStore
from torch_xla.core import xla_env_vars as xenv

# The folder that holds the store of a launch on one machine.
STORE_VARIABLE = "TORCH_XLA_STORE"
TIMEOUT_VARIABLE = "TORCH_XLA_COLLECTIVE_TIMEOUT"
DEFAULT_TIMEOUT_SECONDS = 1800.0
_CONNECT_TIMEOUT = datetime.timedelta(seconds=300)
# torch's server takes no value above 8 MiB.
_PIECE_BYTES = 4 << 20
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
        self.place: _Folder | _Server | None = None
        self.store: dist.Store | None = None
        # torch's C++ code does not keep the Python objects that it calls.
        self.kept: list[dist.Store] = []
        self.rendezvous: dict[str, int] = {}
        # Of the values of this process that have more than one.
        self.pieces: dict[str, int] = {}


@dataclasses.dataclass(frozen=True)
class _Folder:
    """A store in a folder of this machine."""

    path: str


@dataclasses.dataclass(frozen=True)
class _Server:
    """A store at an address; the process of rank 0 keeps it, or torchrun's agent."""

    address: str
    port: int
    by_rank_0: bool


_connection = _Connection()
# Of `store`, which any thread may be the first to ask for, the one that starts the runtime among them.
_connecting = fork_lock.Lock()
# A store of the parent's process cannot be closed in a forked child: its threads are not there.
_inherited: list[dist.Store] = []


def store() -> dist.Store:
    """The store that all processes of the world share.

    `spawn` has made a folder for it, on one machine; otherwise it stands at MASTER_ADDR:MASTER_PORT, where torchrun's
    agent keeps it, or the process of rank 0. With a secret of the job it refuses what strangers have put into it
    (`_internal.authenticated_store`).
    """
    place = _where()
    with _connecting:
        if _connection.process != os.getpid() or _connection.place != place:
            _inherited.extend(_connection.kept)
            _connection.kept.clear()
            _connection.store = _connect(place)
            _connection.process, _connection.place = os.getpid(), place
            _connection.rendezvous.clear()
            _connection.pieces.clear()
        assert _connection.store is not None
        return _connection.store


def is_authenticated() -> bool:
    """Whether the values in the store are known to come from processes of this job."""
    store()
    return isinstance(_connection.kept[-1], AuthenticatedStore)


def _where() -> _Folder | _Server:
    folder = os.environ.get(STORE_VARIABLE)
    if folder:
        return _Folder(folder)
    for name in (xenv.MASTER_ADDR, xenv.MASTER_PORT):
        if not os.environ.get(name):
            raise RuntimeError(
                f"WORLD_SIZE={size()}, but {name} is not set: the processes cannot find each other. Start them with "
                "torchrun or torch_xla.launch, or set MASTER_ADDR and MASTER_PORT to an address of rank 0's machine."
            )
    by_agent = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == str(True)
    port = int(os.environ[xenv.MASTER_PORT])
    return _Server(os.environ[xenv.MASTER_ADDR], port, not by_agent)


def _connect(place: _Folder | _Server) -> dist.Store:
    kept = FolderStore(place.path) if isinstance(place, _Folder) else _connect_to_server(place)
    _connection.kept.append(kept)
    secret = job_secret.job_secret()
    if secret is not None:
        kept = AuthenticatedStore(kept, secret, rank())
        _connection.kept.append(kept)
    attempt = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
    return dist.PrefixStore(f"torch_xla/{attempt}", kept)


def _connect_to_server(server: _Server) -> dist.Store:
    # Several users of one port in a process share the server: init_process_group("env://") is another.
    return dist.TCPStore(
        server.address,
        server.port,
        is_master=server.by_rank_0 and rank() == 0,
        timeout=_CONNECT_TIMEOUT,
        wait_for_workers=False,
        multi_tenant=True,
    )


def member() -> tuple[int, int, dist.Store, bytes | None] | None:
    """None for a process that is alone, or (rank, size, store, the job's secret)."""
    if size() == 1:
        return None
    # A connection of its own: one that waits lets no other thread through.
    return rank(), size(), dist.PrefixStore("client", store().clone()), job_secret.job_secret()


def exchange(tag: str, payload: bytes, ranks: Sequence[int]) -> list[bytes]:
    """Waits until all of `ranks`, this process's among them, have come to the same call; the payloads in their order.

    Raises RuntimeError after `timeout()`, which names those that have not come, and where they are.
    """
    shared = store()
    group = ",".join(map(str, ranks))
    count = _connection.rendezvous[group] = _connection.rendezvous.get(group, 0) + 1
    place = f"exchange/{group}/{count}"
    shared.set(f"at/{rank()}", tag)
    # The tag travels with the payload, so that processes at different calls are told so.
    _put(shared, f"{place}/{rank()}", len(tag.encode()).to_bytes(4, "big") + tag.encode() + payload)
    payloads = []
    for other, raw in zip(ranks, _await(shared, place, tag, ranks), strict=True):
        their_tag, payload = _opened(raw, tag, other)
        if their_tag != tag:
            raise RuntimeError(
                f"rendezvous {tag!r} of rank {rank()} met {their_tag!r} of rank {other}: the processes have taken "
                "different ways through the program."
            )
        payloads.append(payload)
    _forget(shared, f"exchange/{group}/{count - 2}/{rank()}")
    return payloads


def _opened(raw: bytes, tag: str, other: int) -> tuple[str, bytes]:
    """The tag and the payload of what rank `other` has sent."""
    length = int.from_bytes(raw[:4], "big")
    with contextlib.suppress(UnicodeDecodeError):
        if 4 + length <= len(raw):
            return raw[4 : 4 + length].decode(), raw[4 + length :]
    raise RuntimeError(
        f"rendezvous {tag!r}: rank {rank()} cannot read what is there from rank {other}. A stranger may have put it "
        f"there, or only some of the processes have the job's secret ({job_secret.SECRET_VARIABLE})."
    )


def _put(shared: dist.Store, key: str, value: bytes) -> None:
    """Sets the value in pieces: the first one, which tells of the others, when those are there."""
    pieces = [value[i : i + _PIECE_BYTES] for i in range(0, max(len(value), 1), _PIECE_BYTES)]
    for number, piece in enumerate(pieces[1:], 1):
        shared.set(f"{key}/{number}", piece)
    if len(pieces) > 1:
        _connection.pieces[key] = len(pieces)
    shared.set(key, len(pieces).to_bytes(4, "big") + pieces[0])


def _taken(shared: dist.Store, key: str) -> bytes:
    """The value that was put, or nothing if not all of it is there."""
    first = shared.get(key)
    pieces = [first[4:]]
    # (A stranger may have said that there are any number.)
    for number in range(1, int.from_bytes(first[:4], "big")):
        if not shared.check([f"{key}/{number}"]):
            return b""
        pieces.append(shared.get(f"{key}/{number}"))
    return b"".join(pieces)


def _forget(shared: dist.Store, key: str) -> None:
    # Whoever has come to a rendezvous has read the one before it, so nobody needs the one before that.
    shared.delete_key(key)
    for number in range(1, _connection.pieces.pop(key, 1)):
        shared.delete_key(f"{key}/{number}")


def _await(shared: dist.Store, place: str, tag: str, ranks: Sequence[int]) -> list[bytes]:
    keys = [f"{place}/{other}" for other in ranks]
    allowed = timeout().total_seconds()
    end = time.monotonic() + allowed
    while True:
        left = end - time.monotonic()
        try:
            shared.wait(keys, datetime.timedelta(seconds=max(min(left, _POLL_SECONDS), 0.01)))
            return [_value(shared, key, tag, other) for other, key in zip(ranks, keys, strict=True)]
        except dist.DistStoreError:
            if left > _POLL_SECONDS:
                continue
        missing = [other for other, key in zip(ranks, keys, strict=True) if not shared.check([key])]
        raise RuntimeError(
            f"rendezvous {tag!r}: rank {rank()} waited {allowed:g} s for "
            + ", ".join(f"rank {other} ({_whereabouts(shared, other)})" for other in missing)
            + f". {TIMEOUT_VARIABLE} sets how long."
        )


def _value(shared: dist.Store, key: str, tag: str, other: int) -> bytes:
    try:
        return _taken(shared, key)
    except ForeignValueError as error:
        raise RuntimeError(
            f"rendezvous {tag!r}: rank {rank()} refuses what is there from rank {other}. {error}"
        ) from error


def _whereabouts(shared: dist.Store, other: int) -> str:
    key = f"at/{other}"
    if not shared.check([key]):
        return "which has come to no rendezvous yet"
    try:
        return f"last at {shared.get(key).decode(errors='replace')!r}"
    except ForeignValueError:
        return "of which a stranger tells"


def _run_collectives() -> None:
    """Those that are recorded, which other processes wait for."""
    if _XLAC._xla_has_pending_collectives():
        _XLAC._xla_step_marker("", [], wait=True, reset_scope=False)


def finish() -> None:
    """Runs the collectives that are recorded, and waits for all that runs."""
    _run_collectives()
    _XLAC._xla_wait_device_ops()


def leave() -> None:
    """At the end of the process, after its program has done all it had to."""
    if _XLAC._xla_runtime_is_initialized():
        finish()
    _stay_for_the_others()


def _stay_for_the_others() -> None:
    """The process that keeps the store waits until the others need it no more."""
    if _connection.process != os.getpid() or _connection.store is None:
        return
    if not isinstance(_connection.place, _Server) or not _connection.place.by_rank_0:
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
    if getattr(sys, "last_value", None) is not None:
        return
    if _XLAC._xla_runtime_is_initialized():
        _run_collectives()
        _XLAC._prepare_to_exit()  # waits, and warns of what nobody was told: there is nobody left to raise to
    _stay_for_the_others()


def register(prepare: Callable[[], None]) -> None:
    """When the runtime starts, it calls `prepare` and asks for this process's place."""

    def provide() -> tuple[int, int, dist.Store, bytes | None] | None:
        prepare()
        if dist.is_available() and dist.is_torchelastic_launched():
            orphans.end_with_agent()
        return member()

    _XLAC._set_world_provider(provide)
    atexit.register(_at_exit)
