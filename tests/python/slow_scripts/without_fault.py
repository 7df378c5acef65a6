"""Training that does nothing wrong: one program, no reads, a loader that keeps up."""

import sys

import torch

import torch_xla
from torch_xla.distributed.parallel_loader import MpDeviceLoader


def main(steps):
    device = torch_xla.device()
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 1024),
        torch.nn.ReLU(),
        torch.nn.Linear(1024, 1024),
        torch.nn.ReLU(),
        torch.nn.Linear(1024, 10),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = [(torch.randn(256, 256), torch.randint(10, (256,))) for _ in range(steps)]
    total = torch.zeros((), device=device)
    for inputs, targets in MpDeviceLoader(batches, device):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(f"loss {total.item() / steps:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
