"""A computation that fails while the program goes on: its error belongs to the values that it was to give."""

import ctypes
import gc
import threading

import pytest
import torch

import torch_xla
from torch_xla.core import xla_model as xm
from torch_xla.experimental.stablehlo_custom_call import stablehlo_custom_call

NO_MEMORY = pytest.raises(RuntimeError, match="out of memory")


@pytest.fixture(autouse=True)
def nothing_is_untold(device):
    yield
    torch_xla.sync(wait=True)
    xm.wait_device_ops()


def sum_of_too_much(device):
    """Its program finds no memory for what it sorts."""
    column = torch.arange(float(1 << 21), device=device)
    return (column[:, None] * column).sort().values.sum()


may_end = threading.Event()


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
def wait_for_it(_):
    """An XLA_FFI_Handler, which answers that there is no error."""
    may_end.wait(60)


@pytest.fixture(autouse=True, scope="module")
def foreign_function():
    new = ctypes.pythonapi.PyCapsule_New
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    capsule = new(ctypes.cast(wait_for_it, ctypes.c_void_p), None, None)
    torch_xla._XLAC._xla_register_custom_call_target("test.wait_for_it", capsule, "cpu")


def failing(device):
    """Two values of one step, of which one wants too much memory. Nobody can know that before the step has been started: the
    one before it waits for that."""
    may_end.clear()
    x = torch.ones(1, device=device)
    waiting = stablehlo_custom_call([x], "test.wait_for_it", [(1,)], [x.dtype], api_version=4)
    torch_xla.sync()
    small, total = torch.ones(3, device=device) * 2, sum_of_too_much(device)
    torch_xla.sync()
    may_end.set()
    del waiting
    return small, total


def steps(device, count=5):
    """Steps that have nothing to do with it, as they are to be."""
    for i in range(count):
        x = torch.full((3,), float(i), device=device)
        torch_xla.sync()
        assert x.tolist() == [float(i)] * 3


@pytest.mark.usefixtures("programs_only")
def test_who_reads_is_told_and_nobody_else(device):
    small, total = failing(device)
    with NO_MEMORY:
        small.cpu()
    steps(device)
    torch_xla.sync(wait=True)
    xm.wait_device_ops()
    with NO_MEMORY:
        total.item()  # each value that depends on it, however often
    with NO_MEMORY:
        small.sum().item()
    steps(device)
    xm.wait_device_ops()


@pytest.mark.usefixtures("programs_only")
def test_work_on_what_has_failed_is_no_news(device):
    small, _ = failing(device)
    more = small + 1
    with NO_MEMORY:
        more.cpu()  # two runs have failed
    steps(device)
    torch_xla.sync(wait=True)
    with NO_MEMORY:
        small.cpu()


@pytest.mark.usefixtures("programs_only")
@pytest.mark.parametrize("wait", [xm.wait_device_ops, lambda: torch_xla.sync(wait=True)])
def test_who_waits_is_told_once(device, wait):
    small, _ = failing(device)
    with NO_MEMORY:
        wait()
    wait()
    steps(device)
    with NO_MEMORY:
        small.cpu()


@pytest.mark.usefixtures("programs_only")
def test_a_step_that_waits_is_told_once(device):
    small = torch.ones(3, device=device) * 2
    total = sum_of_too_much(device)
    with NO_MEMORY:
        torch_xla.sync(wait=True)
    torch_xla.sync(wait=True)
    steps(device)
    for value in small, total:
        with NO_MEMORY:
            value.cpu()


@pytest.mark.usefixtures("programs_only")
def test_the_step_that_tells_is_whole(device):
    """It has run, with the weights that were donated to it: what failed was an earlier one."""
    weight, errors = torch.zeros(4096, device=device), []
    torch_xla.sync(wait=True)
    failing(device)
    for _ in range(8):
        weight += 1
        try:
            torch_xla.sync()
        except RuntimeError as error:
            errors.append(str(error))
    xm.wait_device_ops()
    assert len(errors) == 1 and "out of memory" in errors[0]
    assert weight.sum().item() == 8 * 4096


@pytest.mark.usefixtures("programs_only")
def test_each_thread_is_told_of_its_own(device):
    told = []

    def work():
        failing(device)
        try:
            xm.wait_device_ops()
        except RuntimeError as error:
            told.append(str(error))

    small, _ = failing(device)
    with NO_MEMORY:
        small.cpu()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(told) == 1
    steps(device)
    xm.wait_device_ops()


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.mark.usefixtures("programs_only")
def test_who_reads_is_told_of_what_another_thread_started(device):
    made = []
    in_a_thread(lambda: made.extend(failing(device)))
    with NO_MEMORY:
        made[0].cpu()
    xm.wait_device_ops()


@pytest.mark.usefixtures("programs_only")
def test_a_thread_is_not_told_of_one_that_has_ended(device):
    """Though the system may give it that one's number."""
    made = []
    in_a_thread(lambda: made.extend(failing(device)))
    for _ in range(3):
        in_a_thread(lambda: steps(device))
    with NO_MEMORY:
        xm.wait_device_ops()


@pytest.mark.usefixtures("programs_only")
def test_who_asks_for_an_address_is_told(device):
    small, _ = failing(device)
    with NO_MEMORY:
        torch_xla._XLAC._unsafe_buffer_pointer(small)
    xm.wait_device_ops()


def without_a_program(device):
    return stablehlo_custom_call(
        [torch.ones(3, device=device)], "nobody's", [(3,)], [torch.float32]
    )


