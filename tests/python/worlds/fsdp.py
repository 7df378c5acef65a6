"""XlaFullyShardedDataParallel against one process that holds everything; the arguments name the checks."""

import functools
import os
import sys

import torch
import torch.nn as nn

import torch_xla
from torch_xla import runtime as xr
from torch_xla.core import xla_model as xm
from torch_xla.distributed import fsdp
from torch_xla.distributed.fsdp import consolidate_sharded_ckpts

STEPS = 3
WHOLE = 8
WIDTH = 12


class Block(nn.Module):
    """A layer with a buffer that is saved and a residual connection."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(WIDTH, affine=True)
        self.norm.eval()
        self.linear = nn.Linear(WIDTH, WIDTH)

    def train(self, mode: bool = True) -> "Block":
        super().train(mode)
        # The statistics of a part of the batch are not those of the whole.
        self.norm.eval()
        return self

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        return value + torch.tanh(self.linear(self.norm(value)))


class Model(nn.Module):
    """Blocks, and two layers that share their weights."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Linear(WIDTH, WIDTH, bias=False)
        self.blocks = nn.ModuleList([Block() for _ in range(2)])
        self.odd = nn.Linear(WIDTH, 5)
        self.back = nn.Linear(WIDTH, WIDTH)
        self.back.weight = self.embedding.weight

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        value = self.embedding(value)
        for block in self.blocks:
            value = block(value)
        return self.odd(self.back(value))


def make_model() -> Model:
    torch.manual_seed(3)
    return Model()


def batches() -> list[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(5)
    return [
        (torch.randn(WHOLE, WIDTH, generator=generator), torch.randn(WHOLE, 5, generator=generator))
        for _ in range(STEPS)
    ]


def alone(max_norm: float = 0.0, norm_type: float = 2.0) -> dict:
    """What one process computes with the whole batches."""
    model, losses, norms = make_model(), [], []
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for inputs, targets in batches():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        if max_norm:
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), max_norm, norm_type))
        optimizer.step()
        losses.append(loss.detach())
    return {"losses": torch.stack(losses), "norms": norms, "state": model.state_dict()}


def part(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.chunk(xr.world_size())[xr.global_ordinal()].to("xla")


def sharded(accumulate: bool = False, max_norm: float = 0.0, norm_type: float = 2.0, **options):
    """The same with a part of each batch and of each parameter."""
    model = fsdp.XlaFullyShardedDataParallel(make_model(), **options)
    assert all(parameter._is_sharded for parameter in model.parameters())
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    losses, norms = [], []
    for inputs, targets in batches():
        optimizer.zero_grad()
        inputs, targets = part(inputs), part(targets)
        if accumulate:
            half = len(inputs) // 2
            with model.no_sync():
                first = nn.functional.mse_loss(model(inputs[:half]), targets[:half]) / 2
                first.backward()
            assert all(value.grad is None for value in model.parameters())
            second = nn.functional.mse_loss(model(inputs[half:]), targets[half:]) / 2
            second.backward()
            loss = first + second
        else:
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
        if max_norm:
            norms.append(model.clip_grad_norm_(max_norm, norm_type))
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach())
    return model, torch.stack(losses), norms


def compare(expected: dict, tolerance: float = 1e-4, **options) -> nn.Module:
    model, losses, norms = sharded(**options)
    mean = xm.all_reduce(xm.REDUCE_SUM, losses.float(), 1.0 / xr.world_size()).cpu()
    torch.testing.assert_close(mean, expected["losses"], rtol=tolerance * 10, atol=tolerance)
    for norm, expected_norm in zip(norms, expected["norms"], strict=True):
        torch.testing.assert_close(norm.cpu(), expected_norm, rtol=1e-4, atol=1e-5)
    whole = consolidated(model)
    assert set(whole) == set(expected["state"])
    for name, value in expected["state"].items():
        torch.testing.assert_close(
            whole[name].float(), value.float(), rtol=tolerance * 10, atol=tolerance
        )
    return model


def consolidated(model: nn.Module) -> dict[str, torch.Tensor]:
    own = {
        "model": {name: value.cpu() for name, value in model.state_dict().items()},
        "shard_metadata": model.get_shard_metadata(),
    }
    return xm.mesh_reduce("state", own, fsdp.consolidate_sharded_state_dicts)


