"""Training that counts the patterns of its activations in every step, with an operator that is not lowered for many columns."""

import sys

import torch

import torch_xla


def patterns(activations):
    signs = (activations > 0).view(-1, 32)
    return len(torch.unique(signs, dim=0))


def main(steps):
    device = torch_xla.device()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(), torch.nn.Linear(512, 1))
    model = model.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    data = torch.randn(256, 256, device=device)
    counts = torch.zeros((), device=device)
    torch_xla.sync()
    for _ in range(steps):
        optimizer.zero_grad()
        outputs = model(data)
        outputs.square().mean().backward()
        optimizer.step()
        counts += patterns(outputs.detach())
        torch_xla.sync()
    print(f"counted {counts.item():.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
