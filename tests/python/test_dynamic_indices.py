"""An index of the user's program is no part of the code: its second value is the last that compiles, and values are eager's."""

import random

import pytest
import torch

import torch_xla
from torch_xla.debug import metrics

# What is counted, and shown, are programs.
pytestmark = pytest.mark.usefixtures("module_of_programs")


@pytest.fixture(autouse=True)
def no_programs():
    """Each test begins with no program of another one's."""
    torch_xla.sync(wait=True)
    torch_xla._XLAC._xla_clear_computation_cache()


class Compilations:
    """How many there have been since it was made."""

    def __init__(self):
        self._before = self._now()

    @staticmethod
    def _now():
        return tuple(
            metrics.counter_value(name) or 0 for name in ("ProgramCompile", "DynamicCompile")
        )

    def __call__(self):
        """All, and those that take indices as arguments."""
        return tuple(now - before for now, before in zip(self._now(), self._before, strict=True))


def check(function, *tensors, values, most=2, gradients=True):
    """`function(*tensors, value)` for each value, against eager: the result, what it wrote, and gradients."""
    compilations = None
    for value in values:
        results = []
        for device in ("cpu", "xla"):
            inputs = [
                t.clone().to(device).requires_grad_(gradients and t.is_floating_point())
                for t in tensors
            ]
            if device == "xla":
                torch_xla.sync(wait=True)
                compilations = compilations or Compilations()
            result = function(*inputs, value)
            if gradients:
                result.square().sum().backward()
            torch_xla.sync()
            results.append([result.detach(), *(t.grad if gradients else t for t in inputs)])
        for expected, actual in zip(*results, strict=True):
            if expected is None:
                assert actual is None
                continue
            torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)
    count, dynamic = compilations()
    assert count <= most and dynamic == count - 1
    return count


X = torch.randn(12, 6, 5)


@pytest.mark.parametrize(
    "function, values",
    [
        (lambda x, i: x[i] * 2, [0, 3, 11, -1, -12, 3, 5]),
        (lambda x, i: x[i : i + 4] + 1, [0, 8, 3, 8, 0, 1]),
        (lambda x, i: x[:, i] * 3, [0, 5, 2, -1]),
        (lambda x, i: x[..., i : i + 2].sum(0), [3, 0, 2]),
        (lambda x, i: x[i::4] * 2, [0, 3, 1, 2]),
        (lambda x, i: x[i : i + 7 : 3] * 2, [0, 5, 3, 1]),
        (lambda x, i: x.narrow(0, i, 5).exp(), [7, 0, 2]),
        (lambda x, i: x.select(2, i).tanh(), [4, 0, 1]),
        (lambda x, i: x.roll(i, 1) * 2, [1, 0, 5, 6, -2, 40]),
        (lambda x, i: x.roll(i) * 2, [1, 0, 359, -1]),
        (lambda x, i: x.roll((i, -i), (0, 2)) * 2, [1, 3, 0, 7]),
        (lambda x, i: x.as_strided((3, 2), (7, 2), i) * 2, [0, 300, 5]),
        (lambda x, i: x.as_strided((3, 2), (2, 1), i) * 2, [0, 354, 5]),
        (lambda x, i: x[0].tril(i) * 2, [0, 1, -2, 5, 1000, -(10**12)]),
        (lambda x, i: x.triu(i) * 2, [0, 1, -2, 5, 1000, 10**12]),
        (lambda x, i: x.slice_scatter(x[:3] * 2, 0, i, i + 3) * 2, [0, 9, 4]),
        (lambda x, i: x.slice_scatter(x[:3] * 2, 0, i, i + 7, 3) * 2, [0, 5, 4]),
        (lambda x, i: x.select_scatter(x[:, 2] * 2, 1, i) * 2, [0, 5, -1]),
        (lambda x, i: x[i][i % 6 : i % 6 + 1] * 2, [1, 11, 5, 0]),
        (lambda x, i: x[i : i + 3].permute(2, 0, 1)[i % 5].reshape(-1)[i:9], [0, 0, 0]),
        (lambda x, i: x.transpose(0, 2)[i : i + 2].flatten()[i * 3 : i * 3 + 20], [0, 3, 1]),
        (lambda x, i: x[i : i + 4] @ x[11 - i].T, [0, 8, 4, 2]),
        (lambda x, i: torch.cat([x[i : i + 2], x[:3]]) * 2, [0, 10, 4]),
    ],
)
def test_reads_and_gradients(function, values):
    check(function, X, values=values)


