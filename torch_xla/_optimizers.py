"""What torch's optimizers do by default on xla devices: as little Python for each parameter as they can.

As on GPUs, an optimizer that was told neither `foreach` nor `fused` works on lists of tensors. Those of
Adam, AdamW, Adagrad and of SGD with momentum or decay are one recorded operation for each parameter; SGD
alone has no more than that anyhow.
"""

import sys
from operator import attrgetter
from typing import Any

import torch
from torch.optim import adagrad, adam, optimizer, sgd

# Narrower ones are rounded once by the operation, and at each of its parts by torch's lists.
_TYPES = {torch.float32, torch.float64}
_PLAIN = {torch.Tensor, torch.nn.Parameter}
_NUMBERS = ("weight_decay", "beta1", "beta2")  # that may be tensors
_dtype, _is_xla = attrgetter("dtype"), attrgetter("is_xla")

# Each has its own name for what it imports of `torch.optim.optimizer`.
_MODULES = [name for name in sys.modules if name.startswith("torch.optim.")]

_foreach_devices = optimizer._get_foreach_kernels_supported_devices
_capturable_devices = optimizer._get_capturable_supported_devices
_multi_tensor_adagrad = adagrad._multi_tensor_adagrad
_multi_tensor_adam = adam._multi_tensor_adam
_multi_tensor_sgd = sgd._multi_tensor_sgd
_sgd_default = sgd._default_to_fused_or_foreach


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
        bool(params)
        and not (torch.compiler.is_compiling() or options.get("has_sparse_grad"))
        and not (options.get("capturable") or options.get("differentiable"))
        and isinstance(options["lr"], float)
        and not any(isinstance(options.get(name), torch.Tensor) for name in _NUMBERS)
        and all(map(_is_xla, params))
        and _PLAIN.issuperset(map(type, params))
        and _PLAIN.issuperset(map(type, grads))
        and _TYPES.issuperset(map(_dtype, params))
        and _TYPES.issuperset(map(_dtype, grads))
    )


def _adam(
    params: list[torch.Tensor],
    grads: list[torch.Tensor],
    averages: list[torch.Tensor],
    square_averages: list[torch.Tensor],
    largest: list[torch.Tensor],
    steps: list[torch.Tensor],
    **options: Any,
) -> None:
    state = (averages, square_averages, largest, steps)
    if not _is_one_operation(params, grads, options):
        _multi_tensor_adam(params, grads, *state, **options)
        return
    torch._foreach_add_(steps, 1)
    run = torch._fused_adamw_ if options["decoupled_weight_decay"] else torch._fused_adam_
    names = ("lr", "beta1", "beta2", "weight_decay", "eps", "amsgrad", "maximize")
    run(params, grads, *state, **{name: options[name] for name in names})


def _adagrad(
    params: list[torch.Tensor],
    grads: list[torch.Tensor],
    sums: list[torch.Tensor],
    steps: list[torch.Tensor],
    **options: Any,
) -> None:
    if not _is_one_operation(params, grads, options):
        _multi_tensor_adagrad(params, grads, sums, steps, **options)
        return
    torch._foreach_add_(steps, 1)
    names = ("lr", "lr_decay", "weight_decay", "eps", "maximize")
    torch._fused_adagrad_(params, grads, sums, steps, **{name: options[name] for name in names})


# The function that `_sgd` replaces finds out itself what it does for parameters on xla.
def _default_of_sgd(params: list[torch.Tensor], *args: Any, **kwargs: Any) -> tuple[bool, bool]:
    if params and params[0].is_xla:
        return False, True
    return _sgd_default(params, *args, **kwargs)


def _sgd(
    params: list[torch.Tensor],
    grads: list[torch.Tensor],
    momenta: list[torch.Tensor | None],
    **options: Any,
) -> None:
    if not (params and params[0].is_xla):
        _multi_tensor_sgd(params, grads, momenta, **options)
        return
    has_momenta = options["momentum"] != 0
    begun = sum(1 for momentum in momenta if momentum is not None)
    is_one = (
        # An addition is one operation anyhow.
        (
            has_momenta
            or isinstance(options["weight_decay"], torch.Tensor)
            or options["weight_decay"]
        )
        # Parameters that get their first gradient later than others begin by themselves.
        and begun in (0, len(momenta))
        and not torch.is_grad_enabled()  # as where a step is differentiable, which no option says
        and _is_one_operation(params, grads, options)
    )
    if not is_one:
        sgd._single_tensor_sgd(params, grads, momenta, **options)
        return
    if has_momenta and begun == 0:
        momenta[:] = [torch.empty_like(gradient) for gradient in grads]
    names = ("weight_decay", "momentum", "lr", "dampening", "nesterov", "maximize")
    torch._fused_sgd_(
        params,
        grads,
        momenta if has_momenta else [],
        is_first_step=begun == 0,
        **{name: options[name] for name in names},
    )


def register() -> None:
    """Puts them where torch's own were."""
    optimizer._get_foreach_kernels_supported_devices = _foreach_and_xla_devices
    for module in [optimizer, *map(sys.modules.get, _MODULES)]:
        if hasattr(module, "_get_capturable_supported_devices"):
            module._get_capturable_supported_devices = _capturable_and_xla_devices
    adagrad._multi_tensor_adagrad = _adagrad
    adam._multi_tensor_adam = _adam
    sgd._default_to_fused_or_foreach = _default_of_sgd
    sgd._multi_tensor_sgd = _sgd
