"""Eager mode: operations run as they are called, and not as one graph with the step."""

import contextlib
from collections.abc import Iterator

from torch_xla import _XLAC


def eager_mode(enable: bool, wait: bool = False) -> None:
    """Says when operations run from now on, on all threads. What is recorded already is started first.

    Args:
      enable: each operation starts as it is called. Otherwise they are recorded, and run as one graph with the next
        `torch_xla.sync()` or read: the default. A function of `torch_xla.compile` is recorded in either case.
      wait: with `enable`, each operation has also ended when its call returns, so that what goes wrong is raised at
        its line: for debugging. `XLA_USE_EAGER_DEBUG_MODE=1` in the environment starts a program so.

    Raises RuntimeError, or what else fails, for what is recorded.
    """
    _XLAC._set_execution("lazy" if not enable else "eager_wait" if wait else "eager")


def is_eager_mode() -> bool:
    """Whether operations run as they are called."""
    return _XLAC._get_use_eager_mode()


@contextlib.contextmanager
def eager_mode_context(enable: bool, wait: bool = False) -> Iterator[bool]:
    """`eager_mode` for a block of code, and as before afterwards; gives whether it is on in the block."""
    before = _XLAC._get_execution()
    eager_mode(enable, wait)
    try:
        yield is_eager_mode()
    finally:
        _XLAC._set_execution(before)
