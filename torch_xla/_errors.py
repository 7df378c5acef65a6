"""Exceptions that operators raise on the device."""

import builtins


class IndexError(builtins.IndexError, RuntimeError):
    """A dimension, position or size that a lowering, or a check of values, finds out of range.

    Eager raises `IndexError` there and PyTorch/XLA `RuntimeError`: programs written for either catch it.
    """


class MissingValueError(RuntimeError):
    """Somebody reads a value that was never computed, nor will be.

    It belongs to a placeholder, as while a program is recorded from its arguments (in an export, or in the body of a loop),
    or to recorded work that was forgotten.
    """
