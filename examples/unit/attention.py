"""Multi-head attention in the manner of PyTorch 1.8, which decided by value how to project its inputs.

`nn.functional.multi_head_attention_forward` of that time asked whether query, key and value are equal, to project
them by one product instead of three. The question is answered by a number of the device: on a device that records,
it ends the recording, runs what is pending, and waits, in every layer of every step.
"""

import operator
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

SAMENESS: dict[str, Callable[[torch.Tensor, torch.Tensor], bool]] = {
    "value": torch.equal,  # as PyTorch 1.8 did: are all the numbers the same?
    "identity": operator.is_,  # is it the same tensor? The program knows without the numbers.
}


class MultiheadAttention(nn.Module):
    """Scaled dot-product attention with `heads` heads over the last dimension; [batch, length, width].

    Args:
      same: "value" or "identity", how the inputs are compared.
    """

    def __init__(self, width: int, heads: int, same: str = "identity") -> None:
        super().__init__()
        self.heads = heads
        self.in_projection = nn.Linear(width, 3 * width)
        self.out_projection = nn.Linear(width, width)
        self._same = SAMENESS[same]

    def _project(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> tuple[torch.Tensor, ...]:
        weight, bias = self.in_projection.weight, self.in_projection.bias
        width = query.shape[-1]
        if self._same(query, key) and self._same(key, value):  # self-attention
            return F.linear(query, weight, bias).chunk(3, dim=-1)
        q = F.linear(query, weight[:width], bias[:width])
        if self._same(key, value):  # the decoder looks at the encoder's output
            return q, *F.linear(key, weight[width:], bias[width:]).chunk(2, dim=-1)
        k = F.linear(key, weight[width : 2 * width], bias[width : 2 * width])
        return q, k, F.linear(value, weight[2 * width :], bias[2 * width :])

    def _split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        padding: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """`padding`, bool [batch, length of key], is true where there is no token."""
        q, k, v = (self._split(x) for x in self._project(query, key, value))
        scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
        if padding is not None:
            scores = scores.masked_fill(padding[:, None, None, :], float("-inf"))
        mixed = torch.softmax(scores, dim=-1) @ v
        return self.out_projection(mixed.transpose(1, 2).flatten(-2))
