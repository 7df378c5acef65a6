"""PyTorch/XLA's second backend for `torch.compile`, by way of JAX. Here both are one."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import fx


def dynamo_backend(model: fx.GraphModule, sample_args: Sequence[Any]) -> Callable[..., Any]:
    """Compiles a graph of dynamo's as `backend="openxla"` does.

    Args:
      model: the graph.
      sample_args: tensors like those that it takes, and numbers.
    """
    from torch._dynamo.backends.torchxla import openxla

    return openxla(model, sample_args)
