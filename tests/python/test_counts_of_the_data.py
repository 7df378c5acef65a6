"""Sizes that the data decides: after the first few counts, what follows a count finds its loops."""

import pytest

# Each program's loops are in the dump, as they are before LLVM optimizes them: by that text they are found.
COUNTS = """
import os, pathlib, torch, torch_xla

SIZE = 64
w, fixed = torch.randn(8, 4), torch.randn(3, 8)

def put(x, mask, value):
    x = x * 1
    x[mask] = value(x)
    return x

CHOICES = {
    "nonzero": lambda x, mask: x[mask.nonzero().squeeze(1)],
    "masked_select": lambda x, mask: x.masked_select(mask[:, None]).view(-1, 8),
    "x[mask]": lambda x, mask: x[mask],
    "unique": lambda x, mask: x[torch.where(mask, torch.arange(SIZE, device=x.device), 0).unique()],
    "repeat_interleave": lambda x, mask: x[:4].repeat_interleave(mask.view(4, -1).sum(1), 0),
    "x[mask] = v": lambda x, mask: put(x, mask, lambda x: x[0] * 2),
    "x[mask] = x[mask]": lambda x, mask: put(x, mask, lambda x: x[mask] * 2),
}
FOLLOWERS = {
    "sum": lambda y, w, fixed: y.sum(),
    "matmul": lambda y, w, fixed: (y @ w).sum(),
    "cat": lambda y, w, fixed: torch.cat([y, fixed]).square().sum(),
    "softmax": lambda y, w, fixed: (torch.softmax(y, 0) * y).sum(),
    "backward": lambda y, w, fixed: (y @ w).tanh().sum(),
}

def result(device, choose, follow, x, mask):
    x = x.to(device).requires_grad_()
    loss = follow(choose(x, mask.to(device)), w.to(device), fixed.to(device))
    loss.backward()
    return torch.cat([loss.detach()[None], x.grad.flatten()]).cpu()

folder, dumped, known = pathlib.Path(os.environ["TORCH_XLA_DUMP"]), 0, set()

def new_loops():
    global dumped
    first, dumped = dumped, len(list(folder.glob("*.program")))
    found = {p.read_text() for i in range(first, dumped) for p in folder.glob(f"{i:04d}.*.ll")}
    new = len(found - known)
    known.update(found)
    return new

counts = (torch.randperm(SIZE - 2)[:30] + 2).tolist()
for choice, choose in CHOICES.items():
    for follower, follow in FOLLOWERS.items():
        compiled = []
        for count in counts:
            x, mask = torch.randn(SIZE, 8), torch.randperm(SIZE) < count
            got, expected = (result(d, choose, follow, x, mask) for d in ("xla", "cpu"))
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
            compiled.append(new_loops())
        if sum(map(bool, compiled)) > 4:
            print(f"{choice}, {follower}: {compiled}")
assert dumped > len(counts) * len(CHOICES)  # there were programs to look into
"""


@pytest.mark.exhaustive
def test_few_counts_compile_loops(program):
    """Two counts show what varies; those that are also sizes of something else make loops of their own."""
    result = program.run_code(
        "import torch; torch.manual_seed(0)\n" + COUNTS,
        TORCH_XLA_DUMP=str(program.folder / "dump"),
        TORCH_XLA_INTERPRET="never",
    )
    assert result.stdout == ""
