"""Sizes padded to a ladder: each rung is compiled once, and values are those of the true sizes."""

import math
import random

import pytest
import torch
import torch.nn.functional as F
from conftest import engine_environment

import torch_xla
from torch_xla.debug import metrics
from torch_xla.experimental import eager_mode_context

pytestmark = pytest.mark.usefixtures("module_of_programs")


@pytest.fixture(autouse=True)
def bucketed():
    torch_xla.sync(wait=True)
    mode = torch_xla._XLAC._get_dynamic_mode()
    torch_xla.set_dynamic("bucketed")
    torch_xla._XLAC._xla_clear_computation_cache()
    yield
    torch_xla.set_dynamic(mode)


def compiled():
    return metrics.counter_value("ProgramCompile") or 0


def refusals():
    return {name for name in metrics.counter_names() if name.startswith("PaddingRefused")}


def values_on(device, function, tensors):
    """What the function gives for copies of the tensors there, and the gradients of its sum."""
    inputs = [t.to(device, copy=True).requires_grad_(t.is_floating_point()) for t in tensors]
    torch_xla.sync()
    results = function(*inputs)
    results = [results] if isinstance(results, torch.Tensor) else list(results)
    sum(r.square().sum() for r in results if r.is_floating_point() and r.requires_grad).backward()
    return [r.detach().cpu() for r in results] + [
        t.grad.cpu() for t in inputs if t.grad is not None
    ]


def check(function, inputs_of, sizes, most=None):
    """`function` of `inputs_of(size)` for each size, against eager; at most so many compilations."""
    before = compiled()
    for size in sizes:
        tensors = inputs_of(size)
        torch.manual_seed(0)
        expected = values_on("cpu", function, tensors)
        for a, e in zip(values_on("xla", function, tensors), expected, strict=True):
            torch.testing.assert_close(
                a, e, rtol=1e-4, atol=1e-4, msg=lambda m, n=size: f"{n}: {m}"
            )
    if most is not None:
        assert compiled() - before <= most


SIZES = [2, 7, 1, 5, 3, 8, 13, 9, 16, 31, 17, 23, 0, 29]
# The first size, 0 and 1 are compiled as they are; 8, 16 and 32 are rungs.
RUNGS = 6


@pytest.mark.parametrize(
    "function",
    [
        lambda x, w: (x @ w).relu() * 2,
        lambda x, w: x.T @ x,
        lambda x, w: x.softmax(0),
        lambda x, w: x.sum(0) / 3,
        lambda x, w: x.amax(1) + x.sum(),
        lambda x, w: x[1:] - x[:-1],
        lambda x, w: torch.cat([x, x * 2, w]),
        lambda x, w: x.flip(0) * torch.arange(len(x), device=x.device)[:, None],
        lambda x, w: F.pad(x, (0, 0, 3, 1)) + 1,
        lambda x, w: x[None].expand(3, -1, -1).reshape(-1, 4) @ w,
        lambda x, w: x.cumsum(0),
        lambda x, w: w.repeat(len(x), 1) * 3,
    ],
)
def test_values_and_compilations(function):
    sizes = [n for n in SIZES if n > 1]
    check(function, lambda n: (torch.randn(n, 4), torch.randn(4, 4)), sizes, most=2 * RUNGS)


@pytest.mark.parametrize("size", [0, 1])
def test_least_sizes(size):
    check(
        lambda x: (x.sum(0), x * 2, x @ x.T),
        lambda n: (torch.randn(n, 4),),
        [3, size, 4, size],
    )


def test_mean_divides_by_the_true_size():
    """A number that follows from the size is an argument."""
    check(lambda x: (x.mean(0), x.var(0)), lambda n: (torch.randn(n, 4),), SIZES[4:10], most=10)


def masked_loss(x, target):
    logits = x.log_softmax(-1)
    return F.nll_loss(logits.flatten(0, 1), target.flatten(), ignore_index=3)


