"""Forks, interrupts, threads and the end of a process."""

import signal
import time


def test_forked_child_computes_after_import(program):
    output = program.run_code(
        """
import os, torch, torch_xla
child = os.fork()
t = torch.arange(4., device="xla")
line = ("child " if child == 0 else "parent ") + str((t @ t).item()) + "\\n"
os.write(1, line.encode())  # at once: both write to one pipe
if child:
    print("status", os.waitpid(child, 0)[1], flush=True)
""",
        timeout=60,
    )
    assert sorted(output.stdout.splitlines()) == ["child 14.0", "parent 14.0", "status 0"]


def test_forks_beside_threads_that_sync(program):
    output = program.run_code(
        """
import os, signal, threading, torch, torch_xla
x = torch.ones(1000, device="xla")
stop, failures = False, []
def work():
    i = 0
    while not stop:
        i = i % 1000 + 1
        if (x * i).sum().item() != 1000 * i:
            failures.append(i)
threads = [threading.Thread(target=work) for _ in range(3)]
[t.start() for t in threads]
statuses = set()
for i in range(20):  # lazy_test forks more often
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a hang is a failure
        os._exit(0 if (x + i).sum().item() == 1000 * (1 + i) else 1)
    statuses.add(os.waitpid(child, 0)[1])
stop = True
[t.join() for t in threads]
print(statuses, failures)
""",
        timeout=120,
    )
    assert output.stdout.strip() == "{0} []"


def test_forks_at_once_beside_threads_that_begin(program):
    """What the threads do for the first time in their process, and what that needs, is half done at the fork."""
    output = program.run_code(
        """
import os, signal, threading, time, torch, torch_xla
(torch.ones(2) * 2).sum().item()  # what torch does for the first time waits for nobody's fork
def value(n):
    return (torch.ones(100, device="xla") * n).sum().item()
def status_of(body):
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a hang is a failure
        os._exit(body())
    return os.waitpid(child, 0)[1]
def begin(wait):
    threads = [threading.Thread(target=value, args=(i,)) for i in range(3)]
    [thread.start() for thread in threads]
    time.sleep(wait)
    status = status_of(lambda: value(7) != 700)
    [thread.join() for thread in threads]
    return status != 0
print({status_of(lambda: begin(0.0005 * i)) for i in range(40)})
""",
        timeout=240,
    )
    assert output.stdout.strip() == "{0}"


def test_locks_in_python_are_free_in_children(program):
    """Another thread holds them at the fork."""
    output = program.run_code(
        """
import contextlib, os, signal, sys, threading
import torch_xla.experimental.scan as scan
from torch_xla._internal import profiler_server, world
from torch_xla.debug import _reports
from torch_xla.distributed import parallel_loader
pipe = parallel_loader._Pipe(1, 1)
locks = [
    scan._KNOWN._lock, _reports._write_lock, _reports.waits._lock, world._connecting, profiler_server._starting,
    pipe.host._changed, pipe.device._changed, pipe.demand._changed, pipe.order,
]
held, may_end = threading.Event(), threading.Event()
def hold():
    with contextlib.ExitStack() as stack:
        [stack.enter_context(lock) for lock in locks]
        held.set()
        may_end.wait()
thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)  # a hang is a failure
    with contextlib.ExitStack() as stack:
        [stack.enter_context(lock) for lock in locks]
    sys.exit(0)  # the end of a process closes its loaders
may_end.set()
print(os.waitpid(child, 0)[1])
with locks[0]:
    child = os.fork()
if child == 0:  # has given back what it held, and takes it again
    signal.alarm(60)
    with locks[0]:
        os._exit(0)
print(os.waitpid(child, 0)[1])
""",
        timeout=60,
    )
    assert output.stdout.split() == ["0", "0"]


def test_loader_workers_fork_after_computing(program):
    output = program.run_code(
        """
import torch, torch_xla
from torch.utils.data import DataLoader, TensorDataset
t = torch.randn(256, 256, device="xla")
(t @ t).cpu()
loader = DataLoader(TensorDataset(torch.arange(8.)), batch_size=2, num_workers=2)
print(sum((batch[0].to("xla") * 2).sum().item() for batch in loader))
""",
        timeout=60,
    )
    assert output.stdout.strip() == "56.0"


