"""Sizes that the data decides: after the first few counts, what follows a count finds its loops."""

import pytest

COUNTS = """
import torch, torch_xla
import torch_xla.debug.metrics as metrics

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

def loops():
    return metrics.counter_value("LoopCompile") or 0

counts = (torch.randperm(SIZE - 2)[:30] + 2).tolist()
for choice, choose in CHOICES.items():
    for follower, follow in FOLLOWERS.items():
        compiled = []
        for count in counts:
            x, mask = torch.randn(SIZE, 8), torch.randperm(SIZE) < count
            before = loops()
            got, expected = (result(d, choose, follow, x, mask) for d in ("xla", "cpu"))
            torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-4)
            compiled.append(loops() - before)
        if sum(map(bool, compiled)) > 3:
            print(f"{choice}, {follower}: {compiled}")
assert loops() > len(CHOICES)  # what is counted was compiled at all
"""


@pytest.mark.exhaustive
def test_few_counts_compile_loops(program):
    """The first count, the second, which shows what varies, and at most one whose loops are others for a reason of their own."""
    result = program.run_code(
        "import torch; torch.manual_seed(0)\n" + COUNTS,
        TORCH_XLA_INTERPRET="never",
    )
    assert result.stdout == ""


# Which steps compile loops, of several sizes each: the first, and the second, which shows what varies.
STEPS = """
import torch, torch_xla
import torch_xla.debug.metrics as metrics

def of_mask(device, n):
    x = torch.arange(160.0).view(16, 10).to(device)
    y = x[(torch.arange(16) < n).to(device)]
    return (y.softmax(-1) * y).sum(0) + y.mean(0)

def of_rows(device, n):
    x = torch.arange(6.0 * n).view(n, 6).to(device).requires_grad_()
    rows = torch.tensor([0, -1, n - 1, 3 - n]).to(device)
    x[rows].square().sum().backward()
    return x.grad

for name, step, sizes in (
    ("mask", of_mask, [3, 5, 7, 10, 16, 13, 2, 9, 4, 160 // 16]),
    ("rows", of_rows, [40, 53, 6, 4, 67, 24, 71]),
):
    compiling = []
    for n in sizes:
        before = metrics.counter_value("LoopCompile")
        got = step("xla", n)
        torch.testing.assert_close(got.cpu(), step("cpu", n), rtol=1e-5, atol=1e-5)
        if metrics.counter_value("LoopCompile") != before:
            compiling.append(n)
    print(name, compiling)
"""


def test_counts_that_are_other_sizes_compile_no_loops(program):
    """As a width, as many as there are, as many as there are chosen rows; and indices are checked against -n."""
    result = program.run_code(STEPS, TORCH_XLA_INTERPRET="never")
    assert result.stdout.split("\n")[:2] == ["mask [3, 5]", "rows [40, 53]"]
