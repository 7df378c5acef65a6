"""A loop that reads nothing before its end is one graph, which grows with its turns."""

import time

import pytest
import torch
import torch.nn.functional as F

import torch_xla
import torch_xla.debug.metrics as met


def _logits(table: torch.Tensor, projection: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """One layer of attention: for each of the tokens what may follow it."""
    x = F.layer_norm(table[tokens], (table.shape[1],))
    q, k, v = (x @ projection).chunk(3, dim=-1)
    x = x + F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return F.layer_norm(x + F.gelu(x), (table.shape[1],)) @ table.T


def test_a_loop_that_reads_nothing_compiles_quickly() -> None:
    torch.manual_seed(0)
    weights, start = (torch.randn(64, 32), torch.randn(32, 96)), torch.randint(64, (1, 8))
    table, projection, tokens = (x.to("xla") for x in (*weights, start))
    torch_xla.sync(wait=True)
    began = time.process_time()
    for _ in range(160):
        following = _logits(table, projection, tokens)[:, -1].argmax(-1, keepdim=True)
        tokens = torch.cat((tokens, following), 1)
    torch_xla.sync(wait=True)
    # Of the processor, so other work does not count: about 1 s, and 66 s while the time was quadratic and each turn had kernels of its own.
    assert time.process_time() - began < 15
    tokens = tokens.cpu()
    expected = _logits(*weights, tokens[:, :-1])[:, start.shape[1] - 1 :]
    chosen = expected.gather(2, tokens[:, start.shape[1] :, None])[..., 0]
    # Where two are equal but for rounding, either may follow.
    assert (expected.amax(2) - chosen).max() < 1e-3


# Of each row, stacked: how many operations, and what they are.
ROW_WISE = {
    "element-wise": (4, lambda row: torch.tanh(row * 2 + 1)),
    "with sums": (5, lambda row: torch.tanh(row * 2 + 1).softmax(0)),
    "products": (3, lambda row: row @ row.mul(2)),
}


def _stacked(function, rows: int) -> tuple[float, float]:
    """Processor seconds from the first operation to the result, and how far it is from eager's."""
    x = torch.randn(rows, 32)
    there = x.to("xla")
    torch_xla.sync(wait=True)
    began = time.process_time()
    result = torch.stack([function(there[i]) for i in range(rows)])
    torch_xla.sync(wait=True)
    seconds = time.process_time() - began
    expected = torch.stack([function(x[i]) for i in range(rows)])
    return seconds, (result.cpu() - expected).abs().max().item()


@pytest.mark.slow
@pytest.mark.usefixtures("programs_only")
@pytest.mark.parametrize("name", ROW_WISE)
def test_an_operation_more_takes_no_millisecond(name: str) -> None:
    operations, function = ROW_WISE[name]
    few, _ = _stacked(function, 16)
    programs, loops = (met.counter_value(n) or 0 for n in ("ProgramCompile", "LoopCompile"))
    many, difference = _stacked(function, 1040)
    assert met.counter_value("ProgramCompile") == programs + 1
    # A thousand equal operations are one kernel, whatever rows it is called for.
    assert (met.counter_value("LoopCompile") or 0) <= loops + 6
    assert many - few < 1e-3 * 1024 * operations
    assert difference < 1e-4