def wrap_blocks() -> functools.partial:
    return functools.partial(fsdp.wrap.transformer_auto_wrap_policy, transformer_layer_cls={Block})


def wrapped(model: nn.Module) -> list[str]:
    return [
        type(inner.module).__name__
        for inner in model.modules()
        if isinstance(inner, fsdp.XlaFullyShardedDataParallel)
    ]


def trains_as_one_process(index: int) -> None:
    expected = alone()
    compare(expected)
    compare(expected, reshard_after_forward=False)
    compare(expected, accumulate=True, auto_wrap_policy=wrap_blocks())
    # Parameters travel and are used as bfloat16; they are kept as float32.
    model = compare(
        expected,
        tolerance=5e-2,
        compute_dtype=torch.bfloat16,
        buffer_dtype=torch.float32,
        fp32_reduce_scatter=True,
    )
    assert {value.dtype for value in model.parameters()} == {torch.float32}


def wraps_what_policies_pick(index: int) -> None:
    expected = alone()
    model = fsdp.XlaFullyShardedDataParallel(make_model(), auto_wrap_policy=wrap_blocks())
    names = set(model.state_dict())
    for _ in range(2):
        described = repr(model)
        assert "Linear(in_features=12, out_features=5, bias=True)" in described, described
        assert "BatchNorm1d(12, " in described, described
        with model._lent():  # as a module that describes itself by its parameters and its parts
            repr(model)
            assert model.module.odd.weight is not None
        assert repr(model.module.odd) == "Linear(in_features=12, out_features=5, bias=True)"
    assert set(model.state_dict()) == names
    embedding = nn.Embedding(7, 4)
    in_two_places = nn.ModuleList([embedding, nn.Sequential(embedding, nn.Linear(4, 4))])
    assert repr(fsdp.XlaFullyShardedDataParallel(in_two_places)).count("Embedding(7, 4)") == 2
    by_size = functools.partial(fsdp.wrap.size_based_auto_wrap_policy, min_num_params=100)
    by_choice = functools.partial(
        fsdp.wrap.lambda_auto_wrap_policy, lambda_fn=lambda module: module.__class__ is Block
    )
    for policy, names in (
        (wrap_blocks(), ["Model", "Block", "Block"]),
        (by_choice, ["Model", "Block", "Block"]),
        (by_size, ["Model", "Block", "Linear", "Block", "Linear"]),
    ):
        model = compare(expected, auto_wrap_policy=policy) if policy is not by_size else None
        if model is not None:
            assert wrapped(model) == names, wrapped(model)
    made = []

    def wrapper(module: nn.Module, **options) -> nn.Module:
        made.append(type(module).__name__)
        return fsdp.XlaFullyShardedDataParallel(fsdp.checkpoint_module(module), **options)

    compare(
        expected,
        auto_wrap_policy=by_choice,
        auto_wrapper_callable=wrapper,
        mark_step_on_finalization=True,
    )
    assert made == ["Block", "Block"]
    nested = Model()
    nested.embedding = None
    model = fsdp.XlaFullyShardedDataParallel(nested, auto_wrap_policy=by_size)
    assert wrapped(model) == ["Model", "Linear", "Linear", "Linear"], wrapped(model)


def fills_parameters_of_the_meta_device(index: int) -> None:
    def fill(module: nn.Module) -> None:
        module.to_empty(device="cpu")
        for value in module.parameters():
            nn.init.constant_(value, 0.5)

    def layers() -> nn.Module:
        return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH), nn.Linear(WIDTH, 3))

    with torch.device("meta"):
        wholes = [layers() for _ in range(3)]
    policy = fsdp.wrap.always_wrap_policy
    model = fsdp.XlaFullyShardedDataParallel(wholes[0], param_init_fn=fill, auto_wrap_policy=policy)
    assert all((value.cpu()[:1] == 0.5).all() for value in model.parameters())
    model = fsdp.XlaFullyShardedDataParallel(wholes[1], auto_wrap_policy=policy)
    model(torch.ones(4, WIDTH, device="xla")).sum().backward()
    assert all(value.cpu().isfinite().all() for value in model.parameters())
    assert sum(value.std().item() > 0 for value in model.parameters()) >= 2
    wholes[2].extra = nn.Parameter(torch.empty(3, device="meta"))
    try:
        fsdp.XlaFullyShardedDataParallel(wholes[2])
    except ValueError as error:
        assert "Sequential are on the meta device" in str(error), error
    else:
        raise AssertionError("there is nothing that fills `extra`")


