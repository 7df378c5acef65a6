"""What eager mode costs: a small operation next to eager on the CPU, and a step of ResNet-18 next to the same step as one graph.

    python -m benchmarks.eager_mode
    python -m benchmarks.eager_mode --threads 1 --turns 9

The sides take turns in one process; of each side counts the least of its turns. A turn of operations is a thousand of them, and
ends with reading the last one's result.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

from benchmarks.measure import limit_threads

OPERATIONS = 1000


def _least(sides: dict[str, Callable[[], Any]], turns: int, warm: int) -> dict[str, float]:
    """Seconds of each side's fastest turn."""
    for side in sides.values():
        for _ in range(warm):
            side()
    best = dict.fromkeys(sides, float("inf"))
    for _ in range(turns):
        for name, side in sides.items():
            start = time.perf_counter()
            side()
            best[name] = min(best[name], time.perf_counter() - start)
    return best


def small_operations(turns: int) -> dict[str, dict[str, float]]:
    """Microseconds of an operation, by its name, on the CPU and on the device in eager mode."""
    import torch

    import torch_xla

    def row(operation: Callable[[Any, Any], Any]) -> dict[str, float]:
        def on(device: str) -> Callable[[], Any]:
            x, y = torch.rand(8, 8, device=device), torch.rand(8, 8, device=device)

            def run() -> None:
                for _ in range(OPERATIONS):
                    result = operation(x, y)
                result.sum().item()

            return run

        best = _least({"cpu": on("cpu"), "xla": on("xla")}, turns, warm=3)
        return {device: seconds / OPERATIONS * 1e6 for device, seconds in best.items()}

    with torch_xla.experimental.eager_mode_context(True):
        return {
            "x + y": row(lambda x, y: x + y),
            "x.add_(y)": row(lambda x, y: x.add_(y)),
            "x @ y": row(lambda x, y: x @ y),
            "x.exp()": row(lambda x, y: x.exp()),
            "x.sum(0)": row(lambda x, y: x.sum(0)),
            "softmax": row(lambda x, y: x.softmax(-1)),
        }


def resnet18_steps(turns: int) -> dict[str, float]:
    """Milliseconds of a training step: as one graph, and operation by operation."""
    import torch_xla
    from benchmarks.workloads import resnet18

    def in_mode(is_eager: bool) -> Callable[[], Any]:
        step = resnet18("xla", lambda function: function)

        def run() -> None:
            with torch_xla.experimental.eager_mode_context(is_eager):
                loss = step()
                torch_xla.sync()
                loss.item()

        return run

    best = _least({"one graph": in_mode(False), "eager mode": in_mode(True)}, turns, warm=4)
    return {name: seconds * 1e3 for name, seconds in best.items()}


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--turns", type=int, default=7)
    arguments = parser.parse_args()
    limit_threads(arguments.threads)
    import torch

    torch.set_num_threads(arguments.threads)
    print("| operation, 8 x 8 | CPU, us | xla in eager mode | ratio |\n|---|---|---|---|")
    for name, us in small_operations(arguments.turns).items():
        print(f"| `{name}` | {us['cpu']:.2f} | {us['xla']:.2f} | {us['xla'] / us['cpu']:.2f} |")
    graph, eager = resnet18_steps(arguments.turns).values()
    print(f"\nResNet-18, a step: {graph:.0f} ms as one graph, {eager:.0f} in eager mode: ", end="")
    print(f"{eager / graph:.2f}")


if __name__ == "__main__":
    main()
