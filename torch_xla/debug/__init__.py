"""What a program does, and what it costs: metrics, profiles, memory, and reports of compilations."""

import os

from . import memory as memory
from . import metrics as metrics
from . import profiler as profiler

_VARIABLES = (
    "PT_XLA_DEBUG",
    "PT_XLA_DEBUG_LEVEL",
    "XLA_IR_DEBUG",
    "XLA_HLO_DEBUG",
    "XLA_SAVE_TENSORS_FILE",
)


def start_reports() -> None:
    """Starts the reports that the environment asks for: PT_XLA_DEBUG and its like."""
    if any(os.environ.get(name) for name in _VARIABLES):
        from . import _reports

        _reports.start()


def start_saving() -> None:
    """Starts what XLA_SAVE_TENSORS_FILE asks for, where the program has set it after the import."""
    if os.environ.get("XLA_SAVE_TENSORS_FILE"):
        from . import _reports

        _reports.observe_graphs()
