"""Names of PyTorch/XLA's experimental modules that compute by themselves."""

import pytest
import torch

from torch_xla.experimental import quantized
from torch_xla.experimental.pytreeify import pytreeify
from torch_xla.experimental.splash_attention import SplashAttentionConfig, splash_attention


def written_out(q, k, v, seen, cap=None):
    """Attention of groups of heads, in double precision."""
    k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
    scores = q @ k.mT
    if cap is not None:
        scores = cap * torch.tanh(scores / cap)
    return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ v


SEGMENTS = torch.tensor([[0, 0, 1, 1, 1, 2, 2, 2]]).repeat(2, 1)
SAME = SEGMENTS[:, None, :, None] == SEGMENTS[:, None, None, :]
CAUSAL = torch.ones(8, 8, dtype=torch.bool).tril()
NEAR = (torch.arange(8)[:, None] - torch.arange(8)).abs() <= 2


@pytest.mark.parametrize(
    ("config", "arguments", "seen"),
    [
        ({}, {}, CAUSAL),
        ({}, {"causal": False}, torch.ones_like(CAUSAL)),
        ({}, {"decoder_segment_ids": SEGMENTS}, SAME & CAUSAL),
        ({}, {"attn_logits_soft_cap": 0.5}, CAUSAL),
        ({"attentiontype_local_sliding": True, "slide_window_size": 2}, {}, CAUSAL & NEAR),
        (
            {"attentiontype_local_sliding": True, "slide_window_size": 2},
            {"causal": False},
            NEAR,
        ),
    ],
    ids=["causal", "all", "segments", "capped", "window", "window to both sides"],
)
def test_splash_attention(config, arguments, seen):
    torch.manual_seed(0)
    heads = {"q": 4, "k": 2, "v": 2}
    given = [torch.randn(2, n, 8, 4, dtype=torch.double) for n in heads.values()]
    expected = written_out(
        *(x.requires_grad_() for x in given), seen, arguments.get("attn_logits_soft_cap")
    )
    expected.pow(2).sum().backward()
    ours = [x.detach().to("xla").requires_grad_() for x in given]
    moved = {
        name: x.to("xla") if isinstance(x, torch.Tensor) else x for name, x in arguments.items()
    }
    result = splash_attention(*ours, SplashAttentionConfig(**config).to_json(), **moved)
    result.pow(2).sum().backward()
    torch.testing.assert_close(result.cpu(), expected)
    for x, y in zip(ours, given, strict=True):
        torch.testing.assert_close(x.grad.cpu(), y.grad)


def test_a_configuration_goes_through_json():
    config = SplashAttentionConfig(sa_block_q=8, qkv_partition_spec=(("a", "b"), None, "c", None))
    assert SplashAttentionConfig.from_json(config.to_json()) == config
    q = torch.ones(1, 1, 2, 2, device="xla")
    with pytest.raises(ValueError, match="slide_window_size"):
        splash_attention(q, q, q, SplashAttentionConfig(attentiontype_local_sliding=True).to_json())


def test_a_capped_row_that_sees_nothing_is_zero():
    config = SplashAttentionConfig(attentiontype_local_sliding=True, slide_window_size=2).to_json()
    q, k, v = (torch.randn(1, 2, n, 4, device="xla", requires_grad=True) for n in (12, 5, 5))
    for cap in (None, 5.0):
        result = splash_attention(q, k, v, config, attn_logits_soft_cap=cap)
        assert result[:, :, 7:].abs().max() == 0
        gradients = torch.autograd.grad(result.square().sum(), (q, k, v))
        assert all(x.isfinite().all() for x in gradients)
        with pytest.raises(ValueError, match="4 heads of q cannot share 3 of k"):
            splash_attention(
                *(torch.ones(1, n, 2, 4, device="xla") for n in (4, 3, 3)),
                config,
                attn_logits_soft_cap=cap,
            )


def test_quantized_tensors():
    x = torch.tensor([[-3.0, 0.25, 0.75], [1.26, 2.0, 900.0]], device="xla")
    whole = quantized.xla_quantize_per_tensor(x, 0.5, 3, -128, 127, torch.int8)
    assert whole.dtype == torch.int8 and whole.tolist() == [[-3, 3, 5], [6, 7, 127]]
    scales, points = torch.tensor([0.5, 2.0]), torch.tensor([1, 0])
    limits = 0, -128, 127, torch.int8
    channels = quantized.xla_quantize_per_channel(x, scales, points, *limits)
    assert channels.tolist() == [[-5, 1, 3], [1, 1, 127]]
    back = quantized.xla_dequantize_per_tensor(channels, scales, points, *limits)
    assert back.tolist() == [[-3.0, 0.0, 1.0], [2.0, 2.0, 254.0]]
    assert quantized.xla_dequantize_per_tensor(whole, 0.5, 3, *limits)[0].tolist() == [-3, 0, 1]
    # All integers of the result, not only those that the input's type has.
    halves = torch.tensor([127.5, 254.0], dtype=torch.bfloat16, device="xla")
    wide = -32768, 32767, torch.int16
    assert quantized.xla_quantize_per_tensor(halves, 0.1, 3, *wide).tolist() == [1278, 2543]


@pytreeify
class Scaled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, tree, factor):
        ctx.save_for_backward(tree["x"][0])
        ctx.factor = factor
        return {"y": tree["x"][0] * factor}, [tree["z"] * 2]

    @staticmethod
    def backward(ctx, scaled, doubled):
        assert ctx.saved_tensors[0].shape == scaled["y"].shape
        return {"x": [scaled["y"] * ctx.factor], "z": doubled[0] * 20}, None


def test_a_function_of_structures_has_its_own_derivative():
    x, z = (torch.ones(3, device="xla", requires_grad=True) for _ in range(2))
    first, second = Scaled.apply({"x": [x], "z": z}, 5)
    (first["y"].sum() + second[0].sum()).backward()
    assert first["y"].tolist() == [5.0] * 3 and second[0].tolist() == [2.0] * 3
    assert x.grad.tolist() == [5.0] * 3 and z.grad.tolist() == [20.0] * 3


def test_a_derived_class_runs_its_own_functions():
    class Doubled(Scaled):
        @staticmethod
        def forward(ctx, tree, factor):
            return Scaled.forward(ctx, tree, 2 * factor)

    x = torch.ones(3, device="xla", requires_grad=True)
    first, _ = Doubled.apply({"x": [x], "z": torch.ones(3, device="xla")}, 5)
    first["y"].sum().backward()
    assert first["y"].tolist() == x.grad.tolist() == [10.0] * 3


@pytest.mark.parametrize("several", [tuple, list])
def test_a_function_of_structures_is_told_which_arguments_need_gradients(several):
    needed = []

    @pytreeify
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, tree, factor):
            ctx.save_for_backward(factor)
            return tree["x"] * factor

        @staticmethod
        def backward(ctx, gradient):
            needed.append(ctx.needs_input_grad)
            return several(({"x": gradient * ctx.saved_tensors[0], "n": None}, None))

    x, y = (torch.full((3,), 2.0, device="xla", requires_grad=True) for _ in range(2))
    Product.apply({"x": x, "n": 1}, y.detach()).sum().backward()
    assert x.grad.tolist() == [2.0] * 3
    Product.apply({"x": x.detach(), "n": 1}, y).sum().backward()
    assert needed == [(True, False), (False, True)]
