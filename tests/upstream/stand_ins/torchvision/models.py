"""Residual networks."""

import torch
from torch import nn


class Block(nn.Module):
    """Two convolutions, added to what they take."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            nn.BatchNorm2d(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs),
        )
        self.shortcut = nn.Identity()
        if inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class Network(nn.Module):
    """Four stages of blocks. A function of its own calls them, as torchvision's does: dynamo compiles no function of torch's."""

    def __init__(self, blocks: int, width: int, num_classes: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, width, 7, 2, 3, bias=False),
            nn.BatchNorm2d(width),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
        )
        layers: list[nn.Module] = []
        inputs = width
        for stage in range(4):
            outputs = width << stage
            for block in range(blocks):
                layers.append(Block(inputs, outputs, 2 if stage and not block else 1))
                inputs = outputs
        self.stages = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(inputs, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stages(self.stem(x))
        return self.fc(torch.flatten(self.pool(x), 1))


def resnet18(num_classes: int = 1000) -> nn.Module:
    """Of its depth and width: 20 convolutions."""
    return Network(2, 64, num_classes)


def resnet50(num_classes: int = 1000) -> nn.Module:
    """Much smaller than torchvision's."""
    return Network(1, 16, num_classes)
