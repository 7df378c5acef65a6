"""Scaled dot-product attention: one recorded operation where eager has a fused kernel, composed elsewhere; as eager."""

import itertools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

import torch_xla
import torch_xla.debug.metrics as metrics
from torch_xla.experimental.custom_kernel import flash_attention

TOLERANCES = {torch.float32: 1e-5, torch.float64: 1e-10, torch.bfloat16: 3e-2, torch.float16: 4e-3}
LENGTHS = ((5, 5), (4, 7), (9, 3), (1, 6))  # of queries and keys
MASKS: dict[str, Callable[[int, int], torch.Tensor | None]] = {
    "none": lambda queries, keys: None,
    "causal": lambda queries, keys: None,
    # The first query sees nothing.
    "bool": lambda queries, keys: (
        (torch.rand(queries, keys) > 0.3) & (torch.arange(queries) > 0)[:, None]
    ),
    "numbers": lambda queries, keys: torch.randn(2, 1, queries, keys),
    "row": lambda queries, keys: torch.randn(1, keys),
    "numbers and causal": lambda queries, keys: torch.randn(queries, keys),
}


# How batch, heads, positions and width of the operands lie, from the farthest apart to the nearest.
LAYOUTS = ((0, 2, 1, 3), (0, 1, 2, 3), (1, 0, 2, 3), (2, 0, 1, 3))


def operands(
    queries: int, keys: int, dtype: torch.dtype, device: str, layout: tuple[int, ...]
) -> list[torch.Tensor]:
    """Of batch 2, 3 heads, width 8."""
    back = [layout.index(d) for d in range(4)]
    sizes = [(2, 3, length, 8) for length in (queries, keys, keys)]
    tensors = [torch.randn([size[d] for d in layout]).to(dtype) for size in sizes]
    return [tensor.to(device).permute(back).requires_grad_() for tensor in tensors]


def attend(
    device: str,
    dtype: torch.dtype,
    lengths: tuple[int, int],
    mask: str,
    scale: float | None,
    layout: tuple[int, ...] = LAYOUTS[0],
):
    """The result and the gradients, on the CPU; the result's strides."""
    torch.manual_seed(0)
    inputs = operands(*lengths, dtype, device, layout)
    given = MASKS[mask](*lengths)
    if given is not None:
        given = given.to(device, given.dtype if given.dtype is torch.bool else dtype)
    result = F.scaled_dot_product_attention(*inputs, given, is_causal="causal" in mask, scale=scale)
    gradient = torch.randn(result.shape).to(device, dtype)
    gradients = torch.autograd.grad(result, inputs, gradient)
    return [t.detach().cpu() for t in (result, *gradients)], result.stride()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_is_as_eager(dtype: torch.dtype, mask: str) -> None:
    for lengths, scale in itertools.product(LENGTHS, (None, 0.3)):
        expected, strides = attend("cpu", dtype, lengths, mask, scale)
        actual, actual_strides = attend("xla", dtype, lengths, mask, scale)
        assert actual_strides == strides
        for ours, eagers in zip(actual, expected, strict=True):
            tolerance = TOLERANCES[dtype]
            torch.testing.assert_close(ours, eagers, rtol=tolerance, atol=tolerance)


# Of queries and keys, in blocks of which the CPU engine computes; the rest of a block, too.
LONGER = ((64, 128), (150, 300), (300, 300))


@pytest.mark.parametrize("is_compiled", [True, False], ids=["compiled", "interpreted first"])
@pytest.mark.parametrize("scale", [-0.5, 0.0])
def test_causal_scales_are_any(scale: float, is_compiled: bool, request) -> None:
    """torch's kernel for the CPU gives NaN for them; the formula does not."""
    if is_compiled:
        request.getfixturevalue("programs_only")
    ours = operands(5, 5, torch.float32, "xla", LAYOUTS[0])
    leaves = [x.detach().cpu().requires_grad_() for x in ours]
    query, key, value = leaves
    scores = (query @ key.mT * scale).masked_fill(~torch.ones(5, 5).tril().bool(), -torch.inf)
    expected = scores.softmax(-1) @ value
    expected.sin().sum().backward()
    result = F.scaled_dot_product_attention(*ours, is_causal=True, scale=scale)
    result.sin().sum().backward()
    torch.testing.assert_close(result.cpu(), expected)
    for mine, wanted in zip(ours, leaves, strict=True):
        torch.testing.assert_close(mine.grad.cpu(), wanted.grad)