def test_masked_loss():
    def inputs(n):
        return torch.randn(3, n, 5), torch.randint(5, (3, n))

    check(masked_loss, inputs, [n for n in SIZES if n > 1], most=RUNGS)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, y, w: torch.cat([x.reshape(-1, 4), y]) * 2,
        lambda x, y, w: torch.cat([y, x.reshape(-1, 4)]).cumsum(0),
        lambda x, y, w: torch.cat([x.reshape(-1, 4), y], 1).sum(0),
        lambda x, y, w: torch.sort(x.reshape(-1, 4) + y, dim=1, stable=True),
        lambda x, y, w: torch.topk((x.reshape(-1, 4) @ w).softmax(1), 2, dim=1),
    ],
)
def test_sizes_of_other_factors_meet(function):
    """Rows that are a product of two sizes in one operand are so in all that it is put together with."""
    check(
        function,
        lambda n: (torch.randn(n, 3, 4), torch.randn(3 * n, 4), torch.randn(4, 4)),
        [3, 5, 6, 9, 7],
    )


def test_numbers_that_do_not_matter():
    """What is added becomes infinity and NaN, and reaches no result."""

    def function(x):
        return (1 / x).sum(0), x.log().T @ x.rsqrt(), (x.log() - x.log()).amax(0)

    check(function, lambda n: (torch.rand(n, 4) + 1,), [3, 5, 9, 8], most=3)


def test_results_stay_padded_for_the_next_program():
    for n in (3, 5, 7, 12):
        x = torch.arange(float(n))
        y = x.to("xla") * 2
        torch_xla.sync()
        z = y + 1
        torch_xla.sync()
        assert torch.equal(z.cpu(), x * 2 + 1)
        assert torch.equal(y.cpu(), x * 2)


def test_refusal_is_counted_and_compiled_exactly():
    before = compiled()
    check(lambda x: x.sort(0)[0] + 1, lambda n: (torch.randn(n, 3),), [3, 5, 6])
    assert compiled() > before
    assert any("sort" in name for name in refusals())
    assert not any("defect" in name for name in refusals())


def test_mode():
    with pytest.raises(RuntimeError, match="exact, symbolic or bucketed"):
        torch_xla.set_dynamic("rounded")
    assert torch_xla._XLAC._get_dynamic_mode() == "bucketed"


