"""Training that looks at a histogram of its activations in every step, with an operator that is not lowered."""

import sys

import torch

import torch_xla


def histogram(activations):
    bins = (activations.sigmoid() * 31).long().flatten()
    return torch.bincount(bins, minlength=32)


def main(steps):
    device = torch_xla.device()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(256, 256, device=device)
    counts = torch.zeros(32, device=device)
    torch_xla.sync()
    for _ in range(steps):
        optimizer.zero_grad()
        outputs = model(data)
        outputs.square().mean().backward()
        optimizer.step()
        counts += histogram(outputs.detach())
        torch_xla.sync()
    print(f"counted {counts.sum().item():.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
