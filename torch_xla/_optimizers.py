"""What torch's optimizers do by default on xla devices: as little Python for each parameter as they can.

As on GPUs, an optimizer that was told neither `foreach` nor `fused` works on lists of tensors. Those of
Adam, AdamW, Adagrad and of SGD with momentum or decay are one recorded operation for each parameter; SGD
alone has no more than that anyhow.
"""

import sys
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import torch
from torch.optim import adagrad, adam, optimizer, sgd

# Narrower ones are rounded once by the operation, and at each of its parts by torch's lists.
_TYPES = {torch.float32, torch.float64}
_dtype, _is_xla = attrgetter("dtype"), attrgetter("is_xla")

# Each has its own name for what it imports of `torch.optim.optimizer`.
_MODULES = [name for name in sys.modules if name.startswith("torch.optim.")]

_foreach_devices = optimizer._get_foreach_kernels_supported_devices
_capturable_devices = optimizer._get_capturable_supported_devices
_multi_tensor_adagrad = adagrad._multi_tensor_adagrad
_multi_tensor_adam = adam._multi_tensor_adam
_multi_tensor_sgd = sgd._multi_tensor_sgd


def _foreach_and_xla_devices() -> list[str]:
    return [*_foreach_devices(), "xla"]


def _capturable_and_xla_devices(supports_xla: bool = True) -> list[str]:
    # What a step reads of a tensor is recorded with it, in lists of tensors as one by one. In words
    # that TorchScript knows: `torch.distributed.optim` compiles the optimizers.
    devices = _capturable_devices(supports_xla=False)
    devices.append("xla")
    return devices


def _is_one_operation(
    params: list[torch.Tensor], grads: list[torch.Tensor], options: dict[str, Any]
) -> bool:
    return (
        not (torch.compiler.is_compiling() or options.get("has_sparse_grad"))
        and not (options.get("capturable") or options.get("differentiable"))
        and isinstance(options["lr"], float)
        and all(map(_is_xla, params))
        and set(map(type, grads)) <= {torch.Tensor}
        and _TYPES.issuperset(map(_dtype, params))
        and _TYPES.issuperset(map(_dtype, grads))
    )


def _adam(
    params: list[torch.Tensor], grads: list[torch.Tensor], *state: Any, **options: Any
) -> None:
    run = adam._fused_adam if _is_one_operation(params, grads, options) else _multi_tensor_adam
    run(params, grads, *state, **options)


def _adagrad(
    params: list[torch.Tensor], grads: list[torch.Tensor], *state: Any, **options: Any
) -> None:
    is_one = _is_one_operation(params, grads, options)
    run = adagrad._fused_adagrad if is_one else _multi_tensor_adagrad
    run(params, grads, *state, **options)


def _sgd(
    params: list[torch.Tensor],
    grads: list[torch.Tensor],
    momenta: list[torch.Tensor | None],
    *args: Any,
    **options: Any,
) -> None:
    run: Callable[..., None]
    if params and params[0].is_xla and options["momentum"] == 0 and options["weight_decay"] == 0:
        run = sgd._single_tensor_sgd
    else:
        # Parameters that get their first gradient later than others begin by themselves.
        begun = sum(1 for momentum in momenta if momentum is not None)
        is_one = (
            begun in (0, len(momenta))
            and not torch.is_grad_enabled()  # as where a step is differentiable, which no option says
            and not isinstance(options["weight_decay"], torch.Tensor)
            and _is_one_operation(params, grads, options)
        )
        run = sgd._fused_sgd if is_one else _multi_tensor_sgd
    run(params, grads, momenta, *args, **options)


def register() -> None:
    """Puts them where torch's own were."""
    optimizer._get_foreach_kernels_supported_devices = _foreach_and_xla_devices
    for module in [optimizer, *map(sys.modules.get, _MODULES)]:
        if hasattr(module, "_get_capturable_supported_devices"):
            module._get_capturable_supported_devices = _capturable_and_xla_devices
    adagrad._multi_tensor_adagrad = _adagrad
    adam._multi_tensor_adam = _adam
    sgd._multi_tensor_sgd = _sgd
