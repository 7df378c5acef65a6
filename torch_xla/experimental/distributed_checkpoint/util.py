"""What a checkpoint needs of an optimizer."""

import torch

import torch_xla


def prime_optimizer(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Lets an optimizer that has made no step have its state, so that a checkpoint can be read into it; returns it.

    It makes a step with gradients of zero at a learning rate of zero, which leaves the parameters as they are. One that has
    state already stays as it is.
    """
    if optimizer.state:
        return optimizer
    rates = [group.get("lr") for group in optimizer.param_groups]
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        if rate is not None:
            group["lr"] = torch.zeros_like(rate) if isinstance(rate, torch.Tensor) else 0.0
        for parameter in group["params"]:
            if parameter.requires_grad:
                parameter.grad = torch.zeros_like(parameter)
    try:
        optimizer.step()
    finally:
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            if rate is not None:
                group["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
    torch_xla.sync(wait=True, reset_scope=False)
    return optimizer