def test_ends_right_after_a_backward_pass(program):
    """While autograd's thread frees the pass."""
    for _ in range(4):
        program.run_code(
            """
import torch, torch_xla
x = torch.ones(3, device="xla", requires_grad=True)
x.tanh().sum().backward()
""",
            timeout=60,
        )


def test_ends_with_work_in_flight(program):
    program.run_code(
        """
import torch, torch_xla
t = torch.randn(512, 512, device="xla")
for _ in range(20):
    t = (t @ t).tanh()
torch_xla.sync()
kept = t + 1
""",
        timeout=60,
    )


COMPILES = """
import torch, torch_xla
t = torch.randn(8, 8, device="xla")
print("ready", flush=True)
while True:
    for i in range(60):
        t = torch.softmax(t @ t[torch.randperm(8)], 0).cumsum(1)[:, : torch.randint(3, 9, ()).item()]
        t = torch.nn.functional.pad(t, (0, 8 - t.shape[1])) + torch.rand(8, 8).to("xla")
    torch_xla.sync()
"""


def test_interrupt_during_a_compilation_ends_the_process(program):
    process = program.start("-c", COMPILES, pipes=("stdout", "stderr"))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    try:
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in errors
    assert process.returncode in (1, 130, -signal.SIGINT)


# The handler's frame lies where oneDNN's products for AVX-512 kept addresses. Once in a run of a second sufficed, most times.
INTERRUPTED = """
import signal, time, torch, torch_xla
signals = 0
def count(*_):
    global signals
    signals += 1
signal.signal(signal.SIGALRM, count)
x = torch.ones(300, 300, device="xla")
weight = torch.ones(8, 16, 3, 3, device="xla")
image = torch.ones(2, 16, 40, 40, device="xla")
end = time.monotonic() + 4
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
while time.monotonic() < end:
    assert (x @ x).sum().item() == 300**3
    assert torch.nn.functional.conv2d(image, weight).amax().item() == 144
    assert (torch.ones(3, device="xla") * 2).sum().item() == 6
signal.setitimer(signal.ITIMER_REAL, 0)
assert signals > 0
"""


def test_signals_leave_what_is_computed_alone(program):
    program.run_code(INTERRUPTED, timeout=120, TORCH_XLA_INTERPRET="never")


# Each child ends in another way, right after graphs have come so often that their programs are being compiled.
ENDS = """
import atexit, ctypes, os, sys, threading, torch, torch_xla

def start_compiles(shortest):
    x = torch.ones(7, device="xla")
    for n in range(4):
        for _ in range(128):
            y = x
            for i in range(shortest + n):
                y = torch.special.erfinv(torch.sin(y) * 0.5) + i
            y.sum().item()

def in_a_thread():
    thread = threading.Thread(target=lambda: (start_compiles(16), sys.exit(5)))
    thread.start()
    thread.join()

ENDS = {
    "os._exit": lambda: os._exit(0),
    # As a program that embeds Python and does not end it: with the interpreter's lock, and without.
    "exit of C": lambda: ctypes.PyDLL(None).exit(0),
    "exit of C, unlocked": lambda: ctypes.CDLL(None).exit(0),
    "thread": in_a_thread,
    "atexit": lambda: atexit.register(start_compiles, 16),
    "SystemExit at exit": lambda: atexit.register(sys.exit, 5),
}
start_compiles(4)
for name, end in ENDS.items():
    child = os.fork()
    if child == 0:
        start_compiles(10)
        end()
        break
    status = os.waitpid(child, 0)[1]
    assert status == 0, (name, status)
"""


def test_ends_while_programs_are_compiled_in_the_background(program):
    program.run_code(ENDS, timeout=120, TORCH_XLA_INTERPRET="auto")


def test_threads_record_their_own_work(program):
    output = program.run_code(
        """
import threading, torch, torch_xla
def work(i, results):
    t = torch.full((8,), float(i), device="xla")
    for _ in range(20):
        t = t + 1
    results[i] = t.sum().item()
results = {}
threads = [threading.Thread(target=work, args=(i, results)) for i in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
print([results[i] for i in range(4)])
"""
    )
    assert output.stdout.strip() == "[160.0, 168.0, 176.0, 184.0]"
