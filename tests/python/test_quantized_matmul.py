"""Products with weights of 8-bit and 4-bit integers."""

import pytest
import torch

import torch_xla
import torch_xla.debug.metrics as metrics
from torch_xla import _XLAC
from torch_xla.experimental.custom_kernel import quantized_matmul_int8
from torch_xla.experimental.xla_quantized_matmul import XlaQuantizedLinear, quantized_matmul

X = torch.linspace(-2, 2, 2 * 3 * 6).reshape(2, 3, 6)
POINTS = torch.linspace(-0.1, 0.1, 8)


def weight(shape):
    """8-bit integers, and their scales for eight outputs."""
    size = torch.Size(shape).numel()
    return (torch.arange(size) * 37 % 255 - 127).to(torch.int8).reshape(shape)


def on_device(*tensors):
    return [tensor.to("xla") for tensor in tensors]


@pytest.mark.parametrize("quantize_activation", [False, True])
def test_scales_of_outputs(quantize_activation):
    w, scales = weight((8, 6)), torch.linspace(0.001, 0.01, 8)
    expected = X @ (w * scales[:, None] - POINTS[:, None]).t()
    given = (X, w, scales, POINTS)
    exact = {"rtol": 0, "atol": 0.05 if quantize_activation else 1e-5}
    for tensors in (given, on_device(*given)):
        result = quantized_matmul(*tensors, quantize_activation=quantize_activation)
        torch.testing.assert_close(result.cpu(), expected, **exact)
        again = quantized_matmul_int8(*tensors, None, quantize_activation)
        assert torch.equal(again.cpu(), result.cpu())


def test_scales_of_blocks():
    w, scales = weight((3, 2, 8)), torch.linspace(0.001, 0.01, 24).reshape(3, 8)
    points = scales.flip(0)
    expected = X @ (w * scales[:, None] - points[:, None]).reshape(6, 8)
    layer = XlaQuantizedLinear(6, 8, is_symmetric=False, block_size=2)
    layer.load_quantized_weight(w, scales, points)
    torch.testing.assert_close(layer(X), expected)
    torch.testing.assert_close(layer.to("xla")(X.to("xla")).cpu(), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("interpretation", ["always", "never"])
def test_the_plain_case_is_one_operation(dtype, interpretation):
    """Generation records it for each matrix and token."""
    x, w, scales = X.to(dtype), weight((8, 6)), torch.linspace(0.001, 0.01, 8)
    before = _XLAC._xla_get_interpretation()
    _XLAC._xla_set_interpretation(interpretation)
    try:
        given = on_device(x, w, scales)
        torch_xla.sync(wait=True)
        metrics.clear_all()
        for rows in (given[0], given[0][0], given[0][0, 0]):
            result = quantized_matmul(rows, *given[1:])
        assert metrics.counter_value("xla::quantized_linear") == 3
        assert not {"xla::linear", "xla::mul"} & set(metrics.counter_names())
        expected = torch.nn.functional.linear(x[0, 0], w.to(dtype)) * scales.to(dtype)
        assert result.dtype == dtype
        torch.testing.assert_close(result.cpu(), expected)
    finally:
        _XLAC._xla_set_interpretation(before)


@pytest.mark.filterwarnings("error:.*autograd kernel")
@pytest.mark.parametrize("differentiated", [(0,), (1,), (0, 1)])
def test_gradients(differentiated):
    """Of the input, as through a frozen layer to an adapter before it, and of the scales."""
    gradients = []
    for where in ("cpu", "xla"):
        given = [X.clone().to(where), torch.linspace(0.001, 0.01, 8).to(where)]
        for i in differentiated:
            given[i].requires_grad_()
        result = quantized_matmul(given[0], weight((8, 6)).to(where), given[1])
        result.square().sum().backward()
        gradients.append([given[i].grad.cpu() for i in differentiated])
    torch.testing.assert_close(gradients[1], gradients[0])


def test_half_precision_stays():
    w, scales = weight((8, 6)), torch.linspace(0.001, 0.01, 8)
    given = on_device(X.to(torch.bfloat16), w, scales, POINTS)
    compiled = torch.compile(quantized_matmul, backend="openxla")(*given, quantize_activation=True)
    assert compiled.dtype == torch.bfloat16 and compiled.shape == (2, 3, 8)


def test_what_does_not_fit_is_refused():
    w, scales = weight((8, 6)), torch.ones(8)
    with pytest.raises(TypeError, match="int8"):
        quantized_matmul(X, w.to(torch.int16), scales)
    with pytest.raises(ValueError, match=r"scaler is \[8\]"):
        quantized_matmul(X, w, torch.ones(6))
    with pytest.raises(ValueError, match="blocks"):
        quantized_matmul(X, w, scales, block_size=2)
    with pytest.raises(NotImplementedError, match="by rows"):
        quantized_matmul(X, weight((3, 2, 8)), torch.ones(3, 8), None, 2, False, True)
    with pytest.raises(NotImplementedError, match="scales of blocks"):
        quantized_matmul_int8(X, w, scales, quant_block_size=2)
    with pytest.raises(ValueError, match="divide"):
        XlaQuantizedLinear(6, 8, block_size=4)
    with pytest.raises(ValueError, match="zero point"):
        XlaQuantizedLinear(6, 8).load_quantized_weight(w, scales, POINTS)


@pytest.mark.parametrize("rows", [1, 8, 40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_layer_of_a_model(rows, dtype):
    """Few rows read the weight as it is, many a converted copy: the same numbers."""
    torch.manual_seed(0)
    w = torch.randint(-128, 128, (300, 200), dtype=torch.int8)
    x, scales = torch.randn(rows, 200).to(dtype), torch.rand(300).to(dtype) / 100
    expected = (x.double() @ w.double().t()) * scales.double()
    result = quantized_matmul(*on_device(x, w, scales)).cpu()
    assert result.dtype == dtype
    tolerance = 1e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(result.double(), expected, rtol=tolerance, atol=tolerance * 10)
