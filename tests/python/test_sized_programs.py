"""Random programs whose sizes vary: short versions of what `make test-sizes` does at length."""

import io
import pathlib

import pytest
import torch
from sized_programs import Program, Progress, difference, is_small

SCRIPT = str(pathlib.Path(__file__).parent / "sized_programs.py")


@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="eager"),
        pytest.param(("--peer", "exact"), id="exact", marks=pytest.mark.exhaustive),
        pytest.param(("--processes", "2"), id="world"),
    ],
)
def test_give_what_others_give(program, options):
    program.run(SCRIPT, "--steps", "50", *options, timeout=900)


def test_what_has_no_room_is_not_small():
    """Eager's error would be compared with that of a device that has the room, or need not compute it."""

    def program(line):
        return Program([line], gradients=False, kept=["v0"], own=set())

    assert not is_small(program("v0 = torch.ones(n * 2**40)"), (257, 1, 1, 1))
    assert not is_small(program("v0 = torch.ones(n * 2000)"), (257, 1, 1, 1))
    assert not is_small(
        program("v0 = torch.ones(n * 900)[:, None] * torch.ones(n * 900)"), (257, 1, 1, 1)
    )
    assert is_small(program("v0 = torch.ones(n)"), (257, 1, 1, 1))
    assert is_small(program("v0 = torch.ones(n) @ torch.ones(m)"), (257, 1, 1, 1))


def test_what_differs_is_told():
    x = torch.arange(4.0)
    assert difference([x], [x.clone()]) is None
    assert difference("IndexError", "IndexError") is None
    assert difference("IndexError", "RuntimeError")
    assert difference([x, x / 0], [x, x / 0]) is None
    for wrong in ([x[:3]], [x, x], [x.double()], [x + 0.01], [x / 0], "IndexError"):
        assert difference(wrong, [x])
        assert difference([x], wrong)


class Stream(io.StringIO):
    """What a person sees; `is_terminal`: on one."""

    def __init__(self, is_terminal):
        super().__init__()
        self.isatty = lambda: is_terminal


@pytest.mark.parametrize("is_terminal", [False, True], ids=["lines", "bar"])
def test_a_long_run_tells_how_far_it_is(monkeypatch, is_terminal):
    clock = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    stream = Stream(is_terminal)
    progress = Progress(400, stream)
    for done in range(1, 401):
        clock[0] += 0.125
        progress.tell(done, wrong=done // 200)
    told = stream.getvalue()
    assert told.endswith("400 of 400 steps, 2 differ, 0 s left\n")
    if is_terminal:
        assert told.count("\n") == 1 and told.count("\r") == 200
        assert f"[{15 * '#'}{15 * '.'}] 200 of 400 steps, 1 differ, 25 s left" in told
    else:
        assert told.splitlines()[:-1] == ["240 of 400 steps, 1 differ, 20 s left"]
