"""Graphs that run operation by operation, without a program (docs/shapes.md)."""

import contextlib
import math
import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.runtime as xr
import torch_xla.utils.dlpack as xla_dlpack
from torch_xla import _XLAC


@contextlib.contextmanager
def interpretation(when):
    before = _XLAC._xla_get_interpretation()
    _XLAC._xla_set_interpretation(when)
    try:
        yield
    finally:
        _XLAC._xla_set_interpretation(before)


def counts():
    names = ("InterpretedGraph", "ProgramCompile", "InterpretedGraphFailed")
    return [met.counter_value(name) or 0 for name in names]


def interpreted_compiled(function):
    """How many graphs the function's work was, by how they ran; none may have failed."""
    torch_xla.sync()
    before = counts()
    function()
    interpreted, compiled, failed = (y - x for x, y in zip(before, counts(), strict=True))
    assert failed == 0
    return interpreted, compiled


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.norm, self.batch_norm = nn.LayerNorm(32), nn.BatchNorm1d(32)
        self.convolution = nn.Conv1d(32, 32, 3, padding=1)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 50)

    def forward(self, tokens):
        x = self.embedding(tokens)
        attended = F.scaled_dot_product_attention(x, x, x, is_causal=True)
        x = self.norm(x + attended)
        x = self.batch_norm(self.convolution(x.mT)).mT
        return self.down(F.gelu(self.up(x)))


