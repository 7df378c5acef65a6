"""Optimizers that skip a step whose gradients overflowed without asking the device whether they did.

`torch.amp.GradScaler` reads after each step whether a gradient was infinite, and calls `optimizer.step()` or not: the program waits
for the device. These compute both outcomes and choose on the device, so that a step stays one graph. Use them as torch's own.
"""

from collections.abc import Callable
from typing import Any

import torch


class _SyncFree(torch.optim.Optimizer):
    """Lets `step` choose on the device; mixed in before one of torch's optimizers."""

    # Asks GradScaler for `grad_scale` and `found_inf` instead of a decision.
    _step_supports_amp_scaling = True

    def step(
        self,
        closure: Callable[[], Any] | None = None,
        found_inf: torch.Tensor | None = None,
    ) -> Any:
        """One step of torch's optimizer; parameters and state stay as they are where `found_inf` is not zero.

        Args:
          closure: computes the loss anew.
          found_inf: one number on the device; GradScaler's by default, and none outside of it.
        """
        # GradScaler sets these and takes them away again; torch's own steps must not see them.
        from_scaler = {
            name: self.__dict__.pop(name)
            for name in ("found_inf", "grad_scale")
            if name in self.__dict__
        }
        try:
            self._unscale(from_scaler.get("grad_scale"))
            return self._step(
                closure, from_scaler.get("found_inf") if found_inf is None else found_inf
            )
        finally:
            self.__dict__.update(from_scaler)

    def _step(self, closure: Callable[[], Any] | None, found_inf: torch.Tensor | None) -> Any:
        if found_inf is None:
            return super().step(closure)
        # A closure may make gradients where there are none.
        before = {
            id(tensor): tensor.detach().clone() for tensor in self._tensors(closure is not None)
        }
        loss = super().step(closure)
        overflowed = found_inf.reshape(()) != 0
        with torch.no_grad():
            for tensor in self._tensors():
                # State that this very step created starts at zero.
                old = before.get(id(tensor))
                kept = torch.zeros_like(tensor) if old is None else old
                tensor.copy_(torch.where(overflowed, kept, tensor))
        return loss

    def _unscale(self, scale: torch.Tensor | None) -> None:
        if scale is None:
            return
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    parameter.grad.div_(scale)

    def _tensors(self, without_gradients: bool = False) -> list[torch.Tensor]:
        """What a step changes, or may change once all parameters have gradients."""
        changed = []
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is None and not without_gradients:
                    continue
                changed.append(parameter)
                state = self.state.get(parameter, {})
                changed += [value for value in state.values() if isinstance(value, torch.Tensor)]
        return changed


class SGD(_SyncFree, torch.optim.SGD):
    """`torch.optim.SGD`. With dampening the device is asked until a first step has been made, since that one is not dampened."""

    def _step(self, closure: Callable[[], Any] | None, found_inf: torch.Tensor | None) -> Any:
        is_first = self._has_first_step_ahead(closure is not None)
        if found_inf is None or not is_first or not found_inf.any():
            return super()._step(closure, found_inf)
        with torch.enable_grad():
            return None if closure is None else closure()

    def _has_first_step_ahead(self, without_gradients: bool) -> bool:
        """Whether the next step does for a parameter what no later one does."""
        return any(
            (without_gradients or parameter.grad is not None)
            and self.state.get(parameter, {}).get("momentum_buffer") is None
            for group in self.param_groups
            if group["momentum"] and group["dampening"]
            for parameter in group["params"]
        )


class Adam(_SyncFree, torch.optim.Adam):
    """`torch.optim.Adam`, with its count of steps on the device."""

    def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(params, *args, **{"capturable": True, **kwargs})


class AdamW(_SyncFree, torch.optim.AdamW):
    """`torch.optim.AdamW`, with its count of steps on the device."""

    def __init__(self, params: Any, *args: Any, **kwargs: Any) -> None:
        super().__init__(params, *args, **{"capturable": True, **kwargs})