def random_program(rng):
    """A function of x [n, 4] and y [m, 4], of operations that keep to such shapes."""
    steps = [
        lambda a, b: a * b.sum(0),
        lambda a, b: a.softmax(0),
        lambda a, b: a.softmax(1) @ torch.ones(4, 4, device=a.device),
        lambda a, b: a @ (b.T @ b) * 0.1,
        lambda a, b: torch.cat([a, b]),
        lambda a, b: a.flip(0) + a,
        lambda a, b: a[1:] if len(a) > 1 else a,
        lambda a, b: a[:-1] * 2 if len(a) > 1 else a,
        lambda a, b: a - a.mean(0),
        lambda a, b: (a @ b.T).softmax(1) @ b,
        lambda a, b: a.reshape(-1).tanh().reshape(-1, 4),
        lambda a, b: F.pad(a, (0, 0, 2, 0)),
        lambda a, b: a.cumsum(0) * 0.1,
        lambda a, b: a.roll(1, 0),
        lambda a, b: a[torch.arange(len(a), device=a.device) % max(len(a), 1)],
        lambda a, b: torch.where(a > 0, a, a.exp()),
        lambda a, b: a * torch.arange(len(a), device=a.device)[:, None] * 0.1,
        lambda a, b: a.T.reshape(4, -1).T,
        lambda a, b: a[::2],
        lambda a, b: a.sort(0)[0],
        lambda a, b: (
            torch.zeros_like(b).index_add(
                0, torch.arange(len(a), device=a.device) % max(len(b), 1), a
            )
            if len(b)
            else b
        ),
    ]
    chosen = [(rng.choice(steps), rng.random() < 0.3) for _ in range(rng.randint(2, 5))]

    def program(x, y):
        a, b = x, y
        for step, swaps in chosen:
            a = step(a, b)
            if swaps:
                a, b = b, a
        return a, b

    return program


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed, pytestconfig):
    rng = random.Random(seed)
    for _ in range(max(1, pytestconfig.getoption("--index-programs") // 10)):
        program = random_program(rng)
        sizes = [
            (rng.choice([0, 1, 2, 3, 7, 8, 11, 16, 19]), rng.choice([1, 4, 5])) for _ in range(5)
        ]
        check(program, lambda n: (torch.randn(n[0], 4) * 0.5, torch.randn(n[1], 4) * 0.5), sizes)


class Encoder(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = torch.nn.Embedding(50, 16)
        self.places = torch.nn.Parameter(torch.randn(256, 16) * 0.1)
        self.layer = torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.out = torch.nn.Linear(16, 50)

    def forward(self, tokens, mask):
        x = self.tokens(tokens) + self.places[: tokens.shape[1]]
        return self.out(self.layer(x, src_key_padding_mask=mask))


def encoder_compilations(lengths):
    """Trains on batches of these lengths, checking losses and gradients; how many compilations."""
    torch.manual_seed(0)
    ours, eager = Encoder().to("xla"), Encoder()
    eager.load_state_dict(ours.state_dict())
    torch_xla.sync(wait=True)
    before = compiled()
    for n in lengths:
        tokens = torch.randint(50, (3, n))
        mask = torch.zeros(3, n, dtype=torch.bool)
        mask[0, n // 2 + 1 :] = True
        found = []
        for model, device in ((eager, "cpu"), (ours, "xla")):
            model.zero_grad(set_to_none=True)
            t, m = tokens.to(device), mask.to(device)
            torch_xla.sync()
            loss = F.cross_entropy(model(t, m).flatten(0, 1), t.flatten(), ignore_index=3)
            loss.backward()
            torch_xla.sync()
            found.append([loss.detach().cpu(), *(p.grad.cpu() for p in model.parameters())])
        for e, a in zip(*found, strict=True):
            torch.testing.assert_close(a, e, rtol=1e-3, atol=1e-4, msg=lambda m, n=n: f"{n}: {m}")
    return compiled() - before


def test_encoder():
    assert encoder_compilations([5, 7, 11, 3, 16, 9, 13, 6]) <= 3


FOREIGN = f"""
import math, sys
sys.path[:0] = {[__file__.rsplit("/", levels)[0] for levels in (1, 2)]!r}
import torch, torch_xla, test_size_buckets as t
torch_xla.set_dynamic("bucketed")
lengths = list(range(1, 201))
print("encoder", t.encoder_compilations(lengths), "of", math.log2(200) + 2)
before = t.compiled()
t.check(t.masked_loss, lambda n: (torch.randn(3, n, 5), torch.randint(5, (3, n))), lengths)
print("loss", t.compiled() - before, "of", math.log2(200) + 2)
print("refused", t.refusals())
"""


@pytest.mark.exhaustive
def test_foreign_plugin(program):
    result = program.run("-c", FOREIGN, timeout=1200, **engine_environment("xla_cpu"))
    lines = dict(line.split(" ", 1) for line in result.stdout.splitlines())
    for name in ("encoder", "loss"):
        assert int(lines[name].split()[0]) <= math.log2(200) + 2
    assert lines["refused"] == "set()"


def test_padded_results_are_taken_by_operations_that_run_as_they_are_called():
    """These are run by torch's kernels, which keep their own results in another form."""
    results = []
    for size in (5, 7, 12):
        results.append(torch.arange(float(size)).to("xla") * 2)
        torch_xla.sync()
    with eager_mode_context(True):
        for size, result in zip((5, 7, 12), results, strict=True):
            assert ((result + 1).flip(0) * 2).tolist() == [4.0 * i + 2 for i in range(size)][::-1]
