"""The gated recurrent unit in one direction, where PyTorch/XLA has it. torch's own does the same here."""

import logging
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence


class GRU(nn.GRU):
    """`torch.nn.GRU` in one direction and without packed sequences; `bidirectional=True` gives torch's own.

    The arguments, parameters and results are those of `torch.nn.GRU`.
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("bidirectional"):
            logging.warning(
                "Scan-based GRU only supports unidirectional GRU; torch.nn.GRU takes its place, which has both directions."
            )
            return nn.GRU(*args, **kwargs)
        return super().__new__(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        assert kwargs.get("proj_size", 0) == 0, "GRU has no projection"
        super().__init__(*args, **kwargs)

    def forward(
        self, input: torch.Tensor, hx: torch.Tensor | None = None
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The outputs of all steps and the last hidden states, as `torch.nn.GRU`'s."""
        assert not isinstance(input, PackedSequence), "GRU takes a tensor, no packed sequence"
        return super().forward(input, hx)


# Where programs look for the class from before torch_xla was imported: it is the same.
nn.GRU._orig = nn.GRU  # type: ignore[attr-defined]