@pytest.mark.usefixtures("programs_only")
@pytest.mark.parametrize("mask", MASKS)
def test_blocks_are_as_eager(mask: str) -> None:
    for lengths in LONGER:
        expected, _ = attend("cpu", torch.float32, lengths, mask, None)
        actual, _ = attend("xla", torch.float32, lengths, mask, None)
        torch.testing.assert_close(actual, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("programs_only")
def test_rows_of_the_lowest_number_weigh_all_keys_alike() -> None:
    """Masks of transformers' kind. Eager's fused kernel, which interpreted graphs run by, forgets by how many keys it has to
    divide.
    """
    for length in (7, 300):
        torch.manual_seed(0)
        mask = (torch.rand(length, length) > 0.7) * torch.finfo(torch.float32).min
        mask[1] = torch.finfo(torch.float32).min
        inputs = [torch.randn(2, 3, length, 8, requires_grad=True) for _ in range(3)]

        def gradients(device: str, inputs: list, mask: torch.Tensor) -> list[torch.Tensor]:
            moved = [x.detach().to(device).requires_grad_() for x in inputs]
            result = F.scaled_dot_product_attention(*moved, mask.to(device))
            return [g.cpu() for g in torch.autograd.grad(result.square().sum(), moved)]

        with sdpa_kernel(SDPBackend.MATH):
            expected = gradients("cpu", inputs, mask)
        torch.testing.assert_close(gradients("xla", inputs, mask), expected, rtol=1e-5, atol=1e-5)


def grouped(device: str, dtype: torch.dtype, mask: str, queries: int, keys: int) -> list:
    """Six heads of queries, two of keys and values: the result and the gradients."""
    torch.manual_seed(0)
    shapes = ((2, queries, 6, 8), (2, keys, 2, 8), (2, keys, 2, 8))
    inputs = [torch.randn(s).to(device, dtype).requires_grad_() for s in shapes]
    given = MASKS[mask](queries, keys)
    if given is not None:
        given = given.to(device, given.dtype if given.dtype is torch.bool else dtype)
    result = F.scaled_dot_product_attention(
        *(x.transpose(1, 2) for x in inputs), given, is_causal="causal" in mask, enable_gqa=True
    )
    gradients = torch.autograd.grad(result.square().sum(), inputs)
    return [t.detach().cpu() for t in (result, *gradients)]


@pytest.mark.parametrize("mask", [m for m in MASKS if m != "numbers and causal"])
@pytest.mark.parametrize("interprets", [True, False])
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_groups_of_heads_are_as_eager(
    dtype: torch.dtype, mask: str, interprets: bool, request: pytest.FixtureRequest
) -> None:
    if not interprets:
        request.getfixturevalue("programs_only")
    for lengths in ((5, 7), (70, 300)):
        actual = grouped("xla", dtype, mask, *lengths)
        expected = grouped("cpu", dtype, mask, *lengths)
        tolerance = 4 * TOLERANCES[dtype]
        torch.testing.assert_close(actual, expected, rtol=tolerance, atol=tolerance)


def test_groups_of_heads_are_one_operation() -> None:
    torch_xla.sync()
    metrics.clear_counters()
    grouped("xla", torch.float32, "causal", 5, 7)
    recorded = {name for name in metrics.counter_names() if name.startswith("xla::")}
    assert "xla::scaled_dot_product_attention" in recorded
    assert not recorded & {"xla::bmm", "xla::_safe_softmax", "xla::_softmax", "xla::repeat"}


@pytest.mark.parametrize(
    "off", [torch.enable_grad, torch.no_grad, torch.inference_mode], ids=lambda f: f.__name__
)
def test_is_one_operation(off: Callable) -> None:
    torch_xla.sync()
    metrics.clear_counters()
    with off():
        q, k, v = (torch.randn(2, 3, 5, 8).to("xla") for _ in range(3))
        F.scaled_dot_product_attention(q, k, v, is_causal=True)
    recorded = {name for name in metrics.counter_names() if name.startswith("xla::")}
    assert "xla::scaled_dot_product_attention" in recorded
    assert not recorded & {"xla::bmm", "xla::_safe_softmax", "xla::_softmax"}


def composed_programs() -> dict[str, Callable[[str], torch.Tensor]]:
    """What eager's fused kernel does not serve either, or a user has switched off."""

    def tensors(device: str, *shapes: tuple[int, ...]) -> list[torch.Tensor]:
        torch.manual_seed(0)
        return [torch.randn(shape).to(device) for shape in shapes]

    def three_dimensions(device: str) -> torch.Tensor:
        return F.scaled_dot_product_attention(*tensors(device, *[(3, 5, 8)] * 3))

    def other_width_of_values(device: str) -> torch.Tensor:
        return F.scaled_dot_product_attention(
            *tensors(device, (2, 3, 5, 8), (2, 3, 6, 8), (2, 3, 6, 4))
        )

    def gradient_of_a_mask(device: str) -> torch.Tensor:
        q, k, v, mask = tensors(device, *[(2, 3, 5, 8)] * 3, (5, 5))
        result = F.scaled_dot_product_attention(q, k, v, mask.requires_grad_())
        return torch.autograd.grad(result.square().sum(), mask)[0]

    def second_derivative(device: str) -> torch.Tensor:
        q, k, v = tensors(device, *[(2, 3, 5, 8)] * 3)
        q.requires_grad_()
        with sdpa_kernel(SDPBackend.MATH):
            result = F.scaled_dot_product_attention(q, k, v)
        (gradient,) = torch.autograd.grad(result.square().sum(), q, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), q)[0]

    def no_keys(device: str) -> torch.Tensor:
        return F.scaled_dot_product_attention(
            *tensors(device, (2, 3, 5, 8), (2, 3, 0, 8), (2, 3, 0, 8))
        )

    programs = (
        three_dimensions,
        other_width_of_values,
        gradient_of_a_mask,
        second_derivative,
        no_keys,
    )
    return {program.__name__: program for program in programs}


