"""Choices of the engines."""

import logging

from torch_xla import _XLAC

logger = logging.getLogger(__name__)

_WARNING_MESSAGE = "The precision of matrix products is a choice for the whole process: programs that are compiled already keep theirs."
_PRECISIONS = ("default", "high", "highest")


def set_mat_mul_precision(precision: str) -> None:
    """How precisely float32 matrix products and convolutions are computed: "default", "high" or "highest"."""
    if precision not in _PRECISIONS:
        raise ValueError(f"Unknown precision {precision!r}; it is one of {_PRECISIONS}.")
    logger.warning(_WARNING_MESSAGE)
    _XLAC._xla_set_mat_mul_precision(precision)


def get_mat_mul_precision() -> str:
    """See `set_mat_mul_precision`."""
    return _XLAC._xla_get_mat_mul_precision()
