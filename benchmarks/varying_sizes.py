"""Programs whose sizes vary from step to step: text has lengths, generation grows by a token, batches end short, and counts
depend on the data.

A program is a function that makes a run for a device: each call of the run takes all steps, training on with the weights that
there are, and yields the number that a user would read after each. Inputs and first weights come from a fixed seed, so every
device yields the same numbers.
"""

import math
from collections.abc import Callable, Iterator

import torch
import torch.nn.functional as F
from torch import nn, optim

from benchmarks import models

Run = Callable[[], Iterator[float]]
# Compiles a function or a module with the peer's compiler.
Compiler = Callable[[Callable], Callable]

# What the programs of text share, JAX's too.
VOCABULARY, LONGEST, WIDTH, HEADS, LAYERS = 512, 160, 128, 4, 3


def sample(device: str, compiler: Compiler) -> Run:
    """GPT of 3 layers, width 128: 100 tokens, each from the whole sequence so far (no cache)."""
    model = models.GPT(VOCABULARY, LONGEST, WIDTH, HEADS, LAYERS).to(device).eval()
    model.tie_weights()
    compiled = compiler(model)
    start = torch.randint(VOCABULARY, (1, 8)).to(device)

    @torch.no_grad()
    def run() -> Iterator[float]:
        tokens = start
        for _ in range(100):
            token = compiled(tokens)[:, -1].argmax(-1, keepdim=True)
            tokens = torch.cat((tokens, token), 1)
            yield token.item()

    return run