def losses(device, optimizer_of, lengths):
    torch.manual_seed(0)
    net = Net()
    batches = [torch.randint(50, (4, length)) for length in lengths]
    net = net.to(device)
    optimizer = optimizer_of(net.parameters())
    found = []
    for batch in batches:
        tokens = batch.to(device)
        loss = F.cross_entropy(net(tokens).flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        found.append(loss.item())
    return found


OPTIMIZERS = {
    "adamw": lambda p: torch.optim.AdamW(p, lr=1e-2),
    "fused adamw": lambda p: torch.optim.AdamW(p, lr=1e-2, fused=True),
    "sgd": lambda p: torch.optim.SGD(p, lr=1e-2, momentum=0.9),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_over_lengths(name):
    """As eager."""
    lengths = [7, 9, 12, 5, 13, 4]
    expected = losses("cpu", OPTIMIZERS[name], lengths)
    found = []
    with interpretation("auto"):
        ran = interpreted_compiled(lambda: found.extend(losses("xla", OPTIMIZERS[name], lengths)))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert ran == (len(lengths), 0)


def turns(step, times):
    """How many of the runs of a step were interpreted, before its program served the others."""
    interpreted = []
    for _ in range(times):
        interpreted.append(interpreted_compiled(step)[0])
        _XLAC._xla_finish_background_compiles()
    first_of_program = interpreted.index(0)
    assert interpreted == [1] * first_of_program + [0] * (times - first_of_program)
    return first_of_program


def small_step(size):
    x = torch.randn(size, 3).to("xla")
    return lambda: (x * 2 - 1).relu().sum(0).cpu()


# No graph is interpreted so often.
MANY = 300


def _on(x):
    return x.to("xla")


# Of torch's own tests, those that took longest: each of their steps has sizes of its own.
SIZES = {
    "accumulated": lambda n: _on(torch.zeros(n)).index_put(
        (_on(torch.arange(n) // 2),), _on(torch.ones(n)), accumulate=True
    ),
    "distances": lambda n: torch.cdist(_on(torch.ones(n, 3)), _on(torch.zeros(n + 1, 3))),
    "sorted": lambda n: _on(torch.ones(3, n)).sort(-1)[0],
    "product": lambda n: torch.einsum(
        "ab,bc,cd->ad", *[_on(torch.ones(size)) for size in ((2, n), (n, 3), (3, n))]
    ),
    "loss": lambda n: F.nll_loss(_on(torch.ones(n, 5)).log_softmax(-1), _on(torch.arange(n) % 5)),
    "linear and loss": lambda n: F.cross_entropy(
        F.linear(_on(torch.ones(n, 4)), _on(torch.ones(7, 4))), _on(torch.arange(n) % 7)
    ),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_come_once_compile_nothing(name):
    interpreted, compiled = interpreted_compiled(
        lambda: [SIZES[name](n).cpu() for n in range(2, 42)]
    )
    assert interpreted >= 40
    assert compiled <= 2


def test_a_graph_that_comes_often_is_compiled_meanwhile():
    """Once, when it has come half as often as it is interpreted; none that comes less often is."""
    with interpretation("auto"):
        step = small_step(5)
        compiled_at = []
        for turn in range(MANY):
            before = counts()
            step()
            _XLAC._xla_finish_background_compiles()
            interpreted, compiled, _ = (x - y for x, y in zip(counts(), before, strict=True))
            if compiled:
                compiled_at.append(turn + 1)
            if not interpreted:
                break
        assert [2 * turn for turn in compiled_at] == [turn]


def test_the_program_takes_over_at_the_same_run_always():
    """However long it takes to compile: so a run of the user's program repeats to the last bit."""
    found = []
    for _ in range(2):
        xr.clear_computation_cache()
        with interpretation("auto"):
            found.append(turns(small_step(7), MANY))
            # Without a wait, too.
            step = small_step(8)
            interpreted, compiled = interpreted_compiled(lambda s=step: [s() for _ in range(MANY)])
            assert (interpreted, compiled) == (found[0], 1)
    assert 2 < found[0] < MANY


@pytest.mark.slow
def test_when_many_sizes_have_come_new_ones_are_compiled_at_once():
    """The loops are there by then, so that a program takes less to be made than a run."""

    def run(lengths):
        net = nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True).to("xla")

        def step(x):
            net.zero_grad()
            net(x).sum().backward()
            torch_xla.sync()

        ways = []
        for length in lengths:
            x = torch.randn(8, length, 64).to("xla")
            before = counts()
            step(x)
            _XLAC._xla_finish_background_compiles()
            ways.append(tuple(x - y for x, y in zip(counts(), before, strict=True))[:2])
        return ways

    lengths = [40 + 3 * i for i in range(60)]
    with interpretation("auto"):
        ways = run(lengths)
        first = ways.index((0, 1))
        # Two were compiled for the sake of those that followed, all of which came for the first time.
        assert [compiled for _, compiled in ways[:first]].count(1) <= 2
        assert 4 < first < len(lengths) - 10
        assert ways[first:] == [(0, 1)] * (len(lengths) - first)
    xr.clear_computation_cache()
    with interpretation("auto"):
        assert run(lengths) == ways


# Sums over more than 2^17 elements are cut in parts, from a length of 64 on: other loops than the shorter ones have.
LENGTHS = """
import os, pathlib, torch, torch_xla
from torch import nn
from torch_xla import _XLAC

net = nn.TransformerEncoderLayer(64, 4, 256, 0.0, batch_first=True).to("xla")

def programs_after(length):
    net.zero_grad()
    net(torch.ones(8, length, 64).to("xla")).sum().backward()
    torch_xla.sync()
    _XLAC._xla_finish_background_compiles()
    return len(list(pathlib.Path(os.environ["TORCH_XLA_DUMP"]).glob("*.program")))

for length in range(20, 63):
    before = programs_after(length)
print(before, programs_after(66))
"""


def test_a_program_whose_sizes_vary_compiles_only_its_new_loops(program):
    """Its structure is another one than that of the program before, and its sizes are known to vary nevertheless."""
    folder = program.folder / "dump"
    result = program.run_code(LENGTHS, TORCH_XLA_DUMP=str(folder))
    assert result.stderr == ""
    before, after = (int(number) for number in result.stdout.split())
    assert after == before + 1

    def loops(number):
        return {path.read_text() for path in folder.glob(f"{number:04d}.*.ll")}

    new = loops(before).difference(*(loops(number) for number in range(before)))
    assert 0 < len(new) < len(loops(before)) / 4


HEAVY = {
    "product": lambda n: torch.ones(n, 4000, device="xla") @ torch.ones(4000, n, device="xla"),
    "product of integers": lambda n: (
        torch.ones(n, 300, device="xla", dtype=torch.int64)
        @ torch.ones(300, n, device="xla", dtype=torch.int64)
    ),
    "convolution": lambda n: F.conv2d(
        torch.ones(1, 8, n, n, device="xla"), torch.ones(8, 8, 7, 7, device="xla")
    ),
    "distances": lambda n: torch.cdist(
        torch.ones(n, 64, device="xla"), torch.ones(n, 64, device="xla"), 1.5
    ),
    "sort": lambda n: torch.ones(n, 500, device="xla").sort().values,
    "incomplete gamma function": lambda n: torch.igamma(
        torch.ones(n, 200, device="xla"), torch.ones(n, 200, device="xla")
    ),
    "digamma": lambda n: torch.digamma(torch.ones(n, 500, device="xla")),
    "attention": lambda n: F.scaled_dot_product_attention(
        *(torch.ones(4, 8, n, 64, device="xla") for _ in range(3))
    ),
    "polynomial": lambda n: torch.special.hermite_polynomial_h(torch.ones(n, device="xla"), 2),
    "draws": lambda n: torch.randn(n, 1000, device="xla"),
}


@pytest.mark.parametrize("name", HEAVY)
def test_large_work_is_compiled_at_once(name):
    with interpretation("auto"):
        HEAVY[name](500).sum().item()
        assert interpreted_compiled(lambda: HEAVY[name](501).sum().item()) == (0, 1)


def test_a_step_that_takes_a_little_longer_than_compiling_is_compiled_meanwhile():
    """However large: its sizes may be new each time."""
    x = torch.randn(300, 300).to("xla") / 20

    def step():
        y = x
        for _ in range(8):
            y = torch.tanh(y @ x)
        y.cpu()

    with interpretation("auto"):
        assert turns(step, 4) == 2


def test_indices_that_differed_are_arguments():
    x = torch.arange(400.0).to("xla")
    torch_xla.sync()
    with interpretation("auto"):
        expected = [(x.cpu()[i : i + 4] * 3).sum().item() for i in range(MANY)]
        found = []
        before = met.counter_value("DynamicCompile") or 0
        ran = interpreted_compiled(
            lambda: found.extend((x[i : i + 4] * 3).sum().item() for i in range(MANY))
        )
    assert ran[0] < MANY and ran[1] == 1
    assert met.counter_value("DynamicCompile") - before == 1
    assert found == expected


@pytest.mark.parametrize("type", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
def test_numbers_promote_as_in_eager(type):
    def run(device):
        x = torch.arange(1, 7, device=device).to(type).reshape(2, 3)
        zero_dim = torch.tensor(2.5, dtype=torch.float64).to(device)
        return [x + 0.1, x * 2, x / 3, 2 - x, x**2, x > 1.5, x + zero_dim, x.clamp(min=2), x % 2]

    expected = run("cpu")
    with interpretation("always"):
        found = []
        assert interpreted_compiled(lambda: found.extend(y.cpu() for y in run("xla")))[1] == 0
    for y, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(y, wanted)


def test_writes_through_views():
    def run(device):
        base = torch.arange(24.0).reshape(4, 6).to(device)
        kept = base.clone()
        row, column = base[1], base[:, 2]
        row.add_(10)
        column.mul_(2)
        base.t()[3:5].fill_(-1)
        base.view(2, 12)[1, ::3] = 7
        base.select(1, 0).copy_(torch.zeros(4).to(device))
        return base, kept, row, column.sum()

    expected = run("cpu")
    with interpretation("always"):
        for found, wanted in zip(run("xla"), expected, strict=True):
            torch.testing.assert_close(found.cpu(), wanted, rtol=0, atol=0)


def test_results_are_nobody_elses_memory():
    """A result that is a view of an input, or of another result, is a copy."""
    x = torch.arange(6.0).to("xla")
    torch_xla.sync()
    with interpretation("always"):
        y, z = x.view(2, 3) + 0, x.expand(2, 6).clone()
        w = x.reshape(3, 2).clone()
        torch_xla.sync()
        x.add_(1)
        w.mul_(5)
        torch_xla.sync()
        assert y.flatten().tolist() == [0, 1, 2, 3, 4, 5]
        assert z.tolist() == [[0, 1, 2, 3, 4, 5]] * 2
        assert w.flatten().tolist() == [0, 5, 10, 15, 20, 25]
        assert x.tolist() == [1, 2, 3, 4, 5, 6]


# Of few numbers, which loops of ours compute.
ARITHMETIC = {
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "product": lambda x, y: x * y,
    "quotient": lambda x, y: x / y,
    "sum with a number": lambda x, y: x + 0.1,
    "difference from an integer": lambda x, y: 3 - x,
    "product with an integer": lambda x, y: x * (2**24 + 1),
    "quotient of a number": lambda x, y: 0.3 / x,
    "product with one element": lambda x, y: x * y.flatten()[1],
    "product with one element of a wider type": lambda x, y: x * y.flatten()[1].double(),
    "sum with one element of dimensions": lambda x, y: y.flatten()[2:3] + x,
    "sum with one wide element of dimensions": lambda x, y: y.flatten()[2:3].double() / 3 + x,
    "sum with a row": lambda x, y: x + y[0],
    "sum of what lies otherwise": lambda x, y: x.t() + y.t(),
    "sum into a sum": lambda x, y: (x * 1).add_(y).mul_(0.7),
    "sum of one wide element into a sum": lambda x, y: (x * 1).add_(y.flatten()[2:3].double() / 3),
    "activation": lambda x, y: torch.relu(x),
    "magnitude": lambda x, y: x.abs(),
    "negative": lambda x, y: -x,
}


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("count", [1, 3, 70])
def test_few_numbers_are_computed_to_the_last_bit_as_in_eager(name, count):
    torch.manual_seed(count)
    x, y = torch.randn(count, 3), torch.randn(count, 3)
    x[0] = torch.tensor([math.nan, math.inf, -0.0])
    y[-1] = torch.tensor([0.0, -math.inf, 1e-40])
    expected = ARITHMETIC[name](x, y)
    with interpretation("always"):
        found = []
        device = [x.to("xla"), y.to("xla")]
        assert interpreted_compiled(lambda: found.append(ARITHMETIC[name](*device).cpu()))[1] == 0
    assert found[0].dtype == expected.dtype
    assert torch.equal(found[0].isnan(), expected.isnan())
    integer = {4: torch.int32, 8: torch.int64}[expected.element_size()]
    same = found[0].view(integer) == expected.view(integer)
    assert (same | expected.isnan()).all()


def test_few_numbers_are_refused_as_in_eager():
    x, y = torch.ones(3), torch.ones(2)
    with pytest.raises(RuntimeError) as expected:
        x * y
    with interpretation("always"), pytest.raises(RuntimeError) as raised:
        x.to("xla") * y.to("xla")
    assert str(expected.value).splitlines()[0] in str(raised.value)


CHAINS_OF_VIEWS = {
    "rows of a transposed part": lambda x: x.transpose(0, 2)[1::2, :, 1].permute(1, 0),
    "in other dimensions": lambda x: x[2:].view(-1, 5),
    "in dimensions that want a copy": lambda x: x.permute(2, 0, 1).reshape(5, -1)[:, 1::3],
    "expanded": lambda x: x[:, :1].expand(-1, 3, -1)[1:, 2],
    "as other numbers": lambda x: x[1].t().contiguous().t()[:, 1:].contiguous().view(torch.int32),
    "at strides": lambda x: x.as_strided((3, 2), (7, 2), 5).t()[1],
    "nothing": lambda x: x[4:].transpose(0, 1)[:, :, 2],
}


@pytest.mark.parametrize("name", CHAINS_OF_VIEWS)
def test_chains_of_views(name):
    x = torch.arange(60.0).view(4, 3, 5)
    expected = CHAINS_OF_VIEWS[name](x)
    with interpretation("always"):
        y = (x.to("xla") + 0).contiguous()
        found = []
        ran = interpreted_compiled(lambda: found.append((CHAINS_OF_VIEWS[name](y) * 1).cpu()))
    assert ran[1] == 0
    assert torch.equal(found[0], expected)


def test_a_program_takes_the_memory_of_what_kernels_have_read():
    """They keep a view of it, which ends when the memory is to become another value's."""
    x = torch.arange(9000.0).to("xla")
    torch_xla.sync(wait=True)
    address = _XLAC._unsafe_buffer_pointer(x)
    with interpretation("always"):
        assert (x * 2).sum().item() == 2 * 4499.5 * 9000
    with interpretation("never"):
        x.add_(1)
        torch_xla.sync(wait=True)
        assert _XLAC._unsafe_buffer_pointer(x) == address
    with interpretation("always"):
        assert (x * 2).sum().item() == 2 * 4500.5 * 9000


def test_programs_and_kernels_take_turns():
    """Small results stay where kernels have left them, and come to the device for a program."""
    x, expected = torch.ones(4, 8, device="xla"), torch.ones(4, 8)
    kept = []
    for turn, when in enumerate(["always", "never", "never", "always", "always", "never"]):
        with interpretation(when):
            part = x[turn % 4]
            x.mul_(1 + turn / 8)
            expected.mul_(1 + turn / 8)
            y, wanted = x.view(8, 4) + 0, expected.view(8, 4).clone()
            x[1].add_(turn)
            expected[1].add_(turn)
            torch_xla.sync()
            kept += [(y, wanted), (part, expected[turn % 4])]
    assert torch.equal(x.cpu(), expected)
    for found, wanted in kept:
        assert torch.equal(found.cpu(), wanted)


def test_a_small_part_does_not_keep_a_large_base():
    code = """
import resource, torch, torch_xla
x = torch.rand(1 << 20, device="xla")
kept = []
for turn in range(80):
    kept.append((x + turn)[:100].clone())
    torch_xla.sync()
    if turn == 10:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""
    # What is large is given back to the system at once: pieces between what is kept would count otherwise.
    environment = dict(os.environ, TORCH_XLA_INTERPRET="always", MALLOC_MMAP_THRESHOLD_="1000000")
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run
    assert int(run.stdout) < 70 * 2048  # of 4 MB each


def test_positions_of_what_kernels_have_left():
    x = torch.randn(6, 10)
    with interpretation("always"):
        y = x.to("xla") * 2
        for mask, of_eager in (
            (y > 0, x > 0),
            ((y > 0).t(), (x > 0).t()),
            ((y > 0)[1:4], (x > 0)[1:4]),
        ):
            found, expected = mask.nonzero(), of_eager.nonzero()
            assert found.stride() == expected.stride()
            assert torch.equal(found.cpu(), expected)
            found.add_(1)  # is a value of its own
            assert torch.equal(mask.cpu(), of_eager)
            assert torch.equal(found.cpu(), expected + 1)


def test_what_an_operation_refuses_is_left_to_the_program():
    """Out of range, torch's kernel throws at once, and the program, which clamps, when it has run."""
    table = torch.arange(6.0).to("xla")
    index = torch.tensor([1, 9]).to("xla")
    found = []
    for when in ("never", "always"):
        with interpretation(when):
            selected = table.index_select(0, index)
            with pytest.raises(IndexError, match="index out of range in self"):
                selected.cpu()
            found.append(selected.cpu())
    assert torch.equal(*found)


def interpreted_and_compiled(function):
    """What the function makes of interpreted graphs, none of which is refused, and of programs."""
    results = []
    for when in ("always", "never"):
        with interpretation(when):
            torch_xla.manual_seed(7)
            found = []
            ran = interpreted_compiled(lambda f=found: f.extend(x.cpu() for x in function()))
            assert when == "never" or ran[1] == 0, ran
        results.append(found)
    return results


def draw(shape=(3, 50), type=torch.float32):
    return torch.empty(shape, device="xla", dtype=type)


PROBABILITIES = torch.tensor([0.1, 0.0, 0.4, 0.2, 0.3])
EXACT_DRAWS = {
    "rand": lambda: torch.rand(3, 50, device="xla"),
    "rand f64": lambda: torch.rand(51, device="xla", dtype=torch.float64),
    "rand bf16": lambda: torch.rand(50, device="xla", dtype=torch.bfloat16),
    "randint": lambda: torch.randint(-5, 100, (7, 9), device="xla"),
    "random_": lambda: draw(type=torch.int32).random_(),
    "randperm": lambda: torch.randperm(101, device="xla"),
    "bernoulli": lambda: torch.bernoulli(torch.full((5, 7), 0.3).to("xla")),
    "bernoulli_": lambda: draw().bernoulli_(0.7),
    "multinomial": lambda: torch.multinomial(PROBABILITIES.to("xla"), 4),
    "multinomial rows": lambda: torch.multinomial(PROBABILITIES.expand(6, 5).to("xla"), 1),
    "multinomial again": lambda: torch.multinomial(PROBABILITIES.to("xla"), 60, replacement=True),
    "dropout": lambda: F.dropout(torch.ones(7, 9).to("xla"), 0.4),
}
ROUNDED_DRAWS = {
    "uniform": lambda: draw().uniform_(-3, 5),
    "randn": lambda: torch.randn(5, 11, device="xla"),
    "randn f64": lambda: torch.randn(55, device="xla", dtype=torch.float64),
    "randn bf16": lambda: torch.randn(55, device="xla", dtype=torch.bfloat16),
    "normal": lambda: torch.normal(torch.zeros(9).to("xla"), torch.arange(9.0).to("xla")),
    "log_normal": lambda: draw().log_normal_(0.5, 0.3),
    "exponential": lambda: draw().exponential_(2.0),
    "cauchy": lambda: draw().cauchy_(1.0, 2.0),
    "geometric": lambda: draw().geometric_(0.2),
    "rrelu": lambda: F.rrelu(-torch.ones(40).to("xla"), training=True),
}


@pytest.mark.parametrize("name", EXACT_DRAWS | ROUNDED_DRAWS)
def test_draws_are_those_of_the_program(name):
    function = (EXACT_DRAWS | ROUNDED_DRAWS)[name]
    interpreted, compiled = interpreted_and_compiled(lambda: [function(), function()])
    for x, y in zip(interpreted, compiled, strict=True):
        if name in EXACT_DRAWS:
            assert torch.equal(x, y)
        else:
            torch.testing.assert_close(x, y)


def of_equal_elements():
    """Of several equal elements, and of several writes to one place, operators choose one."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(3, (4, 100), generator=generator).float()
    x[1, ::7] = float("nan")
    x = x.to("xla")
    index = torch.randint(10, (4, 100), generator=generator).to("xla")
    row, target = index[0], torch.zeros(4, 10).to("xla")
    flat = torch.arange(100.0).to("xla")
    picture = x.nan_to_num().reshape(1, 4, 10, 10)
    yield from (*x.sort(), *x.sort(stable=True), *x.sort(descending=True), x.argsort(0))
    yield from (*x.topk(30), *x.topk(30, largest=False), *x.kthvalue(40))
    yield from (x.argmax(1), x.argmin(1), *x.max(1), *x.min(1), *x.cummax(1), *x.cummin(1))
    yield from (x.median(), x.nanmedian())
    yield from F.max_pool2d(picture, 3, 2, return_indices=True)
    yield from F.adaptive_max_pool2d(picture, 3, return_indices=True)
    yield target.scatter(1, index, x)
    yield target.index_put((torch.arange(4).to("xla")[:, None], index), x)
    yield target.t().contiguous().t().index_put((torch.arange(4).to("xla")[:, None], index), x)
    yield target[0].index_put((row,), flat)
    yield target[0].index_copy(0, row, flat)
    yield target[0].clone().put_(row, flat)


def test_equal_elements_are_chosen_as_by_the_program():
    interpreted, compiled = interpreted_and_compiled(lambda: list(of_equal_elements()))
    for i, (x, y) in enumerate(zip(interpreted, compiled, strict=True)):
        assert torch.equal(x.nan_to_num(-1), y.nan_to_num(-1)), i


SHARED_LOWERINGS = {
    "nll_loss": lambda x: F.cross_entropy(x[0, 0], torch.arange(4).to("xla")),
    "nll_loss2d": lambda x: F.cross_entropy(x, torch.zeros(2, 4, 5).long().to("xla")),
    "reflection_pad1d": lambda x: F.pad(x[0], (1, 2), mode="reflect"),
    "reflection_pad2d": lambda x: F.pad(x, (1, 2, 1, 0), mode="reflect"),
    "reflection_pad3d": lambda x: F.pad(x[None], (1, 2, 1, 0, 1, 1), mode="reflect"),
    "replication_pad1d": lambda x: F.pad(x[0], (1, 2), mode="replicate"),
    "replication_pad2d": lambda x: F.pad(x, (1, 2, 1, 0), mode="replicate"),
    "replication_pad3d": lambda x: F.pad(x[None], (1, 2, 1, 0, 1, 1), mode="replicate"),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x[None], 2),
    "log_sigmoid": F.logsigmoid,
}


@pytest.mark.parametrize("name", SHARED_LOWERINGS)
def test_operators_of_one_lowering(name):
    def run():
        x = torch.linspace(-2, 2, 2 * 3 * 4 * 5).reshape(2, 3, 4, 5).to("xla").requires_grad_()
        y = SHARED_LOWERINGS[name](x)
        y.sum().backward()
        return y.detach(), x.grad

    interpreted, compiled = interpreted_and_compiled(run)
    torch.testing.assert_close(interpreted, compiled)


@pytest.mark.parametrize("type", [torch.bfloat16, torch.float16])
def test_a_narrow_default_type(type):
    before = torch.get_default_dtype()
    torch.set_default_dtype(type)
    try:
        interpreted, compiled = interpreted_and_compiled(
            lambda: [
                torch.ones(3, device="xla") * 0.3,
                torch.rand(9, device="xla"),
                torch.full((2,), 0.7, device="xla") / 3,
            ]
        )
    finally:
        torch.set_default_dtype(before)
    torch.testing.assert_close(interpreted, compiled)
    assert all(x.dtype == type for x in interpreted)


def test_results_are_counted_as_memory_of_the_device():
    x = torch.ones(1 << 18, device="xla")
    torch_xla.sync()
    before = xm.get_memory_info("xla:0")["bytes_used"]
    with interpretation("always"):
        y = x + 1
        torch_xla.sync()
    used = xm.get_memory_info("xla:0")["bytes_used"] - before
    # What earlier tests have left may go meanwhile.
    assert used == pytest.approx(y.nbytes, abs=1 << 14)


@pytest.mark.parametrize("counts_of", [[6], [2, 0, 3]])
def test_repeats(counts_of):
    repeats = torch.tensor(counts_of)
    with interpretation("always"):
        found = []
        ran = interpreted_compiled(
            lambda: found.append(torch.repeat_interleave(repeats.to("xla")).cpu())
        )
    assert ran[1] == 0
    expected = torch.repeat_interleave(repeats)
    assert torch.equal(found[0], expected)


def test_inside_transforms_and_modes():
    x = torch.randn(5, 3).to("xla")
    with interpretation("always"):
        gradient = torch.func.vmap(torch.func.grad(lambda v: (v.sin() * 2).sum()))(x)
        torch.testing.assert_close(gradient.cpu(), 2 * x.cpu().cos())
        with torch.inference_mode():
            y = x * 3
            assert y[0, 0].item() == pytest.approx(3 * x[0, 0].item())


THREADS = """
import os, torch, torch_xla
torch.set_num_threads(2)
x = torch.rand(800, 800, device="xla")
threads = []
for n in range(4):
    (x[n:] @ x).sum().item()
    threads.append(set(os.listdir("/proc/self/task")))
assert torch_xla._XLAC._xla_counter_value("InterpretedGraph") >= 4
assert threads[0] == threads[3], threads
print(len(threads[0]))
"""


def test_the_threads_of_kernels_stay(program):
    """To make a thread, and OpenMP's pool behind it, for each graph took most of a millisecond."""
    alone, beside = (
        int(program.run_code(code, TORCH_XLA_INTERPRET="always").stdout)
        for code in (THREADS.replace("num_threads(2)", "num_threads(1)"), THREADS)
    )
    assert beside >= alone + 2  # the one that kernels are called on, and another of its pool


FORKS = """
import os, torch, torch_xla
torch.set_num_threads(4)
x = torch.arange(90000.0, device="xla").reshape(300, 300) / 1e5
for n in range(1, 300, 20):
    (x[:, :n].clone() @ x[:n]).exp().sum().item()
large = torch.ones(700, 700, device="xla")
assert (large @ large + 1).max().item() == 701
assert torch_xla._XLAC._xla_counter_value("InterpretedGraph")
assert torch.get_num_threads() == 4
child = os.fork()
if child == 0:
    y = torch.randn(500, 500)
    is_right = (y @ y).tanh().isfinite().all() and (large @ large).max().item() == 700
    os._exit(0 if is_right else 1)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.slow
def test_a_child_computes_after_a_fork():
    """Eager and by interpretation: OpenMP's threads, which a child does not inherit, are not this thread's after it has interpreted,
    and the thread that they belong to is another one in the child."""
    environment = dict(os.environ, TORCH_XLA_INTERPRET="always")
    subprocess.run([sys.executable, "-c", FORKS], env=environment, check=True, timeout=120)


def test_integers_that_floats_overflow():
    """Interpreted or compiled, the same: torch's kernels wrap."""
    x = torch.tensor([3e9, -3e9, float("nan"), 300.0, -1.5])
    for type in (torch.int8, torch.int32, torch.int64):
        with interpretation("always"):
            interpreted = (x.to("xla") * 1).to(type).cpu()
        with interpretation("never"):
            compiled = (x.to("xla") * 1).to(type).cpu()
        assert torch.equal(interpreted, compiled), type


def test_what_would_end_the_process_is_left_to_the_program():
    least = torch.full((5,), -(2**63))
    with interpretation("always"):
        quotient = torch.div(
            least.to("xla"), -torch.ones(5).long().to("xla"), rounding_mode="trunc"
        )
        assert quotient.cpu().tolist() == least.tolist()
        bag = nn.EmbeddingBag(5, 3, mode="sum").to("xla")
        for table in (bag, nn.Embedding(5, 3, scale_grad_by_freq=True).to("xla")):
            loss = table(torch.full((2, 4), 10**9).to("xla")).sum()
            with pytest.raises((IndexError, RuntimeError), match="range"):
                loss.item()
            loss.backward()
            # Bags are computed again for it, and with them the error.
            with contextlib.suppress(IndexError, RuntimeError):
                table.weight.grad.cpu()
            assert table.weight.grad.cpu().shape == (5, 3)

        # Eager's gradient lies wherever a place that is no number leads.
        image = torch.arange(45.0).view(1, 5, 3, 3).to("xla").requires_grad_()
        for place in (math.nan, math.inf, 3e38):
            grid = torch.full((1, 1, 40, 2), 0.5)
            grid[..., 0] = place
            for padding in ("border", "reflection"):
                F.grid_sample(
                    image, grid.to("xla"), padding_mode=padding, align_corners=False
                ).sum().backward()
        # Its kernel names a pixel behind the image, and would write there.
        F.max_pool2d(image, 2, 3, 1, 4).sum().backward()
        assert image.grad.cpu().isfinite().all()


@pytest.mark.slow
def test_a_wrong_word_is_an_error_of_the_first_graph():
    """And does not end the process while the libraries are loaded."""
    script = "import torch, torch_xla\ntry: torch.ones(3, device='xla').sum().item()\nexcept RuntimeError as e: print(e)"
    environment = dict(os.environ, TORCH_XLA_INTERPRET="sometimes")
    run = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0 and "never, auto or always" in run.stdout, run


def test_the_word_is_checked():
    with pytest.raises(RuntimeError, match="never, auto or always"):
        _XLAC._xla_set_interpretation("sometimes")


# Kernels of torch's that take row-major memory for granted; `expanded` and `gaps` make operands that lie otherwise.
KERNELS_OF_ROW_MAJOR_MEMORY = {
    "group_norm": lambda x, full: F.group_norm(x, 3, full(6, 2.0), full(6, 1.0)),
    "group_norm of a permuted tensor": lambda x, full: F.group_norm(
        x.transpose(0, 2).contiguous().transpose(0, 2), 3, full(6, 2.0)
    ),
    "layer_norm": lambda x, full: F.layer_norm(x, (6, 4), full((6, 4), 2.0), full((6, 4), 1.0)),
    "adaptive_max_pool3d": lambda x, full: F.adaptive_max_pool3d(x.view(1, 2, 2, 3, 4), 2),
}


@pytest.mark.parametrize("name", KERNELS_OF_ROW_MAJOR_MEMORY)
@pytest.mark.parametrize("lie", ["expanded", "gaps"])
def test_operands_need_not_lie_row_major(name, lie):
    """Group norm read beyond the memory of a weight that was filled with one number."""

    def full(sizes, value):
        like = {"device": place, "dtype": torch.float32}
        if lie == "expanded":
            return torch.full(sizes if isinstance(sizes, tuple) else (sizes,), value, **like)
        sizes = sizes if isinstance(sizes, tuple) else (sizes,)
        return torch.stack([torch.full(sizes, value, **like), torch.full(sizes, 9.0, **like)], -1)[
            ..., 0
        ]

    found = {}
    for place in ("cpu", "xla"):
        x = torch.arange(48.0).sin().view(2, 6, 4).to(place).requires_grad_()
        with interpretation("always"):
            y = KERNELS_OF_ROW_MAJOR_MEMORY[name](x, full)
            y.backward(full(tuple(y.shape), 0.5) * y.detach())
            found[place] = [y.detach().cpu(), x.grad.cpu()]
    torch.testing.assert_close(found["xla"], found["cpu"])


# Computed by several of torch's operators, as the lowering is.
COMPOSED = {
    "LSTM": lambda x: torch.nn.LSTM(6, 5).to("xla")(x)[0],
    "LSTM without biases": lambda x: torch.nn.LSTM(6, 5, bias=False).to("xla")(x)[0],
    "GRU": lambda x: torch.nn.GRU(6, 5).to("xla")(x)[0],
    "GRU without biases": lambda x: torch.nn.GRU(6, 5, bias=False).to("xla")(x)[0],
    "histogram": lambda x: torch.histc(x.detach(), 7, -1, 1),
    "histogram of its range": lambda x: torch.histc(x.detach(), 7),
    "histogram of one value": lambda x: torch.histc(torch.ones_like(x), 7),
    "far numbers": lambda x: (x.detach() / 0).long(),
    "far numbers in 32 bits": lambda x: (x.detach() * 1e30).int(),
    "no numbers": lambda x: (x.detach() * torch.nan).to(torch.int8),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_forms_give_the_programs_numbers(name):
    def run():
        torch.manual_seed(0)
        x = torch.randn(4, 3, 6).to("xla").requires_grad_()
        y = COMPOSED[name](x)
        if y.requires_grad:
            (y * torch.arange(1.0, y.numel() + 1).view(y.shape).to("xla")).sum().backward()
        return [z.cpu() for z in (y.detach(), x.grad) if z is not None]

    with interpretation("never"):
        expected = run()
    with interpretation("always"):
        found = []
        assert interpreted_compiled(lambda: found.extend(run()))[1] == 0
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("when", ["never", "always"])
def test_no_samples_have_no_margin_loss(reduction, when):
    """Eager's kernels leave the result as they found the memory."""
    x = torch.ones(0, 3, device="xla", requires_grad=True)
    none = torch.ones(0, dtype=torch.int64, device="xla")
    with interpretation(when):
        for loss in (
            F.multi_margin_loss(x, none, reduction=reduction),
            F.multilabel_margin_loss(x, none.view(0, 1).expand(0, 3), reduction=reduction),
        ):
            loss.backward()
            assert loss.item() == 0
            assert x.grad.shape == (0, 3)


@pytest.mark.parametrize("when", ["never", "always"])
def test_gradients_of_16_bit_tables_are_rounded_once(when):
    """Eager's kernel for the CPU rounds each sum, and stops at 256."""
    weight = torch.zeros(2, 1, dtype=torch.bfloat16, device="xla", requires_grad=True)
    with interpretation(when):
        F.embedding(torch.zeros(1000, dtype=torch.int64, device="xla"), weight).sum().backward()
        assert weight.grad.tolist() == [[1000.0], [0.0]]


@pytest.mark.parametrize("when", ["never", "always"])
def test_windows_in_the_padding_give_no_gradient(when):
    for pool, rank in ((F.max_pool2d, 2), (F.max_pool3d, 3)):
        x = torch.ones(1, 1, *[4] * rank, device="xla", requires_grad=True)
        with interpretation(when):
            values, positions = pool(x, 2, 3, 1, 5, return_indices=True)
            values.sum().backward()
            assert (values.item(), positions.item()) == (-math.inf, -1)
            assert not x.grad.any().item()


@pytest.mark.parametrize("when", ["never", "always"])
def test_windows_in_the_padding_beside_a_row_give_no_gradient(when):
    """torch's kernel names the next row's pixels for them, which are in the image."""
    x = torch.ones(1, 1, 4, 1, device="xla", requires_grad=True)
    with interpretation(when):
        values, positions = F.max_pool2d(x, (1, 2), (2, 1), (0, 1), (1, 2), return_indices=True)
        expected = torch.full((1, 1, 2, 1), -1)
        assert torch.equal(positions.cpu(), expected)
        values.sum().backward()
        assert not x.grad.any().item()


@pytest.mark.parametrize("when", ["never", "always"])
@pytest.mark.parametrize("width", [1, 2, 16])
def test_a_scatter_of_what_it_updates_reads_it_first(when, width):
    order = torch.randperm(50)
    x = torch.randn(50, width)
    on_xla, places = x.to("xla"), order.to("xla")
    torch_xla.sync()
    with interpretation(when):
        twice = on_xla * 2
        put = twice.index_put((places,), twice)
        del twice
        assert torch.equal(put.cpu(), (x * 2).index_put((order,), x * 2))
        sums = on_xla * 3
        added = sums.index_add(0, places, sums)
        del sums
        torch.testing.assert_close(added.cpu(), (x * 3).index_add(0, order, x * 3))


@pytest.mark.parametrize("when", ["never", "always"])
@pytest.mark.parametrize("moments", [torch.var_mean, torch.std_mean])
def test_the_mean_of_infinities_is_infinite(moments, when):
    rows = [[1.0, math.inf, 2.0], [math.inf, -math.inf, 0.0], [math.nan, 1.0, 2.0], [1.0, 2.0, 3.0]]
    with interpretation(when):
        spread, mean = moments(torch.tensor(rows).to("xla"), 1)
        expected = torch.tensor([math.inf, math.nan, math.nan, 2.0])
        torch.testing.assert_close(mean.cpu(), expected, equal_nan=True)
        assert spread.isnan().tolist() == [True, True, True, False]
        assert moments(torch.tensor(rows[0]).to("xla"))[1].item() == math.inf


@pytest.mark.parametrize("when", ["never", "always"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("rank", [2, 3])
def test_images_at_places_that_are_no_numbers(rank, mode, padding, when):
    """In planes none is made of them, if outside is zero; in volumes, they are passed over."""
    if rank == 3 and mode == "bicubic":
        return
    image = torch.arange(1.0, 3**rank + 1).view(1, 1, *[3] * rank)
    places = [[math.nan, 0.0], [0.0, math.nan], [math.inf, 0.0], [-math.inf, math.inf], [0.5, 0.25]]
    grid = torch.tensor([[*place, *[0.0] * (rank - 2)] for place in places])
    grid = grid.view(1, *[1] * (rank - 1), len(places), rank)

    def sample(device):
        given = [image.to(device), grid.to(device).requires_grad_(padding == "zeros")]
        result = F.grid_sample(*given, mode=mode, padding_mode=padding, align_corners=False)
        if padding == "zeros":
            result.sum().backward()
            return result.detach().cpu(), given[1].grad.cpu()
        return result.cpu()

    with interpretation(when):
        torch.testing.assert_close(sample("xla"), sample("cpu"), equal_nan=True)


# Bytes, whose positions are eight times as large.
UNUSED_RESULTS = """
import pathlib
import torch
import torch_xla
from torch_xla import _XLAC
from torch_xla.debug import metrics

def peak():
    return int(pathlib.Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024

def sort_again_and_again(x, count):
    results = [x]
    for _ in range(count):
        results.append(results[-1].sort()[0])
    torch_xla.sync(wait=True)
    return results

x = torch.arange(1000000).view(1000, 1000).to(torch.int8).to("xla")
_XLAC._xla_set_interpretation("never")
sort_again_and_again(x, 2)  # so that the compiler's own memory is there
_XLAC._xla_set_interpretation("always")
before = peak()
sort_again_and_again(x, 32)
assert metrics.counter_value("InterpretedGraph") == 1
print(peak() - before)
"""


def test_results_that_nobody_needs_are_let_go_at_once(program):
    # What is freed goes back to the system at once.
    output = program.run_code(UNUSED_RESULTS, MALLOC_MMAP_THRESHOLD_="65536").stdout
    assert int(output) < 120  # with all positions 276


def test_what_is_written_through_an_address_is_everybodys(device):
    with interpretation("always"):
        x = torch.arange(6.0, device=device) * 2
        torch_xla.sync(wait=True)
        torch.from_dlpack(xla_dlpack.to_dlpack(x))[0] = 99.0
        assert x.cpu()[0] == 99 and (x + 0).cpu()[0] == 99
    with interpretation("never"):
        assert (x * 1).cpu()[0] == 99
