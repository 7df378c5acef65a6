"""Trains with a Lightning Trainer, of the package `lightning` or of `pytorch_lightning`.

python train_lightning.py --package lightning --trainer '{"accelerator": "tpu", "devices": 1}' --out DIR
"""

import argparse
import importlib
import json
import pathlib
import sys
from typing import Any

import digits
import torch
from torch.utils.data import DataLoader, DistributedSampler

parser = argparse.ArgumentParser()
parser.add_argument("--package", default="lightning", choices=["lightning", "pytorch_lightning"])
parser.add_argument("--trainer", default="{}", help="arguments of the Trainer, as JSON")
parser.add_argument("--batch-size", type=int, default=64, help="of each process")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--validate", action="store_true")
parser.add_argument(
    "--sampler", action="store_true", help="draw samples as the guide does who brings a sampler"
)
parser.add_argument("--checkpoint", action="store_true", help="keep the last one in DIR/last.ckpt")
parser.add_argument("--resume", help="a checkpoint to go on from")
parser.add_argument("--profile", action="store_true", help="with the library's XLA profiler")
parser.add_argument(
    "--tied", action="store_true", help="train the network whose layers share a weight"
)
parser.add_argument("--out", required=True)
arguments = parser.parse_args()

if arguments.profile:
    import torch_xla.debug.profiler as xp
    from torch_xla.debug import trace_events

pl = importlib.import_module(
    "lightning.pytorch" if arguments.package == "lightning" else arguments.package
)


class Classifier(pl.LightningModule):
    """The network with its optimizer. It writes the report where training ends, in the process of rank 0."""

    def __init__(self) -> None:
        super().__init__()
        self.net = digits.Net()
        self.losses: list[torch.Tensor] = []
        self.samples: list[int] = []

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        loss = digits.loss_of(self.net, batch)
        self.log("loss", loss)
        self.losses.append(loss.detach())
        self.samples.append(len(batch[0]))
        return loss

    def train_dataloader(self) -> Any:
        """The guide's own sampler. What the library puts in by itself draws the same samples."""
        dataset = digits.images()
        replicas, rank = 1, 0
        if self.device.type == "xla":
            import torch_xla.core.xla_model as xm

            replicas, rank = xm.xrt_world_size(), xm.get_ordinal()
        sampler = DistributedSampler(dataset, num_replicas=replicas, rank=rank, shuffle=True)
        return DataLoader(dataset, arguments.batch_size, sampler=sampler)

    def validation_step(self, batch: Any, index: int) -> None:
        pixels, target = batch
        right = (self.net(pixels).argmax(1) == target).float().mean()
        self.log("accuracy", right, sync_dist=True)

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.05, momentum=0.9)
        # A number that changes from step to step: no reason to compile.
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.99)
        return [optimizer], [{"scheduler": schedule, "interval": "step"}]

    def more(self) -> dict[str, Any]:
        return {"rank_samples": sum(self.samples)}

    def on_train_start(self) -> None:
        if arguments.profile:
            xp.start_trace(arguments.out)

    def profile(self) -> dict[str, Any]:
        """The names of the sections that were recorded, and where the profiler's server listens."""
        if not arguments.profile:
            return {}
        profile = trace_events.parse(pathlib.Path(xp.stop_trace()).read_bytes())
        sections = sorted({event.name for line in profile.host.lines for event in line.events})
        return {"sections": sections, "profiler_port": self.trainer.profiler.server.port}

    def on_train_end(self) -> None:
        world_size = self.trainer.strategy.world_size if self.trainer.num_devices > 1 else 1
        losses = torch.stack(self.losses)
        if world_size > 1:
            # Each process has the mean over its part of the batch.
            losses = self.all_gather(losses).reshape(world_size, -1).mean(0)
        metrics = {name: float(value) for name, value in self.trainer.callback_metrics.items()}
        if self.trainer.is_global_zero:
            digits.write_report(
                arguments.out,
                losses.tolist(),
                self,
                world_size,
                metrics=metrics,
                precision=str(self.trainer.precision),
                strategy=type(self.trainer.strategy).__name__,
                sampler=sampler_name(self.trainer.train_dataloader),
                **self.profile(),
                **self.more(),
            )


class Tied(Classifier):
    """The guide's WeightSharingModule: the first and the third layer have one weight."""

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Identity()
        self.layer_1 = torch.nn.Linear(784, 16, bias=False)
        self.layer_2 = torch.nn.Linear(16, 784, bias=False)
        self.layer_3 = torch.nn.Linear(784, 16, bias=False)
        self.layer_3.weight = self.layer_1.weight

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        pixels, target = batch
        x = self.layer_3(self.layer_2(self.layer_1(pixels.flatten(1))))
        loss = torch.nn.functional.cross_entropy(x, target)
        self.losses.append(loss.detach())
        self.samples.append(len(pixels))
        return loss

    def configure_optimizers(self) -> Any:
        # Three linear layers on end do not bear larger steps.
        return torch.optim.SGD(self.parameters(), lr=0.002)

    def more(self) -> dict[str, Any]:
        tied = self.layer_3.weight is self.layer_1.weight
        return {"tied": tied, "parameters": len(list(self.parameters())), **super().more()}


def sampler_name(loader: Any) -> str:
    """What draws the samples, behind whatever wraps the loader."""
    while True:
        for name in ("loaders", "_loader", "_iterables", "iterable", "loader"):
            inner = getattr(loader, name, None)
            if inner is not None:
                loader = inner
                break
        else:
            return type(getattr(loader, "sampler", None)).__name__


def main() -> None:
    torch.manual_seed(0)
    model = Tied() if arguments.tied else Classifier()
    options = {
        "max_epochs": arguments.epochs,
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": arguments.checkpoint,
        "num_sanity_val_steps": 0,
        "default_root_dir": arguments.out,
        **json.loads(arguments.trainer),
    }
    if arguments.profile:
        options["profiler"] = pl.profilers.XLAProfiler(port=0)
    if arguments.checkpoint:
        options["callbacks"] = [
            pl.callbacks.ModelCheckpoint(dirpath=arguments.out, filename="best", save_last=True)
        ]
    trainer = pl.Trainer(**options)
    train = None if arguments.sampler else DataLoader(digits.images(), arguments.batch_size)
    held_out = DataLoader(digits.images(256), arguments.batch_size) if arguments.validate else None
    trainer.fit(model, train, held_out, ckpt_path=arguments.resume)
    if not (pathlib.Path(arguments.out) / "report.json").exists():
        sys.exit("Training has not come to its end.")


if __name__ == "__main__":
    main()
