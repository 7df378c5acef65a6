"""Small models of the usual kinds, which the benchmarks time and the tests train."""

import itertools
import math

import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Sequential):
    """Linear layers with ReLU between them: [n, sizes[0]] to [n, sizes[-1]]."""

    def __init__(self, *sizes: int) -> None:
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        super().__init__(*layers[:-1])


class CNN(nn.Module):
    """Two 3x3 convolutions with pooling, and two linear layers: [n, 1, 28, 28] to [n, 10]."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3)
        self.conv2 = nn.Conv2d(32, 64, 3)
        self.fc1 = nn.Linear(64 * 12 * 12, 128)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.relu(self.conv1(x))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(torch.flatten(x, 1))))


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions with batch normalization beside the identity, or a 1x1 convolution where shapes change."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


class ResNet18(nn.Module):
    """The residual network of 18 layers: [n, 3, s, s] to [n, classes]."""

    def __init__(self, classes: int = 1000, width: int = 64) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.pool = nn.MaxPool2d(3, stride=2, padding=1)
        blocks: list[nn.Module] = []
        channels = width
        for stage in range(4):
            for i in range(2):
                stride = 2 if stage > 0 and i == 0 else 1
                blocks.append(ResidualBlock(channels, width * 2**stage, stride))
                channels = width * 2**stage
        self.blocks = nn.Sequential(*blocks)
        self.fc = nn.Linear(channels, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(F.relu(self.bn1(self.conv1(x))))
        x = F.adaptive_avg_pool2d(self.blocks(x), 1)
        return self.fc(torch.flatten(x, 1))


class EncoderLayer(nn.Module):
    """A transformer layer that normalizes after each sum, with `nn.MultiheadAttention`."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(size, heads, dropout=dropout, batch_first=True)
        self.norm1 = nn.LayerNorm(size)
        self.linear1 = nn.Linear(size, 4 * size)
        self.linear2 = nn.Linear(4 * size, size)
        self.norm2 = nn.LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        attended, _ = self.attention(x, x, x, need_weights=False)
        x = self.norm1(x + self.dropout(attended))
        y = self.linear2(self.dropout(F.gelu(self.linear1(x))))
        return self.norm2(x + self.dropout(y))


class Encoder(nn.Module):
    """Embeddings of tokens and positions and transformer layers: int64 [n, length] to [n, length, vocabulary]."""

    def __init__(
        self, vocabulary: int, length: int, size: int, heads: int, layers: int, dropout: float
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, size)
        self.positions = nn.Parameter(torch.randn(length, size) * 0.02)
        self.layers = nn.ModuleList(EncoderLayer(size, heads, dropout) for _ in range(layers))
        self.head = nn.Linear(size, vocabulary)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.tokens(tokens) + self.positions
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class UnrolledLSTM(nn.Module):
    """An LSTM cell applied to each step of a sequence: [n, length, inputs] to [n, classes]."""

    def __init__(self, inputs: int, hidden: int, classes: int) -> None:
        super().__init__()
        self.hidden = hidden
        self.cell = nn.LSTMCell(inputs, hidden)
        self.head = nn.Linear(hidden, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h = x.new_zeros(x.shape[0], self.hidden)
        c = x.new_zeros(x.shape[0], self.hidden)
        for step in x.unbind(1):
            h, c = self.cell(step, (h, c))
        return self.head(h)


class GPTLayer(nn.Module):
    """A transformer layer that normalizes before each part and looks only backward."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.norm1 = nn.LayerNorm(size)
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)
        self.norm2 = nn.LayerNorm(size)
        self.up = nn.Linear(size, 4 * size)
        self.down = nn.Linear(4 * size, size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        n, length, size = x.shape
        q, k, v = self.qkv(self.norm1(x)).split(size, dim=2)
        q, k, v = (t.view(n, length, self.heads, -1).transpose(1, 2) for t in (q, k, v))
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=dropout)
        y = y.transpose(1, 2).reshape(n, length, size)
        x = x + F.dropout(self.out(y), self.dropout, self.training)
        y = self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))
        return x + F.dropout(y, self.dropout, self.training)


class GPT(nn.Module):
    """A language model whose head shares the embedding's weights: int64 [n, length] to [n, length, vocabulary]."""

    def __init__(
        self, vocabulary: int, length: int, size: int, heads: int, layers: int, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, size)
        self.positions = nn.Embedding(length, size)
        self.layers = nn.ModuleList(GPTLayer(size, heads, dropout) for _ in range(layers))
        self.norm = nn.LayerNorm(size)
        self.head = nn.Linear(size, vocabulary, bias=False)
        nn.init.normal_(self.tokens.weight, std=1 / math.sqrt(size))
        self.tie_weights()

    def tie_weights(self) -> None:
        """Shares the weights; a move to an xla device makes new parameters, after which it must be called again."""
        self.head.weight = self.tokens.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.tokens(tokens) + self.positions(positions)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


class VAE(nn.Module):
    """A variational autoencoder with (transposed) convolutions: [n, 1, 28, 28] to the same and the code's moments."""

    def __init__(self, code: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 16, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(16, 32, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        self.moments = nn.Linear(32 * 7 * 7, 2 * code)
        self.expand = nn.Linear(code, 32 * 7 * 7)
        self.decoder = nn.Sequential(
            nn.Unflatten(1, (32, 7, 7)),
            nn.ReLU(),
            nn.ConvTranspose2d(32, 16, 3, stride=2, padding=1, output_padding=1),
            nn.ReLU(),
            nn.ConvTranspose2d(16, 1, 4, stride=2, padding=1),
        )

    def forward(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, ...]:
        mean, log_variance = self.moments(self.encoder(x)).chunk(2, dim=1)
        code = mean + torch.exp(0.5 * log_variance) * noise
        return self.decoder(self.expand(code)), mean, log_variance

    @staticmethod
    def loss(x: torch.Tensor, outputs: tuple[torch.Tensor, ...]) -> torch.Tensor:
        """The negative evidence bound, a sum over pixels and code, averaged over the batch."""
        pixels, mean, log_variance = outputs
        reconstruction = F.binary_cross_entropy_with_logits(pixels, x, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        return (reconstruction + divergence) / x.shape[0]
