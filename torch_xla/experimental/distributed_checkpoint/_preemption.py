"""Notices that this process is to end soon: SIGTERM, as schedulers send it a while before they kill."""

import os
import signal
import threading
from typing import Any

import torch
import torch.distributed as dist

_noticed = False  # no threading.Event: two signals, one in the other's handler, would wait for its lock for ever
_before: Any = None
_is_watching = False


def watch() -> None:
    """SIGTERM ends the process no more, but is noticed. Raises RuntimeError on another thread than the main one."""
    global _before, _is_watching, _noticed
    if _is_watching:
        return
    if threading.current_thread() is not threading.main_thread():
        raise RuntimeError(
            "Only the main thread can take notice of SIGTERM; chkpt_on_preemption=False does without it."
        )
    _noticed = False
    _before = signal.signal(signal.SIGTERM, _notice)
    _is_watching = True


def unwatch() -> None:
    """SIGTERM does what it did before, or what the program has made it do since `watch`."""
    global _is_watching, _noticed
    if _is_watching:
        if signal.getsignal(signal.SIGTERM) is _notice:
            signal.signal(signal.SIGTERM, _before if _before is not None else signal.SIG_DFL)
        _noticed = False
        _is_watching = False


# A forked process, such as a loader of data, asks nobody at each step: it would never end.
os.register_at_fork(after_in_child=unwatch)


def _notice(*_: Any) -> None:
    global _noticed
    _noticed = True


def is_told(group: dist.ProcessGroup | None = None) -> bool:
    """Whether a SIGTERM has come, since `watch`, to one of the group's processes, which all ask; all by default."""
    told = torch.tensor(_noticed, dtype=torch.int32)
    if dist.is_initialized():
        dist.all_reduce(told, dist.ReduceOp.MAX, group=group)
    return bool(told)
