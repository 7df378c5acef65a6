"""Serves the devices of a PJRT plugin to other processes, over gRPC.

    python -m torch_xla.runtime_server                                 the CPU engine of this package
    python -m torch_xla.runtime_server --plugin CUDA                   an installed plugin, by its PJRT_DEVICE
    python -m torch_xla.runtime_server --plugin p.so --option cpu_device_count=2
    python -m torch_xla.runtime_server --port 51011                    at a port instead of a socket of the user's own

A process of the same user that runs with `PJRT_DEVICE=REMOTE` uses them; if the server is at a port, with
`PJRT_REMOTE_ADDRESS=localhost:51011`. See docs/runtime_server.md.

Runs as a script too (`python torch_xla/runtime_server.py`), without importing torch, unless `--plugin` is a name.
"""

import argparse
import contextlib
import ctypes
import ipaddress
import os
import pathlib
import resource
import secrets
import signal
import stat
import sys
import time
from collections.abc import Sequence

DEFAULT_PORT = 51011
LOST_AFTER_SECONDS = 330.0
REMOTE_PLUGIN = "libpjrt_remote.so"

_POLL_SECONDS = 0.2


class _NamedValue(ctypes.Structure):
    """PJRT_NamedValue of src/pjrt/c_api.h."""

    class _Value(ctypes.Union):
        _fields_ = [
            ("text", ctypes.c_char_p),
            ("integer", ctypes.c_int64),
            ("real", ctypes.c_float),
            ("truth", ctypes.c_bool),
        ]

    _anonymous_ = ("value",)
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("extension_start", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("name_size", ctypes.c_size_t),
        ("type", ctypes.c_int),
        ("value", _Value),
        ("value_size", ctypes.c_size_t),
    ]


class _Options(ctypes.Structure):
    """RuntimeServerOptions of src/remote/entry.cc."""

    _fields_ = [
        ("address", ctypes.c_char_p),
        ("plugin_path", ctypes.c_char_p),
        ("plugin_options", ctypes.POINTER(_NamedValue)),
        ("num_plugin_options", ctypes.c_size_t),
        ("certificate_file", ctypes.c_char_p),
        ("key_file", ctypes.c_char_p),
        ("token_file", ctypes.c_char_p),
        ("most_sessions", ctypes.c_int64),
        ("lost_after_seconds", ctypes.c_double),
    ]


def own_folder() -> pathlib.Path:
    """The folder of this user's sockets and token (`OwnFolder` of src/remote/address.h). It may not exist yet."""
    chosen = os.environ.get("TORCH_XLA_RUNTIME_DIR")
    return pathlib.Path(chosen) if chosen else pathlib.Path(f"/tmp/torch_xla-{os.geteuid()}")


def make_own_folder() -> pathlib.Path:
    """The same, made where it is missing. Raises RuntimeError for a folder that others may enter."""
    folder = own_folder()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
    except OSError as error:
        raise RuntimeError(
            f"{folder}, for this user's sockets and token, cannot be made: {error}; TORCH_XLA_RUNTIME_DIR "
            "names another folder"
        ) from error
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o077:
        raise RuntimeError(
            f"{folder} must be a folder of this user's own that no other may enter (chmod 700); "
            "TORCH_XLA_RUNTIME_DIR names another one"
        )
    return folder


