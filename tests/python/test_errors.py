"""Bad input raises, at its line, what eager raises; the process and its tensors live on."""

import pickle

import pytest
import torch

import torch_xla
from torch_xla import _XLAC

NOT_XLA = r"Input tensor is not an XLA tensor: torch\.FloatTensor"


def alive(device) -> None:
    assert (torch.ones(2, device=device) + 1).tolist() == [2.0, 2.0]


SHAPE_ERRORS = {
    "add": (lambda d: torch.ones(2, 3, device=d) + torch.ones(2, 4, device=d), "3.*4"),
    "mm": (lambda d: torch.ones(2, 3, device=d).mm(torch.ones(4, 5, device=d)), "2x3.*4x5"),
    "matmul": (lambda d: torch.ones(2, 3, device=d) @ torch.ones(4, device=d), "."),
    "view": (lambda d: torch.ones(2, 3, device=d).view(4), "."),
    "cat": (lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(2, 4, device=d)]), "."),
    "linear": (
        lambda d: torch.nn.functional.linear(
            torch.ones(2, 3, device=d), torch.ones(5, 4, device=d)
        ),
        ".",
    ),
    "conv2d": (
        lambda d: torch.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 2, 3, 3, device=d)),
        ".",
    ),
    "expand": (lambda d: torch.ones(2, device=d).expand(3), "."),
    "index dimension": (lambda d: torch.ones(2, device=d).sum(3), "."),
    "in place": (lambda d: torch.ones(2, device=d).add_(torch.ones(3, 2, device=d)), "."),
    "dtype": (lambda d: torch.ones(2, 2, device=d).mm(torch.ones(2, 2, device=d).long()), "."),
    "select_scatter": (
        lambda d: torch.select_scatter(
            torch.zeros(4, 5, device=d), torch.ones(5, 1, device=d), 0, 0
        ),
        r"equal to the slice of self. src size = \[5, 1\], slice size = \[5\]",
    ),
    "diagonal_scatter": (
        lambda d: torch.diagonal_scatter(torch.zeros(4, 5, device=d), torch.ones(3, device=d), 1),
        r"equal to the slice of self. src size = \[3\], slice size = \[4\]",
    ),
    "in-place dtype": (lambda d: torch.ones(2, device=d, dtype=torch.int32).add_(0.5), "."),
}


@pytest.mark.parametrize("case", SHAPE_ERRORS)
def test_shape_and_dtype_errors_are_eagers(case, device):
    operation, shapes = SHAPE_ERRORS[case]
    with pytest.raises(Exception, match=r".") as expected:
        operation("cpu")
    with pytest.raises(expected.type, match=f"(?s){shapes}"):
        operation(device)
    alive(device)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x.flip(3),
        lambda x: x.sum(2),
        lambda x: torch.max(x[:, :0], dim=1),
        lambda x: x[torch.tensor([9])].cpu(),
    ],
)
def test_programs_for_eager_and_for_pytorch_xla_catch_what_is_out_of_range(operation, device):
    with pytest.raises(IndexError):
        operation(torch.ones(2, 2))
    for kind in (IndexError, RuntimeError):
        with pytest.raises(kind) as caught:
            operation(torch.ones(2, 2, device=device))
        assert type(pickle.loads(pickle.dumps(caught.value))) is caught.type
    alive(device)


def test_threads_that_find_the_first_error_at_once_do_not_wait_for_each_other(program):
    program.run_code(
        """
import sys, threading, torch, torch_xla
sys.setswitchinterval(1e-6)
x, together, told = torch.ones(3, device="xla"), threading.Barrier(8), []

def fail():
    together.wait()
    try:
        x.flip(7)
    except IndexError:
        told.append(1)

threads = [threading.Thread(target=fail) for _ in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert len(told) == 8
""",
        timeout=60,
    )


def test_the_first_error_may_come_while_the_interpreter_ends(program):
    program.run_code(
        """
import torch, torch_xla
x = torch.ones(3, device="xla")

class Late:
    def __del__(self):
        try:
            x.sum(5)
        except Exception:
            pass

late = Late()
""",
        anew=True,
    )


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: torch.ones(3).add_(x),
        lambda x: torch.maximum(x, torch.ones(3)),
        lambda x: torch.cat([x, torch.ones(3)]),
        lambda x: torch.nn.functional.linear(x, torch.ones(2, 3)),
        lambda x: torch.where(x > 0, x, torch.ones(3)),
    ],
    ids=["add_ to the CPU", "maximum", "cat", "linear", "where"],
)
def test_mixed_devices_are_an_error(operation, device):
    with pytest.raises(RuntimeError, match=NOT_XLA):
        operation(torch.ones(3, device=device))
    alive(device)


