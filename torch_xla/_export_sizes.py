"""The sizes that an exported program with symbolic ones is recorded with, to become a program for any."""

import itertools
from collections.abc import Iterator
from typing import Any

import torch

# Three tell a sum of sizes from a product.
_COUNT = 3
_SMALLEST = 11
# Of a symbol: further sizes are not looked for.
_MOST_TRIED = 1000


class SampleSizes:
    """Numbers for the symbols of an exported program, a few for each, which have nothing in common.

    Args:
      exported: a program of `torch.export`.

    Raises:
      NotImplementedError: if a symbol has fewer than two sizes that torch has left possible.
    """

    def __init__(self, exported: Any) -> None:
        tensors = list(_placeholder_tensors(exported))
        symbols = {
            symbol
            for tensor in tensors
            for size in tensor.shape
            if isinstance(size, torch.SymInt)
            for symbol in size.node.expr.free_symbols
        }
        # A size that another dimension happens to have could be recorded as another program.
        self._taken = {
            size for tensor in tensors for size in tensor.shape if isinstance(size, int)
        }
        self._numbers = {
            symbol: self._choose(symbol, exported.range_constraints.get(symbol))
            for symbol in sorted(symbols, key=str)
        }

    def __bool__(self) -> bool:
        return bool(self._numbers)

    def shapes(self, tensor: torch.Tensor) -> Iterator[list[int]]:
        """The tensor's shape, for each of the samples."""
        for i in range(_COUNT):
            assignment = {symbol: numbers[i] for symbol, numbers in self._numbers.items()}
            yield [
                int(size.node.expr.subs(assignment)) if isinstance(size, torch.SymInt) else size
                for size in tensor.shape
            ]

    def _choose(self, symbol: Any, limits: Any) -> list[int]:
        lowest = _SMALLEST
        highest = lowest + _MOST_TRIED
        if limits is not None and limits.upper.is_finite is not False:
            highest = min(highest, int(limits.upper))
        if limits is not None:
            lowest = min(max(lowest, int(limits.lower)), highest)
            highest = max(highest, lowest)
        possible = range(lowest, highest + 1)
        free = [n for n in possible if n not in self._taken]
        primes = [n for n in free if all(n % d for d in range(2, int(n**0.5) + 1))]
        below = range(max(2, int(limits.lower) if limits is not None else 2), lowest)
        chosen = list(
            itertools.islice(dict.fromkeys([*primes, *free, *reversed(below), *possible]), _COUNT)
        )
        if len(chosen) < _COUNT:
            raise NotImplementedError(
                f"the size {symbol} has only the values {sorted(chosen)}: export the model once for each"
            )
        self._taken.update(chosen)
        return chosen


def _placeholder_tensors(exported: Any) -> Iterator[torch.Tensor]:
    for node in exported.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            yield value