def generate(device: str, compiler: Compiler) -> Run:
    """A decoder of 3 layers, width 128, batch 4: 64 tokens with a cache of keys and values that grows by concatenation."""
    layers = nn.ModuleList(models.GPTLayer(WIDTH, HEADS, 0.0) for _ in range(LAYERS)).to(device)
    embedding = nn.Embedding(VOCABULARY, WIDTH).to(device)
    start = torch.randint(VOCABULARY, (4, 1)).to(device)

    def step(token: torch.Tensor, cache: list[tuple[torch.Tensor, torch.Tensor]]):
        x, grown = embedding(token), []
        for layer, (keys, values) in zip(layers, cache, strict=True):
            q, k, v = layer.qkv(layer.norm1(x)).split(WIDTH, dim=2)
            q, k, v = (t.unflatten(2, (HEADS, -1)).transpose(1, 2) for t in (q, k, v))
            keys, values = torch.cat((keys, k), 2), torch.cat((values, v), 2)
            grown.append((keys, values))
            x = x + layer.out(F.scaled_dot_product_attention(q, keys, values).mT.flatten(1, 2).mT)
            x = x + layer.down(F.gelu(layer.up(layer.norm2(x))))
        return (x[:, -1] @ embedding.weight.T).argmax(-1, keepdim=True), grown

    compiled = compiler(step)

    @torch.no_grad()
    def run() -> Iterator[float]:
        token = start
        empty = torch.zeros(4, HEADS, 0, WIDTH // HEADS).to(device)
        cache = [(empty, empty)] * LAYERS
        for _ in range(64):
            token, cache = compiled(token, cache)
            yield token.sum().item()

    return run


def lengths(device: str, compiler: Compiler) -> Run:
    """Encoder of 3 layers, width 128, batch 8, AdamW: each batch is as long as its longest text, 20 to 139 tokens."""
    model = models.Encoder(VOCABULARY, 1, WIDTH, HEADS, LAYERS, dropout=0.0).to(device)
    compiled = compiler(model)
    optimizer = optim.AdamW(model.parameters(), lr=1e-4)
    longest = torch.randint(20, 140, (30,)).tolist()
    batches = [torch.randint(VOCABULARY, (8, length)) for length in longest]

    def run() -> Iterator[float]:
        for batch in batches:
            tokens = batch.to(device)
            logits = compiled(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), tokens.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    return run


def last_batch(device: str, compiler: Compiler) -> Run:
    """An MLP's epochs over 1,000 samples in batches of 64, of which the last has 40; then over 990 and 1,010."""
    model = models.MLP(64, 256, 10).to(device)
    compiled = compiler(model)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    inputs, targets = torch.randn(1010, 64), torch.randint(10, (1010,))

    def run() -> Iterator[float]:
        for count in (1000, 990, 1010):
            batches = zip(inputs[:count].split(64), targets[:count].split(64), strict=True)
            for x, y in batches:
                loss = F.cross_entropy(compiled(x.to(device)), y.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                yield loss.item()

    return run


def pairs(device: str, compiler: Compiler) -> Run:
    """Metric learning: a contrastive loss over the pairs of a batch of 64 that are hard, however many there are."""
    model = models.MLP(32, 128, 64).to(device)
    compiled = compiler(model)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    inputs, labels = torch.randn(30, 64, 32), torch.randint(8, (30, 64))

    def run() -> Iterator[float]:
        for x, y in zip(inputs.to(device), labels.to(device), strict=True):
            points = F.normalize(compiled(x), dim=1)
            similar = points @ points.T
            same = y[:, None] == y[None, :]
            positive = similar[same & (similar < 0.9)]
            negative = similar[~same & (similar > 0.1)]
            loss = (1 - positive).sum() / 64 + F.relu(negative - 0.1).sum() / 64
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    return run


def graphs(device: str, compiler: Compiler) -> Run:
    """Two graph convolutions over batches of graphs, of 100 to 300 nodes and 300 to 900 edges."""
    width = 64
    first, second = nn.Linear(16, width).to(device), nn.Linear(width, 4).to(device)
    optimizer = optim.SGD([*first.parameters(), *second.parameters()], lr=0.01)
    batches = []
    for _ in range(30):
        nodes, edges = (int(n) for n in torch.randint(100, 300, (2,)))
        ends = torch.randint(nodes, (2, 3 * edges))
        batches.append((torch.randn(nodes, 16), ends, torch.randint(4, (nodes,))))

    def convolve(x: torch.Tensor, ends: torch.Tensor, linear: nn.Linear) -> torch.Tensor:
        messages = linear(x)
        return messages.index_add(0, ends[1], messages[ends[0]])

    def loss_of(x: torch.Tensor, ends: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(convolve(F.relu(convolve(x, ends, first)), ends, second), y)

    compiled = compiler(loss_of)

    def run() -> Iterator[float]:
        for batch in batches:
            loss = compiled(*(tensor.to(device) for tensor in batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    return run


def experts(device: str, compiler: Compiler) -> Run:
    """A mixture of 4 experts, one by one over the tokens that chose them: batches of 64 tokens of width 64."""
    router = nn.Linear(64, 4).to(device)
    mixture = nn.ModuleList(models.MLP(64, 128, 64) for _ in range(4)).to(device)
    compiled = [compiler(expert) for expert in mixture]
    inputs = torch.randn(20, 64, 64)

    @torch.no_grad()
    def run() -> Iterator[float]:
        for x in inputs.to(device):
            choice = router(x).argmax(-1)
            result = torch.zeros_like(x)
            for i, expert in enumerate(compiled):
                rows = torch.where(choice == i)[0]
                result.index_add_(0, rows, expert(x[rows]))
            yield result.sum().item()

    return run


def windows(device: str, compiler: Compiler) -> Run:
    """A language model's batches: windows of 35 of a text of 1,500 words, of which the last is shorter."""
    model = models.GPT(VOCABULARY, LONGEST, WIDTH, HEADS, 1).to(device)
    model.tie_weights()
    compiled = compiler(model)
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    text = torch.randint(VOCABULARY, (1500, 4)).to(device)

    def run() -> Iterator[float]:
        for i in range(0, len(text) - 1, 35):
            length = min(35, len(text) - 1 - i)
            logits = compiled(text[i : i + length].T)
            loss = F.cross_entropy(logits.flatten(0, 1), text[i + 1 : i + 1 + length].T.flatten())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            yield loss.item()

    return run


def ode(device: str, compiler: Compiler) -> Run:
    """An ordinary differential equation by Heun's method with a step that adapts: a number is read at each."""
    field = models.MLP(8, 64, 8).to(device)
    compiled = compiler(field)
    start = torch.randn(16, 8).to(device)

    @torch.no_grad()
    def run() -> Iterator[float]:
        x, time, step = start, 0.0, 0.1
        while time < 10:
            slope = compiled(x)
            euler = x + step * slope
            heun = x + step / 2 * (slope + compiled(euler))
            error = (heun - euler).abs().max().item()
            if error < 1e-2:
                x, time = heun, time + step
            step *= min(2.0, max(0.5, 0.9 * math.sqrt(1e-2 / max(error, 1e-12))))
            yield error

    return run


PROGRAMS: dict[str, Callable[[str, Compiler], Run]] = {
    program.__name__: program
    for program in (
        sample,
        generate,
        lengths,
        last_batch,
        pairs,
        graphs,
        experts,
        windows,
        ode,
    )
}
