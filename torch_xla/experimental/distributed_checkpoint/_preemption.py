"""Notices that this process is to end soon: SIGTERM, as schedulers send it a while before they kill."""

import signal
import threading
from typing import Any

import torch
import torch.distributed as dist

_noticed = threading.Event()
_before: Any = None
_is_watching = False


def watch() -> None:
    """SIGTERM ends the process no more, but is noticed. Raises RuntimeError on another thread than the main one."""
    global _before, _is_watching
    if _is_watching:
        return
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            "Only the main thread can take notice of SIGTERM; chkpt_on_preemption=False does without it."
        )
    _noticed.clear()
    _before = signal.signal(signal.SIGTERM, lambda *_: _noticed.set())
    _is_watching = True


def unwatch() -> None:
    """SIGTERM does what it did before."""
    global _is_watching
    if _is_watching:
        signal.signal(signal.SIGTERM, _before if _before is not None else signal.SIG_DFL)
        _noticed.clear()
        _is_watching = False


def is_told(group: dist.ProcessGroup | None = None) -> bool:
    """Whether a SIGTERM has come, since `watch`, to one of the group's processes, which all ask; all by default."""
    told = torch.tensor(_noticed.is_set(), dtype=torch.int32)
    if dist.is_initialized():
        dist.all_reduce(told, dist.ReduceOp.MAX, group=group)
    return bool(told)
