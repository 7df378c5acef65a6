"""Values that eager looks at when an operation runs: checked when the program has run, in eager's words, once."""

import contextlib
import os
import threading
import time

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_xla
from benchmarks import value_checks
from torch_xla import _errors
from torch_xla.debug import metrics
from torch_xla.experimental import eager_mode_context
from torch_xla.experimental.fori_loop import while_loop
from torch_xla.experimental.scan import scan

NAN = float("nan")


def ints(device, *values, **options):
    return torch.tensor(values, device=device, **options)


def matrix(device):
    return torch.arange(15.0, device=device).reshape(5, 3)


def cube(device):
    return torch.arange(30.0, device=device).reshape(5, 3, 2)


# What eager refuses when it runs. Each gives something to read.
CASES = {
    "index": lambda d: matrix(d)[ints(d, 0, 7)],
    "index, negative": lambda d: matrix(d)[ints(d, 0, -6)],
    "index, second": lambda d: matrix(d)[ints(d, 0, 1), ints(d, 1, 9)],
    "index, after a slice": lambda d: matrix(d)[:, ints(d, 1, 9)],
    "index, int32": lambda d: matrix(d)[ints(d, 0, 7, dtype=torch.int32)],
    "index, extreme": lambda d: matrix(d)[ints(d, 0, -(2**63))],
    "index_put": lambda d: matrix(d).index_put((ints(d, 0, 7),), ints(d, 1.0)),
    "index_put, accumulating": lambda d: matrix(d).index_put(
        (ints(d, 0, -7),), ints(d, 1.0), accumulate=True
    ),
    "index_select": lambda d: matrix(d).index_select(0, ints(d, 0, 7)),
    "index_select, negative": lambda d: matrix(d).index_select(0, ints(d, 0, -1)),
    "index_select, dimension 1": lambda d: cube(d).index_select(1, ints(d, 0, -1)),
    "index_select, dimension 2": lambda d: cube(d).index_select(2, ints(d, 0, 2)),
    "index_select, scalar": lambda d: ints(d, 1.0)[0].index_select(0, ints(d, 1)),
    "gather": lambda d: matrix(d).gather(0, ints(d, [0, 7])),
    "gather, negative": lambda d: matrix(d).gather(1, ints(d, [0, -1])),
    "scatter": lambda d: matrix(d).scatter(0, ints(d, [0, 7]), torch.ones(1, 2, device=d)),
    "scatter, value": lambda d: matrix(d).scatter(0, ints(d, [0, -1]), 1.0),
    "scatter, multiplying": lambda d: matrix(d).scatter(0, ints(d, [0, 7]), 1.0, reduce="multiply"),
    "scatter_add": lambda d: matrix(d).scatter_add(0, ints(d, [7, 0]), torch.ones(1, 2, device=d)),
    "scatter_reduce": lambda d: matrix(d).scatter_reduce(
        1, ints(d, [0, 7]), torch.ones(1, 2, device=d), "amax", include_self=False
    ),
    "index_add": lambda d: matrix(d).index_add(0, ints(d, 0, 7), torch.ones(2, 3, device=d)),
    "index_add, vector": lambda d: matrix(d)[0].index_add(
        0, ints(d, 0, 7), torch.ones(2, device=d)
    ),
    "index_add, middle": lambda d: cube(d).index_add(
        1, ints(d, 0, -1), torch.ones(5, 2, 2, device=d)
    ),
    "index_copy": lambda d: matrix(d).index_copy(0, ints(d, 0, -1), torch.ones(2, 3, device=d)),
    "index_fill": lambda d: matrix(d).index_fill(0, ints(d, 0, -7), 1.0),
    "index_reduce": lambda d: matrix(d).index_reduce(
        0, ints(d, 0, 7), torch.ones(2, 3, device=d), "amax"
    ),
    "take": lambda d: matrix(d).take(ints(d, 0, 70)),
    "put": lambda d: matrix(d).put(ints(d, 0, -16), torch.ones(2, device=d)),
    "masked_scatter": lambda d: matrix(d).masked_scatter(matrix(d) < 9, torch.ones(4, device=d)),
    "masked_scatter, of nothing": lambda d: matrix(d).masked_scatter(
        matrix(d) < 9, torch.ones(0, device=d)
    ),
    "embedding": lambda d: F.embedding(ints(d, [0, 7]), matrix(d)),
    "embedding, negative": lambda d: F.embedding(ints(d, 0, -1), matrix(d)),
    "embedding_bag, max": lambda d: F.embedding_bag(ints(d, [0, 7]), matrix(d), mode="max"),
    "embedding_bag, offsets": lambda d: F.embedding_bag(ints(d, 0, 1, 2), matrix(d), ints(d, 0, 5)),
    "embedding_bag, first": lambda d: F.embedding_bag(ints(d, 0, 1, 2), matrix(d), ints(d, 1, 2)),
    "multi_margin_loss": lambda d: F.multi_margin_loss(matrix(d), ints(d, 0, 1, 2, 3, 0)),
    "multi_margin_loss, negative": lambda d: F.multi_margin_loss(matrix(d)[0], ints(d, -1)),
    "segment_reduce": lambda d: torch.segment_reduce(matrix(d), "sum", lengths=ints(d, 1, 3)),
    "segment_reduce, negative": lambda d: torch.segment_reduce(
        matrix(d), "sum", lengths=ints(d, 6, -1)
    ),
    "nll_loss": lambda d: F.nll_loss(matrix(d), ints(d, 0, 1, 2, 3, 0)),
    "nll_loss, of one": lambda d: F.nll_loss(matrix(d)[0], ints(d, 3)[0]),
    "nll_loss, pictures": lambda d: F.nll_loss(
        torch.ones(1, 3, 2, 2, device=d), ints(d, [[0, 1], [2, -3]])
    ),
    "cross_entropy": lambda d: F.cross_entropy(matrix(d), ints(d, 0, 1, 2, -1, 0)),
    "cross_entropy, smoothed": lambda d: F.cross_entropy(
        matrix(d), ints(d, 0, 1, 2, 3, 0), label_smoothing=0.1
    ),
    "cross_entropy, weighted": lambda d: F.cross_entropy(
        matrix(d), ints(d, 0, 1, 2, 3, 0), weight=torch.ones(3, device=d)
    ),
    "multilabel_margin_loss": lambda d: F.multilabel_margin_loss(
        matrix(d), torch.full((5, 3), -2, device=d)
    ),
    "binary_cross_entropy, input": lambda d: F.binary_cross_entropy(ints(d, 2.0), ints(d, 1.0)),
    "binary_cross_entropy, target": lambda d: F.binary_cross_entropy(ints(d, 0.2), ints(d, NAN)),
    "one_hot": lambda d: F.one_hot(ints(d, 0, 7), 5),
    "one_hot, negative": lambda d: F.one_hot(ints(d, 7, -7), 5),
    "max_unpool": lambda d: F.max_unpool2d(
        torch.ones(1, 1, 1, 1, device=d), torch.full((1, 1, 1, 1), 70, device=d), 2
    ),
    "repeat_interleave": lambda d: torch.repeat_interleave(
        ints(d, 1, 2), ints(d, 1, -1), output_size=3
    ),
    "repeat_interleave, size": lambda d: torch.repeat_interleave(
        ints(d, 1, 2), ints(d, 1, 1), output_size=3
    ),
    "multinomial, negative": lambda d: torch.multinomial(ints(d, -1.0, 1), 1),
    "multinomial, not a number": lambda d: torch.multinomial(ints(d, NAN, 1), 1, True),
    "multinomial, infinite": lambda d: torch.multinomial(ints(d, float("inf"), 1), 1),
    "multinomial, zero": lambda d: torch.multinomial(ints(d, [0.0, 1], [0, 0]), 1, True),
    "normal": lambda d: torch.normal(ints(d, 0.0), ints(d, -1.0)),
    "normal, not a number": lambda d: torch.normal(0.0, ints(d, 1.0, NAN)),
    "bernoulli": lambda d: torch.bernoulli(ints(d, 0.5, 2.0)),
    "bernoulli_": lambda d: torch.zeros(2, device=d).bernoulli_(ints(d, NAN, 0.5)),
    "poisson": lambda d: torch.poisson(ints(d, 1.0, -2.0)),
}


