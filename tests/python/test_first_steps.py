"""What programs take to begin: operators whose programs were long in compiling, and loops that were long in recording."""

import time
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import torch_xla


def _classes(n: int, count: int) -> torch.Tensor:
    return torch.arange(n) % count


def _linear_cross_entropy(x: torch.Tensor) -> torch.Tensor:
    weight = torch.linspace(-1, 1, 32 * 40, device=x.device).reshape(40, 32)
    return F.cross_entropy(x @ weight.T, _classes(64, 40).to(x.device), label_smoothing=0.1)


# Of 64 rows of 32 numbers. Each took from 20 to over 30 s with those that torch tests it with.
OPERATORS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "linear layer and cross entropy": _linear_cross_entropy,
    "negative log-likelihood": lambda x: F.nll_loss(
        x.log_softmax(1), _classes(64, 32).to(x.device), ignore_index=3
    ),
    "of images": lambda x: F.nll_loss(
        x.reshape(4, 8, 8, 8).log_softmax(1), _classes(256, 8).reshape(4, 8, 8).to(x.device)
    ),
    "einsum": lambda x: torch.einsum(
        "abc,cd,dbe->aeb", x.reshape(8, 8, 32), x.T, x.reshape(64, 8, 4)
    ),
    "sort": lambda x: x.sort(dim=0, stable=True).values.sort(dim=1, descending=True).values,
    "added at indices": lambda x: torch.zeros_like(x).index_put(
        (_classes(64, 5).to(x.device), _classes(64, 7).to(x.device)), x[:, 0], accumulate=True
    ),
    "distances": lambda x: torch.cdist(x, x.flip(0), p=1.5) + torch.cdist(x, x.flip(1)),
}


@pytest.mark.slow
@pytest.mark.usefixtures("programs_only")
@pytest.mark.parametrize("name", OPERATORS)
def test_compiles_within_seconds(name: str) -> None:
    """Forward and backward, of the processor: other work does not count."""
    function = OPERATORS[name]
    x = torch.linspace(-3, 3, 64 * 32).sin().reshape(64, 32)

    def outcome(device: str) -> tuple[torch.Tensor, torch.Tensor]:
        there = x.to(device).requires_grad_()
        result = function(there)
        (gradient,) = torch.autograd.grad(result.square().sum(), there)
        return result.detach().cpu(), gradient.cpu()

    expected = outcome("cpu")
    began = time.process_time()
    found = outcome("xla")
    assert time.process_time() - began < 5
    for ours, eagers in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, eagers, rtol=1e-3, atol=1e-4)


def test_a_write_by_a_tensors_number_is_quickly_recorded() -> None:
    """`a[i] += row` with an index from a tensor took 1.9 ms, of which nothing was computed yet."""
    turns = 200
    index, source = torch.arange(turns) % 7, torch.linspace(0, 1, turns)
    expected = torch.zeros(7).index_add(0, index, source)
    a, index, source = torch.zeros(7, device="xla"), index.to("xla"), source.to("xla")
    torch_xla.sync(wait=True)

    def loop() -> float:
        began = time.process_time()
        for i in range(turns):
            a[index[i]] += source[i]
        return time.process_time() - began

    first = loop()
    torch.testing.assert_close(a.cpu(), expected)
    # About 5 us each in eager; a cut of the graph on the way is in it.
    assert min(first, loop()) < turns * 0.5e-3
