"""DLPack capsules, which hand memory from one library to another. The memory of xla tensors is their device's own."""

from typing import Any

import torch


def to_dlpack(xla_tensor: torch.Tensor) -> Any:
    """Raises RuntimeError: there is no memory to hand over."""
    raise RuntimeError(
        f"A tensor on {xla_tensor.device} has no memory that DLPack could hand over. Use tensor.cpu() for a copy that has."
    )


def from_dlpack(ext_tensor: Any) -> torch.Tensor:
    """A copy on the current xla device of another library's tensor, or of a capsule."""
    return torch.from_dlpack(ext_tensor).to("xla")
