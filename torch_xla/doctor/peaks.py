"""What the device can do at most, measured: the roofline that kernels are compared with."""

import time
from collections.abc import Callable
from typing import NamedTuple

import torch

import torch_xla

_LONG_ENOUGH = 2e-3
_REPEATS = 4
_FLOAT_BYTES = 4


class Peaks(NamedTuple):
    """Operations on float32 per second (a multiplication and an addition are two), and bytes of memory per second."""

    flops: float
    bytes: float

    def seconds(self, flops: float, moved: float) -> float:
        """How long work takes at least that needs so many operations and moves so many bytes."""
        return max(flops / self.flops, moved / self.bytes)


def measure() -> Peaks:
    """Takes about half a second. Nothing else should run on the device."""
    with torch.no_grad():
        return Peaks(_flops(), _bytes())


def _flops() -> float:
    """Of a product of square matrices, as large as it takes to be busy."""
    size, best = 512, 0.0
    while size <= 8192:
        x = torch.rand(size, size, device="xla")
        seconds = _fastest(lambda x=x: x @ x)
        best = max(best, 2 * size**3 / seconds)
        if seconds > _LONG_ENOUGH * 2:
            break
        size *= 2
    return best


def _bytes() -> float:
    """Of reading and writing tensors that no cache holds."""
    size, best = 1 << 24, 0.0
    while size <= 1 << 28:
        x = torch.rand(size, device="xla")
        seconds = _fastest(lambda x=x: x + 1)
        best = max(best, 2 * _FLOAT_BYTES * size / seconds)
        if seconds > _LONG_ENOUGH:
            break
        size *= 4
    return best


def _fastest(work: Callable[[], torch.Tensor]) -> float:
    best = float("inf")
    for _ in range(_REPEATS):
        torch_xla.sync(wait=True)
        start = time.perf_counter()
        result = work()
        torch_xla.sync(wait=True)
        best = min(best, time.perf_counter() - start)
        del result
    return best
