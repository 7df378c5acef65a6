"""Training whose metric reads the accuracy in every step: `.item()` waits for the device."""

import sys

import torch

import torch_xla
from torch_xla.distributed.parallel_loader import MpDeviceLoader


class Accuracy:
    """The share of right answers, over all batches."""

    def __init__(self) -> None:
        self.right = 0.0
        self.count = 0

    def update(self, outputs, targets):
        right = (outputs.argmax(1) == targets).float().sum()
        self.right += right.item()
        self.count += len(targets)


def main(steps):
    device = torch_xla.device()
    torch.manual_seed(0)
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 512),
        torch.nn.ReLU(),
        torch.nn.Linear(512, 512),
        torch.nn.ReLU(),
        torch.nn.Linear(512, 10),
    ).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = [(torch.randn(64, 256), torch.randint(10, (64,))) for _ in range(steps)]
    accuracy = Accuracy()
    for inputs, targets in MpDeviceLoader(batches, device):
        optimizer.zero_grad()
        outputs = model(inputs)
        torch.nn.functional.cross_entropy(outputs, targets).backward()
        optimizer.step()
        accuracy.update(outputs, targets)
    print(f"accuracy {accuracy.right / accuracy.count:.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