def embedding_gradient(device, **options):
    """The rows themselves are wanted by nobody."""
    weight = matrix(device).requires_grad_()
    F.embedding(ints(device, 0, 7), weight, **options).sum().backward()
    return weight.grad


def test_rows_of_padding_are_passed_over_whatever_they_are(device):
    gradient = torch.ones(2, 3)
    for rows, padding in (([-1, 2], -1), ([4, 2], 4)):
        arguments = (4, padding, False)
        backward = torch.ops.aten.embedding_dense_backward
        given = backward(gradient.to(device), torch.tensor(rows).to(device), *arguments)
        expected = backward(gradient, torch.tensor(rows), *arguments)
        assert torch.equal(given.cpu(), expected)


CASES["embedding, its gradient"] = embedding_gradient
CASES["embedding, its sparse gradient"] = lambda d: embedding_gradient(d, sparse=True)


def asserts(device):
    torch._assert_async(ints(device, 1.0)[0] > 3, "no more than three")
    return ints(device, 1.0) + 1


CASES["_assert_async"] = asserts


def first_line(error) -> str:
    return str(error.value).splitlines()[0]


def eagers(case) -> tuple[type, str]:
    with pytest.raises(Exception, match=r".") as expected:
        CASES[case]("cpu")
    return expected.type, first_line(expected)