@pytest.mark.parametrize("mask", [False, True])
def test_a_tensor_of_the_cpu_is_not_indexed_by_the_device(mask, device):
    """Where indices lie does not matter, so they say nothing: the error is about what is indexed."""
    x = torch.ones(3)
    index = torch.tensor([True, False, True] if mask else [0, 2], device=device)
    operations = {
        "index": lambda: x[index],
        "index_put": lambda: x.__setitem__(index, 5.0),
    }
    if mask:
        operations["masked_select"] = lambda: x.masked_select(index)
    for name, operation in operations.items():
        with pytest.raises(RuntimeError, match=f"{NOT_XLA}, argument #1 'self' of aten::{name}\\."):
            operation()
    alive(device)


# Arithmetic of two tensors takes one of the CPU along, as PyTorch/XLA's does.
ARITHMETIC = {
    "add": lambda x, y: x + y,
    "add, scaled": lambda x, y: torch.add(x, y, alpha=2),
    "sub": lambda x, y: x - y,
    "rsub": torch.rsub,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "div, rounded": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "pow": lambda x, y: x**y,
    "fmod": torch.fmod,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
    "shift": lambda x, y: x << y,
    "shift to the right": lambda x, y: x >> y,
}


@pytest.mark.parametrize("operation", ARITHMETIC.values(), ids=ARITHMETIC)
def test_arithmetic_takes_tensors_of_the_cpu(operation, device):
    x = torch.arange(6, dtype=torch.int16).view(2, 3)
    y = torch.arange(1, 4, dtype=torch.int32)
    for a, b in ((x, y), (y, x + 1)):
        expected = operation(a, b)
        for mixed in (operation(a.to(device), b), operation(a, b.to(device))):
            assert mixed.device.type == "xla"
            torch.testing.assert_close(mixed.cpu(), expected)


def test_arithmetic_in_place_takes_tensors_of_the_cpu(device):
    x = torch.zeros(2, 3, device=device)
    x += torch.ones(3, 2, dtype=torch.float64).t()
    assert x.dtype == torch.float32 and x.tolist() == [[1.0] * 3] * 2


def test_gradients_beside_a_tensor_of_the_cpu(device):
    mask = torch.tensor([1.0, 0.0, 2.0])
    x = torch.ones(3, device=device, requires_grad=True)
    (mask * x).sum().backward()
    assert x.grad.device.type == "xla" and x.grad.tolist() == mask.tolist()


def test_cpu_scalars_mix_with_device_tensors(device):
    assert (torch.ones(3, device=device) * torch.tensor(2.0)).tolist() == [2.0] * 3


def run_out_of_memory(device) -> str:
    """What is said when a tensor does not fit; the tensor does not outlive the call."""
    kept = torch.ones(1 << 42, device=device)
    try:
        torch_xla.sync(wait=True)
    except RuntimeError as error:
        return f"{error}, for a tensor of {kept.numel()}"
    return ""


def test_out_of_memory_is_an_exception(device):
    assert "out of memory" in run_out_of_memory(device)
    alive(device)


def test_tensors_without_storage_say_so(device):
    with pytest.raises(Exception, match=r"."):
        torch.ones(2, device=device).numpy()
    alive(device)


def test_backward_twice_is_eagers_error(device):
    loss = (torch.ones(2, device=device, requires_grad=True) ** 2).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    torch_xla.sync()
    alive(device)


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected in SqrtBackward0")
def test_anomaly_detection_finds_nan(device):
    x = torch.tensor([-1.0, 4.0], device=device, requires_grad=True)
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values"):
        torch.sqrt(x).sum().backward()
    alive(device)


def _zeros(*sizes, dtype=torch.float32):
    return torch.zeros(sizes, dtype=dtype, device="xla")


