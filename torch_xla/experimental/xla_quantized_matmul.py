"""Products of matrices whose weights are 8-bit or 4-bit integers, scaled by output or by block of inputs."""

import torch
import torch.nn.functional as F
from torch.ao.quantization.fx import _decomposed as _decomposed  # the operators that make weights

from torch_xla import _XLAC
from torch_xla.experimental.custom_kernel import XLA_LIB


def _integer_product(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """x·wᵀ of 8-bit integers, [..., in] and [out, in], summed in 32 bits."""
    if x.device.type == "xla":
        dimensions = (([x.dim() - 1], [1]), ([], []))
        return _XLAC._xla_dot_general(x, w, dimensions, preferred_element_type=torch.int32)
    return x.to(torch.int32) @ w.to(torch.int32).t()


def _quantized(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows as 8-bit integers, and the scale of each."""
    scale = (x.abs().amax(dim=-1, keepdim=True) / 127).clamp(min=torch.finfo(x.dtype).tiny)
    return (x / scale).round().clamp(-128, 127).to(torch.int8), scale


def _per_channel(
    x: torch.Tensor, w: torch.Tensor, scaler: torch.Tensor, quantize_activation: bool
) -> torch.Tensor:
    if not quantize_activation:
        return F.linear(x, w.to(x.dtype)) * scaler.to(x.dtype)
    rows, scale = _quantized(x)
    return (_integer_product(rows, w) * scale * scaler).to(x.dtype)


def _blockwise(x: torch.Tensor, w: torch.Tensor, scaler: torch.Tensor) -> torch.Tensor:
    blocks = x.unflatten(-1, w.shape[:2])
    products = torch.einsum("...sc,scz->...sz", blocks, w.to(x.dtype))
    return torch.einsum("...sz,sz->...z", products, scaler.to(x.dtype))


def _check(
    w: torch.Tensor,
    scaler: torch.Tensor,
    zero_point: torch.Tensor | None,
    block_size: int,
    quantize_activation: bool,
) -> None:
    if w.dtype != torch.int8:
        raise TypeError(f"quantized_matmul: the weight is of int8 and not of {w.dtype}.")
    if w.dim() != (2 if block_size == -1 else 3):
        raise ValueError(
            "quantized_matmul: the weight is [out, in], and [blocks, block_size, out] with a block_size; "
            f"it has the shape {list(w.shape)}, and block_size is {block_size}."
        )
    if block_size not in (-1, w.shape[1]):
        raise ValueError(
            f"quantized_matmul: block_size is {block_size}, and the weight's blocks have {w.shape[1]}."
        )
    if block_size != -1 and quantize_activation:
        raise NotImplementedError(
            "quantized_matmul: activations are quantized by rows, and not with weights in blocks; leave one of "
            "block_size and quantize_activation."
        )
    expected = w.shape[:1] if block_size == -1 else (w.shape[0], w.shape[2])
    for name, tensor in (("scaler", scaler), ("zero_point", zero_point)):
        if tensor is not None and tensor.shape != expected:
            raise ValueError(
                f"quantized_matmul: {name} is {list(expected)} for this weight, and not {list(tensor.shape)}."
            )


def _quantized_matmul(
    x: torch.Tensor,
    w: torch.Tensor,
    scaler: torch.Tensor,
    zero_point: torch.Tensor | None = None,
    block_size: int = -1,
    int4_weight: bool = False,
    quantize_activation: bool = False,
) -> torch.Tensor:
    _check(w, scaler, zero_point, block_size, quantize_activation)
    if block_size == -1:
        product = _per_channel(x, w, scaler, quantize_activation)
        sums = x
        points = "...c,z->...z"
    else:
        product = _blockwise(x, w, scaler)
        sums = x.unflatten(-1, w.shape[:2])
        points = "...sc,sz->...z"
    if zero_point is None:
        return product
    return product - torch.einsum(points, sums, zero_point.to(x.dtype))


def quantized_matmul(
    x: torch.Tensor,
    w: torch.Tensor,
    scaler: torch.Tensor,
    zero_point: torch.Tensor | None = None,
    block_size: int = -1,
    int4_weight: bool = False,
    quantize_activation: bool = False,
) -> torch.Tensor:
    """x · dequantized(w)ᵀ, in x's type; `torch.ops.xla.quantized_matmul`.

    Args:
      x: [..., in], floating-point.
      w: int8, [out, in]; with a block_size [in / block_size, block_size, out].
      scaler: the weight's scales, [out]; with a block_size [in / block_size, out].
      zero_point: what is taken from each scaled weight, of scaler's shape.
      block_size: how many inputs share a scale; -1: all.
      int4_weight: the weight's values are of 4 bits, -8 to 7. They are computed with as 8-bit integers.
      quantize_activation: round each row of x to 8-bit integers and multiply integers.

    Raises:
      TypeError, ValueError: for other types and shapes.
      NotImplementedError: for quantize_activation with a block_size.
    """
    return torch.ops.xla.quantized_matmul(
        x, w, scaler, zero_point, block_size, int4_weight, quantize_activation
    )


def _meta(
    x: torch.Tensor,
    w: torch.Tensor,
    scaler: torch.Tensor,
    zero_point: torch.Tensor | None = None,
    block_size: int = -1,
    int4_weight: bool = False,
    quantize_activation: bool = False,
) -> torch.Tensor:
    _check(w, scaler, zero_point, block_size, quantize_activation)
    return x.new_empty(*x.shape[:-1], w.shape[0 if block_size == -1 else 2])


_SCHEMA = (
    "(Tensor x, Tensor w, Tensor scaler, Tensor? zero_point=None, int block_size=-1, bool int4_weight=False, "
    "bool quantize_activation=False) -> Tensor"
)
# On the device the plain case is one operation (aten/matmul.cc), which calls the second for all others.
XLA_LIB.define("quantized_matmul" + _SCHEMA)
XLA_LIB.define("_quantized_matmul" + _SCHEMA)
XLA_LIB.impl("_quantized_matmul", _quantized_matmul, "XLA")
XLA_LIB.impl("quantized_matmul", _quantized_matmul, "CompositeExplicitAutograd")
XLA_LIB.impl("quantized_matmul", _meta, "Meta")
for _name in ("quantized_matmul", "_quantized_matmul"):  # what they are composed of has derivatives
    XLA_LIB.impl(_name, torch.library.fallthrough_kernel, "Autograd")


class XlaQuantizedLinear(torch.nn.Module):
    """A linear layer without bias whose weight is of 8-bit or 4-bit integers, for inference; see `quantized_matmul`.

    Args:
      input_dim, output_dim: the layer's sizes.
      is_symmetric: there is no zero point.
      block_size: how many inputs share a scale; -1: all.
      int4_weight: the weight's values are of 4 bits.
      quantize_activation: inputs are rounded to 8 bits, too.
    """

    def __init__(
        self,
        input_dim: int,
        output_dim: int,
        is_symmetric: bool = True,
        block_size: int = -1,
        int4_weight: bool = False,
        quantize_activation: bool = False,
    ) -> None:
        super().__init__()
        if block_size != -1 and (block_size < 1 or input_dim % block_size):
            raise ValueError(f"block_size {block_size} does not divide the {input_dim} inputs.")
        self.input_dim = input_dim
        self.output_dim = output_dim
        self.is_symmetric = is_symmetric
        self.block_size = block_size
        self.int4_weight = int4_weight
        self.quantize_activation = quantize_activation
        blocks = input_dim // block_size
        weight, scales = (
            ((output_dim, input_dim), (output_dim,))
            if block_size == -1
            else ((blocks, block_size, output_dim), (blocks, output_dim))
        )
        self.register_buffer("weight", torch.zeros(weight, dtype=torch.int8))
        self.register_buffer("weight_scaler", torch.zeros(scales))
        self.register_buffer("zero_point", None if is_symmetric else torch.zeros(scales))

    def load_quantized_weight(
        self,
        weight: torch.Tensor,
        weight_scaler: torch.Tensor,
        zero_point: torch.Tensor | None = None,
    ) -> None:
        """Takes the weight, its scales, and the zero points of a layer that is not symmetric.

        Raises:
          ValueError: for other shapes, or a zero point too many or missing.
          TypeError: for a weight that is not of int8.
        """
        if (zero_point is None) != self.is_symmetric:
            raise ValueError(
                "A zero point is for layers that are not symmetric, and these need one."
            )
        if weight.shape != self.weight.shape:
            raise ValueError(f"weight is {list(self.weight.shape)}, and not {list(weight.shape)}.")
        _check(weight, weight_scaler, zero_point, self.block_size, self.quantize_activation)
        self.weight, self.weight_scaler, self.zero_point = weight, weight_scaler, zero_point

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """x [..., input_dim] gives [..., output_dim]."""
        return quantized_matmul(
            x,
            self.weight,
            self.weight_scaler,
            self.zero_point,
            self.block_size,
            self.int4_weight,
            self.quantize_activation,
        )
