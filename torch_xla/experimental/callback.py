"""Being told when a tensor's value is there."""

import threading
from collections.abc import Callable

import torch

from torch_xla import _XLAC


def on_ready_callback(tensor: torch.Tensor, callback: Callable[[torch.Tensor], None]) -> None:
    """Calls `callback(tensor)` on a thread of the runtime when the tensor's value is computed.

    What is recorded for it is started first. The callback may read the tensor, and should not take long: other work waits
    for its thread. Its exceptions are shown and do no harm. Raises TypeError for one that cannot be called.
    """
    if not callable(callback):
        raise TypeError(f"on_ready_callback takes a function, and {callback!r} is none.")
    _XLAC._on_ready_callback(tensor, lambda: callback(tensor))


def on_ready_event(tensor: torch.Tensor) -> threading.Event:
    """An event that is set when the tensor's value is computed; see `on_ready_callback`."""
    event = threading.Event()
    _XLAC._on_ready_callback(tensor, event.set)
    return event
