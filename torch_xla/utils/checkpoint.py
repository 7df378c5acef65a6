"""Activation checkpoints: what a function has computed is computed again in backward, instead of being kept."""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.utils._pytree as pytree
from torch.utils.checkpoint import check_backward_validity, detach_variable

from torch_xla.core import xla_model as xm


def _autocast_states() -> list[dict[str, Any]]:
    return [
        {
            "device_type": kind,
            "enabled": torch.is_autocast_enabled(kind),
            "dtype": torch.get_autocast_dtype(kind),
            "cache_enabled": torch.is_autocast_cache_enabled(),
        }
        for kind in ("xla", "cpu")
    ]


@contextlib.contextmanager
def _as_in_forward(
    autocast: list[dict[str, Any]], random: tuple[int, torch.Tensor] | None
) -> Iterator[None]:
    """The autocast modes and random numbers of then; the random numbers go on afterwards from where they are now."""
    with contextlib.ExitStack() as stack:
        for state in autocast:
            stack.enter_context(torch.autocast(**state))
        if random is not None:
            stack.enter_context(torch.random.fork_rng(devices=[]))
            stack.callback(xm.set_rng_state, xm.get_rng_state())
            xm.set_rng_state(random[0])
            torch.set_rng_state(random[1])
        yield


class CheckpointFunction(torch.autograd.Function):
    """A call whose backward computes its forward again."""

    @staticmethod
    def forward(
        ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any
    ) -> Any:
        """The function's results; only tensors among the arguments, and the state of random numbers, are kept."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.autocast = _autocast_states()
        ctx.random = (xm.get_rng_state(), torch.get_rng_state()) if preserve_rng_state else None
        ctx.others = [None if isinstance(arg, torch.Tensor) else arg for arg in args]
        ctx.places = [i for i, arg in enumerate(args) if isinstance(arg, torch.Tensor)]
        ctx.save_for_backward(*(args[i] for i in ctx.places))
        with torch.no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The gradients of the tensors among the arguments."""
        if not torch.autograd._is_checkpoint_valid():
            raise RuntimeError(
                "checkpoint: a reentrant checkpoint works with loss.backward() without `inputs`, and not with autograd.grad()."
            )
        args = list(ctx.others)
        for place, tensor in zip(ctx.places, ctx.saved_tensors, strict=True):
            args[place] = tensor
        detached = detach_variable(tuple(args))
        # Else the compiler would see that it has computed this before, and keep it after all.
        _keep_apart([*detached, *gradients, *_state_of(ctx.run_function)])
        with torch.enable_grad(), _as_in_forward(ctx.autocast, ctx.random):
            outputs = ctx.run_function(*detached)
        pairs = [
            (output, gradient)
            for output, gradient in zip(_as_tuple(outputs), gradients, strict=True)
            if isinstance(output, torch.Tensor) and output.requires_grad
        ]
        if not pairs:
            raise RuntimeError(
                "checkpoint: no result has requires_grad=True, so there is nothing to compute again for."
            )
        torch.autograd.backward(
            [output for output, _ in pairs], [gradient for _, gradient in pairs]
        )
        return (
            None,
            None,
            *(arg.grad if isinstance(arg, torch.Tensor) else None for arg in detached),
        )


def _as_tuple(outputs: Any) -> tuple[Any, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


def _state_of(function: Callable[..., Any]) -> list[torch.Tensor]:
    """Parameters and buffers of the module whose function this is."""
    owner = function if isinstance(function, torch.nn.Module) else None
    if (
        owner is None
        and inspect.ismethod(function)
        and isinstance(function.__self__, torch.nn.Module)
    ):
        owner = function.__self__
    return [] if owner is None else [*owner.parameters(), *owner.buffers()]


def _keep_apart(values: list[Any]) -> None:
    tensors = [leaf for leaf in pytree.tree_leaves(values) if isinstance(leaf, torch.Tensor)]
    with torch.no_grad():
        xm.optimization_barrier_([tensor for tensor in tensors if xm.is_xla_tensor(tensor)])


def checkpoint(
    function: Callable[..., Any], *args: Any, use_reentrant: bool = True, **kwargs: Any
) -> Any:
    """`function(*args)`, whose intermediate values are computed again in backward.

    Args:
      function: what to call; a module is one.
      args: its arguments; gradients go to the tensors among them.
      use_reentrant: True. `torch.utils.checkpoint.checkpoint` has the other way, which works on xla devices too.
      kwargs: `preserve_rng_state` (True): random numbers, of dropout for example, are the same both times.

    Raises:
      ValueError: for `use_reentrant=False`, and for other keywords.
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError(f"Unexpected keyword arguments: {','.join(kwargs)}")
    if not use_reentrant:
        raise ValueError(
            "XLA currently does not support use_reentrant==False: call torch.utils.checkpoint.checkpoint for it"
        )
    return CheckpointFunction.apply(function, preserve, *args)
