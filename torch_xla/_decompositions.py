"""Our compositions and PyTorch's own decompositions, for operators without a lowering: their parts stay on the device.

The core asks here before it lets an operator run on the CPU. torch's table is imported at the first such operator.
"""

import functools
import threading
from typing import Any, NamedTuple

import torch

from torch_xla import _XLAC, _sparse
from torch_xla._compositions import COMPOSITIONS

_active = threading.local()

# The core hands types, layouts and memory formats over as c10 numbers them.
_DTYPES = {
    0: torch.uint8,
    1: torch.int8,
    2: torch.int16,
    3: torch.int32,
    4: torch.int64,
    5: torch.float16,
    6: torch.float32,
    7: torch.float64,
    8: torch.complex32,
    9: torch.complex64,
    10: torch.complex128,
    11: torch.bool,
    15: torch.bfloat16,
    23: torch.float8_e5m2,
    24: torch.float8_e4m3fn,
    27: torch.uint16,
    28: torch.uint32,
    29: torch.uint64,
}
_MEMORY_FORMATS = {
    0: torch.contiguous_format,
    1: torch.preserve_format,
    2: torch.channels_last,
    3: torch.channels_last_3d,
}
_NUMBERED: dict[str, dict[int, Any]] = {
    "ScalarType": _DTYPES,
    "MemoryFormat": _MEMORY_FORMATS,
    "Layout": {
        0: torch.strided,
        1: torch.sparse_coo,
        2: torch.sparse_csr,
        4: torch.sparse_csc,
        5: torch.sparse_bsr,
        6: torch.sparse_bsc,
    },
}


_OF_DENSE = COMPOSITIONS | _sparse.CONVERSIONS


class _Argument(NamedTuple):
    by_keyword: bool
    numbers: dict[int, Any] | None  # what the core's numbers stand for


def _argument(argument: Any) -> _Argument:
    kind = str(argument.real_type).removeprefix("Optional[").rstrip("]?")
    return _Argument(argument.kwarg_only, _NUMBERED.get(kind))


@functools.cache
def _find(name: str, overload: str, of_sparse: bool) -> tuple[Any, tuple[_Argument, ...]] | None:
    """An operator's decomposition, and how it takes its arguments; None if there is none. torch's own are for dense tensors."""
    from torch._decomp import decomposition_table

    namespace, _, base = name.partition("::")
    operator = getattr(getattr(getattr(torch.ops, namespace), base), overload or "default")
    ours = _sparse.KERNELS if of_sparse else _OF_DENSE
    function = ours.get(f"{name}.{overload}" if overload else name)
    if function is None and not of_sparse:
        function = decomposition_table.get(operator)
    if function is None:
        return None
    return function, tuple(_argument(argument) for argument in operator._schema.arguments)


def decompose(name: str, overload: str, arguments: dict[str, Any]) -> Any:
    """Computes an operator by others; NotImplemented if it cannot.

    Args:
      name: the operator, as "aten::foo".
      overload: of it; an empty string is the default.
      arguments: by name, in the schema's order.
    """
    of_sparse = any(map(_sparse.is_sparse, arguments.values()))
    found = _find(name, overload, of_sparse)
    if found is None:
        return NotImplemented
    # A decomposition may come back to its own operator, for want of a better case.
    running: set[tuple[str, str]] = _active.__dict__.setdefault("operators", set())
    if (name, overload) in running:
        return NotImplemented
    if of_sparse:
        _sparse.check_devices(arguments.values())
    function, schema = found
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for (key, value), argument in zip(arguments.items(), schema, strict=True):
        if argument.numbers is not None and isinstance(value, int):
            value = argument.numbers[value]
        if not argument.by_keyword:
            positional.append(value)
        elif value is not None:
            keywords[key] = value
    running.add((name, overload))
    try:
        return function(*positional, **keywords)
    finally:
        running.discard((name, overload))


def register() -> None:
    """Makes the core ask `decompose`."""
    # The core calls it in the midst of compiled functions: Dynamo is to trace neither this nor what it calls.
    frames = torch._C._dynamo.eval_frame
    skip = frames._FrameAction.SKIP
    frames.set_code_exec_strategy(decompose.__code__, frames._FrameExecStrategy(skip, skip))
    _XLAC._set_decomposition(decompose)