def own_token_file() -> pathlib.Path:
    """The file of the token that this user's local servers ask for, made where it is missing."""
    path = make_own_folder() / "token"
    if not path.exists():
        # It appears whole or not at all, and of several processes that make one the first is right.
        made = path.with_name(f"token.{os.getpid()}.{secrets.token_hex(4)}")
        try:
            with open(os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                file.write(secrets.token_hex(32) + "\n")
            with contextlib.suppress(FileExistsError):
                os.link(made, path)
        finally:
            made.unlink(missing_ok=True)
    return path


def own_address() -> str:
    """Where this user's server listens if nobody says otherwise."""
    return f"unix:{own_folder()}/server.sock"


def library_directory() -> pathlib.Path:
    """As of the same name in `_binding`, which cannot be imported without torch."""
    chosen = os.environ.get("TORCH_XLA_LIBRARY_DIR")
    return pathlib.Path(chosen) if chosen else pathlib.Path(__file__).parent / "lib"


def find_plugin(plugin: str) -> tuple[str, dict[str, object]]:
    """The library of a plugin given by its path or its device type, and the options that it wants."""
    if plugin == "CPU":
        options = {"cpu_device_count": int(os.environ.get("CPU_NUM_DEVICES", "1"))}
        return str(library_directory() / "libpjrt_cpu.so"), options
    if "/" in plugin or plugin.endswith(".so"):
        return plugin, {}
    from torch_xla.experimental import plugins

    known = plugins.plugins()
    if plugin not in known:
        raise SystemExit(
            f"--plugin {plugin} is neither a library nor a plugin; there are {', '.join(sorted(known))}."
        )
    return known[plugin].library_path(), known[plugin].client_create_options()


def parse_option(text: str) -> tuple[str, object]:
    """`NAME=VALUE`: an integer, `true` or `false`, a real number, or else text."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=VALUE")
    if value in ("true", "false"):
        return name, value == "true"
    for convert in (int, float):
        try:
            return name, convert(value)
        except ValueError:
            pass
    return name, value


def _named_value(name: str, value: object) -> _NamedValue:
    result = _NamedValue(struct_size=ctypes.sizeof(_NamedValue))
    result.name, result.name_size, result.value_size = name.encode(), len(name.encode()), 1
    if isinstance(value, bool):
        result.type, result.truth = 4, value
    elif isinstance(value, int):
        result.type, result.integer = 1, value
    elif isinstance(value, float):
        result.type, result.real = 3, value
    else:
        text = str(value).encode()
        result.type, result.text, result.value_size = 0, text, len(text)
    return result


class Server:
    """A running server. Raises RuntimeError that says why it cannot run.

    Args:
      address: where it listens: `host:port`, with 0 for any free port, or `unix:path`.
      plugin_path: the PJRT plugin whose devices it serves.
      plugin_options: what the plugin's client is created with.
      certificate, key: PEM files; with both, connections are TLS.
      token_file: clients have to know the token in it.
      most_sessions: more clients than these are refused.
      lost_after: after how many seconds of silence a client counts as lost.
    """

    def __init__(
        self,
        address: str,
        plugin_path: str,
        plugin_options: dict[str, object],
        certificate: str = "",
        key: str = "",
        token_file: str = "",
        most_sessions: int = 64,
        lost_after: float = LOST_AFTER_SECONDS,
    ) -> None:
        self._library = ctypes.CDLL(str(library_directory() / REMOTE_PLUGIN))
        self._library.RuntimeServer_Start.restype = ctypes.c_void_p
        self._library.RuntimeServer_Sessions.restype = ctypes.c_int64
        self._library.RuntimeServer_SessionsSoFar.restype = ctypes.c_int64
        values = [_named_value(name, value) for name, value in plugin_options.items()]
        options = _Options(
            address=address.encode(),
            plugin_path=plugin_path.encode(),
            plugin_options=(_NamedValue * len(values))(*values),
            num_plugin_options=len(values),
            certificate_file=certificate.encode(),
            key_file=key.encode(),
            token_file=token_file.encode(),
            most_sessions=most_sessions,
            lost_after_seconds=lost_after,
        )
        error = ctypes.create_string_buffer(4096)
        handle = self._library.RuntimeServer_Start(
            ctypes.byref(options), error, ctypes.c_size_t(len(error))
        )
        if not handle:
            raise RuntimeError(error.value.decode(errors="replace"))
        self._handle = ctypes.c_void_p(handle)

    def port(self) -> int:
        """Where it listens; 0 at a socket."""
        return self._library.RuntimeServer_Port(self._handle)

    def sessions(self) -> int:
        """The number of clients at present."""
        return self._library.RuntimeServer_Sessions(self._handle)

    def sessions_so_far(self) -> int:
        """The number of clients that have come."""
        return self._library.RuntimeServer_SessionsSoFar(self._handle)

    def stop(self) -> None:
        """Ends all sessions and the server."""
        self._library.RuntimeServer_Stop(self._handle)


def wait(server: Server, idle_seconds: float | None) -> None:
    """Returns on SIGTERM or SIGINT, or when the server has had no client for some seconds."""
    busy, seen = time.monotonic(), 0
    while signal.sigtimedwait({signal.SIGTERM, signal.SIGINT}, _POLL_SECONDS) is None:
        if server.sessions() or server.sessions_so_far() != seen:
            busy, seen = time.monotonic(), server.sessions_so_far()
        if idle_seconds is not None and time.monotonic() - busy > idle_seconds:
            return


def parse_arguments(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of the command line; what is wrong ends the program with its usage, status 2."""
    parser = argparse.ArgumentParser(
        prog="python -m torch_xla.runtime_server",
        description="Serves the devices of a PJRT plugin to processes that run with PJRT_DEVICE=REMOTE.",
    )
    parser.add_argument(
        "--socket",
        metavar="PATH",
        help="the Unix socket to listen at, in a folder that only this user may enter (default, without --port and "
        f"--host: {own_address().removeprefix('unix:')})",
    )
    parser.add_argument("--port", type=int, help="0: any (default, with --host: 51011)")
    parser.add_argument(
        "--host",
        help="the address to listen on (default, with --port: localhost); one that other hosts reach needs "
        "--certificate, --key and --token-file",
    )
    parser.add_argument(
        "--plugin",
        default="CPU",
        help="a PJRT plugin's library, or a device type: CPU (default), CUDA, TPU, …",
    )
    parser.add_argument(
        "--option",
        action="append",
        default=[],
        type=parse_option,
        metavar="NAME=VALUE",
        help="an option of the plugin; may be repeated",
    )
    parser.add_argument("--certificate", default="", help="file of the TLS certificate (PEM)")
    parser.add_argument("--key", default="", help="file of the certificate's key (PEM)")
    parser.add_argument(
        "--token-file",
        default="",
        help="file with the token that clients at a port must know (default: the user's own, which the user's "
        "processes find by themselves)",
    )
    parser.add_argument(
        "--most-sessions", type=int, default=64, help="how many clients at a time (default: 64)"
    )
    parser.add_argument(
        "--lost-after",
        type=float,
        default=LOST_AFTER_SECONDS,
        metavar="SECONDS",
        help=f"with TLS: how long a client may be silent, or stopped (default: {LOST_AFTER_SECONDS:.0f})",
    )
    parser.add_argument(
        "--exit-when-idle",
        type=float,
        metavar="SECONDS",
        help="end after this long without a client",
    )
    return parser.parse_args(arguments)


def is_loopback(host: str | None) -> bool:
    """Whether the host, localhost if there is none, is this one alone."""
    if host in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _address(options: argparse.Namespace) -> str:
    if options.port is None and options.host is None:
        if options.socket:
            return f"unix:{pathlib.Path(options.socket).absolute()}"
        make_own_folder()
        return own_address()
    if options.socket:
        raise RuntimeError("it listens at a socket or at a port, not at both")
    port = DEFAULT_PORT if options.port is None else options.port
    return f"{options.host or 'localhost'}:{port}"


def _raise_descriptor_limit() -> None:
    """Clients and the memory shared with them take descriptors, of which the usual limit allows few."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def main(arguments: Sequence[str] | None = None) -> int:
    """Serves until SIGTERM or SIGINT; returns the exit status. `arguments` are those of the command line by default."""
    options = parse_arguments(sys.argv[1:] if arguments is None else arguments)
    # Taken by `wait`, in every thread that the server starts.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    _raise_descriptor_limit()
    plugin_path, plugin_options = find_plugin(options.plugin)
    plugin_options.update(options.option)
    try:
        address = _address(options)
        at_socket = address.startswith("unix:")
        token_file = options.token_file
        # Between hosts a token is for one server: the user's own must not reach others.
        if (
            not token_file
            and not at_socket
            and not options.certificate
            and is_loopback(options.host)
        ):
            token_file = str(own_token_file())
        server = Server(
            address,
            plugin_path,
            plugin_options,
            options.certificate,
            options.key,
            token_file,
            options.most_sessions,
            options.lost_after,
        )
    except RuntimeError as error:
        print(f"The runtime server cannot start: {error}", file=sys.stderr)
        return 1
    where = address if at_socket else f"{options.host or 'localhost'}:{server.port()}"
    print(f"Serving {options.plugin} at {where}", flush=True)
    wait(server, options.exit_when_idle)
    server.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
