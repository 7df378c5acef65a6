"""Backward runs on the thread that asks for it.

torch's engine has a thread for each kind of device but the CPU, where kernels start while others are recorded. Here a
backward only records: handing each of its nodes to another thread, and waiting for it, took a tenth of a small step.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch.autograd import graph

_run_elsewhere = graph._engine_run_backward


def _run(outputs: Sequence[Any], *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
    # What is no tensor, an edge of the graph, has no device that is known here.
    for output in outputs:
        if getattr(output, "is_xla", False):
            break
    else:
        return _run_elsewhere(outputs, *args, **kwargs)
    if not torch._C._is_multithreading_enabled():
        return _run_elsewhere(outputs, *args, **kwargs)
    torch._C._set_multithreading_enabled(False)
    try:
        return _run_elsewhere(outputs, *args, **kwargs)
    finally:
        torch._C._set_multithreading_enabled(True)


def _hide_from_dynamo() -> None:
    """As torch's own, it is none of the functions that dynamo compiles where one that it cannot compile calls them."""
    try:
        frames = torch._C._dynamo.eval_frame
        skipped, as_ever = frames._FrameAction.SKIP, frames._FrameAction.DEFAULT
        frames.set_code_exec_strategy(_run.__code__, frames._FrameExecStrategy(skipped, as_ever))
    except AttributeError:
        pass  # a torch with other names: a compiled step has one graph more


def register() -> None:
    """Puts it where torch's own was."""
    _hide_from_dynamo()
    graph._engine_run_backward = _run
    torch.autograd._engine_run_backward = _run