@pytest.mark.parametrize(
    "split", [lambda x: x.unbind(1), lambda x: x.split(4), lambda x: x.chunk(3, 1)]
)
def test_one_part_of_several(split):
    """Not its gradient: that of the parts that are not used is zeros, which makes another structure of each."""
    check(lambda x, i: split(x)[i] + 1, X, values=[0, 2, 1], gradients=False)


@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize(
    "write",
    [
        lambda buffer, row, i: buffer[i : i + row.size(0)].copy_(row),
        lambda buffer, row, i: buffer[i : i + row.size(0)].mul_(2),
        lambda buffer, row, i: buffer[i : i + row.size(0)].fill_(7),
        lambda buffer, row, i: buffer[i : i + 2 * row.size(0) : 2].copy_(row),
        lambda buffer, row, i: buffer[:, i].add_(row[0, 0]),
        lambda buffer, row, i: buffer.t()[i].copy_(row[0, 0].expand(12)),
        lambda buffer, row, i: buffer.view(-1)[i * 3 : i * 3 + 4].zero_(),
        lambda buffer, row, i: buffer.view(3, 4, 6)[i % 3, :, i].copy_(row[0, :4]),
        lambda buffer, row, i: buffer[i : i + 4].t()[i : i + 1].sub_(1),
        lambda buffer, row, i: buffer.diagonal()[i : i + 1].add_(5),
        lambda buffer, row, i: buffer.as_strided((3,), (4,), i).copy_(row[0, :3]),
    ],
)
def test_writes(write, rows):
    def step(buffer, row, i):
        write(buffer, row, i)
        return buffer.clone()

    buffer = torch.arange(72.0).reshape(12, 6)
    row = -torch.rand(rows, 6)
    check(step, buffer, row, values=[0, 5, 2, 5, 0, 4], gradients=False)


def test_rows_are_written_in_place():
    """One row after the other into a buffer that is donated each time."""
    buffer = torch.zeros(50, 8, device="xla")
    expected = torch.zeros(50, 8)
    torch_xla.sync(wait=True)
    compilations = Compilations()
    for i in range(50):
        row = torch.full((8,), float(i))
        buffer[i] = row.to("xla")
        expected[i] = row
        torch_xla.sync()
        if i > 2:
            # The buffer is the only large argument, and its memory the result's.
            assert metrics.metric_data("InputOutputAliasCount")[1] >= 2
    assert compilations() == (2, 1)
    torch.testing.assert_close(buffer.cpu(), expected, rtol=0, atol=0)


def test_indices_that_never_vary_are_constants():
    x = torch.randn(8, 8).to("xla")
    compilations = Compilations()
    for _ in range(3):
        (x[2:5] @ x[:, 3]).sum().item()
    assert compilations() == (1, 0)


def test_a_value_that_comes_back_has_its_program():
    x = X.to("xla")
    compilations = Compilations()
    for i in (1, 2, 1, 3, 1, 2):
        assert x[i].sum().item() == pytest.approx(X[i].sum().item(), abs=1e-4)
    assert compilations() == (2, 1)


def test_several_indices_vary_one_after_the_other():
    x = X.to("xla")
    compilations = Compilations()
    counts = []
    for i, j, k in [(0, 0, 0), (1, 0, 0), (1, 2, 0), (2, 2, 4), (5, 5, 3), (0, 0, 0), (11, 0, 2)]:
        value = (x[i, 0] + x[0, j] * x[:, 0, k].sum()).sum().item()
        expected = (X[i, 0] + X[0, j] * X[:, 0, k].sum()).sum().item()
        assert value == pytest.approx(expected, abs=1e-4)
        counts.append(compilations()[0])
    # After three programs all indices are arguments.
    assert counts == [1, 2, 3, 4, 4, 4, 4]


