"""torch's functions that give something else for xla tensors than programs written for PyTorch/XLA count on."""

import functools
from collections.abc import Iterable
from typing import Any

import torch

_clip_grad_norm_ = torch.nn.utils.clip_grad_norm_


@functools.wraps(_clip_grad_norm_)
def clip_grad_norm_(parameters: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """`torch.nn.utils.clip_grad_norm_`, whose 0 of parameters without gradients is on their device."""
    parameters = (
        list(parameters)
        if isinstance(parameters, Iterable) and not isinstance(parameters, torch.Tensor)
        else parameters
    )
    norm = _clip_grad_norm_(parameters, *args, **kwargs)
    first = parameters if isinstance(parameters, torch.Tensor) else next(iter(parameters), None)
    return norm.to(first.device) if first is not None and first.device.type == "xla" else norm


def register() -> None:
    """Puts them where torch's own were."""
    torch.nn.utils.clip_grad_norm_ = clip_grad_norm_
