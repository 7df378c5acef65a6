"""Profiles of a program, for TensorBoard (`xprof`), Perfetto and `torch.profiler`, and the program's own sections in them.

    import torch_xla.debug.profiler as xp

    server = xp.start_server(9012)
    for step, batch in enumerate(loader):
        with xp.StepTrace("train", step_num=step):
            with xp.Trace("forward"):
                loss = model(batch)

Another process of the same user then collects a second of it: `xp.trace("localhost:9012", "logs", duration_ms=1000)`;
TensorBoard's "capture profile" does too, from a server that was started with `without_token=True`. Within one process `start_trace(folder)` and `stop_trace()` do the same. `torch_xla.debug.trace_events`
has profiles as plain objects.
"""

import functools
import os
import re
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from torch_xla import _XLAC
from torch_xla import runtime as xr
from torch_xla.torch_xla import _sync

if TYPE_CHECKING:
    from torch_xla._internal.profiler_server import ProfilerServer


class Trace(_XLAC._TraceMe):
    """A context that names a section. Keyword arguments are shown with it, and `set_metadata` adds to them."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        super().__init__(name, **kwargs)


class StepTrace(Trace):
    """A section that is one step: at its end the recorded graph is cut and started. Name the step: `step_num=n`."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        # How viewers know the steps.
        super().__init__(name, _r=1, **kwargs)

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
        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            with Trace(scope):
                return function(*args, **kwargs)

        return traced

    return decorate


def start_server(
    port: int,
    only_on_master: bool = True,
    *,
    logdir: str | None = None,
    without_token: bool = False,
) -> "ProfilerServer | None":
    """Starts the server that `trace` and TensorBoard's "capture profile" ask. Keep the object: the server ends with it.

    It listens on this machine's own address. Started again with the same arguments it is the server that is there. Raises
    RuntimeError when the port is busy or no port.

    Args:
      port: 0 lets the system choose; the object's `port` says which it is.
      only_on_master: start it in the process of rank 0 only, and return None in the others. Else the process of local rank
        r listens on port + r.
      logdir: the folder below which clients may have it write profiles; None: it writes none, and profiles go to those who
        ask for them. TensorBoard's "capture profile" needs its own log folder here.
      without_token: answer every process of the machine, also other users'. TensorBoard's "capture profile" needs it, which
        knows no token. Else only processes of the same user are answered, which `trace` proves to be one.
    """
    if only_on_master and xr.global_ordinal() != 0:
        return None
    # With its library only for who wants one.
    from torch_xla._internal import profiler_server

    port = port + xr.local_ordinal() if port > 0 else port
    return profiler_server.serve(port, logdir, without_token)


def trace(
    service_addr: str,
    logdir: str,
    duration_ms: int = 1000,
    num_tracing_attempts: int = 3,
    host_tracer_level: int = 2,
    device_tracer_level: int = 1,
    delay_ms: int = 0,
    timeout_s: int = 120,
    interval_s: int = 5,
    *,
    without_token: bool = False,
) -> list[str]:
    """Asks servers for what happens in the next `duration_ms` milliseconds; returns the profiles' files.

    They are `<logdir>/plugins/profile/<run>/<host>.xplane.pb`, each with a `.trace.json.gz` for Perfetto beside it. Raises
    RuntimeError when no server answers with a profile.

    Args:
      service_addr: the servers, as "localhost:9012" or "localhost:9012,localhost:9013".
      logdir: TensorBoard's folder.
      duration_ms: for how long to collect.
      num_tracing_attempts: how often to try while nothing is recorded or a server cannot be reached.
      host_tracer_level: how much servers of other frameworks tell of the host, 1 to 3.
      device_tracer_level: 0 has them leave the devices out.
      delay_ms: wait before the first attempt.
      timeout_s: no attempt begins later than that.
      interval_s: between attempts.
      without_token: ask also servers on this machine that do not prove to be this user's, such as other frameworks'.
    """
    from torch_xla._internal import profiler_client

    addresses = [address.strip().removeprefix("grpc://") for address in service_addr.split(",")]
    for address in addresses:
        if not re.fullmatch(r".+:\d+", address):
            raise RuntimeError(
                f"trace: {address!r} is no server's address, such as 'localhost:9012'."
            )
    if duration_ms <= 0:
        raise RuntimeError(f"trace: duration_ms must be positive, not {duration_ms}")
    time.sleep(delay_ms / 1000)
    levels = {"host_tracer_level": host_tracer_level, "device_tracer_level": device_tracer_level}
    paths = profiler_client.capture(
        addresses,
        logdir,
        duration_ms,
        num_tracing_attempts,
        timeout_s,
        interval_s,
        levels,
        not without_token,
    )
    return [str(path) for path in paths]


def trace_detached(*args: Any, **kwargs: Any) -> threading.Thread:
    """`trace` in a thread, which is returned."""
    thread = threading.Thread(target=trace, args=args, kwargs=kwargs, daemon=True)
    thread.start()
    return thread


_log_dir: str | None = None


def start_trace(log_dir: str | os.PathLike[str]) -> None:
    """Collects a profile of this process until `stop_trace`. Raises RuntimeError while one is being collected."""
    from torch_xla.debug import trace_events

    global _log_dir
    log_dir = os.fspath(log_dir)
    trace_events.start()
    _log_dir = log_dir


def stop_trace() -> str:
    """Writes what was collected since `start_trace`; returns the file, `<log_dir>/plugins/profile/<run>/<host>.xplane.pb`."""
    from torch_xla._internal import profile_files
    from torch_xla.debug import trace_events

    global _log_dir
    if _log_dir is None:
        raise RuntimeError("stop_trace: No profile started; start_trace(log_dir) starts one.")
    log_dir, _log_dir = _log_dir, None
    folder = profile_files.runs_folder(log_dir) / profile_files.new_run()
    return str(profile_files.write(trace_events.stop(), folder, profile_files.host_name()))