def test_equal_operations_with_other_indices_in_one_graph():
    x = X.to("xla")
    for turn in range(3):
        parts = [x[(i + turn) % 12] * 2 for i in range(12)]
        expected = [X[(i + turn) % 12] * 2 for i in range(12)]
        torch_xla.sync()
        for part, other in zip(parts, expected, strict=True):
            torch.testing.assert_close(part.cpu(), other, rtol=0, atol=0)


def test_indices_of_one_step_in_a_loop():
    """Eager's indexing of a permutation, batch by batch."""
    data, weight = torch.randn(100, 4), torch.randn(4, 3)
    permutation = torch.randperm(100)
    on_device = [t.to("xla") for t in (data, weight, permutation)]
    torch_xla.sync(wait=True)
    compilations = Compilations()
    for i in range(0, 100, 10):
        value = (on_device[0][on_device[2][i : i + 10]] @ on_device[1]).sum().item()
        assert value == pytest.approx(
            (data[permutation[i : i + 10]] @ weight).sum().item(), abs=1e-3
        )
    assert compilations()[0] <= 2


def test_errors_are_those_of_eager():
    x = X.to("xla")
    for i in (3, 4, 5):
        x[i].sum().item()
    for bad in (12, -13):
        messages = []
        for tensor in (X, x):
            with pytest.raises(IndexError) as error:
                tensor[bad]
            messages.append(str(error.value))
        assert "out of" in messages[0] and "out of" in messages[1]
    for part in (x[12:20], x[20:30], x[5:3]):
        assert part.shape == (0, 6, 5) and part.cpu().numel() == 0
    with pytest.raises((RuntimeError, IndexError)):
        x.narrow(0, 10, 5)
    with pytest.raises(RuntimeError, match="expected src to have a size equal"):
        x.slice_scatter(x[:2], 0, 3, 6)


def test_empty_parts_are_one_program():
    x = X.to("xla")
    compilations = Compilations()
    for i in range(4):
        assert (x[i:i].sum() + 1).item() == 1
    assert compilations()[0] == 1


def test_a_view_that_outlives_its_index():
    x = X.to("xla")
    views = [x[i] for i in range(12)]
    x.add_(1)
    torch_xla.sync()
    for view, row in zip(views, X + 1, strict=True):
        torch.testing.assert_close(view.cpu(), row)


def test_compiled_functions():
    @torch.compile(backend="openxla")
    def step(x, w):
        return (x[2:5] @ w)[1:].sum()

    x, w = torch.randn(6, 4), torch.randn(4, 3)
    for _ in range(3):
        value = step(x.to("xla"), w.to("xla")).item()
        assert value == pytest.approx((x[2:5] @ w)[1:].sum().item(), abs=1e-4)


def test_the_report_names_the_index(program):
    (program.folder / "rows.py").write_text(
        "import torch, torch_xla\n"
        "x = torch.randn(8, 4).to('xla')\n"
        "torch_xla.sync()\n"
        "for i in (3, 5):\n"
        "    y = x[i].sum().item()\n"
    )
    result = program.run("rows.py", PT_XLA_DEBUG_LEVEL="1")
    assert "index 5 was 3 in `view`" in result.stderr
    assert "rows.py:5; from now on it is an argument" in result.stderr


WORLD = """
import torch, torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.runtime as xr
from torch_xla.debug import metrics

def work(index):
    rank, size = xr.global_ordinal(), xr.world_size()
    data = torch.arange(40.0).reshape(20, 2)
    x = data.to("xla")
    torch_xla.sync(wait=True)
    for turn in range(6):
        own = [turn * r for r in range(size)]
        total = xm.all_reduce(xm.REDUCE_SUM, x[own[rank]] * 2)
        same = xm.all_reduce(xm.REDUCE_MAX, x[3:6].sum(0))
        torch_xla.sync()
        assert torch.equal(total.cpu(), sum(data[i] * 2 for i in own))
        assert torch.equal(same.cpu(), data[3:6].sum(0))
    compiled = metrics.counter_value("ProgramCompile")
    assert compiled == (1 if rank == 0 else 2), (rank, compiled)

if __name__ == "__main__":
    torch_xla.launch(work, args=(), start_method="fork")
"""


