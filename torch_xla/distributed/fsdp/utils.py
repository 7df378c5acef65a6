"""What models are prepared with before they are sharded."""

import contextlib
import types
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn as nn
import torch.utils._pytree as pytree
from torch.utils.checkpoint import checkpoint

from torch_xla.core import xla_model as xm


def checkpoint_module(module: nn.Module) -> nn.Module:
    """Lets the module compute its forward again in backward, instead of keeping what lies between."""
    forward = module.forward
    recomputing = False

    @contextlib.contextmanager
    def again() -> Iterator[None]:
        nonlocal recomputing
        before, recomputing = recomputing, True
        try:
            yield
        finally:
            recomputing = before

    def run(*args: Any, **kwargs: Any) -> Any:
        if recomputing:
            # Else the compiler would see that it knows the results.
            args, kwargs = pytree.tree_map_only(torch.Tensor, _apart, (args, kwargs))
            with module.__dict__.get("_fsdp_recomputation", contextlib.nullcontext)():
                return forward(*args, **kwargs)
        return forward(*args, **kwargs)

    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return checkpoint(
            run,
            *args,
            use_reentrant=False,
            context_fn=lambda: (contextlib.nullcontext(), again()),
            # All of forward runs again, its step closures too; the compiler drops what nobody needs.
            early_stop=False,
            **kwargs,
        )

    module.forward = checkpointed
    return module


def _apart(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.device.type != "xla":
        return tensor
    copy = tensor.clone()
    xm.optimization_barrier_([copy])
    return copy


def apply_xla_patch_to_nn_linear(module: nn.Module, patched_function: Any = None) -> nn.Module:
    """Gives linear layers `patched_function(layer, input)` as their forward; without one they keep theirs, which serves here."""
    if patched_function is not None:
        for layer in module.modules():
            if getattr(layer.forward, "__func__", None) is nn.Linear.forward:
                layer.forward = types.MethodType(patched_function, layer)
    return module
