"""PyTorch's own decompositions, for operators without a lowering: their parts stay on the device.

The core asks here before it lets an operator run on the CPU. torch's table is imported at the first such operator.
"""

import functools
import threading
from typing import Any

import torch

from torch_xla import _XLAC

_active = threading.local()


@functools.cache
def _find(name: str, overload: str) -> tuple[Any, tuple[bool, ...]] | None:
    """An operator's decomposition, and which of its arguments go by keyword; None if torch has none."""
    from torch._decomp import decomposition_table

    namespace, _, base = name.partition("::")
    operator = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    function = decomposition_table.get(operator)
    if function is None:
        return None
    return function, tuple(argument.kwarg_only for argument in operator._schema.arguments)


def decompose(name: str, overload: str, arguments: dict[str, Any]) -> Any:
    """Computes an operator by others; NotImplemented if it cannot.

    Args:
      name: the operator, as "aten::foo".
      overload: of it; an empty string is the default.
      arguments: by name, in the schema's order.
    """
    found = _find(name, overload)
    if found is None:
        return NotImplemented
    # A decomposition may come back to its own operator, for want of a better case.
    running: set[tuple[str, str]] = _active.__dict__.setdefault("operators", set())
    if (name, overload) in running:
        return NotImplemented
    function, by_keyword = found
    pairs = list(zip(arguments.items(), by_keyword, strict=True))
    positional = [value for (_, value), keyword in pairs if not keyword]
    keywords = {key: value for (key, value), keyword in pairs if keyword and value is not None}
    running.add((name, overload))
    try:
        return function(*positional, **keywords)
    finally:
        running.discard((name, overload))


def register() -> None:
    """Makes the core ask `decompose`."""
    _XLAC._set_decomposition(decompose)
