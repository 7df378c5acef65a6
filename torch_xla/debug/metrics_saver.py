"""Writes the metrics report at each sync, when XLA_METRICS_FILE names a file (or STDOUT, STDERR)."""

import os
import sys

from torch_xla import runtime as xr
from torch_xla.debug import metrics

_step = 0


def save_metrics(metrics_file: str | None = None) -> None:
    """Appends the report to the file; with several processes each writes to a file of its own."""
    global _step
    path = metrics_file or os.environ.get("XLA_METRICS_FILE")
    if not path:
        return
    _step += 1
    record = f"[MetricsData; step={_step}]\n{metrics.metrics_report()}\n"
    if path in ("STDOUT", "STDERR"):
        stream = sys.stdout if path == "STDOUT" else sys.stderr
        stream.write(record)
        return
    if xr.world_size() > 1:
        path = f"{path}.{xr.global_ordinal()}"
    with open(path, "a") as file:
        file.write(record)
