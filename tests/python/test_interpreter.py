"""Which graphs run operation by operation, without a program, and when (docs/shapes.md)."""

import contextlib
import math
import os
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from interpreted import counts, interpretation, interpreted_compiled
from torch import nn

import torch_xla
import torch_xla.debug.metrics as met
import torch_xla.runtime as xr
from torch_xla import _XLAC


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
