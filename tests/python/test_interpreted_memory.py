"""Where the results of graphs without a program lie, and who may write there (docs/architecture.md)."""

import os
import subprocess
import sys

import pytest
import torch
from interpreted import interpretation, interpreted_compiled

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.utils.dlpack as xla_dlpack
from torch_xla import _XLAC


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


def test_numbers_that_are_results_stay():
    """The memory of a graph's numbers is used again by the next graph, unless it is a result's."""
    numbers = [0.5, 1.5, 2.5, 3.5]
    with interpretation("always"):
        ones, alone = [], []
        for number in numbers:
            ones.append(torch.full((1,), number, device="xla"))
            alone.append(torch.full((), number, device="xla"))
            torch_xla.sync()
        rows = [torch.full((2, 3), number, device="xla") * number for number in numbers]
        assert [x.item() for x in ones] == numbers
        assert [x.item() for x in alone] == numbers
        assert [x.sum().item() for x in rows] == [6 * number**2 for number in numbers]


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


@pytest.mark.slow
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


# Operators that write in place and have kernels of their own.
WRITES = {
    "rows": lambda x, rows: x.index_add_(0, rows, x[:3] * 2),
    "rows of a view": lambda x, rows: x.t()[1:].index_add_(1, rows, x.t()[1:, :3] * 2),
    "rows of integers": lambda x, rows: x.long().index_add_(0, rows, x[:3].long(), alpha=3),
    "rows that are read": lambda x, rows: x.index_add_(0, rows, x[1:4]),
    "positions that are written": lambda x, rows: rows.index_add_(0, rows, rows),
    "rows of what is stretched": lambda x, rows: x[:1].expand(6, 4).index_add_(0, rows, x[:3] * 2),
    "rows of other types": lambda x, rows: x.index_add_(0, rows, x[:3].double()),
    "elements": lambda x, rows: x.masked_fill_(x > 0, 7.0),
    "elements of a view": lambda x, rows: x.t()[1:].masked_fill_(x.t()[1:] > 0, 7),
    "elements of other sizes": lambda x, rows: x[:1].masked_fill_(x > 0, 7.0),
    "elements of rows": lambda x, rows: x.masked_fill_(x[:, :1] > 0, -0.5),
    "elements of a mask that is written": lambda x, rows: (
        lambda mask: mask[1:].masked_fill_(mask[:-1], True)
    )(x > 0),
    "elements of integers": lambda x, rows: x.long().masked_fill_(x > 0, 1.5),
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("when", ["never", "always"])
def test_writes_in_place_are_eagers_and_refused_as_eagers(name, when):
    def run(device):
        torch.manual_seed(1)
        x, rows = torch.randn(6, 4), torch.tensor([1, 0, 1])
        base, rows = x.to(device), rows.to(device)
        try:
            written = WRITES[name](base, rows)
        except (RuntimeError, IndexError) as error:
            return type(error), str(error).splitlines()[0]
        return written.cpu(), base.cpu(), written._version

    expected = run("cpu")
    with interpretation(when):
        found = run("xla")
    if isinstance(expected[0], type):
        assert found == expected
    else:
        torch.testing.assert_close(found, expected)
