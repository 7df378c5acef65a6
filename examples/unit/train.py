"""Trains a unified transformer on question and sentence pairs; the program of docs/case-study.

python examples/unit/train.py                          as it was found: slow
python examples/unit/train.py --same identity          attention compares its inputs without their numbers
python examples/unit/train.py --same identity --padding fixed --log-every 50
python examples/unit/train.py --digits                 a second task in turn: which digit is on the picture?
"""

import argparse
import pathlib
import sys
import time
from collections.abc import Iterator

import entailment
import torch
import torch.nn.functional as F
from model import UnifiedTransformer
from tqdm import tqdm

import torch_xla
import torch_xla.debug.profiler as xp

WARM_UP = 10  # steps that compile, and do not count
PROFILED = 5  # the last steps, of which --profile tells

Batch = tuple[str, dict[str, torch.Tensor], torch.Tensor]


def digit_batches(size: int) -> Iterator[Batch]:
    """Pictures, float [size, 1, 28, 28], and which digit they show."""
    sys.path.append(str(pathlib.Path(__file__).parents[1]))
    import mnist_data

    images, labels = mnist_data.load_package(seed=0)[0]
    while True:
        for begin in range(0, len(images) - size + 1, size):
            chosen = slice(begin, begin + size)
            yield "digits", {"image": images[chosen]}, labels[chosen]


def training_batches(options: argparse.Namespace) -> Iterator[Batch]:
    """The batches of one pass over the pairs, with those of the other task in turn if wanted."""
    digits = digit_batches(options.batch_size) if options.digits else None
    made = entailment.pairs(options.pairs)
    for words, labels in entailment.batches(made, options.batch_size, options.padding):
        yield "entailment", {"words": words}, labels
        if digits is not None:
            yield next(digits)


def train(options: argparse.Namespace) -> None:
    """Prints the loss, and how many samples a second were trained on."""
    torch.manual_seed(0)
    device = torch.device(options.device)
    model = UnifiedTransformer(
        {"entailment": 2, "digits": 10},
        entailment.VOCABULARY,
        entailment.LONGEST,
        same=options.same,
    ).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    batches = list(training_batches(options))[: options.steps]
    warm_up = min(WARM_UP, len(batches) - 1)
    progress = tqdm(batches, disable=not sys.stderr.isatty())
    for step, (task, inputs, labels) in enumerate(progress):
        if step == warm_up:
            torch_xla.sync(wait=True)
            begin = time.perf_counter()
        if options.profile and step == len(batches) - PROFILED:
            xp.start_trace(options.profile)
        with xp.StepTrace("train", step_num=step):
            with xp.Trace("input"):
                inputs = {name: value.to(device) for name, value in inputs.items()}
                labels = labels.to(device)
            with xp.Trace("forward"):
                scores = model(task, **inputs)
                loss = F.cross_entropy(scores, labels)
            with xp.Trace("backward"):
                optimizer.zero_grad()
                loss.backward()
            with xp.Trace("optimizer"):
                optimizer.step()
            if step % options.log_every == 0:
                with xp.Trace("log"):
                    progress.set_postfix(loss=loss.item())
    torch_xla.sync(wait=True)
    seconds = time.perf_counter() - begin
    if options.profile:
        xp.stop_trace()
    samples = (len(batches) - warm_up) * options.batch_size
    print(f"loss {loss.item():.4f}, {len(batches)} steps, {samples / seconds:.1f} samples/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", default="xla")
    parser.add_argument("--same", choices=["value", "identity"], default="value")
    parser.add_argument("--padding", choices=["longest", "fixed"], default="fixed")
    parser.add_argument("--log-every", type=int, default=1, metavar="STEPS")
    parser.add_argument("--batch-size", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=1600)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--digits", action="store_true", help="a second task, on pictures")
    parser.add_argument("--profile", metavar="FOLDER", help="the last steps' profile")
    train(parser.parse_args())


if __name__ == "__main__":
    main()
