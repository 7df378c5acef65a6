"""Trains with Lightning Fabric: its launcher, its wrapped module, optimizer and loader, and its checkpoints.

python train_fabric.py --accelerator tpu --devices 1 --out DIR
"""

import argparse
import pathlib
from typing import Any

import digits
import torch
from lightning.fabric import Fabric
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--accelerator", default="cpu")
parser.add_argument("--devices", default="1")
parser.add_argument("--batch-size", type=int, default=64, help="of each process")
parser.add_argument("--out", required=True)
arguments = parser.parse_args()


def train(fabric: Fabric) -> None:
    torch.manual_seed(0)
    module = digits.Net()
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    if fabric.device.type == "xla" and fabric.world_size == 1:
        # Moving a module to the device makes new parameters. With several devices Fabric gives them to the optimizer by
        # itself, and wants both together.
        module = fabric.setup_module(module)
        optimizer = fabric.setup_optimizers(torch.optim.SGD(module.parameters(), lr=0.1))
    else:
        module, optimizer = fabric.setup(module, optimizer)
    loader: Any = fabric.setup_dataloaders(DataLoader(digits.images(), arguments.batch_size))
    losses = []
    for _ in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss = digits.loss_of(module, batch)
            fabric.backward(loss)
            optimizer.step()
            losses.append(loss.detach())
    gathered = fabric.all_gather(torch.stack(losses)).reshape(fabric.world_size, -1)
    total = fabric.all_reduce(torch.tensor(float(fabric.global_rank + 1)), reduce_op="sum")
    name = fabric.broadcast(f"rank {fabric.global_rank}")
    state = {"module": module, "optimizer": optimizer, "step": len(losses)}
    file = pathlib.Path(arguments.out) / "fabric.ckpt"
    fabric.save(file, state)
    fabric.barrier()
    before = {key: value.cpu().clone() for key, value in module.state_dict().items()}
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
    fabric.load(file, state)
    after = {key: value.cpu() for key, value in module.state_dict().items()}
    if fabric.is_global_zero:
        digits.write_report(
            arguments.out,
            gathered.mean(0).tolist(),
            module,
            fabric.world_size,
            strategy=type(fabric.strategy).__name__,
            loaded_equal=all(torch.equal(before[key], after[key]) for key in before),
            total=float(total),
            name=name,
        )


if __name__ == "__main__":
    devices = arguments.devices if arguments.devices == "auto" else int(arguments.devices)
    Fabric(accelerator=arguments.accelerator, devices=devices).launch(train)
