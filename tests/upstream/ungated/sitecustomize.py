"""Has tests run that look for other hardware first: `xla_device_hw` says what UPSTREAM_HARDWARE does. Loaded by each of their processes."""

import os
from typing import Any

from after_import import after_import


def lift_gate(model: Any) -> None:
    """Of `torch_xla.core.xla_model`."""
    model.xla_device_hw = lambda device: os.environ["UPSTREAM_HARDWARE"]


after_import("torch_xla.core.xla_model", lift_gate)
