"""Blocks of the usual convolutional networks, written out: loss, gradients and statistics as in eager, none on the CPU."""

import copy

import pytest
import torch
from torch import nn

import torch_xla
import torch_xla.debug.metrics as metrics


def convolution(inputs, outputs, kernel, stride=1, groups=1, activation=nn.Identity):
    """Convolution, normalization, activation."""
    padding = kernel // 2
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
        activation(),
    )


class Residual(nn.Module):
    """Adds its input where nothing has changed the shape, or a projection of it."""

    def __init__(self, body, shortcut=None):
        super().__init__()
        self.body, self.shortcut = body, shortcut or nn.Identity()

    def forward(self, x):
        return self.shortcut(x) + self.body(x)


class SqueezeExcite(nn.Module):
    """Scales each channel by what a small network makes of all channels' means."""

    def __init__(self, channels, inner):
        super().__init__()
        layers = (nn.Conv2d(channels, inner, 1), nn.SiLU(), nn.Conv2d(inner, channels, 1))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), *layers, nn.Sigmoid())

    def forward(self, x):
        return x * self.gate(x)


class LayerNorm2d(nn.LayerNorm):
    """Normalizes over the channels of images."""

    def forward(self, x):
        return super().forward(x.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)


class LayerScale(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.scale = nn.Parameter(torch.full((channels, 1, 1), 0.1))

    def forward(self, x):
        return self.scale * x


def resnet():
    def bottleneck(inputs, inner, outputs, stride):
        body = nn.Sequential(
            convolution(inputs, inner, 1, activation=nn.ReLU),
            convolution(inner, inner, 3, stride, activation=nn.ReLU),
            convolution(inner, outputs, 1),
        )
        shortcut = None if inputs == outputs else convolution(inputs, outputs, 1, stride)
        return nn.Sequential(Residual(body, shortcut), nn.ReLU(inplace=True))

    return nn.Sequential(
        convolution(3, 16, 7, 2, activation=nn.ReLU),
        nn.MaxPool2d(3, 2, 1),
        bottleneck(16, 8, 32, 2),
        bottleneck(32, 8, 32, 1),
    )


def mobilenet():
    def inverted(inputs, outputs, stride):
        body = nn.Sequential(
            convolution(inputs, 6 * inputs, 1, activation=nn.ReLU6),
            convolution(6 * inputs, 6 * inputs, 3, stride, 6 * inputs, nn.ReLU6),
            convolution(6 * inputs, outputs, 1),
        )
        return Residual(body) if stride == 1 and inputs == outputs else body

    stem = convolution(3, 8, 3, 2, activation=nn.ReLU6)
    return nn.Sequential(stem, inverted(8, 12, 2), inverted(12, 12, 1), inverted(12, 32, 1))


def efficientnet():
    def mbconv(inputs, outputs, kernel, stride):
        inner = 4 * inputs
        body = nn.Sequential(
            convolution(inputs, inner, 1, activation=nn.SiLU),
            convolution(inner, inner, kernel, stride, inner, nn.SiLU),
            SqueezeExcite(inner, inputs // 4),
            convolution(inner, outputs, 1),
        )
        return Residual(body) if stride == 1 and inputs == outputs else body

    stem = convolution(3, 8, 3, 2, activation=nn.SiLU)
    return nn.Sequential(stem, mbconv(8, 12, 5, 2), mbconv(12, 12, 3, 1), mbconv(12, 32, 3, 1))


def convnext():
    def block(channels):
        return Residual(
            nn.Sequential(
                nn.Conv2d(channels, channels, 7, padding=3, groups=channels),
                LayerNorm2d(channels),
                nn.Conv2d(channels, 4 * channels, 1),
                nn.GELU(),
                nn.Conv2d(4 * channels, channels, 1),
                LayerScale(channels),
            )
        )

    stem = nn.Sequential(nn.Conv2d(3, 16, 4, 4), LayerNorm2d(16))
    downsample = nn.Sequential(LayerNorm2d(16), nn.Conv2d(16, 32, 2, 2))
    return nn.Sequential(stem, block(16), downsample, block(32))


NETWORKS = {
    "resnet": resnet,
    "mobilenet": mobilenet,
    "efficientnet": efficientnet,
    "convnext": convnext,
}


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("name", NETWORKS)
def test_like_eager(name, memory_format, device):
    torch.manual_seed(0)
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 5))
    model = nn.Sequential(NETWORKS[name](), *head).to(memory_format=memory_format)
    on_device = copy.deepcopy(model).to(device, memory_format=memory_format)
    x = torch.randn(4, 3, 32, 32).contiguous(memory_format=memory_format)
    labels = torch.arange(4)

    def train(model, x, labels):
        loss = nn.functional.cross_entropy(model(x), labels)
        loss.backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        return [loss.detach(), *gradients, *model.buffers()]

    expected = train(model, x, labels)
    metrics.clear_all()
    actual = train(on_device, x.to(device), labels.to(device))
    torch_xla.sync()
    assert [
        name
        for name in metrics.counter_names()
        if name.startswith("aten::") and name != "aten::_local_scalar_dense"
    ] == []
    for mine, theirs in zip(actual, expected, strict=True):
        scale = max(1e-3, float(theirs.abs().max()))
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-3, atol=1e-4 * scale)
