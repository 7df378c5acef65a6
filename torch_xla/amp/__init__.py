"""Automatic mixed precision on xla devices."""

from typing import Any

import torch


class autocast(torch.amp.autocast):  # noqa: N801, the name of upstream
    """`torch.autocast` for the type of a device, with bfloat16 by default."""

    def __init__(
        self,
        device: torch.device | str = "xla",
        enabled: bool = True,
        dtype: torch.dtype | None = None,
        cache_enabled: bool | None = None,
    ) -> None:
        arguments: dict[str, Any] = {"enabled": enabled, "cache_enabled": cache_enabled}
        super().__init__(torch.device(device).type, dtype=dtype, **arguments)


class GradScaler(torch.amp.GradScaler):
    """`torch.amp.GradScaler` for xla devices; float16 needs it, bfloat16 does not.

    Args:
      init_scale, growth_factor, backoff_factor, growth_interval, enabled: as torch's.
      use_zero_grad: where gradients overflowed, take a step with gradients of zero instead of none. The host then reads
        nothing, and momentum and weight decay act in such a step. `torch_xla.amp.syncfree` reads nothing either, and skips.
    """

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
        use_zero_grad: bool = False,
    ) -> None:
        super().__init__("xla", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
        self._use_zero_grad = use_zero_grad

    def _maybe_opt_step(
        self,
        optimizer: torch.optim.Optimizer,
        optimizer_state: dict[str, Any],
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        if not self._use_zero_grad:
            return super()._maybe_opt_step(optimizer, optimizer_state, *args, **kwargs)
        overflowed = torch.stack(list(optimizer_state["found_inf_per_device"].values())).sum() != 0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.masked_fill_(overflowed, 0)
        return optimizer.step(*args, **kwargs)
