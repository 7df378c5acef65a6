"""Calls at the edges of what operators take give what they give in eager, or are refused with eager's exception and words.

The calls stand in edge_programs.py and number_programs.py.
"""

import functools
import warnings

import edge_programs
import number_programs
import pytest
import torch
import torch.nn.functional as F
from comparison import Differences
from torch.utils import _pytree as pytree

import torch_xla  # noqa: F401 - the device

PROGRAMS = edge_programs.PROGRAMS | number_programs.PROGRAMS
MAKERS = {"T": torch.tensor, "Z": torch.zeros, "O": torch.ones, "A": torch.arange}


def run(program: str, device: str):
    names = {"torch": torch, "F": F, "D": device, "NAN": float("nan")}
    names |= {name: functools.partial(maker, device=device) for name, maker in MAKERS.items()}
    *statements, last = program.split(";;")
    for statement in statements:
        exec(statement.strip(), names)
    return eval(last.strip(), names)


def outcome(program: str, device: str):
    """The result, on the CPU, or the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return pytree.tree_map_only(
                torch.Tensor, lambda x: x.detach().cpu(), run(program, device)
            )
        except Exception as error:
            return error


def words(error: Exception) -> str:
    """Eager's own, which may follow those of PyTorch/XLA."""
    return str(error).replace("xla:0", "cpu").rpartition("Exception raised from eager's check: ")[2]


def kind_of(error: Exception) -> type[Exception]:
    """Its class; what is out of range is an IndexError that PyTorch/XLA's programs catch, too."""
    return IndexError if isinstance(error, IndexError) else type(error)


def compare(program: str, device: str) -> None:
    expected, result = outcome(program, "cpu"), outcome(program, device)
    if isinstance(expected, Exception):
        assert isinstance(result, Exception), f"eager refuses: {expected}"
        assert (kind_of(result), words(result)) == (kind_of(expected), words(expected))
    elif isinstance(result, Exception):
        raise result
    else:
        torch.testing.assert_close(result, expected, equal_nan=True)


@pytest.mark.parametrize("kind", PROGRAMS)
def test_edges_are_eagers(kind):
    differences = Differences()
    for program in PROGRAMS[kind].strip().splitlines():
        with differences.of(program.strip()):
            compare(program.strip(), "xla")
    differences.fail_if_any()


@pytest.mark.parametrize(
    "program",
    [
        "F.unfold(T(1.), 2)",
        "F.unfold(A(16).view(1,1,4,4), 2)",
        "F.fold(T([[[1,2],[3,4],[5,6],[7,8]]]), (2,3), 2)",
        "torch.norm(T([1,2]))",
        "torch.norm(T([1,2]), 1)",
        "torch.norm(T([True,False]), 2, 0)",
        "torch.norm(T([1,2]), 2, 0, False, dtype=torch.float32)",
        "F.normalize(T([[1,2]]))",
        "F.normalize(T([[1,2]]), p=1)",
        "F.unfold(O(1,1,4,4), 2, padding=-1)",
        "torch.mode(O(2,dtype=torch.complex64))",
        "torch.nextafter(O(2,dtype=torch.complex64), O(2,dtype=torch.complex64))",
        "F.embedding_bag(T([0,1]), A(6).view(3,2), T([0]))",
        "torch.segment_reduce(T(1.), 'max', lengths=T([0,0]))",
        "F.fractional_max_pool2d(O(1,3,4,4,dtype=torch.complex64), 2, output_size=2)",
        "torch.linalg.ldl_factor(O(2,2,dtype=torch.float16))",
    ],
)
def test_exceptions_are_eagers_in_other_words(program):
    expected, result = outcome(program, "cpu"), outcome(program, "xla")
    assert isinstance(expected, Exception)
    assert kind_of(result) is kind_of(expected)


