"""Exceptions that operators raise on the device."""

import builtins


class IndexError(builtins.IndexError, RuntimeError):
    """A dimension, position or size that a lowering, or a check of values, finds out of range.

    Eager raises `IndexError` there and PyTorch/XLA `RuntimeError`: programs written for either catch it.
    """