# What a wrong call is told by programs' two homes: {what: (call, words of PyTorch/XLA, of eager)}.
_REFUSED = {
    "add": (
        lambda: _zeros(2, 4, 4) + _zeros(2, 2),
        "not compatible for broadcasting: f32[2,4,4] vs. f32[2,2]. Expected dimension 1 of",
        "The size of tensor a (4) must match the size of tensor b (2) at non-singleton dimension 2",
    ),
    "where": (
        lambda: torch.where(_zeros(3, 1, dtype=torch.bool), _zeros(1, 2), _zeros(4)),
        "f32[1,2] vs. f32[4]. Expected dimension 1 of shape f32[1,2] (2) to match dimension 0",
        "must match the size of tensor",
    ),
    "cat": (
        lambda: torch.cat([_zeros(0), _zeros(2, 2), _zeros(5, 1)]),
        "cat(): cannot concatenate tensors of shape f32[2,2] with f32[5,1] at dimension 0",
        "Expected size 2 but got size 1 for tensor number 2 in the list.",
    ),
    "cat of ranks": (
        lambda: torch.cat([_zeros(2, 2), _zeros(2)]),
        "cat(): cannot concatenate tensors of shape f32[2,2] with f32[2]",
        "Tensors must have same number of dimensions: got 2 and 1",
    ),
    "div": (
        lambda: torch.div(_zeros(2), 2, rounding_mode="up"),
        "div(): invalid rounding mode `up`",
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'",
    ),
    "flip": (
        lambda: _zeros(2, 2).flip([0, -1, 1]),
        "Found dimensions: 1 (2 times). Consider changing dims from [0, -1, 1] to [0, 1].",
        "dim 1 appears multiple times in the list of dims",
    ),
    "full": (
        lambda: torch.full([2, -1], 1.0, device="xla"),
        "However found negative ones: [2, -1].",
        "Trying to create tensor with negative dimension -1: [2, -1]",
    ),
    "gather": (
        lambda: _zeros(2, 2).gather(1, _zeros(3, 4, dtype=torch.int64)),
        "except on dimension 1. However, that's not true on dimensions [0].",
        "Size does not match at dimension 0 expected index [3, 4] to be no larger than self [2, 2]",
    ),
    "random_": (
        lambda: _zeros(3, dtype=torch.uint8).random_(-1, 9),
        "`from` to be within the range [0, 255]. However got value -1, which is smaller than",
        "from is out of bounds for unsigned char",
    ),
    "mm": (
        lambda: torch.mm(_zeros(2, 5), _zeros(8, 2)),
        "mm(): cannot matrix-multiply tensors f32[2,5] and f32[8,2]",
        "mat1 and mat2 shapes cannot be multiplied (2x5 and 8x2)",
    ),
    "roll": (
        lambda: _zeros(2, 2).roll([1, 1], [0]),
        "roll(): expected `dims` [0] (size=1) to match the size of `shifts` [1, 1] (size=2).",
        "shifts and dimensions must align. shifts: 2, dims:1",
    ),
    "trace": (
        lambda: _zeros(2).trace(),
        "trace(): expected the input tensor f32[2] to be a matrix (i.e. a 2D tensor).",
        "trace: expected a matrix, but got tensor with dim 1",
    ),
    "expand": (
        lambda: _zeros(1, 2).expand(1, 3),
        "expand(): expected dimension 1 of the given `sizes` [1, 3] (3) to be -1, or equal to",
        "The expanded size of the tensor (3) must match the existing size (2)",
    ),
}


@pytest.mark.parametrize("what", _REFUSED)
def test_wrong_calls_are_refused_in_both_words(what):
    call, words, eager = _REFUSED[what]
    with pytest.raises(RuntimeError) as raised:
        call()
    assert words in str(raised.value)
    _, found = str(raised.value).split("\nException raised from eager's check: ")
    assert eager in found


def norm_of_nothing(training):
    def backward(device):
        x, four = torch.zeros(0, 4, 2, device=device), torch.ones(4, device=device)
        return torch.ops.aten.native_batch_norm_backward(
            x, x, four, four, four, four, four, training, 1e-5, [True] * 3
        )

    return backward


def distances_of_nothing(device):
    x = torch.zeros(0, 3, device=device, requires_grad=True)
    torch.nn.functional.pdist(x).sum().backward()
    return [x.grad]


def weights_of_nothing(device):
    v, g = torch.zeros(0, 3, device=device), torch.zeros(0, 1, device=device)
    return torch.ops.aten._weight_norm_interface(v, g, 0)


NOTHING = {
    "batch norm in training": (norm_of_nothing(True), [(0, 4, 2), (4,), (4,)]),
    "batch norm in evaluation": (norm_of_nothing(False), [(0, 4, 2), (4,), (4,)]),
    "distances": (distances_of_nothing, [(0, 3)]),
    "weight norm": (weights_of_nothing, [(0, 3), (0, 1)]),
    "unsigned numbers": (lambda d: [torch.zeros(0, device=d, dtype=torch.uint32) + 1], [(0,)]),
}


@pytest.mark.parametrize("what", NOTHING)
@pytest.mark.parametrize("interpretation", ["always", "never"])
def test_what_eager_cannot_take_without_elements_ends_no_process(device, what, interpretation):
    """Some of torch's kernels for the CPU divide by no elements, or lack a type that xla has."""
    call, shapes = NOTHING[what]
    before = _XLAC._xla_get_interpretation()
    _XLAC._xla_set_interpretation(interpretation)
    try:
        results = [x.cpu() for x in call(device)]
    finally:
        _XLAC._xla_set_interpretation(before)
    assert [tuple(x.shape) for x in results] == shapes
    assert not any(x.any() for x in results if x.dtype != torch.uint32)
