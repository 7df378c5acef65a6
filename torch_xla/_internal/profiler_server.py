"""The server from which another process collects the traces of `torch_xla.debug.profiler`."""

import http.server
import json
import threading
import time
import urllib.parse
from typing import Any

from torch_xla.debug import metrics, profiler

_MAX_DURATION_MS = 60 * 60 * 1000


class _Handler(http.server.BaseHTTPRequestHandler):
    """GET /trace?duration_ms=1000: the sections of the next second, as JSON. GET /metrics: the metrics report."""

    def do_GET(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/trace":
            query = urllib.parse.parse_qs(url.query)
            try:
                duration_ms = int(query.get("duration_ms", ["1000"])[0])
            except ValueError:
                duration_ms = -1
            if not 0 < duration_ms <= _MAX_DURATION_MS:
                self.send_error(400, f"duration_ms must be a number from 1 to {_MAX_DURATION_MS}")
                return
            collection = profiler.start_collection()
            time.sleep(duration_ms / 1000)
            self._answer("application/json", json.dumps(profiler.stop_collection(collection)))
        elif url.path == "/metrics":
            self._answer("text/plain; charset=utf-8", metrics.metrics_report())
        else:
            self.send_error(404)

    def _answer(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


class ProfilerServer:
    """Answers `trace` while the object lives. It listens on this machine's own address only."""

    def __init__(self, port: int) -> None:
        if not 0 <= port < 65536:
            raise ValueError(f"start_server: port {port} is not between 0 and 65535.")
        try:
            self._server = _Server(("localhost", port), _Handler)
        except OSError as error:
            raise RuntimeError(f"start_server: cannot listen on port {port}: {error}.") from error
        self.port: int = self._server.server_address[1]
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="profiler_server", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Ends the server."""
        self._server.shutdown()
        self._server.server_close()

    def __del__(self) -> None:
        # The thread holds the server, not this object.
        server = getattr(self, "_server", None)
        if server is not None and self._thread.is_alive():
            server.shutdown()
            server.server_close()
