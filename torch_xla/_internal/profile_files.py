"""Profiles as files, where TensorBoard looks for them: `<logdir>/plugins/profile/<run>/<host>.xplane.pb`."""

import gzip
import json
import pathlib
import socket
import time

from torch_xla import runtime as xr
from torch_xla._internal import chrome_trace
from torch_xla.debug import trace_events


def runs_folder(logdir: str) -> pathlib.Path:
    """Where the runs of a folder of logs are."""
    return pathlib.Path(logdir) / "plugins" / "profile"


def new_run() -> str:
    """The name of a run that is made now."""
    return time.strftime("%Y_%m_%d_%H_%M_%S")


def host_name() -> str:
    """What this process is called among those of a run: one on a machine bears the machine's name."""
    name = socket.gethostname()
    return name if xr.world_size() == 1 else f"{name}_{xr.global_ordinal()}"


def write(xspace: bytes, folder: pathlib.Path, host: str) -> pathlib.Path:
    """Writes the profile, and beside it the same for Perfetto, `<host>.trace.json.gz`; returns the profile's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{host}.xplane.pb"
    number = 1
    while path.exists():  # of the same second
        number += 1
        path = folder / f"{host}_{number}.xplane.pb"
    path.write_bytes(xspace)
    trace = json.dumps(chrome_trace.convert(trace_events.parse(xspace))).encode()
    trace_path = path.with_name(path.name.removesuffix(".xplane.pb") + ".trace.json.gz")
    trace_path.write_bytes(gzip.compress(trace, compresslevel=5))
    return path
