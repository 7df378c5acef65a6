"""Memory and descriptors after many repetitions: short versions of what `make soak` does at length."""

import pathlib

import pytest

from torch_xla._binding import library_directory
from torch_xla.runtime_server import REMOTE_PLUGIN

SOAK = str(pathlib.Path(__file__).parent / "soak.py")


@pytest.mark.parametrize("work, times", [("steps", 6000), ("epochs", 12)])
def test_reaches_a_plateau(program, work, times):
    program.run(SOAK, work, "--times", str(times))


def test_shapes(program):
    """The bounds are small here, so that they are reached soon."""
    program.run(
        SOAK,
        "shapes",
        "--times",
        "300",
        XLA_COMPILATION_CACHE_SIZE="16",
        TORCH_XLA_OPERATIONS_KEPT="300",
    )


@pytest.mark.skipif(
    not (library_directory() / REMOTE_PLUGIN).exists(), reason="built without the runtime server"
)
def test_reconnects(program):
    program.run(SOAK, "reconnects", "--times", "30")


# Programs of different shapes, and how many programs, bytes, operations and shapes are kept.
MANY_SHAPES = """
import torch, torch_xla
from torch_xla import _XLAC
most = 0
for size in range(1, 121):
    (torch.ones(size, 3, device="xla") * 2).sum().item()
    most = max(most, *_XLAC._xla_interned_counts())
print(_XLAC._xla_get_num_cached_compilation_graph(), _XLAC._xla_computation_cache_bytes(), most)
"""


@pytest.mark.usefixtures("programs_only")
def test_programs_are_bounded_by_their_bytes(program):
    free = program.run_code(MANY_SHAPES).stdout.split()
    count, size, _ = map(int, free)
    assert count == 120
    bound = size // 4
    bounded = program.run_code(MANY_SHAPES, TORCH_XLA_COMPILATION_CACHE_BYTES=str(bound))
    count, size, _ = map(int, bounded.stdout.split())
    assert 20 <= count <= 40 and size <= bound


def test_operations_are_given_back(program):
    """Those that neither a program nor recorded work needs."""
    bounds = {"XLA_COMPILATION_CACHE_SIZE": "4", "TORCH_XLA_OPERATIONS_KEPT": "60"}
    *_, most = program.run_code(MANY_SHAPES, **bounds).stdout.split()
    assert int(most) <= 200
    *_, most = program.run_code(MANY_SHAPES, XLA_COMPILATION_CACHE_SIZE="4").stdout.split()
    assert int(most) > 300
