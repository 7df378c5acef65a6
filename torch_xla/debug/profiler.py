"""Named sections of a program, collected as a trace that Chrome (`chrome://tracing`) and Perfetto show.

    import torch_xla.debug.profiler as xp

    server = xp.start_server(9012)
    for step, batch in enumerate(loader):
        with xp.StepTrace("train", step_num=step):
            with xp.Trace("forward"):
                loss = model(batch)

Another process then collects a second of it: `xp.trace("localhost:9012", "traces", duration_ms=1000)`. Within one process
`start_trace(folder)` and `stop_trace()` do the same. The sections appear in `torch.profiler`'s traces as well.
"""

import json
import os
import pathlib
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

import torch

from torch_xla import runtime as xr
from torch_xla.torch_xla import _sync

if TYPE_CHECKING:
    from torch_xla._internal.profiler_server import ProfilerServer


class Collection:
    """The sections that ended while this was one of the active collections."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []


_collections: list[Collection] = []
_lock = threading.Lock()


def start_collection() -> Collection:
    """Collects sections from now on."""
    collection = Collection()
    with _lock:
        _collections.append(collection)
    return collection


def stop_collection(collection: Collection) -> dict[str, Any]:
    """Ends a collection; its content in Chrome's trace format."""
    with _lock:
        _collections.remove(collection)
    return {"displayTimeUnit": "ms", "traceEvents": collection.events}


def _record(name: str, start_ns: int, arguments: dict[str, Any]) -> None:
    if not _collections:
        return
    event = {
        "name": name,
        "ph": "X",
        "ts": start_ns / 1000,
        "dur": (time.perf_counter_ns() - start_ns) / 1000,
        "pid": os.getpid(),
        "tid": threading.get_native_id(),
        "args": arguments,
    }
    with _lock:
        for collection in _collections:
            collection.events.append(event)


class Trace:
    """A context that names a section. Keyword arguments are shown with it."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._name = name
        self._arguments = kwargs

    def __enter__(self) -> "Trace":
        self._scope = torch.profiler.record_function(self._name)
        self._scope.__enter__()
        self._start = time.perf_counter_ns()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _record(self._name, self._start, self._arguments)
        self._scope.__exit__(kind, error, traceback)


class StepTrace(Trace):
    """A section that is one step: at its end the recorded graph is cut and started."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is None:
            _sync("torch_xla.sync when exiting a profiler StepTrace region")
        super().__exit__(kind, error, traceback)


def trace_me(scope: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator that makes a function a section."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def traced(*args: Any, **kwargs: Any) -> Any:
            with Trace(scope):
                return function(*args, **kwargs)

        return traced

    return decorate


def start_server(port: int, only_on_master: bool = False) -> "ProfilerServer | None":
    """Starts the server that `trace` asks. Keep the object: the server ends with it.

    Of several processes on a machine, the one of local rank r listens on port + r. Raises RuntimeError when the port is busy.

    Args:
      port: 0 lets the system choose; the object's `port` says which it is.
      only_on_master: start it on the process of rank 0 only, and return None on the others.
    """
    if only_on_master and xr.global_ordinal() != 0:
        return None
    # With its server's modules only for who wants one.
    from torch_xla._internal.profiler_server import ProfilerServer

    return ProfilerServer(port + xr.local_ordinal() if port else 0)


def trace(
    service_addr: str,
    logdir: str,
    tracing_attempts: int = 3,
    duration_ms: int = 1000,
    **kwargs: Any,
) -> str:
    """Asks a server for what happens in the next `duration_ms` milliseconds; returns the file that holds it.

    Args:
      service_addr: the server, as "localhost:9012".
      logdir: the folder for the file.
      tracing_attempts: how often to try while nothing is recorded.
      duration_ms: for how long to collect.
      kwargs: the other options of PyTorch/XLA's trace, which have no effect.
    """
    import urllib.request

    for _ in range(max(tracing_attempts, 1)):
        url = f"http://{service_addr}/trace?duration_ms={duration_ms}"
        with urllib.request.urlopen(url, timeout=duration_ms / 1000 + 30) as answer:
            content = json.load(answer)
        if content["traceEvents"]:
            break
    return _write(content, logdir)


def trace_detached(*args: Any, **kwargs: Any) -> threading.Thread:
    """`trace` in a thread, which is returned."""
    thread = threading.Thread(target=trace, args=args, kwargs=kwargs, daemon=True)
    thread.start()
    return thread


_running: tuple[Collection, str] | None = None


def start_trace(log_dir: str) -> None:
    """Collects the sections of this process until `stop_trace`."""
    global _running
    if _running is not None:
        raise RuntimeError("start_trace: a trace is running already; stop_trace() ends it.")
    _running = (start_collection(), log_dir)


def stop_trace() -> str:
    """Writes what was collected since `start_trace`; returns the file."""
    global _running
    if _running is None:
        raise RuntimeError("stop_trace: no trace is running; start_trace(log_dir) starts one.")
    (collection, log_dir), _running = _running, None
    return _write(stop_collection(collection), log_dir)


def _write(content: dict[str, Any], logdir: str) -> str:
    moment = time.strftime("%Y_%m_%d_%H_%M_%S")
    folder = pathlib.Path(logdir) / "plugins" / "profile" / moment
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{socket.gethostname()}.{os.getpid()}.trace.json"
    file.write_text(json.dumps(content))
    return str(file)
