"""What the programs share: each takes a device and returns numbers, and gives on the device what it gives on the CPU.

What a program learns from is made on the CPU, so that both runs begin alike.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch


class Programs(list):
    """Those of a file, in their order; a decorator of each."""

    def __call__(self, run: Callable[[torch.device], Any]) -> Callable[[torch.device], Any]:
        self.append(pytest.param(run, id=run.__name__))
        return run


def learn(model, optimizer, loss, steps=3):
    """The losses of so many steps."""
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        value = loss(model)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    return losses


def numbers(result) -> torch.Tensor:
    """What a program returned, one number after the other."""
    if isinstance(result, torch.Tensor):
        return result.detach().cpu().double().flatten()
    if isinstance(result, (list, tuple)):
        return torch.cat([numbers(element) for element in result])
    return torch.tensor([float(result)], dtype=torch.float64)


def gives_what_eager_gives(run, rtol=1e-4, atol=1e-5):
    results = []
    for device in ("cpu", "xla"):
        torch.manual_seed(0)
        results.append(numbers(run(torch.device(device))))
    torch.testing.assert_close(results[1], results[0], rtol=rtol, atol=atol)
