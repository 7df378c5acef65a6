"""`flex_attention` on the device: torch's own composition, which it offers a list of device types without xla."""

import functools
from typing import Any

import torch


def register() -> None:
    """Makes torch's check of device types, which comes with the first import of flex_attention, pass xla."""
    from torch.nn.attention import flex_attention

    validate = flex_attention._validate_device

    @functools.wraps(validate)
    def validate_device(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> Any:
        if query.device.type != "xla":
            validate(query, key, value)

    flex_attention._validate_device = validate_device