def test_ranks_whose_indices_differ(program):
    """The index of one rank never varies and those of the others do: they run other programs, and the same collectives."""
    (program.folder / "ranks.py").write_text(WORLD)
    program.run("ranks.py", CPU_NUM_DEVICES="3")


def test_slices_of_wrong_gradients_and_empty_shifts_are_errors():
    x = X.to("xla")
    with pytest.raises(RuntimeError, match="`shifts` required"):
        torch.roll(x, ())
    with pytest.raises(RuntimeError, match="is not that of a slice of 3 elements"):
        torch.ops.aten.slice_backward(x[:2], [12, 6, 5], 0, 4, 7, 1)
    with pytest.raises(IndexError):
        torch.ops.aten.select_backward(x[0], [12, 6, 5], 0, 12)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 6))]
)
def test_random_programs(seed, request):
    """Programs of a fixed structure, run with many indices: each value is eager's, and few programs are compiled."""
    rng = random.Random(seed)
    programs = request.config.getoption("--index-programs")
    for _ in range(programs):
        steps, sizes = _random_program(rng)
        compilations = Compilations()
        for _ in range(8):
            choices = [rng.random() if rng.random() < 0.8 else 0.0 for _ in steps]
            expected, actual = (
                _run(steps, choices, torch.arange(float(sizes[0] * sizes[1])), sizes, device)
                for device in ("cpu", "xla")
            )
            for a, b in zip(actual, expected, strict=True):
                torch.testing.assert_close(a.cpu(), b, rtol=1e-4, atol=1e-4)
        assert compilations()[0] <= 4


_KINDS = (
    "select",
    "slice",
    "strided",
    "roll",
    "write",
    "write_strided",
    "row",
    "strided_view",
    "tril",
)


def _random_program(rng):
    return [(rng.choice(_KINDS), rng.random()) for _ in range(rng.randint(2, 7))], (
        rng.randint(3, 9),
        rng.randint(3, 9),
    )


