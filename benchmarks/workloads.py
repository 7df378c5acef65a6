"""What is timed: steps of training and inference written for PyTorch, on any of its devices.

A workload is a function that makes a step for a device. Its inputs and weights come from a fixed seed.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn, optim

from benchmarks import models

# Makes the step's function; the last argument compiles a function with the peer's compiler.
Step = Callable[[], Any]
Compiler = Callable[[Callable[..., Any]], Callable[..., Any]]


def _training(
    model: nn.Module,
    make_optimizer: Callable[[Any], optim.Optimizer],
    inputs: torch.Tensor,
    targets: torch.Tensor,
    device: str,
    compiler: Compiler,
) -> Step:
    model = model.to(device).train()
    optimizer = make_optimizer(model.parameters())
    inputs, targets = inputs.to(device), targets.to(device)

    def loss_of(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(model(x).flatten(0, -2), y.flatten())

    compiled = compiler(loss_of)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = compiled(inputs, targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step


def _inference(model: nn.Module, inputs: torch.Tensor, device: str, compiler: Compiler) -> Step:
    model = model.to(device).eval()
    inputs = inputs.to(device)
    compiled = compiler(model)

    def step() -> torch.Tensor:
        with torch.no_grad():
            return compiled(inputs)

    return step


def mlp(device: str, compiler: Compiler) -> Step:
    """784-256-128-10, batch 64, SGD."""
    return _training(
        models.MLP(784, 256, 128, 10),
        lambda parameters: optim.SGD(parameters, lr=0.01),
        torch.randn(64, 784),
        torch.randint(10, (64,)),
        device,
        compiler,
    )


def cnn(device: str, compiler: Compiler) -> Step:
    """Two 3x3 convolutions and two linear layers, batch 64, Adam."""
    return _training(
        models.CNN(),
        lambda parameters: optim.Adam(parameters, lr=1e-3),
        torch.randn(64, 1, 28, 28),
        torch.randint(10, (64,)),
        device,
        compiler,
    )


def resnet18(device: str, compiler: Compiler) -> Step:
    """224x224, batch 4, SGD with momentum."""
    return _training(
        models.ResNet18(),
        lambda parameters: optim.SGD(parameters, lr=0.01, momentum=0.9),
        torch.randn(4, 3, 224, 224),
        torch.randint(1000, (4,)),
        device,
        compiler,
    )


def resnet18_infer(device: str, compiler: Compiler) -> Step:
    """224x224, batch 1."""
    return _inference(models.ResNet18(), torch.randn(1, 3, 224, 224), device, compiler)


def bert(device: str, compiler: Compiler) -> Step:
    """Encoder of 4 layers, width 256, sequence 128, batch 8, dropout 0.1, AdamW."""
    return _training(
        models.Encoder(512, 128, 256, 4, 4, dropout=0.1),
        lambda parameters: optim.AdamW(parameters, lr=1e-4),
        torch.randint(512, (8, 128)),
        torch.randint(512, (8, 128)),
        device,
        compiler,
    )


def gpt(device: str, compiler: Compiler) -> Step:
    """6 layers, width 384, sequence 128, batch 4, dropout 0.1, AdamW."""
    model = models.GPT(2048, 128, 384, 6, 6, dropout=0.1).to(device)
    model.tie_weights()
    return _training(
        model,
        lambda parameters: optim.AdamW(parameters, lr=1e-4),
        torch.randint(2048, (4, 128)),
        torch.randint(2048, (4, 128)),
        device,
        compiler,
    )


def gpt_infer(device: str, compiler: Compiler) -> Step:
    """6 layers, width 384, sequence 128, batch 1."""
    model = models.GPT(2048, 128, 384, 6, 6)
    return _inference(model, torch.randint(2048, (1, 128)), device, compiler)


def lstm(device: str, compiler: Compiler) -> Step:
    """32 cells of width 128 unrolled, batch 32, SGD."""
    return _training(
        models.UnrolledLSTM(64, 128, 10),
        lambda parameters: optim.SGD(parameters, lr=0.01),
        torch.randn(32, 32, 64),
        torch.randint(10, (32,)),
        device,
        compiler,
    )


def chain(device: str, compiler: Compiler) -> Step:
    """20 element-wise operations on 4096x4096, layer norm, softmax."""
    x = torch.randn(4096, 4096).to(device)

    def function(x: torch.Tensor) -> torch.Tensor:
        y = x
        for _ in range(4):
            y = torch.tanh(y * 1.1 + 0.1)
            y = y / (1.0 + y * y)
        y = torch.exp(-y.abs()) - torch.sqrt(y * y + 1.0)
        return torch.softmax(F.layer_norm(y, (4096,)), dim=-1)

    compiled = compiler(function)

    def step() -> torch.Tensor:
        with torch.no_grad():
            return compiled(x)

    return step


def gemm(device: str, compiler: Compiler) -> Step:
    """1024x1024 times 1024x1024."""
    a, b = torch.randn(1024, 1024).to(device), torch.randn(1024, 1024).to(device)
    compiled = compiler(torch.mm)
    return lambda: compiled(a, b)


def bmm(device: str, compiler: Compiler) -> Step:
    """32 products of 256x256 matrices."""
    a, b = torch.randn(32, 256, 256).to(device), torch.randn(32, 256, 256).to(device)
    compiled = compiler(torch.bmm)
    return lambda: compiled(a, b)


WORKLOADS: dict[str, Callable[[str, Compiler], Step]] = {
    function.__name__: function
    for function in (
        mlp,
        cnn,
        resnet18,
        resnet18_infer,
        bert,
        gpt,
        gpt_infer,
        lstm,
        chain,
        gemm,
        bmm,
    )
}
