"""Ctrl-C while the program waits for the device: raised where it waits, and what was waited for goes on."""

import pathlib

import pytest

# A counter that the device counts for some seconds, and each way to wait for it.
WAITS = """
import os, signal, sys, threading, time, traceback
import torch
import torch_xla
import torch_xla.core.xla_model as xm
from torch_xla.experimental.fori_loop import fori_loop

signal.signal(signal.SIGINT, signal.default_int_handler)

def counted(count):
    none = torch.tensor(0, device="xla")
    return fori_loop(none, torch.tensor(count, device="xla"), lambda x: x + 1, none)[1]

def count_for(seconds):
    count = 1 << 16
    counted(count).item()  # compiled, whatever that takes
    while True:
        start = time.monotonic()
        x = counted(count)
        torch_xla.sync(wait=True)
        taken = time.monotonic() - start
        if taken > 0.1:
            return int(count * seconds / taken)
        count *= 2

def interrupted(wait):
    # Whether `wait` is interrupted, at its own line, before what it waits for is over.
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        wait()
    except KeyboardInterrupt:
        assert traceback.extract_tb(sys.exc_info()[2])[1].name == wait.__name__, traceback.format_exc()
        start = time.monotonic()
        xm.wait_device_ops()
        return time.monotonic() - start > 0.1
    return False
"""

PROGRAM = (
    WAITS
    + """
count = count_for(1)

def started():
    x = counted(count)
    torch_xla.sync()
    return x

def of_item():
    started.x.item()
def of_pending_item():
    counted.x.item()
def of_cpu():
    started.x.cpu()
def of_part():
    started.pair[1:].cpu()
def of_print():
    str(started.x)
def of_device_operations():
    xm.wait_device_ops()
def of_sync():
    torch_xla.sync(wait=True)
def of_synchronize():
    torch.accelerator.synchronize()
def of_in_flight():
    for _ in range(4):
        started.x = started.x + counted(3)
        torch_xla.sync()

for wait in (of_item, of_pending_item, of_cpu, of_part, of_print, of_device_operations, of_sync, of_synchronize,
             of_in_flight):
    if wait is of_pending_item:
        started.x = counted.x = counted(count)
    elif wait is of_part:
        started.x = counted(count)
        started.pair = torch.stack([started.x, started.x])
        torch_xla.sync()
    else:
        started.x = started()
    assert interrupted(wait), wait
    x = started.x
    assert x.item() in (range(count, count + 13, 3) if wait is of_in_flight else [count]), wait
    assert (x + 1).item() == x.item() + 1
print("passed")
"""
)


@pytest.mark.slow
def test_each_wait(program):
    assert program.run_code(PROGRAM).stdout.splitlines()[-1] == "passed"


@pytest.mark.slow
def test_other_threads_wait_on(program):
    """Python handles signals on the main thread alone."""
    program.run_code(
        WAITS
        + """
x = counted(count := count_for(1))
torch_xla.sync()
results = []
reading = threading.Thread(target=lambda: results.append(x.item()))
reading.start()
try:
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    reading.join()
    raise AssertionError("not interrupted")
except KeyboardInterrupt:
    assert not results
while not results:  # Python takes a thread for ended whose join was interrupted
    time.sleep(0.05)
assert results == [count]
"""
    )


HANDLERS = """
def records_and_reads():
    y = torch.full((3,), 2.0, device="xla") * 3
    torch_xla.sync(wait=True)
    return y.sum().item(), 18.0

def reads_the_same():
    return (started.x + 1).item(), count + 1

def takes_a_gradient():
    w = torch.full((3,), 2.0, device="xla", requires_grad=True)
    (w * w).sum().backward()
    return w.grad.tolist(), [4.0] * 3

def writes_the_value():
    started.x.add_(1)
    torch_xla.sync()
    started.x.sub_(1)
    torch_xla.sync()
    return 0, 0

def steps_on():
    steps_on.x = started.x * 2
    for _ in range(3):
        steps_on.x = steps_on.x + 1
        torch_xla.sync()
    return steps_on.x.item(), 2 * count + 3

def shows_what_is_pending():
    return "aten::add" in _XLAC._get_xla_tensors_text([torch.ones(3, device="xla") + started.x]), True
"""