def _run(steps, choices, numbers, sizes, device):
    """Only indices depend on `choices`; sizes on `steps`."""
    x = numbers.reshape(sizes).to(device)
    kept = [x]
    torch_xla.sync()

    def start(choice, room):
        return min(int(choice * (room + 1)), room)

    for (kind, amount), choice in zip(steps, choices, strict=True):
        dim = int(amount * 1000) % 2
        size = x.size(dim)
        length = 1 + int(amount * size) % size
        if kind == "select":
            x = x + x.select(dim, start(choice, size - 1)).unsqueeze(dim)
        elif kind == "slice":
            x = torch.cat([x, x.narrow(dim, start(choice, size - length), length) / 2], dim)
        elif kind == "strided":
            at = start(choice, (size - 1) % 2)
            part = (
                x[at : at + size - (size - 1) % 2 : 2]
                if dim == 0
                else x[:, at : at + size - (size - 1) % 2 : 2]
            )
            x = x + part.sum()
        elif kind == "roll":
            x = x.roll(start(choice, size), dim) - 1
        elif kind == "write":
            x.narrow(dim, start(choice, size - length), length).mul_(0.5)
        elif kind == "write_strided":
            at = start(choice, 1)
            x[at : at + 2 * ((x.size(0) - 1) // 2) : 2].add_(3)
        elif kind == "row":
            x[start(choice, x.size(0) - 1)] = x[start(1 - choice, x.size(0) - 1)] + 1
        elif kind == "strided_view":
            x = x.contiguous()
            shown = x.as_strided((2,), (x.size(1),), start(choice, x.size(1) - 1))
            shown.sub_(2)
        elif kind == "tril":
            x = x.tril(start(choice, 3)) + x
        x = x % 16
        kept.append(x)
    torch_xla.sync()
    return kept


COMPILED = {
    "slice": lambda x, i: (x[i : i + 10] * 2).sum(),
    "slice of a product": lambda x, i: (x @ x.t())[i : i + 3],
    "select": lambda x, i: x[i].sin() + x[i + 1],
    "narrow": lambda x, i: x.narrow(0, i, 4).cumsum(0),
    "two of them": lambda x, i: x[i : i + 2] @ x[2 * i % 64].unsqueeze(1),
    "roll": lambda x, i: torch.roll(x, i, 0)[0] + x[0],
    "written": lambda x, i: x.clone().narrow(0, i, 2).fill_(i),
    "read of what is written": lambda x, i: torch.select_scatter(x, x[i] + 1, 0, i).sum(0),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", COMPILED)
@pytest.mark.parametrize("gradients", [False, True])
def test_captured_steps(name, gradients):
    """Of `torch.compile`, which captures a graph anew for each number."""
    torch._dynamo.reset()
    function = COMPILED[name]
    compiled = torch.compile(function, backend="openxla", dynamic=True)
    x = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
    own = x.to("xla")
    torch_xla.sync(wait=True)
    compilations = Compilations()
    for i in range(2, 52):  # dynamo takes 0 and 1 to be constants
        if i == 12:
            first = compilations()
        mine, theirs = (t.detach().requires_grad_(gradients) for t in (own, x))
        actual, expected = compiled(mine, i), function(theirs, i)
        torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)
        if not gradients or not expected.requires_grad:
            continue
        actual.square().sum().backward()
        expected.square().sum().backward()
        torch.testing.assert_close(mine.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-4)
    # Four of each program at most, and one, or with gradients three, programs a turn.
    assert compilations() == first and first[0] <= (12 if gradients else 4)


@pytest.mark.parametrize(
    ("shape", "first", "second"),
    [((10, 0, 10, 10), (5, 0, 5), (5, 1, 1)), ((0, 0, 10, 0), (5, 5, 0), (5, 5, 1))],
)
def test_where_one_index_selects_nothing_none_is_out_of_bounds(shape, first, second):
    x = torch.rand(shape)
    indices = [torch.full(sizes, 50) for sizes in (first, second)]
    got = x.to("xla")[:, indices[0].to("xla"), :, indices[1].to("xla")]
    torch.testing.assert_close(got.cpu(), x[:, indices[0], :, indices[1]])


def test_counts_of_the_data_compile_nothing():
    """Where the device's memory is the host's, torch's kernel finds what is not zero."""
    flags = torch.rand(40, 5)
    compilations = Compilations()
    for limit in (0.1, 0.3, 0.5, 0.9, 2.0):
        mask = flags > limit
        torch.testing.assert_close(mask.to("xla").nonzero().cpu(), mask.nonzero())
    repeats = torch.tensor([2, 0, 3])
    for n in range(3):
        found = torch.repeat_interleave((repeats + n).to("xla"))
        assert torch.equal(found.cpu(), torch.repeat_interleave(repeats + n))
    assert compilations()[0] == 0


MASKED = {
    "elements": lambda x, m, rows: x[m],
    "rows": lambda x, m, rows: x[rows],
    "columns": lambda x, m, rows: x.T[:, rows],
    "rows of one more dimension": lambda x, m, rows: x[None, rows],
    "nothing": lambda x, m, rows: x[torch.zeros_like(m)],
    "everything": lambda x, m, rows: x[torch.ones_like(m)],
}


@pytest.mark.parametrize("name", MASKED)
def test_gradients_of_masks_read_nothing(name):
    x, m, rows = torch.randn(6, 5), torch.rand(6, 5) > 0.5, torch.arange(6) % 3 > 0
    gradients, reads = [], 0
    for device in ("cpu", "xla"):
        leaf = x.clone().to(device).detach().requires_grad_()
        chosen = MASKED[name](leaf, m.to(device), rows.to(device))
        weights = torch.arange(1.0, chosen.numel() + 1).view(chosen.shape).to(device)
        reads = metrics.counter_value("ExecuteComputation") or 0
        (chosen * weights).sum().backward()
        reads = (metrics.counter_value("ExecuteComputation") or 0) - reads
        gradients.append(leaf.grad.cpu())
    assert reads == 0
    torch.testing.assert_close(*gradients)
