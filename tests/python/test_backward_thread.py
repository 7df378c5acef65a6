"""Backward runs on the thread that asks for it."""

import threading

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import torch_xla


def threads_of(run, device):
    """The threads on which gradients come into being."""
    seen = []
    weight = torch.ones(3, device=device, requires_grad=True)
    weight.register_hook(lambda _: seen.append(threading.get_ident()))
    run(weight)
    return set(seen)


@pytest.mark.parametrize(
    "run",
    [
        lambda w: (w * w).sum().backward(),
        lambda w: torch.autograd.grad((w * w).sum(), w),
        lambda w: torch.autograd.backward([(w * w).sum(), w.sin().sum()]),
        lambda w: checkpoint(torch.sin, w, use_reentrant=True).sum().backward(),
        lambda w: (w.cpu() * 2).sum().to("xla").backward(),
    ],
)
def test_of_the_caller(run):
    assert threads_of(run, "xla") == {threading.get_ident()}
    assert torch._C._is_multithreading_enabled()


def test_of_each_of_several_callers():
    results = {}

    def work(number):
        weight = torch.full((3,), float(number), device="xla", requires_grad=True)
        for _ in range(20):
            (weight**2).sum().backward()
        torch_xla.sync()
        results[number] = weight.grad.cpu()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, gradient in results.items():
        torch.testing.assert_close(gradient, torch.full((3,), 40.0 * number))
    assert len(results) == 4


def test_what_is_asked_for_in_a_hook():
    """A hook may itself run a backward, and may fail."""
    inner = torch.ones(2, device="xla", requires_grad=True)
    weight = torch.ones(2, device="xla", requires_grad=True)

    def cube(gradient):
        with torch.enable_grad():
            return torch.autograd.grad((inner**3).sum(), inner)[0] * gradient

    weight.register_hook(cube)
    (weight * 2).sum().backward()
    torch.testing.assert_close(weight.grad.cpu(), torch.tensor([6.0, 6.0]))

    def fail(_):
        raise ValueError("asked for")

    weight.register_hook(fail)
    with pytest.raises(ValueError, match="asked for"):
        (weight * 2).sum().backward()
    assert torch._C._is_multithreading_enabled()
