"""What it costs that programs check the values that eager looks at: processor time of a training step, with and without.

    python -m benchmarks.value_checks               a minute
    python -m benchmarks.value_checks --turns 2 --steps 20

A step is forward, backward and SGD of a GPT (`models.py`): its words index the embedding, and its loss takes classes. The
switch is read once, so the two take turns in processes of their own; of each counts the least.
"""

import argparse
import json
import os
import time
from unittest import mock

from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

VOCABULARY, LENGTH, BATCH, WIDTH, DEPTH = 256, 64, 4, 128, 4
SWITCH = "TORCH_XLA_CHECK_VALUES"


def measured(steps: int) -> dict[str, float]:
    """`step`: milliseconds; `checked`: how many runs of programs had checks."""
    limit_threads(1)
    import torch
    import torch.nn.functional as F

    import torch_xla
    import torch_xla.debug.metrics as met
    from benchmarks.models import GPT
    from torch_xla import _XLAC

    torch.set_num_threads(1)
    torch.manual_seed(0)
    _XLAC._xla_set_interpretation("never")
    model = GPT(VOCABULARY, LENGTH, WIDTH, WIDTH // 64, DEPTH).to("xla")
    model.tie_weights()
    words = torch.randint(VOCABULARY, (BATCH, LENGTH)).to("xla")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    times = []
    for _ in range(steps):
        start = time.process_time()
        optimizer.zero_grad()
        F.cross_entropy(model(words).flatten(0, 1), words.flatten()).backward()
        optimizer.step()
        torch_xla.sync(wait=True)
        times.append(time.process_time() - start)
    return {"step": min(times) * 1e3, "checked": met.counter_value("CheckedExecution") or 0}


def compared(turns: int, steps: int) -> dict[str, float]:
    """The least milliseconds of a step `with` and `without` checks."""
    least = {"with": float("inf"), "without": float("inf")}
    for _ in range(turns):
        for name, switch in ("with", "1"), ("without", "0"):
            with mock.patch.dict(os.environ, {SWITCH: switch}):
                figures = figures_of(
                    "benchmarks.value_checks", ["--measure", "--steps", str(steps)]
                )
            if figures is None or (figures["checked"] > 0) != (name == "with"):
                raise SystemExit(f"No figures {name} checks: {figures}")
            least[name] = min(least[name], figures["step"])
    return least


def main() -> None:
    """Prints the two times and what the checks add."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--measure", action="store_true", help="the figures of this process")
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measured(options.steps)))
        return
    least = compared(options.turns, options.steps)
    print("| checks | processor, ms a step |\n|---|---:|")
    for name, milliseconds in least.items():
        print(f"| {name} | {milliseconds:.3f} |")
    print(f"Checks add {100 * (least['with'] / least['without'] - 1):.2f} %.")


if __name__ == "__main__":
    main()
