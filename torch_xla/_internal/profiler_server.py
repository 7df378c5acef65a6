"""The server that TensorBoard's "capture profile" and `torch_xla.debug.profiler.trace` ask for profiles.

It is the gRPC service of TensorFlow's profilers. While a profile is being collected no thread of it holds the interpreter's
lock.
"""

import contextlib
import os
import pathlib
import threading
import time
import weakref
from concurrent import futures
from typing import Any

import grpc

from torch_xla._internal import profile_files
from torch_xla._internal import profiler_messages as messages
from torch_xla.debug import trace_events

_MAX_DURATION_MS = 60 * 60 * 1000
_MAX_MESSAGE_BYTES = 2**31 - 1
# How soon a request that its client has given up ends.
_POLL_SECONDS = 0.05


class _Service:
    def __init__(self) -> None:
        self._stopped: dict[str, threading.Event] = {}
        self._lock = threading.Lock()

    def profile(self, request: Any, context: grpc.ServicerContext) -> Any:
        """What happens from now on for `duration_ms`, in the answer or in a file of this machine."""
        duration_ms = request.opts.duration_ms or request.duration_ms or 1000
        if not request.emit_xspace:
            _check_place(request, context)
        xspace = self._collect(request.session_id, duration_ms, context)
        response = messages.ProfileResponse(empty_trace=_is_empty(trace_events.parse(xspace)))
        if request.emit_xspace:
            response.xspace = xspace
        elif not response.empty_trace:
            self._save(xspace, request, context)
        return response

    def terminate(self, request: Any, context: grpc.ServicerContext) -> Any:
        """Ends the profile of that session before its time."""
        with self._lock:
            stopped = self._stopped.get(request.session_id)
        if stopped is not None:
            stopped.set()
        return messages.TerminateResponse()

    def monitor(self, request: Any, context: grpc.ServicerContext) -> Any:
        """What the devices did for `duration_ms`, in a few words."""
        duration_ms = request.duration_ms or 1000
        space = trace_events.parse(self._collect("", duration_ms, context))
        text = _summary(space, duration_ms)
        if request.timestamp:
            text = f"Timestamp: {time.strftime('%H:%M:%S')}\n{text}"
        return messages.MonitorResponse(data=text)

    def _collect(self, session: str, duration_ms: int, context: grpc.ServicerContext) -> bytes:
        if duration_ms > _MAX_DURATION_MS:
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                f"{duration_ms} ms are more than an hour; start_trace and stop_trace have no limit",
            )
        try:
            trace_events.start()
        except RuntimeError as error:
            context.abort(grpc.StatusCode.ALREADY_EXISTS, str(error))
        try:
            with self._session(session) as stopped:
                end = time.monotonic() + duration_ms / 1000
                while context.is_active() and (left := end - time.monotonic()) > 0:
                    if stopped.wait(min(left, _POLL_SECONDS)):
                        break
        finally:
            xspace = trace_events.stop()
        return xspace

    @contextlib.contextmanager
    def _session(self, name: str) -> Any:
        stopped = threading.Event()
        with self._lock:
            self._stopped[name] = stopped
        try:
            yield stopped
        finally:
            with self._lock:
                del self._stopped[name]

    def _save(self, xspace: bytes, request: Any, context: grpc.ServicerContext) -> None:
        host = (request.host_name or profile_files.host_name()).replace(":", "_").replace("/", "_")
        folder = pathlib.Path(request.repository_root) / request.session_id
        try:
            profile_files.write(xspace, folder, host)
        except OSError as error:
            context.abort(grpc.StatusCode.INTERNAL, f"the profile cannot be kept: {error}")


def _check_place(request: Any, context: grpc.ServicerContext) -> None:
    session = request.session_id
    if not request.repository_root or session in ("", ".", "..") or "/" in session:
        context.abort(
            grpc.StatusCode.INVALID_ARGUMENT,
            "the request must name a folder (repository_root) and a session to keep the profile under",
        )


def _is_empty(space: trace_events.Space) -> bool:
    return not any(line.events for plane in space.planes for line in plane.lines)


def _summary(space: trace_events.Space, duration_ms: int) -> str:
    lines = [
        f"Steps: {sum(1 for _ in space.events('xla::sync'))}",
        f"Compilations: {sum(1 for _ in space.events('xla::compile'))}",
    ]
    for plane in space.devices:
        busy = sum(
            e.duration_ps for line in plane.lines if line.name == "XLA Modules" for e in line.events
        )
        lines.append(f"{plane.name} busy: {busy / 1e9 / duration_ms:.1%}")
    return "\n".join(lines) + "\n"


class ProfilerServer:
    """Answers while the object lives. It listens on this machine's own address only."""

    def __init__(self, port: int) -> None:
        if not 0 <= port < 65536:
            raise RuntimeError(f"start_server: port {port} is not between 0 and 65535.")
        service = _Service()
        self._server = grpc.server(
            futures.ThreadPoolExecutor(max_workers=4, thread_name_prefix="profiler_server"),
            options=[
                # Else a second server would take half of the requests.
                ("grpc.so_reuseport", 0),
                ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
            ],
        )
        handlers = {
            name: grpc.unary_unary_rpc_method_handler(
                function,
                request_deserializer=getattr(messages, f"{name}Request").FromString,
                response_serializer=getattr(messages, f"{name}Response").SerializeToString,
            )
            for name, function in [
                ("Profile", service.profile),
                ("Terminate", service.terminate),
                ("Monitor", service.monitor),
            ]
        }
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(messages.SERVICE, handlers),)
        )
        try:
            self.port: int = self._server.add_insecure_port(f"localhost:{port}")
        except RuntimeError as error:
            raise RuntimeError(f"start_server: cannot listen on port {port}: {error}.") from error
        if self.port == 0:
            raise RuntimeError(f"start_server: cannot listen on port {port}.")
        self._server.start()
        # Also before the interpreter ends, when nothing can be awaited any more.
        self._finalizer = weakref.finalize(self, _end, self._server, os.getpid())

    def stop(self) -> None:
        """Ends the server; requests that are being answered are given up."""
        self._finalizer()


def _end(server: grpc.Server, process: int) -> None:
    # A forked process has the object, and the server stays the parent's.
    if os.getpid() == process:
        server.stop(None).wait(timeout=5)
