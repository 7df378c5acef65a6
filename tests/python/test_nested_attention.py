"""Attention over nested tensors of the jagged layout: as over each sequence by itself."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import torch_xla  # noqa: F401

HEADS, WIDTH = 2, 8

CASES = {
    "of themselves": ((3, 5, 1), None, False),
    "causal": ((3, 5, 1), None, True),
    "of others": ((3, 5, 1), (4, 2, 6), False),
    "causal of others": ((3, 5, 1), (4, 2, 6), True),
    "an empty sequence": ((3, 0, 2), None, False),
    "one sequence": ((4,), None, True),
}


def drawn(lengths: tuple[int, ...], others: tuple[int, ...] | None) -> list[Tensor]:
    torch.manual_seed(0)
    return [
        torch.randn(sum(sizes), WIDTH) for sizes in (lengths, others or lengths, others or lengths)
    ]


def heads_of(x: Tensor) -> Tensor:
    return x.unflatten(-1, [HEADS, -1]).transpose(-3, -2)


def each_by_itself(lengths, others, is_causal) -> list[Tensor]:
    leaves = [x.requires_grad_() for x in drawn(lengths, others)]
    sizes = (lengths, others or lengths, others or lengths)
    sequences = zip(
        *(x.split(list(some)) for x, some in zip(leaves, sizes, strict=True)), strict=True
    )
    attended = [
        F.scaled_dot_product_attention(*map(heads_of, qkv), is_causal=is_causal)
        for qkv in sequences
    ]
    result = torch.cat([x.transpose(0, 1).flatten(-2) for x in attended])
    result.square().sum().backward()
    return [result.detach(), *(x.grad for x in leaves)]


def nested_on(device, lengths, others, is_causal) -> list[Tensor]:
    leaves = [x.to(device).requires_grad_() for x in drawn(lengths, others)]
    nested = []
    for values, sizes in zip(leaves, (lengths, others or lengths, others or lengths), strict=True):
        offsets = torch.tensor([0, *sizes]).cumsum(0).to(device)
        jagged = torch.nested.nested_tensor_from_jagged(values, offsets)
        nested.append(jagged.unflatten(-1, [HEADS, -1]).transpose(1, 2))
    attended = F.scaled_dot_product_attention(*nested, is_causal=is_causal)
    result = attended.transpose(1, 2).flatten(-2).values()
    result.square().sum().backward()
    return [result.detach().cpu(), *(x.grad.cpu() for x in leaves)]


@pytest.mark.parametrize("case", CASES)
def test_each_sequence_attends_by_itself(case, device):
    for expected, actual in zip(
        each_by_itself(*CASES[case]), nested_on(device, *CASES[case]), strict=True
    ):
        torch.testing.assert_close(actual, expected)


def test_on_the_cpu_it_is_torchs(device):
    expected = each_by_itself(*CASES["of themselves"])
    for one, other in zip(nested_on("cpu", *CASES["of themselves"]), expected, strict=True):
        torch.testing.assert_close(one, other)


def test_an_encoder_of_padded_sequences(device):
    layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 16, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=True).eval()
    x = torch.randn(2, 5, WIDTH)
    is_padding = torch.tensor([[False] * 3 + [True] * 2, [False] * 5])
    with torch.no_grad():
        expected = encoder(x, src_key_padding_mask=is_padding)
        encoder.to(device)
        actual = encoder(x.to(device), src_key_padding_mask=is_padding.to(device)).cpu()
    torch.testing.assert_close(actual[~is_padding], expected[~is_padding])
