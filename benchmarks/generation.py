"""Tokens that a language model generates one after the other: eager, the xla device and JAX, by turns in one process.

    python -m benchmarks.generation                      one thread; a markdown table
    python -m benchmarks.generation --rows "float32 static 1" --tokens 32 --rounds 3
    python -m benchmarks.generation --measure 1 "int8 static 1"       one row; its figures as JSON

A row is the weights' type, the kind of cache of keys and values, and the batch. The model has GPT-2's sizes, 124 million random
weights. `int8` are weights of 8 bits with a scale for each output, and activations of f32: `torch._weight_int8pack_mm` in eager,
`torch.ops.xla.quantized_matmul` here. A dynamic cache grows with each token, which JAX would compile a program for; a static one
has the last token's length from the start. Each token is read before the next is computed, as a program does that looks for the
end. The figures are milliseconds of a token, the median of the quickest round, and the rate at which the weights that a token
needs went by; beside it stands the rate at which one thread reads memory.
"""

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

VOCABULARY, LENGTH, SIZE, HEADS, LAYERS = 50257, 1024, 768, 12, 12
PROMPT = 128
ROWS = (
    "float32 dynamic 1",
    "float32 static 1",
    "float32 dynamic 8",
    "float32 static 8",
    "bfloat16 dynamic 1",
    "bfloat16 static 1",
    "bfloat16 static 8",
    "int8 static 1",
    "int8 static 8",
)
BYTES = {"float32": 4, "bfloat16": 2, "int8": 1}
# Generates as many tokens; the milliseconds of each, the prompt's first.
Generate = Callable[[int], list[float]]


def _timed(first: Callable[[], Any], following: Callable[[Any], Any], tokens: int) -> list[float]:
    """`first` reads the prompt, `following` what it or the call before gave; both return once their token is read."""
    times, state = [], None
    for i in range(tokens):
        start = time.perf_counter()
        state = first() if i == 0 else following(state)
        times.append((time.perf_counter() - start) * 1e3)
    return times


def _torch_generation(device: str, kind: str, cache: str, batch: int, tokens: int) -> Generate:
    import torch
    import torch.nn.functional as F
    from torch import nn

    import torch_xla
    import torch_xla.experimental.xla_quantized_matmul
    from benchmarks import models

    class Int8Linear(nn.Module):
        def __init__(self, linear: nn.Linear) -> None:
            super().__init__()
            scale = linear.weight.abs().amax(1) / 127
            weight = (linear.weight / scale[:, None]).round().to(torch.int8)
            self.register_buffer("weight", weight.detach().contiguous())
            self.register_buffer("scale", scale.detach())
            self.bias = linear.bias

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if x.device.type == "xla":
                y = torch.ops.xla.quantized_matmul(x, self.weight, self.scale)
            else:
                rows = x.flatten(0, -2)
                y = torch._weight_int8pack_mm(rows, self.weight, self.scale).view(*x.shape[:-1], -1)
            return y if self.bias is None else y + self.bias

    class Cache:
        """Keys and values of a layer."""

        def __init__(self, dtype: torch.dtype) -> None:
            shape = (batch, HEADS, PROMPT + tokens if cache == "static" else 0, SIZE // HEADS)
            self.kept = [torch.zeros(shape, dtype=dtype).to(device) for _ in range(2)]

        def updated(self, positions: torch.Tensor, *new: torch.Tensor) -> list[torch.Tensor]:
            if cache == "static":
                for kept, part in zip(self.kept, new, strict=True):
                    kept.index_copy_(2, positions, part)
            else:
                self.kept = [
                    torch.cat((kept, part), 2) for kept, part in zip(self.kept, new, strict=True)
                ]
            return self.kept

    class Layer(models.GPTLayer):
        def forward(self, x, kept, positions, mask):  # type: ignore[override, no-untyped-def]
            n, length, size = x.shape
            q, k, v = self.qkv(self.norm1(x)).split(size, dim=2)
            q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
            k, v = kept.updated(positions, k, v)
            causal = mask is None and length > 1
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, is_causal=causal)
            x = x + self.out(y.transpose(1, 2).reshape(n, length, size))
            return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))

    torch.manual_seed(0)
    model = models.GPT(VOCABULARY, LENGTH, SIZE, HEADS, 0)
    model.layers = nn.ModuleList(Layer(SIZE, HEADS, 0.0) for _ in range(LAYERS))
    dtype = torch.bfloat16 if kind == "bfloat16" else torch.float32
    model = model.eval().requires_grad_(False).to(dtype)
    if kind == "int8":
        for layer in model.layers:
            for name in ("qkv", "out", "up", "down"):
                setattr(layer, name, Int8Linear(getattr(layer, name)))
        model.head = Int8Linear(model.head)
    model = model.to(device)
    if kind != "int8":
        model.tie_weights()
    prompt = torch.randint(VOCABULARY, (batch, PROMPT)).to(device)
    places = torch.arange(PROMPT + tokens).to(device)

    @torch.no_grad()
    def step(words: torch.Tensor, positions: torch.Tensor, caches: list[Cache]) -> Any:
        mask = places <= positions[:, None] if cache == "static" else None
        x = model.tokens(words) + model.positions(positions)
        for layer, kept in zip(model.layers, caches, strict=True):
            x = layer(x, kept, positions, mask)
        words = model.head(model.norm(x[:, -1:])).argmax(-1)
        if device == "xla":
            torch_xla.sync()
        words[0, 0].item()
        return words, positions[-1:] + 1, caches

    def generate(count: int) -> list[float]:
        caches = [Cache(dtype) for _ in range(LAYERS)]
        return _timed(lambda: step(prompt, places[:PROMPT], caches), lambda s: step(*s), count)

    return generate


