"""The user guide's program for several devices, in a world of any size, against one process with the whole batch."""

import os
import pathlib
import sys

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook

import torch_xla
import torch_xla.utils.utils as xu
from torch_xla import _XLAC
from torch_xla.core import xla_model as xm

GUIDE = pathlib.Path(__file__).parents[1] / "guide"
STEPS = 4
BATCH = 8


def guide() -> dict:
    """The names of the guide's two programs: the model of the first, and what the second adds."""
    names = {"__name__": "guide"}
    # The first program up to where it takes the device.
    exec((GUIDE / "mnist_single.py").read_text().partition("\ndevice = ")[0], names)
    assert not _XLAC._xla_runtime_is_initialized()
    exec((GUIDE / "mnist_launch.py").read_text(), names)
    names["train_loader"] = xu.SampleGenerator(
        data=(torch.zeros(BATCH, 1, 28, 28), torch.zeros(BATCH, dtype=torch.int64)),
        sample_count=STEPS,
    )
    return names


def on_the_cpu(names: dict) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    torch.manual_seed(1)
    model, losses = names["MNIST"]().train(), []
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    for data, target in names["train_loader"]:
        optimizer.zero_grad()
        loss = torch.nn.functional.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return losses, [parameter.detach() for parameter in model.parameters()]


def run(index: int) -> None:
    names = guide()
    expected_losses, expected = on_the_cpu(names)
    losses, optimizers = [], []

    def see_loss(module, inputs, output):
        if isinstance(module, torch.nn.NLLLoss):
            losses.append(output.detach())

    hooks = [
        torch.nn.modules.module.register_module_forward_hook(see_loss),
        register_optimizer_step_post_hook(lambda optimizer, *_: optimizers.append(optimizer)),
    ]
    torch.manual_seed(1)
    names["_mp_fn"](index)
    for hook in hooks:
        hook.remove()
    assert len(losses) == STEPS
    for loss, expected_loss in zip(losses, expected_losses, strict=True):
        mean = xm.mesh_reduce("loss", loss, lambda every: torch.stack(every).mean())
        torch.testing.assert_close(mean, expected_loss, rtol=1e-4, atol=1e-5)
    weights = [
        value.detach().cpu() for group in optimizers[0].param_groups for value in group["params"]
    ]
    for weight, expected_weight in zip(weights, expected, strict=True):
        torch.testing.assert_close(weight, expected_weight, rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    # A new interpreter for each process, as the guide has it, takes seconds.
    start_method, *counts = sys.argv[1:]
    for count in counts or [os.environ.get("CPU_NUM_DEVICES", "1")]:
        os.environ["CPU_NUM_DEVICES"] = count
        torch_xla.launch(run, start_method=start_method)
    print("passed")
