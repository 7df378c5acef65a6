"""How many different graphs a function may be: `torch_xla.compile(f, max_different_graphs=...)`."""

import contextlib
import re
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torch_xla.debug import observers

_LEAVES = ("xla::device_data", "prim::Constant", "xla::index")


class GraphLimit:
    """The graphs that a function has been, each as its operations in the order of recording."""

    def __init__(self) -> None:
        self._met: dict[int, list[str]] = {}

    @contextlib.contextmanager
    def hold(self, allowed: int | None) -> Iterator[None]:
        """Raises RuntimeError after the block when it has cut a graph more than `allowed`; `None` is any number.

        Graphs that other threads cut meanwhile are not the block's. One that was refused is refused each time.
        """
        if allowed is None:
            yield
            return
        thread = threading.get_ident()
        new: dict[int, list[str]] = {}

        def remember(event: Any) -> None:
            of_block = event.stage == "cut" and threading.get_ident() == thread
            if of_block and event.hash not in self._met:
                new.setdefault(event.hash, _operations(event))

        observers.add(graph=remember)
        try:
            yield
        finally:
            observers.remove(remember)
        for identity, operations in new.items():
            if len(self._met) >= allowed:
                raise RuntimeError(_difference(operations, list(self._met.values()), allowed))
            self._met[identity] = operations


_of_function: "weakref.WeakKeyDictionary[Callable[..., Any], GraphLimit]" = (
    weakref.WeakKeyDictionary()
)


def graph_limit(function: Callable[..., Any] | None) -> GraphLimit:
    """The graphs of this function, however often it has been wrapped; without a function, those of a block."""
    try:
        return _of_function.setdefault(function, GraphLimit())  # type: ignore[arg-type]
    except TypeError:  # None, or what no weak reference is possible to
        return GraphLimit()


def _operations(event: Any) -> list[str]:
    return [
        _described(kind, attributes, shapes)
        for kind, attributes, shapes, *_ in event.nodes()
        if kind not in _LEAVES
    ]


def _described(kind: str, attributes: str, shapes: list[str]) -> str:
    """An operation as PyTorch/XLA prints one, whose messages these are; nothing is said of numbers that vary."""
    shape = ", ".join(map(_with_layout, shapes))
    shape = f"({shape})" if len(shapes) != 1 else shape
    known = f", attributes=({attributes})" if attributes not in ("", "…") else ""
    return f"[] {kind}, xla_shape={shape}, dynamic_dims: (){known}"


def _with_layout(shape: str) -> str:
    """`f32[2,3]{1,0}` for `f32[2,3]`."""
    dimensions = re.search(r"\[(.+)\]", shape)
    rank = dimensions.group(1).count(",") + 1 if dimensions else 0
    return shape + "{" + ",".join(map(str, reversed(range(rank)))) + "}"


def _difference(operations: list[str], met: list[list[str]], allowed: int) -> str:
    """Where a graph leaves all those that are known, and what comes there in them."""
    common = max((_common_prefix(operations, known) for known in met), default=0)
    next_ones = [
        known[common] if len(known) > common else "the end of the function"
        for known in met
        if known[:common] == operations[:common]
    ]
    expected = list(dict.fromkeys(next_ones))
    lines = [f"Maximum number of different graphs allowed per function exceeded: {allowed}"]
    if len(operations) > common:
        lines.append(f"Got: {operations[common]}")
    elif expected == ["the end of the function"]:
        return (
            lines[0]
            + "\nThe operations are those of a known graph, with other operands or results."
        )
    else:
        end = f"at: {operations[-1]}" if operations else "before its first operation"
        lines.append(f"Reached the end of the function {end}")
    if len(expected) == 1:
        lines.append(f"Expected: {expected[0]}")
    elif expected:
        lines += ["Expected either of:", *(f"  - {operation}" for operation in expected)]
    lines.append("PT_XLA_DEBUG_LEVEL=1 shows each compilation and the line that caused it.")
    return "\n".join(lines)


def _common_prefix(a: list[str], b: list[str]) -> int:
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
