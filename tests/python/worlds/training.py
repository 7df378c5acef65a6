"""Training in several processes gives what one process gives with the whole batch.

Arguments: the number of processes, and the ways, which the same processes take one after the other.
"""

import os
import sys

import torch
import torch.distributed as dist
import torch.nn as nn

import torch_xla
import torch_xla.distributed.xla_backend
import torch_xla.distributed.xla_multiprocessing as xmp
from torch_xla import runtime as xr
from torch_xla.core import xla_model as xm

STEPS = 4
WHOLE = 16


def make_model() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 2))


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(5)
    return [
        (torch.randn(WHOLE, 6, generator=generator), torch.randn(WHOLE, 2, generator=generator))
        for _ in range(STEPS)
    ]


def optimizer_of(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.05)


def alone() -> tuple[list[float], dict[str, torch.Tensor]]:
    model, losses = make_model(), []
    optimizer = optimizer_of(model)
    for inputs, targets in batches():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model.state_dict()


def part(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.chunk(xr.world_size())[xr.global_ordinal()].to("xla")


def compare(losses: list[torch.Tensor], state: dict[str, torch.Tensor]) -> None:
    expected_losses, expected_state = alone()
    means = [xm.all_reduce(xm.REDUCE_SUM, loss, 1.0 / xr.world_size()).item() for loss in losses]
    torch.testing.assert_close(
        torch.tensor(means), torch.tensor(expected_losses), rtol=1e-4, atol=1e-5
    )
    for name, value in expected_state.items():
        torch.testing.assert_close(state[name].cpu(), value, rtol=1e-3, atol=1e-4)


def by_optimizer_step(index: int) -> None:
    torch.manual_seed(index)
    model = make_model().to("xla")
    optimizer, losses = optimizer_of(model), []
    for inputs, targets in batches():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(part(inputs)), part(targets))
        loss.backward()
        xm.optimizer_step(optimizer, barrier=True)
        losses.append(loss.detach())
    compare(losses, model.state_dict())


def by_ddp(index: int) -> None:
    dist.init_process_group("xla", init_method="xla://")
    model = make_model().to("xla")
    with torch.no_grad():
        # DDP starts from the weights of rank 0.
        for parameter in model.parameters():
            parameter.mul_(1 if index == 0 else 0)
    ddp = nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.0003)
    optimizer, losses = optimizer_of(ddp), []
    for inputs, targets in batches():
        optimizer.zero_grad()
        inputs, targets = part(inputs), part(targets)
        half = len(inputs) // 2
        with ddp.no_sync():
            (nn.functional.mse_loss(ddp(inputs[:half]), targets[:half]) / 2).backward()
        (nn.functional.mse_loss(ddp(inputs[half:]), targets[half:]) / 2).backward()
        with torch.no_grad():
            losses.append(nn.functional.mse_loss(model(inputs), targets))
        optimizer.step()
        torch_xla.sync()
    compare(losses, model.state_dict())
    dist.destroy_process_group()


def by_ddp_in_full_graphs(index: int) -> None:
    """The reducer reads the order of its buckets in the second step, though the step is one graph."""
    dist.init_process_group("xla", init_method="xla://")
    ddp = nn.parallel.DistributedDataParallel(
        make_model().to("xla"), bucket_cap_mb=0.0003, gradient_as_bucket_view=True
    )
    optimizer, losses = optimizer_of(ddp), []

    def step(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(ddp(inputs), targets)
        loss.backward()
        optimizer.step()
        return loss.detach()

    compiled = torch_xla.compile(step, full_graph=True)
    for inputs, targets in batches():
        losses.append(compiled(part(inputs), part(targets)))
    compare(losses, ddp.module.state_dict())

    def reads(value: torch.Tensor) -> float:
        return (value + 1).sum().item()

    try:
        torch_xla.compile(reads, full_graph=True)(losses[0])
    except RuntimeError as error:
        assert "Unexpected execution" in str(error)
    else:
        raise AssertionError("a value was read in a full graph")
    dist.destroy_process_group()


def by_zero_redundancy(index: int) -> None:
    from torch.distributed.optim import ZeroRedundancyOptimizer

    dist.init_process_group("xla", init_method="xla://")
    model = make_model().to("xla")
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.05)
    losses = []
    for inputs, targets in batches():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(part(inputs)), part(targets))
        loss.backward()
        xm.reduce_gradients(optimizer)
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach())
    compare(losses, model.state_dict())
    dist.destroy_process_group()


