"""What a checkpoint needs of an optimizer."""

import torch

import torch_xla


def prime_optimizer(optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
    """Lets an optimizer that has made no step make its state, so that one can be loaded into it.

    It makes a step with gradients and learning rates of zero. Parameters, gradients and rates are as before then, for the
    optimizers of torch.optim whose `step` needs no closure; but the state is as after a step, with its counters advanced. So
    load a state into it afterwards, and leave an optimizer that is to begin anew as it is.
    """
    if optimizer.state:
        return optimizer
    parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
    gradients = [parameter.grad for parameter in parameters]
    rates = [group["lr"] for group in optimizer.param_groups]
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    for group, rate in zip(optimizer.param_groups, rates, strict=True):
        group["lr"] = torch.zeros_like(rate) if isinstance(rate, torch.Tensor) else 0.0
    try:
        optimizer.step()
    finally:
        for parameter, gradient in zip(parameters, gradients, strict=True):
            parameter.grad = gradient
        for group, rate in zip(optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
    torch_xla.sync()
    return optimizer