@pytest.mark.slow
def test_handlers_may_use_the_device(program):
    """A handler that raises nothing lets the wait go on, whatever it has computed and waited for itself."""
    program.run_code(
        WAITS
        + "from torch_xla import _XLAC\n"
        + HANDLERS
        + """
count = count_for(0.6)

def started():
    x = counted(count)
    torch_xla.sync()
    return x

waits = [lambda: started.x.item(), lambda: started.x.cpu().item(), lambda: xm.wait_device_ops(),
         lambda: torch_xla.sync(wait=True)]
handlers = [records_and_reads, reads_the_same, takes_a_gradient, writes_the_value, steps_on, shows_what_is_pending]
for i, handler in enumerate(handlers):
    for wait in waits[i % 2 :: 2]:
        seen = []
        signal.signal(signal.SIGINT, lambda *_: seen.append(handler()))
        started.x = started()
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        assert wait() in (None, count), handler
        assert len(seen) == 1 and seen[0][0] == seen[0][1], (handler, seen)
        assert started.x.item() == count, handler
        assert (started.x + 1).item() == count + 1
"""
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "use",
    [
        "table[i, 1:]",
        "torch.arange(i)",
        pytest.param("torch.add(table, table, alpha=i)", marks=pytest.mark.exhaustive),
    ],
)
def test_other_threads_read_with_the_interpreters_lock(program, use):
    """torch reads a number for some arguments without letting the interpreter go, while another thread waits."""
    program.run_code(
        WAITS
        + f"""
import faulthandler
faulthandler.dump_traceback_later(60, exit=True)
count = count_for(1)
table = torch.arange(12.0, device="xla").view(3, 4)
index = torch.tensor(1, device="xla")
torch_xla.sync(wait=True)
found = []

def read():
    time.sleep(0.2)
    i = index + 1
    found.append({use})

thread = threading.Thread(target=read)
x = counted(count)
thread.start()
torch_xla.sync(wait=True)
thread.join()
table, i = torch.arange(12.0).view(3, 4), torch.tensor(2)
assert torch.equal(found[0].cpu(), {use})
"""
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "use", ["_get_xla_tensors_text([results[2]])", "_xla_sync_multi([results[2]])"]
)
def test_no_handler_runs_within_a_cut(program, use):
    """A handler that cuts a graph itself comes when that which waits for its operands is through."""
    program.run_code(
        WAITS
        + f"""
from torch_xla import _XLAC
slow = counted(count_for(1))
torch_xla.sync()
on_cpu = [torch.rand(5) for _ in range(4)]
on_device = [x.to("xla") for x in on_cpu]

def work(x, c):
    return [x[i].sin() * (i + 1) + x[(i + 1) % 4].cos() + c * 0 for i in range(4)]

def check(results):
    for result, expected in zip(results, work(on_cpu, torch.tensor(0.0))):
        torch.testing.assert_close(result.cpu(), expected)

seen = []
results = work(on_device, slow)
signal.signal(signal.SIGINT, lambda *_: seen.append(_XLAC.{use}))
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
torch_xla.sync()
check(results)
assert len(seen) == 1
again = work(on_device, slow)
torch_xla.sync()
check(again)
"""
    )


@pytest.mark.slow
def test_collective(program, tmp_path: pathlib.Path):
    """Of a rank that waits for another one: both have their results when that one comes."""
    script = tmp_path / "ranks.py"
    script.write_text(
        WAITS
        + """
def rank(index):
    signal.signal(signal.SIGINT, signal.default_int_handler)
    x = torch.full((4,), index + 1.0, device="xla")
    torch_xla.sync(wait=True)
    xm.rendezvous("begin")
    if index == 1:
        time.sleep(2)
    total = xm.all_reduce(xm.REDUCE_SUM, x)
    def of_sum():
        total.cpu()
    if index == 0:
        assert interrupted(of_sum)
    assert total.cpu().tolist() == [3.0] * 4
    assert xm.all_reduce(xm.REDUCE_SUM, x).cpu().tolist() == [3.0] * 4

if __name__ == "__main__":
    torch_xla.launch(rank)
    print("passed")
"""
    )
    result = program.run(str(script), CPU_NUM_DEVICES="2", timeout=120)
    assert result.stdout.splitlines()[-1] == "passed"
