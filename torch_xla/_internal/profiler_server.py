"""The server that TensorBoard's "capture profile" and `torch_xla.debug.profiler.trace` ask for profiles.

It is the gRPC service of TensorFlow's profilers. While a profile is being collected no thread of it holds the interpreter's
lock.

It listens on this machine's own address, which every user of the machine reaches. So it answers processes of its own user
only, who prove it (profiler_token.py), unless it is told to answer all; and files it writes below one folder or not at all.
"""

import contextlib
import os
import pathlib
import re
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Any

import grpc
from google.protobuf.message import DecodeError

from torch_xla._internal import fork_lock, profile_files, profiler_token
from torch_xla._internal import profiler_messages as messages
from torch_xla.debug import trace_events

_MAX_DURATION_MS = 5 * 60 * 1000
_MAX_REQUEST_BYTES = 64 * 1024
_MAX_MESSAGE_BYTES = 2**31 - 1
# At a time; one of them collects a profile, the others are refused or end it.
_MAX_REQUESTS = 16
# Of these, those that have been opened and not sent.
_MAX_SILENT = 8
# Files in all, so that nobody fills the disk.
_MAX_PROFILES_WRITTEN = 1000
# How soon a request that its client has given up ends.
_POLL_SECONDS = 0.05


class _Service:
    def __init__(self, logdir: str | None) -> None:
        self._logdir = None if logdir is None else pathlib.Path(logdir).resolve()
        self._written = 0
        self._stopped: dict[str, threading.Event] = {}
        self._lock = fork_lock.Lock()

    def profile(self, request: Any, context: grpc.ServicerContext) -> Any:
        """What happens from now on for `duration_ms`, in the answer or in a file of this machine."""
        duration_ms = request.opts.duration_ms or request.duration_ms or 1000
        folder = None if request.emit_xspace else self._folder_of(request, context)
        xspace = self._collect(request.session_id, duration_ms, context)
        response = messages.ProfileResponse(empty_trace=_is_empty(trace_events.parse(xspace)))
        if folder is None:
            response.xspace = xspace
        elif not response.empty_trace:
            self._save(xspace, folder, request.host_name, context)
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
                f"{duration_ms} ms are more than five minutes; start_trace and stop_trace have no limit",
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

    def _folder_of(self, request: Any, context: grpc.ServicerContext) -> pathlib.Path:
        """Where the client wants the profile; it is below the folder that the program has named."""
        session = request.session_id
        if not request.repository_root or not _NAME.fullmatch(session) or session in (".", ".."):
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT,
                "the request must name a folder (repository_root) and a session to keep the profile under",
            )
        if self._logdir is None:
            context.abort(
                grpc.StatusCode.FAILED_PRECONDITION,
                "this server writes no files: ask for the profile itself (emit_xspace), or start it with "
                "start_server(port, logdir=...)",
            )
        try:
            folder = (pathlib.Path(request.repository_root) / session).resolve()
        except (OSError, ValueError, RuntimeError) as error:
            context.abort(
                grpc.StatusCode.INVALID_ARGUMENT, f"repository_root is no folder: {error}"
            )
        if not folder.is_relative_to(self._logdir):
            context.abort(
                grpc.StatusCode.PERMISSION_DENIED,
                f"this server writes below {self._logdir} only (start_server(port, logdir=...))",
            )
        return folder

    def _save(
        self, xspace: bytes, folder: pathlib.Path, host: str, context: grpc.ServicerContext
    ) -> None:
        with self._lock:
            self._written += 1
            too_many = self._written > _MAX_PROFILES_WRITTEN
        if too_many:
            context.abort(
                grpc.StatusCode.RESOURCE_EXHAUSTED,
                f"this server has written {_MAX_PROFILES_WRITTEN} profiles, as many as it may",
            )
        name = re.sub(r"[^A-Za-z0-9._-]", "_", host)[:100] or profile_files.host_name()
        try:
            profile_files.write(xspace, folder, name)
        except OSError as error:
            context.abort(grpc.StatusCode.INTERNAL, f"the profile cannot be kept: {error}")


_NAME = re.compile(r"[^/\0]{1,100}")


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


class _Silent:
    """The requests that have been opened and not sent: the oldest ends where a new one needs its place."""

    def __init__(self) -> None:
        self._waiting: list[grpc.ServicerContext] = []
        self._lock = fork_lock.Lock()

    def wait(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        """The one request of the stream."""
        with self._lock:
            self._waiting.append(context)
            oldest = self._waiting.pop(0) if len(self._waiting) > _MAX_SILENT else None
        if oldest is not None:
            oldest.cancel()
        try:
            request = next(requests, None)
        finally:
            with self._lock, contextlib.suppress(ValueError):
                self._waiting.remove(context)
        if request is None:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "there is no request")
        return request


