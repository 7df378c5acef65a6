"""Which runtime server a process with `PJRT_DEVICE=REMOTE` uses, and starting one on this machine."""

import os
import pathlib
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from torch_xla import runtime_server
from torch_xla._internal import job_secret
from torch_xla.core import xla_env_vars as xenv

# How long a server that was started here outlives its last client, and may take to start.
IDLE_SECONDS = 30
START_SECONDS = 60


def select_by_old_name() -> None:
    """With XRT_TPU_CONFIG alone, by which PyTorch/XLA named its server before there was PJRT, chooses that one."""
    if os.environ.get(xenv.XRT_TPU_CONFIG) and not os.environ.get(xenv.PJRT_DEVICE):
        os.environ[xenv.PJRT_DEVICE] = "REMOTE"


def address() -> str:
    """PJRT_REMOTE_ADDRESS, or what XRT_TPU_CONFIG names, or this user's own socket."""
    if chosen := os.environ.get(xenv.PJRT_REMOTE_ADDRESS):
        return chosen
    if config := os.environ.get(xenv.XRT_TPU_CONFIG):
        return _parse_config(config)
    return runtime_server.own_address()


def _parse_config(config: str) -> str:
    workers = config.split("|")
    if len(workers) > 1:
        raise NotImplementedError(
            f"{xenv.XRT_TPU_CONFIG}={config!r} names {len(workers)} servers; a process uses one."
        )
    parts = workers[0].split(";")
    if len(parts) != 3 or ":" not in parts[2]:
        raise RuntimeError(
            f"{xenv.XRT_TPU_CONFIG}={config!r} must be NAME;ORDINAL;HOST:PORT, such as "
            "'localservice;0;localhost:51011'."
        )
    return parts[2].removeprefix("grpc://")


def starts_here(server: str) -> bool:
    """Whether the address is one at which `ensure_server` starts a server."""
    if server.startswith("unix:"):
        return True
    host, separator, port = server.rpartition(":")
    if not separator or not port.isdigit():
        raise RuntimeError(
            f"{xenv.PJRT_REMOTE_ADDRESS}={server!r} must be HOST:PORT, such as "
            f"localhost:{runtime_server.DEFAULT_PORT}, or unix:PATH."
        )
    # A server with TLS has a key, which only who runs it knows.
    return runtime_server.is_loopback(host) and not os.environ.get(xenv.PJRT_REMOTE_CERTIFICATE)


def ensure_server(server: str) -> None:
    """Starts a server with the CPU engine if the address is on this machine and nothing listens there."""
    if not starts_here(server):
        return
    path = server.removeprefix("unix:")
    if path != server:
        if not _listens_at_socket(path):
            _start(server, ["--socket", path], lambda: _listens_at_socket(path))
        return
    host, _, port = server.rpartition(":")
    if not _listens_at_port(host, int(port)):
        arguments = ["--host", host, "--port", port]
        if token := os.environ.get(xenv.PJRT_REMOTE_TOKEN_FILE):
            arguments += ["--token-file", token]
        _start(server, arguments, lambda: _listens_at_port(host, int(port)))


def _listens_at_port(host: str, port: int) -> bool:
    """Whether anybody does. The client itself sees who it is, before it says anything."""
    try:
        socket.create_connection((host.strip("[]"), port), timeout=5).close()
    except OSError:
        return False
    return True


def _listens_at_socket(path: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(5)
        try:
            probe.connect(path)
        except OSError:
            return False
    return True


def _start(server: str, arguments: list[str], listens: Callable[[], bool]) -> None:
    if server == runtime_server.own_address():
        runtime_server.make_own_folder()
    # As a script: the server needs no torch, whose import takes longer than all the rest.
    script = pathlib.Path(runtime_server.__file__)
    command = [sys.executable, str(script), *arguments, "--exit-when-idle", str(IDLE_SECONDS)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # It serves other jobs of the user's too, and outlives this one.
        env=job_secret.without(os.environ),
        # Interrupting this program must not end the server that others may have come to use.
        start_new_session=True,
    )
    assert process.stdout is not None
    deadline = time.monotonic() + START_SECONDS
    with process.stdout as output:
        readable, _, _ = select.select([output], [], [], START_SECONDS)
        said = output.readline() if readable else b""
    while not listens():
        # Another process may have been quicker with its own.
        if process.poll() is not None and time.monotonic() > deadline - START_SECONDS + 5:
            raise RuntimeError(
                f"The runtime server at {server} could not be started: {said.decode(errors='replace').strip()} "
                f"({' '.join(command)})"
            )
        if time.monotonic() > deadline:
            raise RuntimeError(
                f"The runtime server at {server} was started and does not listen after {START_SECONDS} s "
                f"({' '.join(command)})"
            )
        time.sleep(0.05)
