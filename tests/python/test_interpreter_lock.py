"""Whoever waits in torch_xla lets the interpreter go on: while one thread waits, another counts."""

import socket

import pytest

from torch_xla._binding import library_directory
from torch_xla.runtime_server import REMOTE_PLUGIN

# Starts each call in a thread of its own, and counts meanwhile. The last name printed is that of a call that does not
# let the interpreter go: then the program hangs, until it is ended with an exit status.
COUNT = """
import faulthandler, os, threading, time
import torch
import torch_xla
from torch_xla import _XLAC

faulthandler.dump_traceback_later(60, exit=True)
threads = []

def count_while(name, call):
    print(name, flush=True)
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    threads.append(thread)
    time.sleep(0.02)
    for _ in range(100_000):  # that this ends is what is tested
        pass
    assert thread.is_alive(), name + " does not wait, and shows nothing"
"""

# The runtime starts, and waits for a server that does not answer.
START = """
for name, call in {
    "the first": _XLAC._init_computation_client,
    "the second": _XLAC._init_computation_client,
    "devices": _XLAC._xla_get_devices,
    "number": _XLAC._xla_num_devices,
    "real devices": _XLAC._xla_real_devices,
    "kind": _XLAC._xla_device_kind,
    "attributes": lambda: _XLAC._xla_device_attributes("xla:0"),
    "all attributes": _XLAC._xla_global_device_attributes,
    "memory": lambda: _XLAC._xla_memory_info("xla:0"),
    "default device": lambda: _XLAC._xla_set_default_device("xla:0"),
    "world": lambda: _XLAC._set_world_provider(lambda: None),
    "upload": lambda: _XLAC._xla_tensors_from_aten([torch.ones(2)], ["xla:0"]),
    "factory": lambda: torch.ones(2, device="xla"),
    "to": lambda: torch.ones(2).to("xla"),
    "tensor": lambda: torch.tensor([1.0], device="xla"),
    "text": lambda: _XLAC._get_stablehlo([], "xla:0", [], False),
}.items():
    count_while(name, call)
os._exit(0)
"""

# One thread is in the middle of a sync, whose lock the others need.
SYNC = """
def pending():
    return torch.ones(3, device="xla") + 1

def captured():
    graph = _XLAC.CapturedGraph([data])
    graph.finish([graph.placeholders[0] + 1])

data, read = torch.ones(3, device="xla"), pending()
begun, go_on = threading.Event(), threading.Event()
torch_xla.sync()

def observe(event):
    begun.set()
    go_on.wait()

_XLAC._set_graph_observer(observe)
work = pending()
syncing = threading.Thread(target=torch_xla.sync, daemon=True)
syncing.start()
assert begun.wait(30)
tensors = [pending() for _ in range(8)]
for name, call in {
    "sync": torch_xla.sync,
    "sync of tensors": lambda: _XLAC._xla_sync_multi([tensors[0]]),
    "wait": _XLAC._xla_wait_device_ops,
    "exit": _XLAC._prepare_to_exit,
    "cpu": tensors[1].cpu,
    "item": tensors[2][0].item,
    "list": tensors[3].tolist,
    "print": lambda: str(tensors[4]),
    "copies": lambda: _XLAC._xla_get_cpu_tensors([tensors[5]]),
    "text": lambda: _XLAC._get_xla_tensors_text([tensors[6]]),
    "dot": lambda: _XLAC._get_xla_tensors_dot([tensors[6]]),
    "hlo": lambda: _XLAC._get_xla_tensors_hlo([tensors[6]]),
    "stablehlo": lambda: _XLAC._get_stablehlo([tensors[6]], "", [], False),
    "hash": lambda: _XLAC._get_graph_hash([tensors[6]]),
    "captured": captured,
    "collective": lambda: _XLAC._xla_all_reduce([tensors[7]], "sum", 1.0, []),
    "graph name": lambda: _XLAC._set_current_graph_name("x"),
    "its graph name": _XLAC._get_current_graph_name,
    "precision": lambda: _XLAC._xla_set_mat_mul_precision("default"),
    "its precision": _XLAC._xla_get_mat_mul_precision,
    "options": lambda: _XLAC._xla_set_custom_compile_options({}),
    "programs": _XLAC._xla_get_num_cached_compilation_graph,
    "bytes": _XLAC._xla_computation_cache_bytes,
    "clear": _XLAC._xla_clear_computation_cache,
    "observer": lambda: _XLAC._set_graph_observer(None),
}.items():
    count_while(name, call)
go_on.set()
for thread in [syncing, *threads]:
    thread.join(30)
    assert not thread.is_alive()
print("done", flush=True)
os._exit(0)
"""


@pytest.mark.skipif(
    not (library_directory() / REMOTE_PLUGIN).exists(), reason="built without the runtime server"
)
def test_while_the_runtime_starts(program):
    with socket.create_server(("localhost", 0)) as silent:
        address = f"localhost:{silent.getsockname()[1]}"
        program.run_code(COUNT + START, PJRT_DEVICE="REMOTE", PJRT_REMOTE_ADDRESS=address)


def test_while_another_thread_syncs(program):
    output = program.run_code(COUNT + SYNC)
    assert output.stdout.endswith("done\n")