def read(result):
    result.cpu()


def read_a_part(result):
    torch_xla.sync()
    result.reshape(-1)[:1].cpu()


def read_a_number(result):
    result.sum().item()


def wait(_):
    torch_xla.sync(wait=True)


def end_steps(_):
    """The error comes at the end of this step, or of one that ends after the program."""
    for _ in range(100):
        torch_xla.sync()
        time.sleep(0.01)


MOMENTS = {
    "at a read": read,
    "of a part": read_a_part,
    "of a number": read_a_number,
    "at sync(wait=True)": wait,
    "at the end of a step": end_steps,
}

# Ways to read that copy from the device by themselves.
READS = {
    "a tensor": lambda x: x.cpu(),
    "a number": lambda x: x.sum().item(),
    "a truth": lambda x: bool((x > 0).all()),
    "a comparison": lambda x: torch.equal(x, x + 1),
    "a number in a tensor": lambda x: x[0, 0].item(),
    "rows": lambda x: x[1:].cpu(),
    "columns": lambda x: x[:, 1].cpu(),
    "rows as bytes": lambda x: x[1:].view(torch.uint8).cpu(),
    "a list": lambda x: x[1].tolist(),
    "a text": repr,
}


@pytest.fixture(params=["compiled", "interpreted first"])
def way(request):
    """Whether graphs are compiled at once, or torch's kernels come first, which refuse as well."""
    if request.param == "compiled":
        request.getfixturevalue("programs_only")


def checked_executions() -> int:
    return metrics.counter_value("CheckedExecution") or 0


def assert_alive(device):
    good = matrix(device)[ints(device, 4, -5)]
    assert good.tolist() == [[12.0, 13.0, 14.0], [0.0, 1.0, 2.0]]
    torch_xla.sync(wait=True)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("case", CASES)
def test_words_are_eagers_at_a_read(case, device):
    kind, words = eagers(case)
    result = CASES[case](device)
    with pytest.raises(kind) as error:
        read(result)
    assert first_line(error) == words
    assert error.type is (_errors.IndexError if kind is IndexError else kind)
    read(result)  # once
    assert_alive(device)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("case", ["index", "gather", "cross_entropy", "bernoulli", "_assert_async"])
def test_the_error_comes_once(case, moment, device):
    kind, words = eagers(case)
    result = CASES[case](device)
    with pytest.raises(kind) as error:
        MOMENTS[moment](result)
    assert first_line(error) == words
    MOMENTS[moment](result)
    assert_alive(device)


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("rows", [5, 5000])
@pytest.mark.parametrize("kind", READS)
def test_every_read_is_told(kind, rows, device):
    """However it is copied, and whatever part of it."""
    result = torch.zeros(rows, 3, device=device)[torch.full((rows,), rows).to(device)]
    with pytest.raises(IndexError, match="is out of bounds for dimension 0 with size"):
        READS[kind](result)
    READS[kind](result)  # once
    assert_alive(device)


