"""Training on several machines: each process says where it is and what it has read; that of rank 0 saves the weights.

Arguments: the folder for what is saved.
"""

import os
import sys
from itertools import chain

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import torch_xla
import torch_xla.distributed.parallel_loader as pl
from torch_xla import runtime as xr
from torch_xla.core import xla_model as xm

SAMPLES, BATCH = 32, 2


def train(index: int, folder: str) -> None:
    generator = torch.Generator().manual_seed(1)
    dataset = TensorDataset(
        torch.arange(SAMPLES),
        torch.randn(SAMPLES, 6, generator=generator),
        torch.randn(SAMPLES, 2, generator=generator),
    )
    sampler = DistributedSampler(
        dataset, num_replicas=xm.xrt_world_size(), rank=xm.get_ordinal(), shuffle=True
    )
    loader = pl.MpDeviceLoader(DataLoader(dataset, BATCH, sampler=sampler), torch_xla.device())
    # Every process begins with other weights, and takes over those of rank 0.
    torch.manual_seed(xr.global_ordinal())
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)).to("xla")
    xm.broadcast_master_param(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    seen = []
    for samples, inputs, targets in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        xm.optimizer_step(optimizer)
        seen.append(samples)
    seen = torch.cat(seen).tolist()
    # At once: all processes of a host write to one pipe.
    os.write(
        1,
        f"rank {xr.global_ordinal()} of {xr.world_size()}, local {xr.local_ordinal()} of "
        f"{xr.local_process_count()}, host {xr.host_index()}, index {index}, "
        f"hosts {os.environ['XRT_HOST_ORDINAL']} of {os.environ['XRT_HOST_WORLD_SIZE']}, "
        f"read {seen}\n".encode(),
    )
    everyone = xm.mesh_reduce("seen", seen, lambda lists: sorted(chain(*lists)))
    assert everyone == list(range(SAMPLES))
    checkpoint = os.path.join(folder, f"weights-of-host-{xr.host_index()}.pt")
    xm.save(model.state_dict(), checkpoint, global_master=True)


if __name__ == "__main__":
    torch_xla.launch(train, (sys.argv[1],), start_method="fork")
