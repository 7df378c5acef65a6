"""Trains with accelerate: prepare, backward, gather, clipping, tracking of state.

accelerate launch --tpu train_accelerate.py --out DIR
"""

import argparse
import pathlib
from typing import Any

import digits
import torch
from accelerate import Accelerator
from accelerate.utils import broadcast_object_list, set_seed
from torch.utils.data import DataLoader

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=64, help="of each process")
parser.add_argument("--accumulate", type=int, default=1)
parser.add_argument("--resume", help="a folder of save_state to go on from")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--cpu", action="store_true")
parser.add_argument("--precision", default="no", help="no, bf16 or fp16")
parser.add_argument("--out", required=True)


def evaluate(accelerator: Accelerator, net: torch.nn.Module, loader: Any) -> float:
    """The accuracy over the whole set; the last batch is smaller and its padding dropped."""
    net.eval()
    right, count = 0, 0
    with torch.no_grad():
        for pixels, target in loader:
            guesses = net(pixels).argmax(1)
            guesses, target = accelerator.gather_for_metrics((guesses, target))
            right += int((guesses == target).sum())
            count += len(target)
    net.train()
    assert count == 200, count
    return right / count


def main() -> None:
    arguments = parser.parse_args()
    set_seed(0)
    accelerator = Accelerator(
        cpu=arguments.cpu,
        gradient_accumulation_steps=arguments.accumulate,
        mixed_precision=arguments.precision,
    )
    net = digits.Net()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    # accelerate steps a schedule once for each process.
    iterations = 64 * accelerator.num_processes
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.5, total_iters=iterations)
    train = DataLoader(digits.images(), arguments.batch_size)
    held_out = DataLoader(digits.images(200), arguments.batch_size)
    net, optimizer, train, held_out, schedule = accelerator.prepare(
        net, optimizer, train, held_out, schedule
    )
    if arguments.resume:
        accelerator.load_state(arguments.resume)
    losses = []
    for _ in range(arguments.epochs):
        for batch in train:
            with accelerator.accumulate(net):
                loss = digits.loss_of(net, batch)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(net.parameters(), 5.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append(loss.detach())
    gathered = accelerator.gather(torch.stack(losses)).reshape(accelerator.num_processes, -1)
    accuracy = evaluate(accelerator, net, held_out)
    total = accelerator.reduce(torch.tensor([1.0], device=accelerator.device), "sum")
    names = [f"rank {accelerator.process_index}"]
    broadcast_object_list(names)
    accelerator.save_state(str(pathlib.Path(arguments.out) / "state"))
    accelerator.wait_for_everyone()
    if accelerator.is_main_process:
        digits.write_report(
            arguments.out,
            gathered.mean(0).tolist(),
            accelerator.unwrap_model(net),
            accelerator.num_processes,
            accuracy=accuracy,
            total=float(total),
            name=names[0],
            distributed_type=str(accelerator.distributed_type),
        )


if __name__ == "__main__":
    main()