@pytest.mark.parametrize("name", composed_programs())
def test_the_rest_is_composed(name: str) -> None:
    program = composed_programs()[name]
    torch.testing.assert_close(program("xla").cpu(), program("cpu"), rtol=1e-5, atol=1e-5)


def test_forward_derivatives_are_composed() -> None:
    q, k, v = (torch.randn(2, 3, 5, 8, dtype=torch.float64).to("xla") for _ in range(3))
    _, tangent = torch.func.jvp(
        lambda q: F.scaled_dot_product_attention(q, k, v), (q,), (torch.ones_like(q),)
    )
    step = 1e-6
    plus, minus = (F.scaled_dot_product_attention(q + sign * step, k, v) for sign in (1, -1))
    torch.testing.assert_close(
        tangent.cpu(), ((plus - minus) / (2 * step)).cpu(), rtol=1e-6, atol=1e-8
    )


def test_dropout_draws() -> None:
    ones = torch.ones(1, 1, 64, 64, device="xla")
    result = F.scaled_dot_product_attention(ones, ones, ones, dropout_p=0.5).cpu()
    assert 0.9 < result.mean() < 1.1 and result.std() > 0.01


def test_wrong_operands_are_eagers_errors() -> None:
    q = torch.randn(2, 3, 5, 8, device="xla")
    with pytest.raises(RuntimeError, match="dropout > 0"):
        torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, q, q, 0.5)
    with pytest.raises(RuntimeError, match="same dtype"):
        F.scaled_dot_product_attention(q, q.double(), q)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("has_segments", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
def test_flash_attention_and_its_gradients_are_their_definition(
    causal: bool, has_segments: bool, has_bias: bool
) -> None:
    torch.manual_seed(0)
    leaves = [torch.randn(2, 3, 6, 8) for _ in range(3)] + [torch.randn(2, 3, 6, 6)] * has_bias
    # Each position sees itself at least.
    segments = torch.tensor([[0, 0, 1, 1, 1, 2], [3, 3, 3, 3, 0, 0]]) if has_segments else None
    gradient = torch.randn(2, 3, 6, 8)

    def defined(q, k, v, bias=None):
        scores = q @ k.mT * 0.7
        if bias is not None:
            scores = scores + bias
        if segments is not None:
            same = segments[:, None, :, None] == segments[:, None, None, :]
            scores = scores.masked_fill(~same, -torch.inf)
        if causal:
            scores = scores.masked_fill(~torch.ones(6, 6).bool().tril(), -torch.inf)
        return scores.softmax(-1) @ v

    def of_device(q, k, v, bias=None):
        of_rows = None if segments is None else segments.to("xla")
        return flash_attention(q, k, v, causal, of_rows, of_rows, 0.7, ab=bias)

    seen = []
    for function, device in ((defined, "cpu"), (of_device, "xla")):
        inputs = [x.to(device).requires_grad_() for x in leaves]
        result = function(*inputs)
        gradients = torch.autograd.grad(result, inputs, gradient.to(device))
        seen.append([x.detach().cpu() for x in (result, *gradients)])
    torch.testing.assert_close(seen[1], seen[0], atol=1e-5, rtol=1e-5)
