"""Whether graphs run operation by operation, without a program."""

import contextlib

import torch_xla
import torch_xla.debug.metrics as met
from torch_xla import _XLAC


@contextlib.contextmanager
def interpretation(when):
    before = _XLAC._xla_get_interpretation()
    _XLAC._xla_set_interpretation(when)
    try:
        yield
    finally:
        _XLAC._xla_set_interpretation(before)


def counts():
    names = ("InterpretedGraph", "ProgramCompile", "InterpretedGraphFailed")
    return [met.counter_value(name) or 0 for name in names]


def interpreted_compiled(function):
    """How many graphs the function's work was, by how they ran; none may have failed."""
    torch_xla.sync()
    before = counts()
    function()
    interpreted, compiled, failed = (y - x for x, y in zip(before, counts(), strict=True))
    assert failed == 0
    return interpreted, compiled
