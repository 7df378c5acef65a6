"""Whether operations run as they are called. They are recorded here, and run with the step; there is no eager mode yet."""

import contextlib
from collections.abc import Iterator


def eager_mode(enable: bool) -> None:
    """Asks for operations that run as they are called.

    Raises:
      NotImplementedError: for True. `torch_xla.sync()` runs what is recorded so far.
    """
    if enable:
        raise NotImplementedError(
            "eager_mode: operations are recorded and run with the step. Call torch_xla.sync() where they are to have run, "
            "or set PT_XLA_DEBUG_LEVEL=2 to see what runs when."
        )


def is_eager_mode() -> bool:
    """Whether operations run as they are called: False."""
    return False


@contextlib.contextmanager
def eager_mode_context(enable: bool) -> Iterator[bool]:
    """`eager_mode` for a block of code; gives the mode outside."""
    eager_mode(enable)
    yield is_eager_mode()
