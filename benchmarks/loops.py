"""What layers in a loop of the device cost, next to the same layers one by one: compiling, and a step of training.

    python -m benchmarks.loops                              decoders of 4 and 64 layers; a markdown table
    python -m benchmarks.loops --layers 4 16 --width 256    others
    python -m benchmarks.loops --measure loop 64            one of them; its figures as JSON

Each decoder is measured in fresh processes, by turns with the others: how long the step's program took to compile, from
nothing compiled, and the median of further steps; the least of the turns counts. A step is forward, backward and SGD of one batch of sequences.
"""

import argparse
import json
import statistics
import time
from typing import Any

from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

WAYS = ("one by one", "loop", "loop, pure")


def measure(
    way: str, layers: int, width: int, length: int, batch: int, steps: int
) -> dict[str, Any]:
    """Seconds to compile and for a step."""
    import torch

    import torch_xla
    from benchmarks.models import GPTLayer
    from torch_xla import _XLAC
    from torch_xla.debug import metrics
    from torch_xla.experimental.scan_layers import scan_layers

    _XLAC._xla_set_interpretation("never")
    torch.manual_seed(0)
    decoder = torch.nn.ModuleList(GPTLayer(width, width // 64, 0.0) for _ in range(layers)).to(
        "xla"
    )
    optimizer = torch.optim.SGD(decoder.parameters(), lr=0.001)
    x = torch.randn(batch, length, width, device="xla")
    torch_xla.sync(wait=True)

    def step() -> float:
        optimizer.zero_grad()
        y = x
        if way == "one by one":
            for layer in decoder:
                y = layer(y)
        else:
            y = scan_layers(decoder, y, is_layer_pure=way == "loop, pure")
        loss = y.square().mean()
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        return loss.item()

    step()
    step()
    compiled = metrics.metric_data("ProgramCompileTime")[1] / 1e9
    times, losses = [], []
    for _ in range(steps):
        start = time.perf_counter()
        losses.append(step())
        times.append(time.perf_counter() - start)
    return {"compile": compiled, "step": statistics.median(times), "loss": losses[-1]}


def main() -> None:
    """Prints the table, or the figures of one decoder."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[4, 64])
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--measure", nargs=2, metavar=("WAY", "LAYERS"))
    arguments = parser.parse_args()
    sizes = [arguments.width, arguments.length, arguments.batch, arguments.steps]
    if arguments.measure:
        limit_threads(arguments.threads)
        way, layers = arguments.measure
        print(json.dumps(measure(way, int(layers), *sizes)))
        return
    print("| layers | | compile, s | step, ms | loss |\n|---|---|---|---|---|")
    options = [
        f"--{name}={getattr(arguments, name)}"
        for name in ("width", "length", "batch", "steps", "threads")
    ]
    for layers in arguments.layers:
        least: dict[str, dict[str, float]] = {}
        for _ in range(arguments.turns):
            for way in WAYS:
                figures = figures_of("benchmarks.loops", ["--measure", way, str(layers), *options])
                if figures is not None:
                    known = least.setdefault(way, figures)
                    least[way] = {name: min(known[name], figures[name]) for name in figures}
        for way, figures in least.items():
            print(
                f"| {layers} | {way} | {figures['compile']:.2f} | {figures['step'] * 1e3:.1f} | "
                f"{figures['loss']:.6g} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
