"""Sixty programs whose steps are small: what a step costs around its kernels shows.

A program takes a device and returns a step, which returns a tensor of one element. They stand for families of networks
and of libraries; all weights are random.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import Tensor, nn

Step = Callable[[], Tensor]
Program = Callable[[str], Step]
PROGRAMS: dict[str, Program] = {}

WIDTH, HEADS, LENGTH, WORDS, BATCH = 32, 4, 12, 64, 2


def program(name: str) -> Callable[[Program], Program]:
    """Adds it to the table."""

    def add(make: Program) -> Program:
        PROGRAMS[name] = make
        return make

    return add


def training(
    device: str, model: nn.Module, loss: Callable[[nn.Module], Tensor], optimizer: Any = None
) -> Step:
    """A step of learning; Adam unless an optimizer is given."""
    model.to(device)
    learner = (optimizer or partial(torch.optim.Adam, lr=1e-3))(model.parameters())

    def step() -> Tensor:
        learner.zero_grad()
        value = loss(model)
        value.backward()
        learner.step()
        return value.detach()

    return step


def inference(device: str, model: nn.Module, run: Callable[[nn.Module], Tensor]) -> Step:
    """A step without gradients."""
    model.to(device).eval()

    def step() -> Tensor:
        with torch.no_grad():
            return run(model).sum()

    return step


# --- Transformers of ten families


class RmsNorm(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * self.weight


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate, self.up = nn.Linear(WIDTH, 64, bias=False), nn.Linear(WIDTH, 64, bias=False)
        self.down = nn.Linear(64, WIDTH, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Experts(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(WIDTH, 4)
        self.experts = nn.ModuleList(Gated() for _ in range(4))

    def forward(self, x: Tensor) -> Tensor:
        shares = self.router(x).softmax(-1)
        return sum(e(x) * shares[..., i : i + 1] for i, e in enumerate(self.experts))


def rotated(x: Tensor) -> Tensor:
    half = x.shape[-1] // 2
    places = torch.arange(x.shape[-2], device=x.device)[:, None]
    angles = places * torch.arange(1, half + 1, device=x.device).reciprocal()
    a, b = x.chunk(2, -1)
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), -1)


class Attention(nn.Module):
    """`kind`: plain, rotary, relative (a learned number for each distance) or disentangled (a product for each)."""

    def __init__(self, kind: str = "plain") -> None:
        super().__init__()
        self.kind = kind
        self.query, self.key, self.value, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(4))
        self.distances = nn.Embedding(2 * LENGTH, HEADS if kind == "relative" else WIDTH // HEADS)

    def bias(self, q: Tensor, length: int) -> Tensor:
        places = torch.arange(length, device=q.device)
        near = self.distances((places[:, None] - places).clamp(-LENGTH, LENGTH - 1) + LENGTH)
        if self.kind == "relative":
            return near.permute(2, 0, 1)
        return torch.einsum("bhid,ijd->bhij", q, near)

    def forward(self, x: Tensor, memory: Tensor | None = None, causal: bool = False) -> Tensor:
        memory = x if memory is None else memory
        q, k, v = (
            layer(y).view(*y.shape[:2], HEADS, -1).transpose(1, 2)
            for layer, y in ((self.query, x), (self.key, memory), (self.value, memory))
        )
        if self.kind in ("relative", "disentangled"):
            scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1]) + self.bias(q, x.shape[1])
            if causal:
                later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(
                    1
                )
                scores = scores.masked_fill(later, -1e9)
            seen = scores.softmax(-1) @ v
        else:
            if self.kind == "rotary":
                q, k = rotated(q), rotated(k)
            seen = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return self.out(seen.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(
        self, attention: str = "plain", norm: Any = None, mlp: Any = None, cross: bool = False
    ) -> None:
        super().__init__()
        norm = norm or partial(nn.LayerNorm, WIDTH)
        self.attention, self.norms = Attention(attention), nn.ModuleList(norm() for _ in range(3))
        self.cross = Attention() if cross else None
        self.mlp = (
            mlp() if mlp else nn.Sequential(nn.Linear(WIDTH, 64), nn.GELU(), nn.Linear(64, WIDTH))
        )

    def forward(self, x: Tensor, memory: Tensor | None = None, causal: bool = False) -> Tensor:
        x = x + self.attention(self.norms[0](x), causal=causal)
        if self.cross is not None:
            x = x + self.cross(self.norms[1](x), memory)
        return x + self.mlp(self.norms[2](x))


class Words(nn.Module):
    """A network over words, which predicts words. With `encoder`, they are those of an answer to it."""

    def __init__(
        self, block: Callable[[], Block], causal: bool, encoder: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.causal, self.encoder = causal, encoder
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(LENGTH + 1, WIDTH)
        self.blocks = nn.ModuleList(block() for _ in range(2))
        self.head = nn.Linear(WIDTH, WORDS)

    def forward(self, words: Tensor, source: Tensor | None = None) -> Tensor:
        memory = self.encoder(source) if self.encoder is not None else None
        x = self.words(words) + self.places.weight[: words.shape[1]]
        for block in self.blocks:
            x = block(x, memory, self.causal)
        return self.head(x)


class Encoder(nn.Module):
    """Blocks over what `embed` makes of the input."""

    def __init__(self, embed: nn.Module, block: Callable[[], Block] = Block) -> None:
        super().__init__()
        self.embed, self.block = embed, block()

    def forward(self, x: Tensor) -> Tensor:
        return self.block(self.embed(x))


class Patches(nn.Module):
    """Images, or spectra with one dimension, as a sequence."""

    def __init__(self, convolution: nn.Module) -> None:
        super().__init__()
        self.convolution = convolution

    def forward(self, x: Tensor) -> Tensor:
        return self.convolution(x).flatten(2).transpose(1, 2)


def _answers(embed: Callable[[], nn.Module], attention: str = "plain") -> Callable[[], Words]:
    return lambda: Words(
        partial(Block, attention, cross=True),
        causal=True,
        encoder=Encoder(embed(), partial(Block, attention)),
    )


def _words(device: str) -> Tensor:
    return torch.randint(WORDS, (BATCH, LENGTH)).to(device)


def _spectra(device: str) -> Tensor:
    return torch.randn(BATCH, 8, LENGTH).to(device)


_LLAMA = partial(Block, "rotary", RmsNorm, Gated)
# A family's network, and what an encoder reads.
FAMILIES: dict[str, tuple[Callable[[], Words], Callable[[str], Tensor] | None]] = {
    "gpt": (lambda: Words(Block, causal=True), None),
    "bert": (lambda: Words(Block, causal=False), None),
    "llama": (lambda: Words(_LLAMA, causal=True), None),
    "experts": (lambda: Words(partial(Block, "rotary", RmsNorm, Experts), causal=True), None),
    "deberta": (lambda: Words(partial(Block, "disentangled"), causal=False), None),
    "t5": (_answers(lambda: nn.Embedding(WORDS, WIDTH), "relative"), _words),
    "bart": (_answers(lambda: nn.Embedding(WORDS, WIDTH)), _words),
    "whisper": (_answers(lambda: Patches(nn.Conv1d(8, WIDTH, 3, padding=1))), _spectra),
}


def _language_training(family: str, device: str) -> Step:
    make, source = FAMILIES[family]
    words = _words(device)
    read = source(device) if source else None
    return training(
        device, make(), lambda m: F.cross_entropy(m(words, read).flatten(0, 1), words.flatten())
    )


def _language_generation(family: str, device: str) -> Step:
    """Words one after the other, each read, over a window that does not grow."""
    make, source = FAMILIES[family]
    model, words = make().to(device).eval(), _words(device)
    read = source(device) if source else None

    def step() -> Tensor:
        nonlocal words
        with torch.no_grad():
            following = model(words, read)[:, -1].argmax(-1, keepdim=True)
            words = torch.cat((words[:, 1:], following), 1)
            return following[0, 0]

    return step


for _family in FAMILIES:
    PROGRAMS[f"{_family} training"] = partial(_language_training, _family)
    PROGRAMS[f"{_family} generation"] = partial(_language_generation, _family)


@program("gpt sampling")
def _(device: str) -> Step:
    model, words = FAMILIES["gpt"][0]().to(device).eval(), _words(device)

    def step() -> Tensor:
        nonlocal words
        with torch.no_grad():
            best, places = (model(words)[:, -1] / 0.8).topk(10)
            drawn = torch.multinomial(best.softmax(-1), 1)
            words = torch.cat((words[:, 1:], places.gather(1, drawn)), 1)
            return words[0, -1]

    return step


def _images(device: str) -> Tensor:
    return torch.randn(BATCH, 3, 16, 16).to(device)


def _vit() -> nn.Module:
    return Encoder(Patches(nn.Conv2d(3, WIDTH, 4, 4)))


@program("vit training")
def _(device: str) -> Step:
    images = _images(device)
    return training(device, _vit(), lambda m: m(images).mean(1).logsumexp(-1).mean())


@program("vit inference")
def _(device: str) -> Step:
    images = _images(device)
    return inference(device, _vit(), lambda m: m(images))


class Clip(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.images, self.texts = _vit(), Encoder(nn.Embedding(WORDS, WIDTH))
        self.scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, images: Tensor, words: Tensor) -> Tensor:
        a, b = (F.normalize(x.mean(1), dim=-1) for x in (self.images(images), self.texts(words)))
        return a @ b.T * self.scale.exp()


@program("clip training")
def _(device: str) -> Step:
    images, words = _images(device), _words(device)
    pairs = torch.arange(BATCH).to(device)

    def loss(model: nn.Module) -> Tensor:
        scores = model(images, words)
        return F.cross_entropy(scores, pairs) + F.cross_entropy(scores.T, pairs)

    return training(device, Clip(), loss)


@program("clip inference")
def _(device: str) -> Step:
    images, words = _images(device), _words(device)
    return inference(device, Clip(), lambda m: m(images, words))


# --- Optimizers


def _mlp(*widths: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for a, b in pairwise(widths):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Lion(torch.optim.Optimizer):
    """An optimizer as people write them: a loop over the parameters."""

    def __init__(self, parameters: Iterator[nn.Parameter]) -> None:
        super().__init__(parameters, {"lr": 1e-3})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["average"] = torch.zeros_like(p)
                average = state["average"]
                p.mul_(1 - group["lr"] * 0.01)
                p.add_(average.mul(0.9).add(p.grad, alpha=0.1).sign_(), alpha=-group["lr"])
                average.mul_(0.99).add_(p.grad, alpha=0.01)


OPTIMIZERS: dict[str, Any] = {
    "sgd": partial(torch.optim.SGD, lr=1e-2),
    "momentum": partial(torch.optim.SGD, lr=1e-2, momentum=0.9, weight_decay=1e-4),
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "amsgrad": partial(torch.optim.Adam, amsgrad=True),
    "rmsprop": torch.optim.RMSprop,
    "adagrad": torch.optim.Adagrad,
    "adadelta": torch.optim.Adadelta,
    "adamax": torch.optim.Adamax,
    "nadam": torch.optim.NAdam,
    "radam": torch.optim.RAdam,
    "rprop": torch.optim.Rprop,
    "lion": Lion,
}


def _optimizer(name: str, device: str) -> Step:
    x, y = torch.randn(16, 8).to(device), torch.randn(16, 1).to(device)
    model = _mlp(8, 16, 16, 16, 16, 1)
    return training(device, model, lambda m: F.mse_loss(m(x), y), OPTIMIZERS[name])


for _name in OPTIMIZERS:
    PROGRAMS[f"optimizer {_name}"] = partial(_optimizer, _name)


# --- Probabilities


class Distribution(nn.Module):
    """One whose two parameters are learned from data."""

    def __init__(self, make: Callable[[Tensor, Tensor], D.Distribution]) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(8)), nn.Parameter(torch.zeros(8))
        self.make = make

    def forward(self) -> D.Distribution:
        return self.make(self.a, self.b)


def _likelihood(make: Callable[[Tensor, Tensor], D.Distribution], device: str) -> Step:
    data = torch.rand(32, 8).clamp(0.05, 0.95).to(device)
    return training(device, Distribution(make), lambda m: -m().log_prob(data).mean())


DISTRIBUTIONS: dict[str, Callable[[Tensor, Tensor], D.Distribution]] = {
    "normal": lambda a, b: D.Normal(a, b.exp()),
    "log-normal": lambda a, b: D.LogNormal(a, b.exp()),
    "beta": lambda a, b: D.Beta(a.exp(), b.exp()),
    "gamma": lambda a, b: D.Gamma(a.exp(), b.exp()),
    "mixture": lambda a, b: D.MixtureSameFamily(
        D.Categorical(logits=b[:2]), D.Normal(a[:2], b[2:4].exp())
    ),
    "student": lambda a, b: D.StudentT(b.exp() + 2, a, b.exp()),
}
for _name, _make in DISTRIBUTIONS.items():
    PROGRAMS[f"distribution {_name}"] = partial(_likelihood, _make)


@program("variational autoencoder")
def _(device: str) -> Step:
    x = torch.rand(16, 20).to(device)
    model = nn.ModuleDict({"encode": _mlp(20, 16, 8), "decode": _mlp(4, 16, 20)})

    def loss(m: nn.Module) -> Tensor:
        mean, deviation = m["encode"](x).chunk(2, -1)
        hidden = D.Normal(mean, deviation.exp())
        prior = D.Normal(torch.zeros_like(mean), torch.ones_like(mean))
        made = D.Bernoulli(logits=m["decode"](hidden.rsample()), validate_args=False)
        return D.kl_divergence(hidden, prior).sum() - made.log_prob(x).sum()

    return training(device, model, loss)


@program("gaussian process")
def _(device: str) -> Step:
    x, y = torch.linspace(0, 1, 16).to(device), torch.randn(16).to(device)

    def loss(m: nn.Module) -> Tensor:
        near = (-(x[:, None] - x).square() / m.a[0].exp()).exp()
        root = torch.linalg.cholesky(near + 0.1 * torch.eye(16, device=device))
        solved = torch.cholesky_solve(y[:, None], root)[:, 0]
        return y @ solved / 2 + root.diagonal().log().sum()

    return training(device, Distribution(D.Normal), loss)


# --- Graphs


class Convolution(nn.Module):
    """`kind`: gcn (weighted by degree), gin (a network of the sum), sage (the mean beside oneself) or gat (attention)."""

    def __init__(self, kind: str, edges: Tensor) -> None:
        super().__init__()
        self.kind = kind
        self.register_buffer("edges", edges)
        self.linear = nn.Linear(16 * (2 if kind == "sage" else 1), 16)
        self.second, self.score = nn.Linear(16, 16), nn.Linear(32, 1)

    def forward(self, x: Tensor) -> Tensor:
        source, target = self.edges
        if self.kind == "gat":
            x = self.linear(x)
            scores = F.leaky_relu(self.score(torch.cat((x[source], x[target]), -1)))[:, 0].exp()
            sums = torch.zeros_like(x[:, 0]).index_add(0, target, scores)
            return torch.zeros_like(x).index_add(
                0, target, x[source] * (scores / sums[target])[:, None]
            )
        summed = torch.zeros_like(x).index_add(0, target, x[source])
        degree = torch.ones_like(x[:, 0]).index_add(0, target, torch.ones_like(x[source, 0]))
        if self.kind == "gcn":
            return self.linear(summed / degree[:, None].sqrt())
        if self.kind == "sage":
            return self.linear(torch.cat((x, summed / degree[:, None]), -1))
        return self.second(self.linear(x + summed).relu())


def _graph(kind: str, device: str) -> Step:
    edges = torch.randint(20, (2, 60))
    model = nn.Sequential(Convolution(kind, edges), nn.ReLU(), Convolution(kind, edges))
    x, y = torch.randn(20, 16).to(device), torch.randint(16, (20,)).to(device)
    return training(device, model, lambda m: F.cross_entropy(m(x), y))


for _name in ("gcn", "gin", "sage", "gat"):
    PROGRAMS[f"graph {_name}"] = partial(_graph, _name)


# --- Equations


def runge_kutta(slope: Callable[[Tensor], Tensor], y: Tensor, width: float) -> Tensor:
    a = slope(y)
    b = slope(y + width / 2 * a)
    c = slope(y + width / 2 * b)
    return y + width / 6 * (a + 2 * b + 2 * c + slope(y + width * c))


@program("equation with fixed steps")
def _(device: str) -> Step:
    y = torch.randn(8, 4).to(device)

    def step() -> Tensor:
        nonlocal y
        for _ in range(10):
            y = runge_kutta(lambda z: torch.sin(z.roll(1, -1)) - z, y, 0.05)
        return y.sum()

    return step


@program("equation with steps of its choice")
def _(device: str) -> Step:
    start = torch.randn(8, 4).to(device)

    def step() -> Tensor:
        y, width = start, 0.2
        for _ in range(6):
            whole = runge_kutta(lambda z: -z * z.cos(), y, width)
            half = runge_kutta(lambda z: -z * z.cos(), y, width / 2)
            half = runge_kutta(lambda z: -z * z.cos(), half, width / 2)
            error = (whole - half).abs().max().item()
            width = min(0.4, width * 0.9 * (1e-4 / max(error, 1e-9)) ** 0.2)
            y = half
        return y.sum()

    return step


@program("equation whose slope is learned")
def _(device: str) -> Step:
    start, end = torch.randn(8, 4).to(device), torch.randn(8, 4).to(device)

    def loss(model: nn.Module) -> Tensor:
        y = start
        for _ in range(5):
            y = runge_kutta(model, y, 0.2)
        return F.mse_loss(y, end)

    return training(device, _mlp(4, 16, 4), loss)


@program("energy that is kept")
def _(device: str) -> Step:
    x = torch.randn(16, 4).to(device).requires_grad_()
    y = torch.randn(16, 4).to(device)

    def loss(model: nn.Module) -> Tensor:
        (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
        return F.mse_loss(slope, y)

    return training(device, _mlp(4, 16, 1), loss)


# --- Sequences, and networks of other kinds


def _recurrent(make: Callable[[], nn.Module], device: str) -> Step:
    x = torch.randn(4, 10, 8).to(device)
    return training(device, make(), lambda m: m(x)[0].square().mean())


PROGRAMS["lstm"] = partial(_recurrent, lambda: nn.LSTM(8, 16, batch_first=True))
PROGRAMS["gru"] = partial(_recurrent, lambda: nn.GRU(8, 16, 2, batch_first=True))


@program("packed sequences")
def _(device: str) -> Step:
    x = torch.randn(4, 10, 8).to(device)
    lengths = torch.tensor([10, 7, 5, 2])

    def loss(model: nn.Module) -> Tensor:
        packed = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)
        return (
            nn.utils.rnn.pad_packed_sequence(model(packed)[0], batch_first=True)[0].square().mean()
        )

    return training(device, nn.LSTM(8, 16, batch_first=True), loss)


@program("cells in a loop")
def _(device: str) -> Step:
    x = torch.randn(8, 4, 8).to(device)

    def loss(model: nn.Module) -> Tensor:
        hidden = torch.zeros(4, 16, device=device)
        for part in x:
            hidden = model(part, hidden)
        return hidden.square().mean()

    return training(device, nn.GRUCell(8, 16), loss)


def _images_classified(device: str) -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, 5),
    )
    images, classes = torch.randn(8, 1, 8, 8).to(device), torch.randint(5, (8,)).to(device)
    return model, lambda m: F.cross_entropy(m(images), classes)


@program("convolutions training")
def _(device: str) -> Step:
    return training(device, *_images_classified(device))


@program("convolutions inference")
def _(device: str) -> Step:
    return inference(device, *_images_classified(device))


@program("values of actions")
def _(device: str) -> Step:
    model, target = _mlp(4, 16, 3), _mlp(4, 16, 3).to(device)
    state, after = torch.randn(32, 4).to(device), torch.randn(32, 4).to(device)
    action, reward = torch.randint(3, (32, 1)).to(device), torch.randn(32).to(device)

    def loss(m: nn.Module) -> Tensor:
        with torch.no_grad():
            best = reward + 0.9 * target(after).max(-1).values
        return F.smooth_l1_loss(m(state).gather(1, action)[:, 0], best)

    return training(device, model, loss)


@program("policy")
def _(device: str) -> Step:
    states, rewards = torch.randn(32, 4).to(device), torch.randn(32).to(device)

    def loss(m: nn.Module) -> Tensor:
        chosen = D.Categorical(logits=m(states))
        return -(chosen.log_prob(chosen.sample()) * rewards).mean() - 0.01 * chosen.entropy().mean()

    return training(device, _mlp(4, 16, 3), loss)


@program("clipped gradients and averaged weights")
def _(device: str) -> Step:
    model, x = _mlp(8, 16, 16, 1).to(device), torch.randn(16, 8).to(device)
    averages = [p.detach().clone() for p in model.parameters()]
    learner = torch.optim.SGD(model.parameters(), lr=1e-2)

    def step() -> Tensor:
        learner.zero_grad()
        value = model(x).square().mean()
        value.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        learner.step()
        with torch.no_grad():
            for average, p in zip(averages, model.parameters(), strict=True):
                average.lerp_(p, 0.01)
        return value.detach()

    return step


@program("means of clusters")
def _(device: str) -> Step:
    points, centers = torch.randn(64, 4).to(device), torch.randn(5, 4).to(device)

    def step() -> Tensor:
        nonlocal centers
        nearest = torch.cdist(points, centers).argmin(-1)
        members = F.one_hot(nearest, 5).float()
        centers = members.T @ points / members.sum(0).clamp(min=1)[:, None]
        return centers.sum()

    return step