def without_room(device):
    return torch.zeros(1 << 22, 1 << 22, dtype=torch.int8, device=device)


@pytest.mark.usefixtures("programs_only")
@pytest.mark.parametrize(
    ("make", "error"),
    [
        (without_a_program, pytest.raises(NotImplementedError, match="nobody's")),
        (without_room, pytest.raises(RuntimeError, match="out of memory")),
    ],
)
def test_what_cannot_run_is_told_once_and_to_who_reads_it(make, error, device):
    weight = torch.zeros(3, device=device)
    torch_xla.sync()
    weight += 1  # comes into the same graph
    bad = make(device)
    with error:
        torch_xla.sync()
    steps(device)
    torch_xla.sync(wait=True)
    for _ in range(2):
        with error:
            bad.cpu()
    steps(device)
    assert weight.tolist() == [1.0] * 3
    weight += 1
    torch_xla.sync()
    more = bad + 1  # is recorded anew, and told anew
    with error:
        torch_xla.sync()
    del more
    assert weight.tolist() == [2.0] * 3
    torch_xla.sync()


@pytest.mark.usefixtures("programs_only")
def test_what_came_beside_it_is_computed_once(device):
    """By the first later graph that has it, which keeps it."""
    good, bad = torch.ones(3, device=device) * 2, without_a_program(device)
    with pytest.raises(NotImplementedError, match="nobody's"):
        torch_xla.sync()
    torch_xla.sync()
    assert torch_xla._XLAC._check_tensor_need_materialization([good]) == [True]
    more = good + 1
    torch_xla.sync()
    assert torch_xla._XLAC._check_tensor_need_materialization([good, bad]) == [False, True]
    assert torch.stack([good, more]).tolist() == [[2.0] * 3, [3.0] * 3]


@pytest.mark.usefixtures("programs_only")
def test_what_cannot_run_is_held_by_its_tensors_alone(device):
    operand = torch.ones(1 << 16, device=device)
    torch_xla.sync(wait=True)
    before = xm.get_memory_info(device)["bytes_used"]
    bad = stablehlo_custom_call([operand], "nobody's", [(3,)], [torch.float32])
    with pytest.raises(NotImplementedError, match="nobody's"):
        torch_xla.sync()
    del bad, operand
    gc.collect()
    assert xm.get_memory_info(device)["bytes_used"] <= before - (1 << 18)


@pytest.mark.usefixtures("programs_only")
def test_what_cannot_run_is_told_to_who_reads_anything_first(device):
    good, bad = torch.ones(3, device=device) * 2, without_a_program(device)
    with pytest.raises(NotImplementedError, match="nobody's"):
        good.cpu()
    assert good.tolist() == [2.0] * 3
    bad.fill_(1)  # its value is wanted no more
    torch_xla.sync()
    assert bad.tolist() == [1.0] * 3


@pytest.mark.usefixtures("programs_only")
def test_an_assertion_beside_what_cannot_run_is_judged(device):
    torch._assert_async(torch.zeros((), device=device), "is zero")
    bad = without_a_program(device)
    with pytest.raises(NotImplementedError, match="nobody's"):
        torch_xla.sync()
    with pytest.raises(RuntimeError, match="is zero"):
        torch_xla.sync(wait=True)
    steps(device)
    # One of what cannot be computed is over with the error.
    torch._assert_async(bad.sum() > 1, "is small")
    with pytest.raises(NotImplementedError, match="nobody's"):
        torch_xla.sync()
    steps(device)


def test_it_says_nothing_of_what_is_computed_from_it(program):
    """Torch's kernels do not get its values: a program says so. They run the same for values that are there."""
    result = program.run_code("""
import torch, torch_xla
import torch_xla.debug.metrics as met
from torch_xla.experimental import eager_mode_context

def count(name):
    return met.counter_value(name) or 0

column = torch.arange(float(1 << 21), device="xla")
failed, total = torch.ones(3, device="xla") * 2, (column[:, None] * column).sort().values.sum()
try:
    failed.cpu()
except RuntimeError:
    pass
def good(size):
    values = torch.ones(size, device="xla")
    torch_xla.sync()
    return values

for size in 3, 5:
    values = failed if size == 3 else good(size)
    before = count("InterpretedGraph")
    y = values.sin() + values.cos()
    try:
        print(len(y.tolist()))
    except RuntimeError as error:
        print("out of memory" in str(error))
    print("interpreted", count("InterpretedGraph") - before)
with eager_mode_context(True):
    for values in failed, good(3):
        values.exp()
        before = count("ExecuteComputation")
        values.exp()
        print("programs", count("ExecuteComputation") - before)
""")
    assert result.stdout.splitlines() == [
        "True",
        "interpreted 0",
        "5",
        "interpreted 1",
        "programs 1",
        "programs 0",
    ]


def test_nothing_is_said_at_the_end_of_what_was_told(program):
    code = """
import torch, torch_xla
column = torch.arange(float(1 << 21), device="xla")
small, total = torch.ones(3, device="xla") * 2, (column[:, None] * column).sort().values.sum()
torch_xla.sync()
{}
"""
    read = """
try:
    small.cpu()
except RuntimeError as error:
    print("out of memory" in str(error))
"""
    told = program.run_code(code.format(read), TORCH_XLA_INTERPRET="never")
    assert told.stdout == "True\n" and "memory" not in told.stderr
    untold = program.run_code(code.format(""), TORCH_XLA_INTERPRET="never")
    assert "a computation has failed" in untold.stderr and "Traceback" not in untold.stderr
    assert untold.returncode == 0