def by_own_zero_redundancy(index: int) -> None:
    from torch_xla.distributed.zero_redundancy_optimizer import ZeroRedundancyOptimizer

    def make(model: nn.Module) -> ZeroRedundancyOptimizer:
        return ZeroRedundancyOptimizer(
            model.parameters(), torch.optim.AdamW, lr=0.0, grad_clipping=False
        )

    model = make_model().to("xla")
    optimizer, losses = make(model), []
    # As a scheduler does.
    optimizer.param_groups[0]["lr"] = 0.05
    for step, (inputs, targets) in enumerate(batches()):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(part(inputs)), part(targets))
        loss.backward()
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach())
        if step == 1:
            # From here on another one goes on.
            saved = optimizer.state_dict()
            optimizer = make(model)
            optimizer.load_state_dict(saved)
    compare(losses, model.state_dict())
    held = sum(
        state["exp_avg"].numel()
        for state in optimizer.base_optimizer.state_dict()["state"].values()
    )
    everything = sum(value.numel() for value in model.parameters())
    assert held <= everything / xr.world_size() + len(list(model.parameters())) * 8


def by_zero_redundancy_in_bfloat16(index: int) -> None:
    """Gradients are summed in float32, and a saved state has what bfloat16 loses: who goes on from it goes on exactly."""
    from torch_xla.distributed.zero_redundancy_optimizer import ZeroRedundancyOptimizer

    def train(is_interrupted: bool) -> dict[str, torch.Tensor]:
        def make() -> ZeroRedundancyOptimizer:
            return ZeroRedundancyOptimizer(
                model.parameters(),
                torch.optim.AdamW,
                lr=1e-4,
                use_grad_acc_hook=True,
                save_master_weights=True,
            )

        model = make_model().bfloat16().to("xla")
        optimizer = make()
        for step, (inputs, targets) in enumerate(batches()):
            optimizer.zero_grad()
            for half in range(2):
                x, y = (part(tensor).chunk(2)[half].bfloat16() for tensor in (inputs, targets))
                nn.functional.mse_loss(model(x), y).backward()
            weight = model[0].weight
            assert weight.grad is None and weight.main_grad.dtype == torch.float32
            optimizer.step()
            torch_xla.sync()
            if is_interrupted and step == 1:
                saved = optimizer.state_dict()
                assert saved["sharded_master_weights"][0].dtype == torch.float32
                optimizer = make()
                optimizer.load_state_dict(saved)
        return {name: value.cpu() for name, value in model.state_dict().items()}

    torch.testing.assert_close(train(True), train(False), rtol=0, atol=0)


def save_checkpoint(index: int) -> None:
    import torch.distributed.checkpoint as checkpoint

    dist.init_process_group("xla", init_method="xla://")
    state = {
        "model": {
            "shared": torch.arange(6.0, device="xla"),
            f"of {index}": torch.full((3,), float(index), device="xla"),
        }
    }
    checkpoint.save(state, checkpoint_id=os.environ["CHECKPOINT"])
    dist.destroy_process_group()


def load_checkpoint(index: int) -> None:
    import torch.distributed.checkpoint as checkpoint

    dist.init_process_group("xla", init_method="xla://")
    state = {"model": {"shared": torch.zeros(6, device="xla"), "of 0": torch.ones(3, device="xla")}}
    checkpoint.load(state, checkpoint_id=os.environ["CHECKPOINT"])
    assert state["model"]["shared"].device.type == "xla"
    assert state["model"]["shared"].tolist() == [0, 1, 2, 3, 4, 5]
    assert state["model"]["of 0"].tolist() == [0, 0, 0]
    dist.destroy_process_group()


def run(index: int, ways: list[str]) -> None:
    for way in ways:
        try:
            globals()[way](index)
        except Exception as error:
            raise AssertionError(f"{way} on rank {index}") from error


if __name__ == "__main__":
    if sys.argv[1] == "checkpoint":
        # Two worlds of different sizes, one after the other.
        xmp.spawn(save_checkpoint, nprocs=4, start_method="fork")
        xmp.spawn(load_checkpoint, nprocs=2, start_method="fork")
    else:
        xmp.spawn(run, (sys.argv[2:],), nprocs=int(sys.argv[1]), start_method="fork")
    print("passed")
