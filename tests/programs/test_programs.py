"""Small programs of the kinds that people write: what once went wrong."""

import io

import pytest
import torch
import torch.nn.functional as F
from small_programs import Programs, gives_what_eager_gives, learn
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import torch_xla  # noqa: F401

program = Programs()


class Experts(nn.Module):
    """A mixture: two experts for each token, whose tokens are sorted, counted, and multiplied in groups."""

    def __init__(self, width=16, experts=4):
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 32) / 8)
        self.down = nn.Parameter(torch.randn(experts, 32, width) / 8)

    def forward(self, tokens):
        weights, chosen = self.router(tokens).softmax(-1).topk(2)
        experts, order = chosen.flatten().sort(stable=True)
        last = len(self.up) - 1
        numbers = experts.float() if experts.device.type == "cpu" else experts.int()
        counts = torch.histc(numbers, bins=last + 1, min=0, max=last)
        ends = counts.cumsum(0, dtype=torch.int32)
        hidden = F.silu(F.grouped_mm(tokens[order // 2], self.up, offs=ends))
        outputs = F.grouped_mm(hidden, self.down, offs=ends) * weights.flatten()[order, None]
        return torch.zeros_like(tokens).index_add(0, order // 2, outputs)


@program
def mixture_of_experts(device):
    model, tokens = Experts(), torch.randn(10, 16)
    model.to(device)
    tokens = tokens.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    return learn(model, optimizer, lambda m: (m(tokens) - tokens).square().mean())


class Language(nn.Module):
    """A recurrent language model whose embedding predicts the words, too."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.body = nn.GRU(8, 8, batch_first=True)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.embed.weight

    def loss(self, words):
        hidden, _ = self.body(self.embed(words[:, :-1]))
        return F.cross_entropy(self.head(hidden).flatten(0, 1), words[:, 1:].flatten())


@program
def tied_language_model_saved_and_gone_on_with(device):
    model, words = Language(), torch.randint(20, (3, 7))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)  # before the move
    words = words.to(device)
    losses = learn(model.to(device), optimizer, lambda m: m.loss(words))
    file = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
    file.seek(0)
    state = torch.load(file)
    assert state["model"]["head.weight"].data_ptr() == state["model"]["embed.weight"].data_ptr()
    again = Language().to(device)
    optimizer = torch.optim.Adam(again.parameters(), lr=1e-2)
    again.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return losses + learn(again, optimizer, lambda m: m.loss(words))


class OnSphere(nn.Parameter):
    """A parameter of length one."""


class SphereDescent(torch.optim.Optimizer):
    """Steepest descent that keeps on the sphere what lives there."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 0.1})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for x in group["params"]:
                x.sub_(x.grad, alpha=group["lr"])
                if isinstance(x, OnSphere):
                    x.div_(x.norm())


@program
def parameters_on_a_manifold(device):
    model = nn.Linear(4, 1)
    model.weight = OnSphere(F.normalize(torch.randn(1, 4)))
    x = torch.randn(8, 4).to(device)
    optimizer = SphereDescent(model.to(device).parameters())
    losses = learn(model, optimizer, lambda m: (m(x) - 1).square().mean(), steps=4)
    return [*losses, model.weight.norm().item()]


@program
def optimizers_inside_of_backward(device):
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)), torch.randn(8, 4)
    optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    for parameter in model.parameters():
        parameter.register_post_accumulate_grad_hook(step)
    model.to(device)
    losses = []
    for _ in range(3):
        loss = (model(x.to(device)) - 1).square().mean()
        loss.backward()
        losses.append(loss.item())
    return losses


@program
def decay_by_a_parameters_attribute(device):
    model, x = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 1)), torch.randn(8, 4)
    for p in model[1].parameters():
        p.no_decay = True
    model.to(device)
    kept = [p for p in model.parameters() if getattr(p, "no_decay", False)]
    others = [p for p in model.parameters() if not getattr(p, "no_decay", False)]
    assert len(kept) == 2
    groups = [{"params": kept, "weight_decay": 0.0}, {"params": others, "weight_decay": 0.5}]
    optimizer = torch.optim.AdamW(groups, lr=1e-2)
    return learn(model, optimizer, lambda m: m(x.to(device)).square().mean())


@program
def convolution_over_a_graph(device):
    edges = torch.randint(6, (2, 30))
    model, features = nn.Linear(5, 3), torch.randn(6, 5)
    model.to(device)
    pairs = torch.unique(edges.to(device), dim=1)
    source, target = pairs
    degree = torch.bincount(target, minlength=6).clamp(min=1)

    def loss(model):
        messages = model(features.to(device))[source]
        mean = torch.zeros(6, 3, device=device).index_add(0, target, messages) / degree[:, None]
        return (mean - 1).square().mean()

    losses = learn(model, torch.optim.SGD(model.parameters(), lr=0.1), loss)
    return [*losses, *pairs.flatten().tolist()]


@program
def attention_with_a_mask_of_its_own(device):
    q, k, v = (torch.randn(1, 2, 16, 8).to(device) for _ in range(3))
    near = create_block_mask(
        lambda b, h, i, j: (i >= j) & (i - j < 6), None, None, 16, 16, device=device, BLOCK_SIZE=16
    )
    return flex_attention(q, k, v, block_mask=near).flatten().tolist()


@program
def compiled_by_default(device):
    model, x = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 1)), torch.randn(8, 4)
    model.to(device)
    x = x.to(device)
    # On the CPU, a compiler of C++ would be asked for what eager computes at once.
    called = torch.compile(model) if device.type == "xla" else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    return learn(called, optimizer, lambda m: (m(x) - 1).square().mean())


@pytest.mark.parametrize("run", program)
def test_gives_what_eager_gives(run):
    gives_what_eager_gives(run)
