"""The sizes that an exported program with symbolic ones is recorded with, to become a program for any."""

from collections.abc import Collection, Iterator, Sequence
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
      NotImplementedError: for a symbol that has fewer sizes than that left.
    """

    def __init__(self, exported: Any) -> None:
        tensors = list(_placeholder_tensors(exported))
        symbols = set().union(*map(_symbols_of, tensors))
        # A size that another dimension happens to have could be recorded as another program.
        self._taken = {size for tensor in tensors for size in tensor.shape if isinstance(size, int)}
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

    @staticmethod
    def lacking(values: Sequence[torch.Tensor], used: Collection[int]) -> list[int]:
        """Of those that are not used, the ones that a program needs so that each symbol is a size of an argument."""
        known = set().union(*(_symbols_of(values[i]) for i in used))
        kept = []
        for i, value in enumerate(values):
            if not _symbols_of(value) <= known:
                known |= _symbols_of(value)
                kept.append(i)
        return kept

    def _choose(self, symbol: Any, limits: Any) -> list[int]:
        lowest, highest = 2, 2 + _MOST_TRIED
        if limits is not None:
            lowest = max(lowest, int(limits.lower))
            highest = lowest + _MOST_TRIED
            if limits.upper < highest:
                highest = int(limits.upper)
        preferred = sorted(
            range(lowest, highest + 1),
            key=lambda n: (n in self._taken, n < _SMALLEST, not _is_prime(n), n),
        )
        chosen = preferred[:_COUNT]
        if len(chosen) < _COUNT:
            raise NotImplementedError(
                f"the size {symbol} has only the values {sorted(chosen)}: export the model once for each"
            )
        self._taken.update(chosen)
        return chosen


def _symbols_of(tensor: torch.Tensor) -> set[Any]:
    sizes = [size for size in tensor.shape if isinstance(size, torch.SymInt)]
    return {symbol for size in sizes for symbol in size.node.expr.free_symbols}


def _is_prime(number: int) -> bool:
    return all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _placeholder_tensors(exported: Any) -> Iterator[torch.Tensor]:
    for node in exported.graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor):
            yield value
