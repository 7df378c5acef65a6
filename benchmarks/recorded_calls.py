"""What calling an operator takes of the caller on the xla device, as a share of what the call takes in eager.

    python -m benchmarks.recorded_calls
    python -m benchmarks.recorded_calls --turns 100 --above 1

The tensors are small, so that eager's call is little more than its overhead. On the device a call is recorded; what is recorded
runs between the turns, and its time is not counted. The two take turns in one process; of each counts the least of its turns.
"""

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measure import limit_threads

CALLS = 100


def calls(device: str) -> dict[str, Callable[[], Any]]:
    """Calls without gradients, by their text."""
    import torch
    import torch.nn.functional as F

    torch.manual_seed(0)
    x, y = torch.randn(4, 8, 16, device=device), torch.randn(4, 8, 16, device=device)
    rows, weight, bias = (
        torch.randn(8, 16, device=device),
        torch.randn(16, 16, device=device),
        torch.randn(16, device=device),
    )
    image, kernel = torch.randn(1, 3, 8, 8, device=device), torch.randn(4, 3, 3, 3, device=device)
    heads, mask = torch.randn(1, 2, 8, 16, device=device), x > 0
    indices = torch.tensor([0, 2, 1], device=device)
    linear, norm = torch.nn.Linear(16, 16).to(device), torch.nn.LayerNorm(16).to(device)
    return {
        "x + y": lambda: x + y,
        "x * 2.0": lambda: x * 2.0,
        "x > 0": lambda: x > 0,
        "x.add_(y)": lambda: x.add_(y),
        "x.zero_()": lambda: x.zero_(),
        "x.copy_(y)": lambda: x.copy_(y),
        "x.clone()": lambda: x.clone(),
        "x.detach()": lambda: x.detach(),
        "x.relu()": lambda: x.relu(),
        "gelu(x)": lambda: F.gelu(x),
        "x.clamp(0, 1)": lambda: x.clamp(0, 1),
        "where(mask, x, y)": lambda: torch.where(mask, x, y),
        "x.masked_fill(mask, 0)": lambda: x.masked_fill(mask, 0.0),
        "x.to(float16)": lambda: x.to(torch.float16),
        "x.view(32, 16)": lambda: x.view(32, 16),
        "x.transpose(1, 2)": lambda: x.transpose(1, 2),
        "x.unsqueeze(0)": lambda: x.unsqueeze(0),
        "bias.expand(8, 16)": lambda: bias.expand(8, 16),
        "x.chunk(2, -1)": lambda: x.chunk(2, -1),
        "x[0]": lambda: x[0],
        "x[:, 1:3]": lambda: x[:, 1:3],
        "x[indices]": lambda: x[indices],
        "x[0] = 1": lambda: x.__setitem__(0, 1.0),
        "x[:, 1] = bias": lambda: x.__setitem__((slice(None), 1), bias),
        "x[mask] = 0": lambda: x.__setitem__(mask, 0.0),
        "x.index_select(0, indices)": lambda: x.index_select(0, indices),
        "cat([x, y], 1)": lambda: torch.cat([x, y], 1),
        "stack([x, y])": lambda: torch.stack([x, y]),
        "x.sum()": lambda: x.sum(),
        "x.mean(-1)": lambda: x.mean(-1),
        "x.max(-1)": lambda: x.max(-1),
        "x.norm()": lambda: x.norm(),
        "x.softmax(-1)": lambda: x.softmax(-1),
        "rows @ weight": lambda: rows @ weight,
        "bmm(x, x.mT)": lambda: torch.bmm(x, x.mT),
        "einsum": lambda: torch.einsum("bij,jk->bik", x, weight),
        "Linear": lambda: linear(x),
        "LayerNorm": lambda: norm(x),
        "embedding": lambda: F.embedding(indices, weight),
        "conv2d": lambda: F.conv2d(image, kernel),
        "attention": lambda: F.scaled_dot_product_attention(heads, heads, heads),
        "mse_loss": lambda: F.mse_loss(x, y),
        "zeros(4, 4)": lambda: torch.zeros(4, 4, device=device),
        "arange(8)": lambda: torch.arange(8, device=device),
        "randn(4, 4)": lambda: torch.randn(4, 4, device=device),
        "tensor([1.0, 2.0])": lambda: torch.tensor([1.0, 2.0], device=device),
    }


def _microseconds(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS * 1e6


def measured(turns: int) -> dict[str, tuple[float, float]]:
    """Microseconds of a call in eager and on the device, by the call."""
    import torch

    import torch_xla

    rows = {}
    with torch.no_grad():
        on_cpu, on_xla = calls("cpu"), calls("xla")
        for name in on_cpu:
            eager = xla = math.inf
            for _ in range(turns):
                torch_xla.sync(wait=True)
                eager, xla = (
                    min(eager, _microseconds(on_cpu[name])),
                    min(xla, _microseconds(on_xla[name])),
                )
            rows[name] = (eager, xla)
        torch_xla.sync(wait=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--above", type=float, default=0.0, help="print shares of at least this")
    options = parser.parse_args()
    limit_threads(1)
    rows = measured(options.turns)
    print("| call | eager, us | torch_xla, us | share |\n|---|---:|---:|---:|")
    for name, (eager, xla) in sorted(rows.items(), key=lambda row: row[1][0] / row[1][1]):
        if xla / eager >= options.above:
            print(f"| `{name}` | {eager:.2f} | {xla:.2f} | {xla / eager:.2f} |")
    mean = math.exp(sum(math.log(xla / eager) for eager, xla in rows.values()) / len(rows))
    print(f"\n{len(rows)} calls: {mean:.2f} of eager's in the geometric mean")


if __name__ == "__main__":
    main()
