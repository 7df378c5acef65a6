"""A unified transformer: one encoder a modality, one decoder that is asked a task's question, a head a task."""

import torch
from attention import MultiheadAttention
from torch import nn


class Layer(nn.Module):
    """Self-attention, in a decoder also attention to `memory`, and two linear layers; all residual."""

    def __init__(self, width: int, heads: int, same: str, decodes: bool = False) -> None:
        super().__init__()
        self.attention = MultiheadAttention(width, heads, same)
        self.norm = nn.LayerNorm(width)
        self.memory_attention = MultiheadAttention(width, heads, same) if decodes else None
        self.memory_norm = nn.LayerNorm(width) if decodes else None
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.feed_forward_norm = nn.LayerNorm(width)

    def forward(
        self,
        x: torch.Tensor,
        padding: torch.Tensor | None = None,
        memory: torch.Tensor | None = None,
        memory_padding: torch.Tensor | None = None,
    ) -> torch.Tensor:
        x = self.norm(x + self.attention(x, x, x, padding))
        if self.memory_attention is not None:
            attended = self.memory_attention(x, memory, memory, memory_padding)
            x = self.memory_norm(x + attended)
        return self.feed_forward_norm(x + self.feed_forward(x))


class TextEncoder(nn.Module):
    """Words' numbers, int64 [batch, length], 0 where there is none."""

    def __init__(
        self, vocabulary: int, longest: int, width: int, heads: int, layers: int, same: str
    ) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width, padding_idx=0)
        self.positions = nn.Embedding(longest, width)
        self.layers = nn.ModuleList(Layer(width, heads, same) for _ in range(layers))

    def forward(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        padding = words == 0
        x = self.words(words) + self.positions.weight[: words.shape[1]]
        for layer in self.layers:
            x = layer(x, padding)
        return x, padding


class ImageEncoder(nn.Module):
    """Pictures, [batch, 1, 28, 28], as 16 tokens of 7 by 7 pixels."""

    def __init__(self, width: int, heads: int, layers: int, same: str) -> None:
        super().__init__()
        self.patches = nn.Conv2d(1, width, kernel_size=7, stride=7)
        self.positions = nn.Parameter(torch.randn(16, width) * 0.02)
        self.layers = nn.ModuleList(Layer(width, heads, same) for _ in range(layers))

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        x = self.patches(image).flatten(2).transpose(1, 2) + self.positions
        for layer in self.layers:
            x = layer(x)
        return x


class UnifiedTransformer(nn.Module):
    """Encoders for text and pictures, whose tokens a decoder reads with the query of a task.

    Args:
      tasks: the number of classes of each task.
      vocabulary: of the words' numbers.
      longest: the most words of a text.
      same: how attention compares its inputs, see `attention.py`.
    """

    def __init__(
        self,
        tasks: dict[str, int],
        vocabulary: int,
        longest: int,
        width: int = 128,
        heads: int = 4,
        layers: int = 3,
        same: str = "identity",
    ) -> None:
        super().__init__()
        self.text = TextEncoder(vocabulary, longest, width, heads, layers, same)
        self.image = ImageEncoder(width, heads, layers, same)
        self.queries = nn.ParameterDict(
            {task: nn.Parameter(torch.randn(4, width) * 0.02) for task in tasks}
        )
        self.decoder = nn.ModuleList(Layer(width, heads, same, decodes=True) for _ in range(layers))
        self.heads = nn.ModuleDict({task: nn.Linear(width, n) for task, n in tasks.items()})

    def forward(
        self, task: str, words: torch.Tensor | None = None, image: torch.Tensor | None = None
    ) -> torch.Tensor:
        """The classes' scores, [batch, classes of the task], of a text, a picture, or both."""
        tokens, paddings = [], []
        if words is not None:
            encoded, padding = self.text(words)
            tokens.append(encoded)
            paddings.append(padding)
        if image is not None:
            encoded = self.image(image)
            tokens.append(encoded)
            paddings.append(torch.zeros(encoded.shape[:2], dtype=torch.bool, device=image.device))
        memory, padding = torch.cat(tokens, 1), torch.cat(paddings, 1)
        x = self.queries[task].expand(memory.shape[0], -1, -1)
        for layer in self.decoder:
            x = layer(x, None, memory, padding)
        return self.heads[task](x.mean(1))
