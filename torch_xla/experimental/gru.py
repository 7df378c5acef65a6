"""The gated recurrent unit in one direction, as one loop over the sequence for each layer."""

import logging
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.rnn import PackedSequence

from .scan import scan


class GRU(nn.GRU):
    """`torch.nn.GRU` in one direction and without packed sequences; `bidirectional=True` gives torch's own.

    The arguments, parameters and results are those of `torch.nn.GRU`. On xla a layer is a `scan` over the sequence: the program
    has one step, however long the sequence is.
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
        if self.bidirectional or input.device.type != "xla" or input.dim() not in (2, 3):
            return super().forward(input, hx)
        is_batched = input.dim() == 3
        sequence_dim = 1 if self.batch_first and is_batched else 0
        xs = input.transpose(0, sequence_dim)
        if hx is None:
            hx = xs.new_zeros(self.num_layers, *xs.shape[1:-1], self.hidden_size)
        batch_dim = 0 if self.batch_first else 1
        self.check_forward_args(
            input if is_batched else input.unsqueeze(batch_dim),
            hx if is_batched else hx.unsqueeze(1),
            None,
        )
        last = []
        for layer, weights in enumerate(self.all_weights):
            if layer > 0:
                xs = F.dropout(xs, self.dropout, self.training)
            hidden, xs = _run_layer(xs, hx[layer], *weights)
            last.append(hidden)
        return xs.transpose(0, sequence_dim), torch.stack(last)


def _run_layer(
    xs: torch.Tensor,
    hidden: torch.Tensor,
    input_weight: torch.Tensor,
    hidden_weight: torch.Tensor,
    input_bias: torch.Tensor | None = None,
    hidden_bias: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The last hidden state, and all of them. What depends on the input alone is one product for the whole sequence."""
    gates = F.linear(xs, input_weight, input_bias)
    carry = {"hidden": hidden, "weight": hidden_weight, "bias": hidden_bias}
    last, outputs = scan(_step, carry, gates, is_fn_pure=True)
    return last["hidden"], outputs


def _step(carry: dict[str, Any], from_input: torch.Tensor) -> tuple[dict[str, Any], torch.Tensor]:
    reset_in, update_in, new_in = from_input.chunk(3, -1)
    from_hidden = F.linear(carry["hidden"], carry["weight"], carry["bias"])
    reset_hidden, update_hidden, new_hidden = from_hidden.chunk(3, -1)
    update = torch.sigmoid(update_in + update_hidden)
    new = torch.tanh(new_in + torch.sigmoid(reset_in + reset_hidden) * new_hidden)
    hidden = torch.lerp(new, carry["hidden"], update)
    return {**carry, "hidden": hidden}, hidden


# Where programs look for the class from before torch_xla was imported: it is the same.
nn.GRU._orig = nn.GRU  # type: ignore[attr-defined]
