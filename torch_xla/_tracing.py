"""What traces of functions by torch have in common, whoever asks for them."""

import threading
from typing import Any

import torch

# One thread traces at a time: torch.fx patches functions of torch for all threads while it does. The function that is traced
# may trace another.
LOCK = threading.RLock()


def is_traced(leaf: torch.Tensor) -> bool:
    """Whether the tensor stands for one in a trace that goes on."""
    from torch._subclasses.fake_tensor import FakeTensor
    from torch._subclasses.functional_tensor import FunctionalTensor

    return isinstance(leaf, FakeTensor | FunctionalTensor)


def autocast_state() -> tuple[Any, ...]:
    """What autocast makes of operators that are called here: equal where it makes the same."""
    return (
        torch.is_autocast_enabled("xla"),
        torch.get_autocast_dtype("xla"),
        torch.is_autocast_enabled("cpu"),
    )
