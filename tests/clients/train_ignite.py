"""Trains with pytorch-ignite: an Engine, metrics, and `ignite.distributed`.

python train_ignite.py --backend xla-tpu --processes 1 --out DIR
"""

import argparse
from typing import Any

import digits
import ignite.distributed as idist
import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, Loss

parser = argparse.ArgumentParser()
parser.add_argument("--backend")
parser.add_argument("--processes", type=int, default=1)
parser.add_argument("--batch-size", type=int, default=64, help="of all processes together")
parser.add_argument("--out", required=True)
arguments = parser.parse_args()


def train(local_rank: int, batch_size: int) -> None:
    torch.manual_seed(0)
    device = idist.device()
    net = idist.auto_model(digits.Net())
    # `create_supervised_trainer` calls xm.optimizer_step for an xla device; `idist.auto_optim` raises a TypeError there.
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader: Any = idist.auto_dataloader(digits.images(), batch_size=batch_size, shuffle=False)
    trainer = create_supervised_trainer(
        net, optimizer, torch.nn.functional.cross_entropy, device=device
    )
    metrics = {"accuracy": Accuracy(), "loss": Loss(torch.nn.functional.cross_entropy)}
    evaluator = create_supervised_evaluator(net, metrics=metrics, device=device)
    losses = []

    @trainer.on(Events.ITERATION_COMPLETED)
    def remember() -> None:
        losses.append(trainer.state.output)

    trainer.run(loader, max_epochs=2)
    evaluator.run(loader)
    mine = torch.tensor(losses, device=device)
    gathered = idist.all_gather(mine).reshape(idist.get_world_size(), -1).mean(0)
    total = idist.all_reduce(float(idist.get_rank() + 1))
    name = idist.broadcast(f"rank {idist.get_rank()}", src=0, safe_mode=True)
    idist.barrier()
    if idist.get_rank() == 0:
        digits.write_report(
            arguments.out,
            gathered.tolist(),
            net,
            idist.get_world_size(),
            accuracy=evaluator.state.metrics["accuracy"],
            evaluated_loss=evaluator.state.metrics["loss"],
            total=total,
            name=name,
        )


if __name__ == "__main__":
    processes = arguments.processes if arguments.backend else None
    with idist.Parallel(backend=arguments.backend, nproc_per_node=processes) as parallel:
        parallel.run(train, arguments.batch_size)