def clips_gradients(index: int) -> None:
    for norm_type in (2.0, 1.0, float("inf")):
        compare(
            alone(max_norm=0.1, norm_type=norm_type),
            max_norm=0.1,
            norm_type=norm_type,
            auto_wrap_policy=wrap_blocks(),
        )


def saves_parts_that_become_a_whole(index: int) -> None:
    prefix = os.environ["CHECKPOINT"]
    model, _, _ = sharded(auto_wrap_policy=wrap_blocks())
    held = sum(value.numel() for value in model.parameters())
    everything = sum(value.numel() for value in make_model().parameters())
    assert held < everything / xr.world_size() * 1.1 + 16
    checkpoint = {"model": model.state_dict(), "shard_metadata": model.get_shard_metadata()}
    path = f"{prefix}_rank-{index}-of-{xr.world_size()}.pth"
    xm.save(checkpoint, path, master_only=False)
    # Each process can go on from its own file.
    again = fsdp.XlaFullyShardedDataParallel(Model(), auto_wrap_policy=wrap_blocks())
    again.load_state_dict(torch.load(path, weights_only=False)["model"])
    inputs = part(batches()[0][0])
    torch.testing.assert_close(again(inputs).detach().cpu(), model(inputs).detach().cpu())
    if index == 0:
        whole, files = fsdp.consolidate_sharded_model_checkpoints(
            prefix, "_rank-*.pth", save_model=False
        )
        assert len(files) == xr.world_size()
        consolidate_sharded_ckpts.main(["--ckpt_prefix", prefix])
        saved = torch.load(prefix + "_consolidated.pth")["model"]
        plain = Model()
        plain.load_state_dict(saved)
        for name, value in alone()["state"].items():
            torch.testing.assert_close(saved[name], value, rtol=1e-3, atol=1e-4)
            assert torch.equal(saved[name], whole[name])
    xm.rendezvous("end")


def shards_within_groups(index: int) -> None:
    """Every process holds everything: each is a group of its own."""
    groups = [[r] for r in range(xr.world_size())]
    inputs = batches()[0][0]
    for place in ({"sharding_rank": 0, "sharding_world_size": 1}, {}):
        model = fsdp.XlaFullyShardedDataParallel(make_model(), sharding_groups=groups, **place)
        torch.testing.assert_close(
            model(inputs.to("xla")).detach().cpu(),
            make_model()(inputs).detach(),
            rtol=1e-4,
            atol=1e-5,
        )
    for wrong in ({"sharding_rank": 1}, {"sharding_world_size": 2}):
        try:
            fsdp.XlaFullyShardedDataParallel(make_model(), sharding_groups=groups, **wrong)
        except ValueError as error:
            assert "has place 0 among the 1 of its group" in str(error)
        else:
            raise AssertionError(f"{wrong} is no place in the group")


# Enough for a quarter of the model below, its gradients, its optimizer's state and one whole layer.
LIMIT = 40 * 2**20
LAYERS, SIZE = 16, 512


def train_a_large_model(index: int) -> None:
    """16 MiB of parameters: with gradients and the state of Adam 64 MiB, and as much again while a step runs."""
    torch.manual_seed(0)
    layers = [nn.Linear(SIZE, SIZE, bias=False) for _ in range(LAYERS)]
    if xr.world_size() == 1:
        model = nn.Sequential(*layers).to("xla")
    else:
        model = fsdp.XlaFullyShardedDataParallel(
            nn.Sequential(*map(fsdp.XlaFullyShardedDataParallel, layers))
        )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    inputs = torch.randn(4, SIZE, generator=torch.Generator().manual_seed(index)).to("xla")
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss = (model(inputs) - inputs).square().mean()
        loss.backward()
        optimizer.step()
        torch_xla.sync(wait=True)
        losses.append(loss.item())
    assert losses[-1] < losses[0], losses
    most = xm.get_memory_info()["peak_bytes_used"]
    xm.master_print(f"peak {most}")


def run(index: int, checks: list[str]) -> None:
    for check in checks:
        try:
            globals()[check](index)
        except Exception as error:
            raise AssertionError(f"{check} on rank {index}") from error


if __name__ == "__main__":
    torch_xla.launch(run, (sys.argv[1:],), start_method="fork")
    print("passed")
