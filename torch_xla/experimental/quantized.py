"""Tensors in integers and back: x ≈ (q - zero_point) · scale. What exporters call `quantized_decomposed`, by the reference's names."""

import torch


def _along(input: torch.Tensor, axis: int, values: float | torch.Tensor) -> torch.Tensor:
    """One value for each channel, which is a place along `axis`; a number is all channels'."""
    if not isinstance(values, torch.Tensor):
        return torch.tensor(values, device=input.device)
    shape = [1] * input.dim()
    shape[axis] = -1
    return values.to(input.device).reshape(shape)


def _quantized(
    input: torch.Tensor,
    scale: float | torch.Tensor,
    zero_point: int | torch.Tensor,
    limits: tuple[int, int],
    dtype: torch.dtype,
) -> torch.Tensor:
    if input.dtype in (torch.float16, torch.bfloat16):
        input = input.float()  # which do not have all of these integers
    return (torch.round(input * (1 / scale)) + zero_point).clamp(*limits).to(dtype)


def xla_quantize_per_tensor(
    input: torch.Tensor,
    scale: float,
    zero_point: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """Integers of `dtype` from quant_min to quant_max."""
    return _quantized(input, scale, zero_point, (quant_min, quant_max), dtype)


def xla_quantize_per_channel(
    input: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """The same with a scale and a zero point for each place along `axis`."""
    scale, zero_point = _along(input, axis, scale), _along(input, axis, zero_point)
    return _quantized(input, scale, zero_point, (quant_min, quant_max), dtype)


def xla_dequantize_per_tensor(
    input: torch.Tensor,
    scale: float | torch.Tensor,
    zero_point: int | torch.Tensor,
    axis: int,
    quant_min: int,
    quant_max: int,
    dtype: torch.dtype,
) -> torch.Tensor:
    """What `xla_quantize_per_channel` has made integers of, as floating-point numbers.

    The reference gives this name to the function of channels.
    """
    scale, zero_point = _along(input, axis, scale), _along(input, axis, zero_point)
    return (input.to(scale.dtype) - zero_point) * scale
