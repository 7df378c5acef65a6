"""A language model whose sequences grow from batch to batch: each length is another program."""

import sys

import torch

import torch_xla


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(100, 64)
        self.layer = torch.nn.Linear(64, 64)
        self.head = torch.nn.Linear(64, 100)

    def forward(self, tokens):
        embedded = self.embedding(tokens)
        mixed = torch.tanh(self.layer(embedded.cumsum(1)))
        return self.head(mixed)


def main(steps):
    device = torch_xla.device()
    torch.manual_seed(0)
    model = Model().to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    torch_xla.sync()
    for step in range(steps):
        tokens = torch.randint(100, (8, 16 + step)).to(device)
        optimizer.zero_grad()
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        torch_xla.sync()
    print(f"loss {loss.item():.3f}")


if __name__ == "__main__":
    main(int(sys.argv[1]))