@pytest.mark.usefixtures("programs_only")
def test_other_steps_are_as_ever(device):
    """A step with a wrong index, and good ones before and after it, of one program."""
    table, total = matrix(device), torch.zeros(2, 3, device=device)
    errors, totals = [], []
    for rows in ([0, 1], [2, 9], [3, 4], [0, 0]):
        taken = F.embedding(torch.tensor(rows).to(device), table)
        total = total + (taken if rows[1] < 9 else 0 * taken)
        try:
            torch_xla.sync(wait=True)
        except IndexError as error:
            errors.append((rows, str(error)))
        totals.append(total.sum().item())
    assert [rows for rows, _ in errors] == [[2, 9]]
    assert totals == [15.0, 15.0, 84.0, 90.0]


@pytest.mark.usefixtures("programs_only")
def test_weights_are_donated_as_ever(device):
    weight = matrix(device).requires_grad_()
    optimizer = torch.optim.SGD([weight], lr=0.1)
    for step, label in enumerate([1, 5, 1, 1]):
        loss = F.cross_entropy(weight, torch.full((5,), label).to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 1:
            with pytest.raises(IndexError, match="Target 5 is out of bounds"):
                torch_xla.sync(wait=True)
        else:
            torch_xla.sync(wait=True)
    assert weight.isfinite().all()


@pytest.mark.usefixtures("programs_only")
def test_compiled_functions_check(device):
    @torch.compile(backend="openxla", fullgraph=True)
    def pick(table, rows):
        return table[rows] * 2

    assert pick(matrix(device), ints(device, 1)).tolist() == [[6.0, 8.0, 10.0]]
    picked = pick(matrix(device), ints(device, 5))
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 5"):
        picked.cpu()
    assert_alive(device)


def scanned(device, rows):
    xs = torch.tensor(rows).to(device)
    return scan(
        lambda total, row: (total + matrix(device)[row.view(1)].sum(), row), xs[0] * 0.0, xs
    )[0]


def looped(device, rows):
    """The second row is read in the last turn."""

    def turn(count, row):
        return count - 1, matrix(device)[row.view(1)][0, 0].long() // 3 + 1

    start = (torch.tensor(len(rows)).to(device), torch.tensor(rows[0]).to(device))
    return while_loop(lambda count, row: count > 0, turn, start)[1]


def chosen(device, rows):
    def take(row):
        return matrix(device)[row]

    row = torch.tensor(rows).to(device)[:1]
    return torch.cond(row.sum() >= 0, take, lambda row: take(row) + 1, (row,))


# Each takes rows of a table of five in the region of a loop or branch.
REGIONS = {
    "scan": (scanned, [0, 4, 1], [0, 7, 1]),
    "scan, twice": (scanned, [0, 1], [7, 9]),
    "while_loop": (looped, [1, 0], [4, 0]),
    "cond, true": (chosen, [1], [7]),
    "cond, false": (chosen, [-1], [-7]),
}


@pytest.mark.parametrize("kind", REGIONS)
def test_regions_check(kind, device):
    program, right, wrong = REGIONS[kind]
    program(device, right).cpu()
    torch_xla.sync(wait=True)
    result = program(device, wrong)
    bad = next((row for row in wrong if not -5 <= row < 5), 5)
    with pytest.raises(
        IndexError, match=f"index {bad} is out of bounds for dimension 0 with size 5"
    ):
        result.cpu()
    result.cpu()  # once
    program(device, right).cpu()
    assert_alive(device)


@pytest.mark.usefixtures("programs_only")
def test_regions_without_wrong_values_are_not_checked(device):
    xs = matrix(device)
    torch_xla.sync(wait=True)
    checked = checked_executions()
    scan(lambda total, x: (total + x[x.argsort()].sum(), x), xs[0, 0], xs)
    torch_xla.sync(wait=True)
    assert checked_executions() == checked


@pytest.mark.usefixtures("programs_only")
def test_what_is_known_is_not_checked(device):
    """Indices that cannot be wrong cost nothing."""
    x = matrix(device)
    order = x[:, 0].argsort()
    checked = checked_executions()
    known = [x[order], x.gather(0, order[:, None])]
    known.append(x.index_select(1, x.topk(2, dim=1).indices[0]))
    for mask in (x > 3, torch.tensor([True, False, True, True, False], device=device)):
        torch_xla.sync(wait=True)  # then the mask lies on the host, and so do the positions
        known += [x[mask], x.clone().index_put_((mask,), x.new_tensor(1.0).expand(x[mask].shape))]
    known.append(x.masked_select(x > 3))
    torch_xla.sync(wait=True)
    assert checked_executions() == checked
    unknown = x[ints(device, 1)]
    torch_xla.sync(wait=True)
    assert checked_executions() == checked + 1
    assert unknown.tolist() == [[3.0, 4.0, 5.0]]


@pytest.mark.usefixtures("programs_only")
def test_text_and_results_of_graphs_are_as_ever(device):
    picked = matrix(device)[ints(device, 1)]
    assert "u64" not in torch_xla._XLAC._get_xla_tensors_hlo([picked])
    assert "u64" not in torch_xla._XLAC._get_stablehlo([picked], "", [], False)


@pytest.mark.usefixtures("way")
def test_repetitions_are_not_negative(device):
    """Eager, which looks when it has written four times, ends the process."""
    repeated = torch.repeat_interleave(ints(device, 1, 2), ints(device, 4, -1), output_size=3)
    with pytest.raises(RuntimeError, match="repeats can not be negative"):
        repeated.cpu()
    assert_alive(device)


def test_an_empty_index_is_right(device):
    nothing = torch.zeros(0, dtype=torch.int64, device=device)
    assert matrix(device)[nothing].shape == (0, 3)
    assert matrix(device).index_select(0, nothing).tolist() == []
    assert F.embedding(nothing, torch.zeros(0, 3, device=device)).tolist() == []
    torch_xla.sync(wait=True)


def test_ignored_classes_are_right(device):
    target = ints(device, 0, -100, 2, 99, 1)
    assert F.cross_entropy(matrix(device)[[0, 1, 2, 4]], target[[0, 1, 2, 4]]).isfinite()
    assert F.nll_loss(matrix(device), target.where(target >= 0, 99), ignore_index=99).isfinite()
    torch_xla.sync(wait=True)


def test_the_line_is_told(program):
    code = """
import torch, torch_xla
x = torch.zeros(5, device="xla")[torch.tensor([7]).to("xla")]  # the line
x.cpu()
"""
    path = program.folder / "script.py"
    path.write_text(code)
    for variables in ({"XLA_IR_DEBUG": "1"}, {}):
        result = program.run(str(path), check=False, TORCH_XLA_INTERPRET="never", **variables)
        assert "IndexError: index 7 is out of bounds for dimension 0 with size 5" in result.stderr
        assert ("script.py:3" in result.stderr) == ("XLA_IR_DEBUG" in variables)
        assert ("XLA_IR_DEBUG=1 says" in result.stderr) == (not variables)


def test_who_ends_without_asking_is_warned(program):
    code = """
import torch, torch_xla
x = torch.arange(5.0, device="xla")[torch.tensor([7]).to("xla")]
torch_xla._XLAC._xla_step_marker("", [], wait=False)
"""
    result = program.run_code(code, TORCH_XLA_INTERPRET="never")
    assert "index 7 is out of bounds" in result.stderr and "Traceback" not in result.stderr


@pytest.mark.usefixtures("programs_only")
def test_a_fork_takes_no_error_away(device):
    large = torch.ones(1500, 1500, device=device)
    for _ in range(4):
        large = large @ large / 1500
    picked = matrix(device)[ints(device, 7)]
    torch_xla.sync()  # it has not run when this returns
    process = os.fork()
    if process == 0:
        os._exit(0)
    os.waitpid(process, 0)
    with pytest.raises(IndexError, match="index 7"):
        picked.cpu()


def test_the_switch(program):
    code = """
import torch, torch_xla
x = torch.arange(5.0, device="xla")[torch.tensor([7]).to("xla")]
torch_xla.sync(wait=True)
print(x.shape)
torch._assert_async(x[0] > 100)
torch_xla.sync(wait=True)
"""
    result = program.run_code(code, TORCH_XLA_CHECK_VALUES="0")
    assert "torch.Size([1])" in result.stdout


@pytest.mark.exhaustive
def test_checks_cost_little():
    """1 % and less on a quiet machine; the bound leaves room for what else runs."""
    least = value_checks.compared(turns=3, steps=25)
    assert least["with"] < 1.15 * least["without"]


def test_other_engines_check(program, engine):
    code = """
import torch, torch_xla
x = torch.arange(5.0, device="xla")
for index in (1, 7, 2):
    y = x[torch.tensor([index]).to("xla")]
    try:
        print(y.tolist())
    except IndexError as error:
        print(str(error).splitlines()[0])
    torch_xla.sync(wait=True)
"""
    result = program.run_code(code, **engine)
    assert result.stdout.splitlines() == [
        "[1.0]",
        "index 7 is out of bounds for dimension 0 with size 5",
        "[2.0]",
    ]


@pytest.mark.usefixtures("programs_only")
def test_who_reads_what_is_there_does_not_wait(device):
    """Nor is it told of a program that it does not need."""
    here = ints(device, 1.0) + 1
    torch_xla.sync(wait=True)
    large = torch.ones(1500, 1500, device=device)
    for _ in range(8):
        large = large @ large / 1500
    picked = matrix(device)[ints(device, 7)]
    start = time.perf_counter()
    torch_xla.sync()
    assert here.tolist() == [2.0]
    is_told_later = time.perf_counter() - start
    with pytest.raises(IndexError, match="index 7"):
        picked.cpu()
    assert is_told_later < time.perf_counter() - start


@pytest.mark.usefixtures("programs_only")
def test_threads_are_told_of_what_they_read(device):
    """Each reads what it made; each wrong index is told to who made it, and to no more than one other."""
    told, failures = [], []

    def work(number):
        try:
            for step in range(20):
                index = 5 if (step + number) % 5 == 0 else 1
                row = matrix(device)[torch.tensor([index]).to(device)]
                try:
                    row.cpu()
                except IndexError as error:
                    told.append(str(error))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        torch_xla.sync(wait=True)
    except IndexError as error:
        told.append(str(error))
    assert not failures
    # Of runs that failed before anybody came to be told, the first is told.
    assert 1 <= len(told) <= 32
    assert_alive(device)


@pytest.mark.usefixtures("programs_only")
def test_no_error_of_several_threads_is_lost(device):
    """All are wrong, and all know it before any of them reads. A read is told of all runs before its value's, of its own
    thread's first: they may be what the value comes from."""
    told, barrier, recording = {}, threading.Barrier(4), threading.Lock()

    def listen(size, act):
        try:
            act()
        except IndexError as error:
            told.setdefault(size, []).append(str(error).splitlines()[0])

    def work(size):
        with recording:  # a step takes what all threads have recorded
            result = torch.zeros(size, device=device)[torch.tensor([size]).to(device)]
            listen(size, torch_xla.sync)
        barrier.wait()
        listen(size, result.cpu)

    threads = [threading.Thread(target=work, args=(size,)) for size in range(5, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == [5, 6, 7, 8]
    for size, lines in told.items():
        assert f"index {size} is out of bounds for dimension 0 with size {size}" in lines
        assert len(set(lines)) == len(lines)
    torch_xla.sync(wait=True)
    assert_alive(device)


@pytest.mark.usefixtures("programs_only")
@pytest.mark.parametrize("told_first", ["own", "another's"])
def test_threads_whose_work_is_in_one_program_are_each_told_of_their_own(told_first, device):
    """Also where another one has been told of it by a read."""
    told, is_cut, is_read = {}, threading.Event(), threading.Event()
    recorded = threading.Barrier(4)

    def told_by(act):
        try:
            act()
        except IndexError as error:
            return str(error).splitlines()[0]

    def work(size):
        result = torch.zeros(size, device=device)[torch.tensor([size]).to(device)]
        recorded.wait()
        is_cut.wait()
        if told_first == "another's":
            is_read.wait()
        told[size] = [told_by(result.cpu), told_by(result.cpu), told_by(torch_xla.sync)]

    threads = [threading.Thread(target=work, args=(size,)) for size in (5, 6, 7)]
    for thread in threads:
        thread.start()
    total = torch.zeros((), device=device)
    recorded.wait()
    others = [told_by(torch_xla.sync)]  # where the program has run by then
    is_cut.set()
    if told_first == "another's":
        others += [told_by(total.cpu) for _ in range(4)]
        is_read.set()
    for thread in threads:
        thread.join()
    words = {
        size: f"index {size} is out of bounds for dimension 0 with size {size}"
        for size in (5, 6, 7)
    }
    for size, lines in told.items():
        assert lines[0] == words[size]
        assert words[size] not in lines[1:]
    if told_first == "another's":
        assert sorted(filter(None, others)) == sorted(words.values())
    assert told_by(lambda: torch_xla.sync(wait=True)) is None
    assert_alive(device)


@pytest.mark.usefixtures("programs_only")
def test_a_program_of_one_thread_tells_the_threads_that_run_it(device):
    """Equal checks of a thread are one, and so they are where two threads have recorded the same graph."""
    table = torch.arange(10.0, device=device)
    good, other, bad = (torch.tensor([i]).to(device) for i in (1, 2, 77))
    for _ in range(2):
        pair = [torch.index_select(table, 0, good), torch.index_select(table, 0, other)]
        torch_xla.sync(wait=True)
    del pair
    told, kept = [], []

    def wrong():
        kept.append(torch.index_select(table, 0, bad))
        recorded.set()
        is_cut.wait()
        try:
            torch_xla.sync(wait=True)
        except IndexError as error:
            told.append(error)

    recorded, is_cut = threading.Event(), threading.Event()
    thread = threading.Thread(target=wrong)
    first = torch.index_select(table, 0, good)
    thread.start()
    recorded.wait()
    with contextlib.suppress(IndexError):  # of the one number that is both threads'
        torch_xla.sync(wait=True)
    is_cut.set()
    thread.join()
    assert len(told) == 1
    assert first.tolist() == [1.0]


@pytest.mark.usefixtures("programs_only")
def test_a_step_ends_with_what_backward_found(device):
    """It runs in a thread of torch's, which ends no steps."""

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, gradient):
            return gradient + torch.zeros(5, device=device)[torch.tensor([7]).to(device)]

    x = torch.ones(1, device=device, requires_grad=True)
    Wrong.apply(x).backward()
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        torch_xla.sync()  # the program may have run by its end
        torch_xla._XLAC._xla_wait_device_ops([])
        torch_xla.sync()
    assert_alive(device)


@pytest.mark.parametrize("waits", [False, True], ids=["started", "awaited"])
def test_eager_mode(waits, device):
    with eager_mode_context(True, wait=waits):
        with pytest.raises(IndexError, match="index 7 is out of bounds"):
            matrix(device)[ints(device, 7)].cpu()
        assert matrix(device)[ints(device, 4)].tolist() == [[12.0, 13.0, 14.0]]
        with pytest.raises(RuntimeError, match="no more than three"):
            torch._assert_async(ints(device, 1)[0] > 3, "no more than three")


def test_assertions_that_hold_say_nothing(device):
    torch._assert_async(ints(device, 2.0)[0] > 1, "more than one")
    torch_xla.sync(wait=True)
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        torch._assert_async(ints(device, 1, 2))


@pytest.mark.usefixtures("programs_only")
def test_a_model_of_right_values_has_the_same_programs(device):
    """Steps differ in their values only: nothing is compiled for them."""
    model = nn.Sequential(nn.Embedding(8, 4), nn.Flatten(), nn.Linear(8, 3)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    compiled = []
    for step in range(4):
        rows = torch.tensor([[step, 7 - step], [0, 1]]).to(device)
        loss = F.cross_entropy(model(rows), torch.tensor([0, 2]).to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        torch_xla.sync(wait=True)
        compiled.append(metrics.counter_value("ProgramCompile"))
    assert compiled[1] == compiled[3]


@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 5, 4)])
def test_classes_of_floating_point_types_are_whole(device, shape):
    """PyTorch/XLA takes them, where eager wants integers."""
    scores = torch.linspace(-1, 1, 120)[: torch.Size(shape).numel()].reshape(shape)
    classes = torch.arange(scores.numel() // 3).reshape(shape[0], *shape[2:]) % 3
    leaf, expected_leaf = scores.to(device).requires_grad_(), scores.clone().requires_grad_()
    loss = F.cross_entropy(leaf, classes.float().to(device), ignore_index=1)
    expected = F.cross_entropy(expected_leaf, classes, ignore_index=1)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(loss.cpu(), expected)
    torch.testing.assert_close(leaf.grad.cpu(), expected_leaf.grad)
    with pytest.raises(RuntimeError, match="classes are whole numbers"):
        F.nll_loss(scores.to(device), (classes + 0.5).to(device)).item()
    with pytest.raises(IndexError, match=r"Target 7 is out of bounds\."):
        F.nll_loss(scores.to(device), torch.full_like(classes, 7).double().to(device)).item()
