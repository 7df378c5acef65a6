"""What torch's optimizers do by default on xla devices: as little Python for each parameter as they can.

As on GPUs, an optimizer that was told neither `foreach` nor `fused` works on lists of tensors. Adam's
and AdamW's lists are one recorded operation for each parameter. SGD has no more than that anyhow.
"""

import sys
from typing import Any

import torch
from torch.optim import adam, optimizer, sgd

# Narrower ones are rounded once by the operation, and at each of its parts by torch's lists.
_TYPES = (torch.float32, torch.float64)

# Each has its own name for what it imports of `torch.optim.optimizer`.
_MODULES = [name for name in sys.modules if name.startswith("torch.optim.")]

_foreach_devices = optimizer._get_foreach_kernels_supported_devices
_capturable_devices = optimizer._get_capturable_supported_devices
_sgd_default = sgd._default_to_fused_or_foreach
_multi_tensor_adam = adam._multi_tensor_adam


def _foreach_and_xla_devices() -> list[str]:
    return [*_foreach_devices(), "xla"]


def _capturable_and_xla_devices(supports_xla: bool = True) -> list[str]:
    # What a step reads of a tensor is recorded with it, in lists of tensors as one by one. In words
    # that TorchScript knows: `torch.distributed.optim` compiles the optimizers.
    devices = _capturable_devices(supports_xla=False)
    devices.append("xla")
    return devices


def _default_of_sgd(params: list[torch.Tensor], *args: Any, **kwargs: Any) -> tuple[bool, bool]:
    if params and params[0].is_xla:
        return False, False
    return _sgd_default(params, *args, **kwargs)


def _is_one_operation(
    params: list[torch.Tensor], grads: list[torch.Tensor], options: dict[str, Any]
) -> bool:
    return (
        not (torch.compiler.is_compiling() or options["capturable"] or options["differentiable"])
        and isinstance(options["lr"], float)
        and all(p.is_xla and p.dtype in _TYPES for p in params)
        and all(type(g) is torch.Tensor and g.dtype in _TYPES for g in grads)
    )


def _adam(
    params: list[torch.Tensor], grads: list[torch.Tensor], *state: Any, **options: Any
) -> None:
    run = adam._fused_adam if _is_one_operation(params, grads, options) else _multi_tensor_adam
    run(params, grads, *state, **options)


def register() -> None:
    """Puts them where torch's own were."""
    optimizer._get_foreach_kernels_supported_devices = _foreach_and_xla_devices
    for module in [optimizer, *map(sys.modules.get, _MODULES)]:
        if hasattr(module, "_get_capturable_supported_devices"):
            module._get_capturable_supported_devices = _capturable_and_xla_devices
    sgd._default_to_fused_or_foreach = _default_of_sgd
    adam._multi_tensor_adam = _adam
