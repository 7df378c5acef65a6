"""Training that goes on after it was killed, with the same result as if it had not been.

torchrun --standalone --nproc-per-node=1 --max-restarts=3 examples/resume.py --folder RUN --kill-at 5 17

A checkpoint holds all that the next steps depend on: the model, the optimizer, the state of the random numbers, and the
number of the step, which decides the data. `xm.save` replaces the file whole, so a kill at any moment leaves a checkpoint
that loads.
"""

import argparse
import os
import pathlib
import signal

import torch
from torch import nn

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The data of a step, which is the same whenever the step is run."""
    generator = torch.Generator().manual_seed(1000 * rank + step)
    inputs = torch.randn(16, 8, generator=generator)
    return inputs, inputs.sum(dim=1, keepdim=True).sin()


class Training:
    """A model, its optimizer, and where they are kept."""

    def __init__(self, folder: pathlib.Path) -> None:
        torch_xla.manual_seed(1)
        torch.manual_seed(1)
        self.device = torch_xla.device()
        self.checkpoint = folder / "checkpoint.pt"
        layers = [nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1)]
        self.model = nn.Sequential(*layers).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.step = 0

    def save(self) -> None:
        state = {
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rng": xm.get_rng_state(),
            "step": self.step,
        }
        xm.save(state, self.checkpoint, global_master=True)

    def load(self) -> None:
        """Goes on where the last checkpoint was written, if there is one."""
        if not self.checkpoint.exists():
            return
        state = torch.load(self.checkpoint, weights_only=True)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        xm.set_rng_state(state["rng"])
        self.step = state["step"]

    def advance(self) -> torch.Tensor:
        """One step; its loss."""
        inputs, targets = (part.to(self.device) for part in batch(self.step, xr.global_ordinal()))
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(inputs), targets)
        loss.backward()
        xm.optimizer_step(self.optimizer)
        torch_xla.sync()
        self.step += 1
        return loss


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=pathlib.Path, required=True)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--save-every", type=int, default=10)
    parser.add_argument(
        "--kill-at",
        type=int,
        nargs="*",
        default=[],
        metavar="STEP",
        help="the n-th start kills itself before its n-th step named here",
    )
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    restart = int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0"))
    kill_at = arguments.kill_at[restart] if restart < len(arguments.kill_at) else None

    training = Training(arguments.folder)
    training.load()
    print(f"attempt {restart} starts at step {training.step}", flush=True)
    while training.step < arguments.steps:
        if training.step == kill_at and xr.global_ordinal() == xr.world_size() - 1:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = training.advance()
        if training.step % arguments.save_every == 0:
            training.save()
    xm.save(training.model.state_dict(), arguments.folder / "final.pt", global_master=True)
    xm.master_print(f"loss {loss.item():.6f}")


if __name__ == "__main__":
    main()