class _Guard:
    """Lets requests of this user's processes through to the service, or all of them."""

    def __init__(self, without_token: bool) -> None:
        self._without_token = without_token
        self._silent = _Silent()
        self.token = profiler_token.ServerSide()

    def challenge(self, requests: Iterator[bytes], context: grpc.ServicerContext) -> bytes:
        client_nonce = self._silent.wait(requests, context)
        try:
            return self.token.challenge(client_nonce)
        except ValueError as error:
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            raise

    def handler(self, name: str, function: Callable[..., Any]) -> grpc.RpcMethodHandler:
        """Nothing of a request is looked at before its proof."""
        parse = getattr(messages, f"{name}Request").FromString

        # As a stream, which it is handed before its message has come.
        def handle(requests: Iterator[bytes], context: grpc.ServicerContext) -> Any:
            request = self._silent.wait(requests, context)
            metadata = dict(context.invocation_metadata())
            if not self._without_token and not self.token.accepts(metadata, name, request):
                context.abort(
                    grpc.StatusCode.UNAUTHENTICATED,
                    "this profiler server answers its own user's torch_xla.debug.profiler.trace only; for other tools, "
                    "and all users of the machine: start_server(port, without_token=True)",
                )
            try:
                parsed = parse(request)
            except DecodeError as error:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
            return function(parsed, context)

        return grpc.stream_unary_rpc_method_handler(
            handle,
            response_serializer=getattr(messages, f"{name}Response").SerializeToString,
        )


class ProfilerServer:
    """Answers while the object lives. It listens on this machine's own address only."""

    def __init__(self, port: int, logdir: str | None = None, without_token: bool = False) -> None:
        if not 0 <= port < 65536:
            raise RuntimeError(f"start_server: port {port} is not between 0 and 65535.")
        self.process, self.logdir, self.without_token = os.getpid(), logdir, without_token
        service = _Service(logdir)
        guard = _Guard(without_token)
        self._server = grpc.server(
            futures.ThreadPoolExecutor(_MAX_REQUESTS, thread_name_prefix="profiler_server"),
            options=[
                # Else a second server would take half of the requests.
                ("grpc.so_reuseport", 0),
                ("grpc.max_send_message_length", _MAX_MESSAGE_BYTES),
                ("grpc.max_receive_message_length", _MAX_REQUEST_BYTES),
                ("grpc.max_concurrent_streams", _MAX_REQUESTS),
            ],
            maximum_concurrent_rpcs=_MAX_REQUESTS,
        )
        handlers = {
            name: guard.handler(name, function)
            for name, function in [
                ("Profile", service.profile),
                ("Terminate", service.terminate),
                ("Monitor", service.monitor),
            ]
        }
        challenge = grpc.stream_unary_rpc_method_handler(guard.challenge)
        package, method = profiler_token.CHALLENGE.strip("/").split("/")
        self._server.add_generic_rpc_handlers(
            (
                grpc.method_handlers_generic_handler(messages.SERVICE, handlers),
                grpc.method_handlers_generic_handler(package, {method: challenge}),
            )
        )
        self.port: int = _listen(self._server, "127.0.0.1", port)
        # A stranger at the other address of localhost would pass on what the clients say.
        if _has_ipv6():
            _listen(self._server, "[::1]", self.port)
        guard.token.port = self.port
        self._server.start()
        # Also before the interpreter ends, when nothing can be awaited any more.
        self._finalizer = weakref.finalize(self, _end, self._server, os.getpid())

    def stop(self) -> None:
        """Ends the server; requests that are being answered are given up."""
        if _running.get(self.port) is self:
            del _running[self.port]
        self._finalizer()


# By port: a program that starts its server again, as a notebook's cell does, has it.
_running: weakref.WeakValueDictionary[int, ProfilerServer] = weakref.WeakValueDictionary()
# Held by who looks for a server and starts one.
_starting = fork_lock.Lock()


def serve(port: int, logdir: str | None, without_token: bool) -> ProfilerServer:
    """The server that this process has on the port, if it answers the same; else a new one."""
    with _starting:
        server = _running.get(port)
        # A forked process has the object, and the server stays the parent's.
        if server is None or server.process != os.getpid():
            server = ProfilerServer(port, logdir, without_token)
            _running[server.port] = server
            return server
    if (server.logdir, server.without_token) != (logdir, without_token):
        raise RuntimeError(
            f"start_server: cannot listen on port {port}: this process has a server there, with "
            f"logdir={server.logdir!r} and without_token={server.without_token}; stop it first."
        )
    return server


def _listen(server: grpc.Server, host: str, port: int) -> int:
    """The port."""
    try:
        bound = server.add_insecure_port(f"{host}:{port}")
    except RuntimeError as error:
        raise RuntimeError(f"start_server: cannot listen on port {port}: {error}.") from error
    if bound == 0:
        raise RuntimeError(f"start_server: cannot listen on port {port} of {host}.")
    return bound


def _has_ipv6() -> bool:
    """Whether this machine has the address ::1."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def _end(server: grpc.Server, process: int) -> None:
    # A forked process has the object, and the server stays the parent's.
    if os.getpid() == process:
        server.stop(None).wait(timeout=5)
