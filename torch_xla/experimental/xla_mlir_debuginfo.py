"""The operator `torch.ops.xla.write_mlir_debuginfo`: where an operation comes from, in the text of exported programs."""

import torch

from torch_xla import _XLAC
from torch_xla.experimental.custom_kernel import XLA_LIB

XLA_LIB.define("write_mlir_debuginfo(Tensor x, str data) -> Tensor")


@torch.library.impl(XLA_LIB, "write_mlir_debuginfo", "XLA")
def write_mlir_debuginfo_tensor(x: torch.Tensor, data: str) -> torch.Tensor:
    """The tensor; the operation that made it has the location `data`."""
    return _XLAC._xla_mark_location(x, data)


@torch.library.impl(XLA_LIB, "write_mlir_debuginfo", "CompositeExplicitAutograd")
def write_mlir_debuginfo(x: torch.Tensor, data: str) -> torch.Tensor:
    """The tensor: only programs for xla have locations."""
    return x.clone()


@torch.library.impl(XLA_LIB, "write_mlir_debuginfo", "Meta")
def write_mlir_debuginfo_meta(x: torch.Tensor, data: str) -> torch.Tensor:
    """A tensor of the same shape."""
    return torch.empty_like(x)


torch.library.register_autograd(
    "xla::write_mlir_debuginfo", lambda _, gradient: (gradient, None), lib=XLA_LIB
)
