"""`gradient_accumulation`: the gradients of several small batches as one loop of the program."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn.utils.stateless import _reparametrize_module

from torch_xla import _control_flow


def gradient_accumulation(
    train_step: Callable[..., Any],
    iterable_tensors: Sequence[torch.Tensor],
    model: nn.Module,
    *carried_tensors: torch.Tensor,
) -> Any:
    """Runs forward and backward for each element of `iterable_tensors` along their first dimension.

    It means the same as

        for slices in zip(*iterable_tensors):
            loss, *carried_tensors = train_step(*slices, *carried_tensors)
            (loss / steps).backward()

    but the program has one forward and one backward, and memory for the activations of one. Buffers into which the model
    writes, as of batch normalization, are carried from step to step.

    Args:
      train_step: takes one element of each of `iterable_tensors` and then the carried tensors; gives the loss, a scalar, and
        the next carried tensors, of the same shapes and dtypes. It may not write into what it takes.
      iterable_tensors: tensors on xla of one first dimension, the number of steps.
      model: the module whose parameters' gradients are added to their `grad`.
      *carried_tensors: what the first step takes.

    Returns:
      The mean of the losses, without gradient; with carried tensors, a tuple of it and what the last step gave.

    Raises:
      ValueError: for no tensor in `iterable_tensors`, an element that is no tensor or is empty, or different first
        dimensions.
      AssertionError: for a step that writes into what it takes.
    """
    steps = _count_steps(iterable_tensors)
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    frozen = {name: p for name, p in model.named_parameters() if not p.requires_grad}
    buffers = dict(model.named_buffers())
    gradients = [
        torch.zeros_like(p) if p.grad is None else p.grad.detach() for p in parameters.values()
    ]
    carries = [*gradients, *buffers.values(), *carried_tensors]
    invariants = [*parameters.values(), *frozen.values()]
    used: list[bool] = []  # of each parameter

    def run(*tensors: torch.Tensor) -> list[torch.Tensor]:
        # Copies, which checkpoints may hold apart from what is computed again, by writing into them.
        rest = iter([tensor.clone() for tensor in tensors])
        sums, own, carried, slices, weights, constants = (
            [next(rest) for _ in group]
            for group in (gradients, buffers, carried_tensors, iterable_tensors, parameters, frozen)
        )
        weights = [w.requires_grad_() for w in weights]
        state = dict(
            zip([*parameters, *frozen, *buffers], [*weights, *constants, *own], strict=True)
        )
        with (
            torch.enable_grad(),
            _reparametrize_module(model, state, tie_weights=True),
            torch.autograd.set_multithreading_enabled(False),
        ):
            with _unchanged([*slices, *carried]):
                result = train_step(*slices, *carried)
            loss, *carried = result if isinstance(result, tuple | list) else (result,)
            loss = loss / steps
            with _control_flow.RefusingDraws():
                loss.backward()
        grads = [weight.grad for weight in weights]
        used[:] = [grad is not None for grad in grads]
        sums = [s if g is None else s + g for s, g in zip(sums, grads, strict=True)]
        return [x.detach() for x in (*sums, *own, *carried, loss)]

    like = [*carries, *_control_flow.slices_like(iterable_tensors), *invariants]
    device = iterable_tensors[0].device
    with torch.no_grad():
        body = _control_flow.capture(device, like, run)
        results = iter(_control_flow.scan(body, carries, iterable_tensors, invariants, steps))
        for parameter, is_used in zip(parameters.values(), used, strict=True):
            _set_gradient(parameter, next(results), is_used)
        for buffer in buffers.values():
            buffer.copy_(next(results))
        *last, losses = results
        loss = losses.sum()
    return (loss, *last) if carried_tensors else loss


def _count_steps(iterable_tensors: Sequence[Any]) -> int:
    if len(iterable_tensors) == 0:
        raise ValueError("iterable_tensors cannot be empty")
    for i, tensor in enumerate(iterable_tensors):
        if not isinstance(tensor, torch.Tensor):
            raise ValueError(f"Element {i} of iterable_tensors is not a tensor")
        if tensor.dim() == 0 or tensor.shape[0] == 0:
            raise ValueError(f"Element {i} of iterable_tensors is empty")
        if tensor.shape[0] != iterable_tensors[0].shape[0]:
            raise ValueError(f"Element {i} of iterable_tensors has inconsistent first dimension")
    return iterable_tensors[0].shape[0]


@contextmanager
def _unchanged(tensors: Sequence[torch.Tensor]) -> Iterator[None]:
    """Sees to it that nobody writes into the tensors."""
    versions = [tensor._version for tensor in tensors]
    yield
    changed = [i for i, tensor in enumerate(tensors) if tensor._version != versions[i]]
    assert not changed, (
        f"gradient_accumulation: train_step writes into its arguments {changed}; it is to give new tensors instead"
    )


def _set_gradient(parameter: torch.Tensor, gradient: torch.Tensor, is_used: bool) -> None:
    if not is_used:
        return
    if parameter.grad is None:
        parameter.grad = gradient
    else:
        parameter.grad.copy_(gradient)