@pytest.mark.parametrize("pivots", ([5, 6], [0, 1], [-1, 1], [1, -2], [-1, -9]))
def test_pivots_that_are_none_solve_nothing(pivots):
    """LAPACK reads the rows that they name, wherever those are; eager's values are what lies there."""
    solve = torch.linalg.ldl_solve
    pivots = torch.tensor(pivots, dtype=torch.int32, device="xla")
    assert solve(torch.eye(2, device="xla"), pivots, torch.eye(2, device="xla")).isnan().all()


def test_kernels_that_read_beyond_their_operands_are_not_asked():
    """Eager ends the process, or gives what lies in memory."""
    for program in (
        "torch.native_batch_norm(O(2,3), Z(0), None, None, None, True, 0.1, 1e-5)",
        "torch.native_batch_norm(O(2,3), None, None, Z(0), Z(0), True, 0.1, 1e-5)",
        "torch.lu_unpack(O(3,3), Z(0,dtype=torch.int32))",
        "torch.linalg.ldl_solve(O(2,2), T([1,2],dtype=torch.uint8), O(2,2))",
        "torch.lu_unpack(O(3,3), T(1,dtype=torch.int32))",
        "F.fractional_max_pool2d(O(1,3,4,4), -1, output_size=2)",
    ):
        with pytest.raises(RuntimeError):
            run(program, "xla")


@pytest.mark.parametrize(
    "program",
    ["Z(3)[T([1, 0, 1], dtype=torch.uint8)]", "Z(3, 3)[:, T([1, 0, 1], dtype=torch.uint8)]"],
)
def test_masks_of_bytes_warn(program):
    with pytest.warns(UserWarning, match="indexing with dtype torch.uint8 is now deprecated"):
        run(program, "xla")


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.complex64, torch.bool, torch.int8, torch.uint64]
)
def test_uninitialized_memory_is_marked_where_determinism_is_asked_for(dtype):
    makers = {
        "empty": lambda device: torch.empty(2, 3, dtype=dtype, device=device),
        "empty_like": lambda device: torch.empty_like(torch.zeros(2, dtype=dtype, device=device)),
        "empty_strided": lambda device: torch.empty_strided(
            (2, 3), (1, 4), dtype=dtype, device=device
        ),
        "new_empty": lambda device: torch.zeros(0, dtype=dtype, device=device).new_empty(2),
        "out=": lambda device: torch.empty(2, out=torch.zeros(1, dtype=dtype, device=device)),
        "resize_": lambda device: torch.ones(1, dtype=dtype, device=device).resize_(3),
    }
    torch.use_deterministic_algorithms(True)
    try:
        for name, make in makers.items():
            marked = make("xla").cpu()
            torch.testing.assert_close(marked, make("cpu"), equal_nan=True, msg=name)
        torch.utils.deterministic.fill_uninitialized_memory = False
        assert not torch.empty(2, dtype=dtype, device="xla").cpu().any()
    finally:
        torch.utils.deterministic.fill_uninitialized_memory = True
        torch.use_deterministic_algorithms(False)


def test_frequencies_into_another_shape_warn():
    with pytest.warns(UserWarning, match="The out tensor will be resized"):
        run("out = Z(2);; torch.fft.fftfreq(5, out=out)", "xla")


def test_weights_of_samples_are_of_the_tables_type():
    program = "F.embedding_bag(T([0,1]), O(3,2), T([0]), mode='sum', per_sample_weights={})"
    with pytest.raises(RuntimeError, match="expected scalar type Float but found Double"):
        run(program.format("O(2, dtype=torch.float64)"), "xla")
    assert run(program.format("O(2)"), "xla").tolist() == [[2.0, 2.0]]


def test_rows_of_pooling_windows_are_apart():
    """A stride of zero was a division by zero."""
    with pytest.raises(RuntimeError, match="stride should"):
        F.avg_pool2d(torch.ones(1, 2, 3, 3, device="xla"), 2, stride=0)


def test_targets_elsewhere_are_refused():
    vector = torch.ones(2, device="xla")
    with pytest.raises(RuntimeError, match="same device"):
        torch.addr(torch.ones(2, 2, device="xla"), vector, vector, out=torch.zeros(2, 2))
