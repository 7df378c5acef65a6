"""How a training step grows with depth, width, batch, length and threads: its time, compiling it, and memory, as a picture.

    python -m benchmarks.growth                                   docs/images/growth.svg; a few minutes
    python -m benchmarks.growth --along depth --picture other.svg --figures known.json
    python -m benchmarks.growth --measure xla 4 128 4 64 1        one of them; its figures as JSON

A step is forward, backward and SGD of a GPT (`models.py`). Each figure comes from a fresh process, in which nothing is
compiled; eager and the device take turns. What is in the file of figures already is not measured again.
"""

import argparse
import json
import pathlib
import sys
import time
from typing import Any

from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

VOCABULARY, STEPS = 256, 12
# What each varies; the others stay at the middle.
MIDDLE = {"depth": 4, "width": 128, "batch": 4, "length": 64, "threads": 1}
SIZES = {
    "depth": [1, 2, 4, 8, 16],
    "width": [64, 128, 256, 512],
    "batch": [1, 4, 16, 64],
    "length": [16, 64, 256, 1024],
    "threads": [1, 2],
}
FIGURES = {
    "step": "processor, ms a step",
    "elapsed": "ms a step",
    "first": "processor, s of the first step",
    "peak": "peak, MiB over the imports",
}
DEVICES = ("eager", "xla")


def _peak_mib() -> float:
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def measure(
    device: str, depth: int, width: int, batch: int, length: int, threads: int
) -> dict[str, float]:
    """The figures of one training; the least of its steps' times."""
    limit_threads(threads)
    import torch
    import torch.nn.functional as F

    import torch_xla
    from benchmarks.models import GPT
    from torch_xla import _XLAC

    torch.set_num_threads(threads)
    torch.manual_seed(0)
    where = "cpu" if device == "eager" else "xla"
    if where == "xla":
        _XLAC._xla_set_interpretation("never")
        torch.ones(1, device="xla").sum().item()
    imported = _peak_mib()
    model = GPT(VOCABULARY, length, width, max(1, width // 64), depth).to(where)
    model.tie_weights()
    words = torch.randint(VOCABULARY, (batch, length)).to(where)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def step() -> None:
        optimizer.zero_grad()
        F.cross_entropy(model(words).flatten(0, 1), words.flatten()).backward()
        optimizer.step()
        torch_xla.sync(wait=True)

    times = []
    for _ in range(STEPS):
        start = time.process_time(), time.perf_counter()
        step()
        times.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    own, elapsed = (min(some) for some in zip(*times, strict=True))
    return {
        "step": own * 1e3,
        "elapsed": elapsed * 1e3,
        "first": times[0][0],
        "peak": _peak_mib() - imported,
    }


def draw(figures: dict[str, dict[str, list[dict[str, float]]]], picture: pathlib.Path) -> None:
    """A column for what varies, a row for each figure; both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    canvas, panels = pyplot.subplots(
        len(FIGURES),
        len(figures),
        figsize=(3 * len(figures), 2.4 * len(FIGURES)),
        squeeze=False,
        sharey="row",
    )
    for column, (along, devices) in enumerate(figures.items()):
        for row, (figure, label) in enumerate(FIGURES.items()):
            panel = panels[row][column]
            for device, measured in devices.items():
                values = [point[figure] for point in measured]
                panel.plot(SIZES[along], values, marker="o", label=device)
            panel.set_xscale("log", base=2)
            panel.set_yscale("log")
            panel.set_xticks(SIZES[along], [str(size) for size in SIZES[along]])
            panel.minorticks_off()
            if row == len(FIGURES) - 1:
                panel.set_xlabel(along)
            if column == 0:
                panel.set_ylabel(label)
    panels[0][0].legend()
    canvas.tight_layout()
    canvas.savefig(picture, metadata={"Date": None})


def main() -> None:
    """Prints the table and draws it, or prints the figures of one training."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--along", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--picture", type=pathlib.Path, default="docs/images/growth.svg")
    parser.add_argument("--figures", type=pathlib.Path, help="a file that keeps them")
    parser.add_argument("--measure", nargs=6, metavar=("DEVICE", *MIDDLE))
    arguments = parser.parse_args()
    if arguments.measure:
        device, *sizes = arguments.measure
        print(json.dumps(measure(device, *map(int, sizes))))
        return
    figures: dict[str, dict[str, Any]] = {}
    kept = arguments.figures
    known = json.loads(kept.read_text()) if kept and kept.exists() else {}
    print("| along | size | " + " | ".join(f"{f}, eager / xla" for f in FIGURES.values()) + " |")
    print("|---|---:|" + "---:|" * len(FIGURES))
    for along in arguments.along:
        figures[along] = {device: [] for device in DEVICES}
        for size in SIZES[along]:
            for device in DEVICES:
                options = [device, *map(str, {**MIDDLE, along: size}.values())]
                name = " ".join(options)
                if name not in known:
                    known[name] = figures_of("benchmarks.growth", ["--measure", *options])
                    if known[name] is None:
                        sys.exit(f"No figures of {name}.")
                    if kept:
                        kept.write_text(json.dumps(known, indent=1))
                figures[along][device].append(known[name])
            pairs = [figures[along][device][-1] for device in DEVICES]
            cells = [" / ".join(f"{point[key]:.3g}" for point in pairs) for key in FIGURES]
            print(f"| {along} | {size} | " + " | ".join(cells) + " |", flush=True)
    draw(figures, arguments.picture)


if __name__ == "__main__":
    main()
