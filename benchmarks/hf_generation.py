"""`generate` of transformers: eager and the xla device, by turns in one process. Needs the package `transformers`.

    python -m benchmarks.hf_generation                   one thread; a markdown table
    python -m benchmarks.hf_generation --rows "gpt2 float32 dynamic 1" --tokens 32
    python -m benchmarks.hf_generation --measure "gpt2 float32 static 1"        one row; its figures as JSON

A row is the network, the weights' type, the cache of keys and values and the batch. The networks have 124 million (GPT-2's sizes)
and 134 million random weights (Llama's layers of the same width); a prompt of 128 tokens, and the likeliest token follows. The
figures are milliseconds of processor time of a call, its prompt included, for each new token, the least of the turns.
"""

import argparse
import copy
import json
import time
from typing import Any

from benchmarks.fresh_process import figures_of
from benchmarks.measure import limit_threads

PROMPT = 128
ROWS = tuple(
    f"{network} {kind} {cache} {batch}"
    for network in ("gpt2", "llama")
    for kind, cache, batch in (
        ("float32", "dynamic", 1),
        ("float32", "static", 1),
        ("float32", "dynamic", 8),
        ("bfloat16", "static", 1),
    )
)


def _network(name: str) -> Any:
    import transformers

    if name == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config())
    configuration = transformers.LlamaConfig(
        vocab_size=32000,
        hidden_size=768,
        intermediate_size=2048,
        num_hidden_layers=12,
        num_attention_heads=12,
    )
    return transformers.LlamaForCausalLM(configuration)


def measure(row: str, threads: int, tokens: int, rounds: int) -> dict[str, float]:
    """Milliseconds of a token for each side."""
    limit_threads(threads)
    import torch

    import torch_xla  # noqa: F401

    torch.set_num_threads(threads)
    name, kind, cache, batch = row.split()
    torch.manual_seed(0)
    model = _network(name).eval().to(getattr(torch, kind))
    models = {"eager": model, "xla": copy.deepcopy(model).to("xla")}
    models["xla"].tie_weights()
    prompt = torch.randint(1000, (int(batch), PROMPT))
    options = {"max_new_tokens": tokens, "min_new_tokens": tokens, "do_sample": False}
    if cache == "static":
        options["cache_implementation"] = "static"

    def milliseconds(side: str) -> float:
        words = prompt.to(models[side].device)
        mask = torch.ones_like(words)
        start = time.process_time()
        models[side].generate(words, attention_mask=mask, pad_token_id=0, **options).cpu()
        return (time.process_time() - start) / tokens * 1e3

    turns = [[milliseconds(side) for side in models] for _ in range(rounds)]
    return dict(zip(models, map(min, zip(*turns[1:], strict=True)), strict=True))


def main() -> None:
    """Prints the table, or the figures of one row."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", nargs="+", default=ROWS)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=3, help="the first of which does not count")
    parser.add_argument("--measure", metavar="ROW")
    arguments = parser.parse_args()
    if arguments.measure:
        figures = measure(arguments.measure, arguments.threads, arguments.tokens, arguments.rounds)
        print(json.dumps(figures))
        return
    print("| network, weights, cache, batch | eager, ms a token | xla | ratio |")
    print("|---|---:|---:|---:|")
    options = [f"--{name}={getattr(arguments, name)}" for name in ("threads", "tokens", "rounds")]
    for row in arguments.rows:
        figures = figures_of("benchmarks.hf_generation", ["--measure", row, *options])
        if figures is None:
            continue
        eager, xla = figures["eager"], figures["xla"]
        print(f"| {row} | {eager:.1f} | {xla:.1f} | {xla / eager:.2f} |", flush=True)


if __name__ == "__main__":
    main()