def _jax_generation(kind: str, batch: int, tokens: int) -> Generate:
    """A static cache, donated from token to token; the prompt and a token are a program each."""
    import jax
    import jax.numpy as jnp

    from benchmarks import jax_workloads

    parameters, _ = jax_workloads.gpt(VOCABULARY, LENGTH, SIZE, HEADS, LAYERS)
    dtype = jnp.bfloat16 if kind == "bfloat16" else jnp.float32

    def quantized(w: jax.Array) -> Any:
        scale = jnp.abs(w).max(0) / 127
        return jnp.round(w / scale).astype(jnp.int8), scale

    parameters["head"] = parameters["tokens"].T
    if kind == "int8":
        parameters["head"] = quantized(parameters["head"])
        for layer in parameters["layers"]:
            for name in ("qkv", "out", "up", "down"):
                layer[name]["w"] = quantized(layer[name]["w"])
    elif kind == "bfloat16":
        parameters = jax.tree.map(lambda x: x.astype(dtype), parameters)

    def times(x: jax.Array, w: Any) -> jax.Array:
        return (x @ w[0].astype(x.dtype)) * w[1] if isinstance(w, tuple) else x @ w

    def apply(p: Any, x: jax.Array) -> jax.Array:
        return times(x, p["w"]) + p["b"]

    def attention(p: Any, x: jax.Array, kept: jax.Array, start: jax.Array) -> Any:
        n, length, size = x.shape
        q, k, v = jnp.moveaxis(apply(p["qkv"], x).reshape(n, length, 3, HEADS, -1), 2, 0)
        kept = jax.lax.dynamic_update_slice(kept, jnp.stack((k, v)), (0, 0, start, 0, 0))
        scores = jnp.einsum("nqhd,nkhd->nhqk", q, kept[0]) / math.sqrt(size // HEADS)
        seen = jnp.arange(kept.shape[2]) <= start + jnp.arange(length)[:, None]
        weights = jax.nn.softmax(jnp.where(seen, scores, -jnp.inf))
        mixed = jnp.einsum("nhqk,nkhd->nqhd", weights, kept[1]).reshape(n, length, size)
        return apply(p["out"], mixed), kept

    def step(p: Any, words: jax.Array, start: jax.Array, caches: list[jax.Array]) -> Any:
        places = start + jnp.arange(words.shape[1])
        h, new = p["tokens"][words] + p["positions"][places], []
        for layer, kept in zip(p["layers"], caches, strict=True):
            x = jax_workloads._layer_norm(layer["norm1"], h)
            mixed, kept = attention(layer, x, kept, start)
            h, new = h + mixed, [*new, kept]
            wide = jax.nn.gelu(apply(layer["up"], jax_workloads._layer_norm(layer["norm2"], h)))
            h = h + apply(layer["down"], wide)
        logits = times(jax_workloads._layer_norm(p["norm"], h[:, -1:]), p["head"])
        return jnp.argmax(logits, -1), start + words.shape[1], new

    jitted = jax.jit(step, donate_argnums=3)
    prompt = jax_workloads._integers(VOCABULARY, batch, PROMPT)

    def read(state: Any) -> Any:
        int(state[0][0, 0])
        return state

    def generate(count: int) -> list[float]:
        shape = (2, batch, PROMPT + tokens, HEADS, SIZE // HEADS)
        caches = [jnp.zeros(shape, dtype) for _ in range(LAYERS)]
        return _timed(
            lambda: read(jitted(parameters, prompt, jnp.int32(0), caches)),
            lambda state: read(jitted(parameters, *state)),
            count,
        )

    return generate


def _stream_rate() -> float:
    """GB/s that one thread reads, of 256 MiB."""
    import torch

    x = torch.ones(1 << 26)
    best = math.inf
    for _ in range(5):
        start = time.perf_counter()
        x.sum()
        best = min(best, time.perf_counter() - start)
    return x.numel() * 4 / best * 1e-9


def measure(row: str, threads: int, tokens: int, rounds: int) -> dict[str, Any]:
    """Milliseconds of the prompt and of a token, for each side; GB/s that memory is read at."""
    limit_threads(threads)
    import torch

    torch.set_num_threads(threads)
    kind, cache, batch = row.split()
    sides: dict[str, Generate] = {
        "eager": _torch_generation("cpu", kind, cache, int(batch), tokens),
        "xla": _torch_generation("xla", kind, cache, int(batch), tokens),
    }
    if cache == "static":
        sides["jax"] = _jax_generation(kind, int(batch), tokens)
    prompts: dict[str, float] = dict.fromkeys(sides, math.inf)
    best: dict[str, float] = dict.fromkeys(sides, math.inf)
    for _ in range(rounds):
        for side, generate in sides.items():
            prompt, *following = generate(tokens)
            prompts[side] = min(prompts[side], prompt)
            best[side] = min(best[side], statistics.median(following))
    return {"prompt": prompts, "token": best, "stream": _stream_rate()}


def _cell(figures: dict[str, Any], row: str, side: str) -> str:
    kind, _, batch = row.split()
    if side not in figures["token"]:
        return ""
    milliseconds = figures["token"][side]
    weights = LAYERS * 12 * SIZE * SIZE + VOCABULARY * SIZE
    rate = weights * BYTES[kind] / milliseconds * 1e-6
    return f"{milliseconds:.1f}, {int(batch) / milliseconds * 1e3:.0f}/s, {rate:.1f} GB/s"


def main() -> None:
    """Prints the table, or the figures of one row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", nargs="+", default=ROWS)
    parser.add_argument("--tokens", type=int, default=24)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--measure", nargs=2, metavar=("THREADS", "ROW"))
    arguments = parser.parse_args()
    if arguments.measure:
        threads, row = arguments.measure
        print(json.dumps(measure(row, int(threads), arguments.tokens, arguments.rounds)))
        return
    print("| weights, cache, batch | eager, ms a token | xla | jax | xla to the best | GB/s |")
    print("|---|---:|---:|---:|---:|---:|")
    for row in arguments.rows:
        options = ["--tokens", str(arguments.tokens), "--rounds", str(arguments.rounds)]
        figures = figures_of(
            "benchmarks.generation", ["--measure", str(arguments.threads), row, *options]
        )
        if figures is None:
            continue
        best = min(time for side, time in figures["token"].items() if side != "xla")
        cells = " | ".join(_cell(figures, row, side) for side in ("eager", "xla", "jax"))
        share = figures["token"]["xla"] / best
        print(f"| {row} | {cells} | {share:.2f} | {figures['stream']:.1f} |", flush=True)


if __name__ == "__main__":
    main()
