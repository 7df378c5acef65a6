"""Whoever waits in torch_xla lets the interpreter go on: while one thread waits, another counts."""

import re
import socket
from types import BuiltinFunctionType

import pytest

from torch_xla import _XLAC
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
threads, failures = [], []
threading.excepthook = failures.append

def count_beside(name, call):
    print(name, flush=True)
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    threads.append(thread)
    time.sleep(0.02)
    for _ in range(100_000):  # that this ends is what is tested
        pass
    return thread

def count_while(name, call):
    assert count_beside(name, call).is_alive(), name + " does not wait, and shows nothing"
"""

# The runtime starts, and waits for a server that does not answer.
START = """
import datetime
capsule = datetime.datetime_CAPI  # any will do

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
    "function": lambda: _XLAC._xla_register_custom_call_target("name", capsule, "cpu"),
}.items():
    count_while(name, call)
os._exit(0)
"""

# One thread is in the middle of a sync, whose lock others need.
SYNC = """
def pending():
    return torch.ones(3, device="xla") + 1

def captured():
    _XLAC.CapturedGraph([data], lambda placeholders: [placeholders[0] + 1])

def twice():
    import torch_xla.core.xla_builder as xb
    return xb.create_computation("twice", lambda x: x + x, [xb.tensor_shape(data)])

data, read = torch.ones(3, device="xla"), pending()
step = lambda tensors: [tensors[0] + 1]
body = _XLAC.CapturedFunction(data.device, [data], step)
is_small = _XLAC.CapturedFunction(data.device, [data], lambda tensors: [tensors[0].sum() < 100])
begun, go_on = threading.Event(), threading.Event()
torch_xla.sync()
kept = data * 2
_XLAC._xla_warm_up_cache([kept], [])
kept_hash = _XLAC._get_graph_hash([kept])
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
"""

FINISH = """
go_on.set()
for thread in [syncing, *threads]:
    thread.join(30)
    assert not thread.is_alive()
assert not failures, failures
print("done", flush=True)
os._exit(0)
"""

# These wait for it.
WAIT_FOR_A_SYNC = """
for name, call in {
    "sync": torch_xla.sync,
    "step": lambda: _XLAC._xla_step_marker("xla:0"),
    "sync of tensors": lambda: _XLAC._xla_sync_multi([tensors[0]]),
    "sync of devices": lambda: _XLAC._sync_devices_of([tensors[0]]),
    "wait": _XLAC._xla_wait_device_ops,
    "export": lambda: _XLAC._export_program("xla:0", [data], [], False, False, False, step),
    "exit": _XLAC._prepare_to_exit,
    "cpu": tensors[1].cpu,
    "item": tensors[2][0].item,
    "list": tensors[3].tolist,
    "print": lambda: str(tensors[4]),
    "memory for others": lambda: _XLAC._to_dlpack(tensors[5]),
    "copies": lambda: _XLAC._xla_get_cpu_tensors([tensors[5]]),
    "text": lambda: _XLAC._get_xla_tensors_text([tensors[6]]),
    "report": lambda: _XLAC._xla_tensors_report(0, "xla:0"),
    "dot": lambda: _XLAC._get_xla_tensors_dot([tensors[6]]),
    "hlo": lambda: _XLAC._get_xla_tensors_hlo([tensors[6]]),
    "stablehlo": lambda: _XLAC._get_stablehlo([tensors[6]], "", [], False),
    "hash": lambda: _XLAC._get_graph_hash([tensors[6]]),
    "keep by hash": lambda: _XLAC._xla_warm_up_cache([tensors[6]], []),
    "collective": lambda: _XLAC._xla_all_reduce([tensors[7]], "sum", 1.0, []),
    "graph name": lambda: _XLAC._set_current_graph_name("x"),
    "its graph name": _XLAC._get_current_graph_name,
    "what varies": lambda: _XLAC._set_dynamic_mode("symbolic"),
    "how it varies": _XLAC._get_dynamic_mode,
    "precision": lambda: _XLAC._xla_set_mat_mul_precision("default"),
    "its precision": _XLAC._xla_get_mat_mul_precision,
    "interpretation": lambda: _XLAC._xla_set_interpretation("never"),
    "its interpretation": _XLAC._xla_get_interpretation,
    "background compiles": _XLAC._xla_finish_background_compiles,
    "eager mode": lambda: (_XLAC._set_execution("eager"), _XLAC._set_execution("lazy")),
    "eager mode by its other name": lambda: (
        _XLAC._set_use_eager_mode(True),
        _XLAC._set_use_eager_mode(False),
    ),
    "options": lambda: _XLAC._xla_set_custom_compile_options({}),
    "programs": _XLAC._xla_get_num_cached_compilation_graph,
    "bytes": _XLAC._xla_computation_cache_bytes,
    "clear": _XLAC._xla_clear_computation_cache,
    "observer": lambda: _XLAC._set_graph_observer(None),
    "captured": captured,
}.items():
    count_while(name, call)
"""

# These may, or need no lock of it.
BESIDE_A_SYNC = """
for name, call in {
    "_usable_cpus": _XLAC._usable_cpus,
    "_xla_runtime_is_initialized": _XLAC._xla_runtime_is_initialized,
    "_xla_get_default_device": _XLAC._xla_get_default_device,
    "_xla_get_default_device_ordinal": _XLAC._xla_get_default_device_ordinal,
    "_set_allow_execution": lambda: _XLAC._set_allow_execution(True),
    "_get_execution": _XLAC._get_execution,
    "_get_use_eager_mode": _XLAC._get_use_eager_mode,
    "_run_captured_graphs_apart": lambda: _XLAC._run_captured_graphs_apart(False),
    "_get_allow_execution": _XLAC._get_allow_execution,
    "_xla_computation_cache_is_initialized": _XLAC._xla_computation_cache_is_initialized,
    "_xla_initialize_cache": lambda: _XLAC._xla_initialize_cache(os.getcwd() + "/cache", False),
    "_xla_interned_counts": _XLAC._xla_interned_counts,
    "_xla_set_rng_seed": lambda: _XLAC._xla_set_rng_seed(3),
    "_xla_get_rng_seed": _XLAC._xla_get_rng_seed,
    "_xla_default_generator": lambda: _XLAC._xla_default_generator(0),
    "_xla_get_tensor_id": lambda: _XLAC._xla_get_tensor_id(work),
    "_lowered_tensors": lambda: _XLAC._lowered_tensors([work], "name"),
    "_get_xla_tensor_debug_info": lambda: _XLAC._get_xla_tensor_debug_info(work),
    "_xla_optimization_barrier_": lambda: _XLAC._xla_optimization_barrier_([tensors[0], work]),
    "_replace_xla_tensor": lambda: _XLAC._replace_xla_tensor(tensors[1], tensors[2]),
    "_xla_all_reduce_": lambda: _XLAC._xla_all_reduce_([tensors[3]], "sum", 1.0, []),
    "_xla_all_gather": lambda: _XLAC._xla_all_gather([tensors[3]], 0, [[0]]),
    "_xla_reduce_scatter": lambda: _XLAC._xla_reduce_scatter(tensors[3], "sum", 1.0, 0, [[0]]),
    "_xla_all_to_all": lambda: _XLAC._xla_all_to_all(tensors[3], 0, 0, 1, []),
    "_xla_collective_permute": lambda: _XLAC._xla_collective_permute(tensors[3], [(0, 0)]),
    "_xla_collective_broadcast": lambda: _XLAC._xla_collective_broadcast(tensors[3], [[0]]),
    "_xla_has_pending_collectives": _XLAC._xla_has_pending_collectives,
    "_xla_metrics_report": _XLAC._xla_metrics_report,
    "_short_xla_metrics_report": lambda: _XLAC._short_xla_metrics_report([], []),
    "_xla_counter_names": _XLAC._xla_counter_names,
    "_xla_counter_value": lambda: _XLAC._xla_counter_value("MarkStep"),
    "_xla_metric_names": _XLAC._xla_metric_names,
    "_xla_metric_data": lambda: _XLAC._xla_metric_data("ProgramCompileTime"),
    "_clear_xla_counters": _XLAC._clear_xla_counters,
    "_clear_xla_metrics": _XLAC._clear_xla_metrics,
    "_get_executed_fallback_ops": _XLAC._get_executed_fallback_ops,
    "_set_decomposition": lambda: _XLAC._set_decomposition(lambda *arguments: NotImplemented),
    "_set_fallback_observer": lambda: _XLAC._set_fallback_observer(None),
    "_set_wait_observer": lambda: _XLAC._set_wait_observer(None),
    "_keep_locations": lambda: _XLAC._keep_locations(True),
    "_set_ir_debug": lambda: _XLAC._set_ir_debug(True),
    "_get_ir_debug": _XLAC._get_ir_debug,
    "_set_xla_custom_op_name_prefix": lambda: _XLAC._set_xla_custom_op_name_prefix(work, "Net/", 3),
    "_location_seconds": _XLAC._location_seconds,
    "_put_locations_into_programs": lambda: _XLAC._put_locations_into_programs(False),
    "_live_tensors": _XLAC._live_tensors,
    "_start_profile": _XLAC._start_profile,
    "_is_profiling": _XLAC._is_profiling,
    "_stop_profile": _XLAC._stop_profile,
    "_parse_xspace": lambda: _XLAC._parse_xspace(b""),
    "_register_pjrt_plugin": lambda: _XLAC._register_pjrt_plugin("NONE", _XLAC.PjRtPlugin()),
    "_check_tensor_need_materialization": lambda: _XLAC._check_tensor_need_materialization([data]),
    "_get_buffer_donation": lambda: _XLAC._get_buffer_donation(data),
    "_set_buffer_donation": lambda: _XLAC._set_buffer_donation(data, False),
    "_get_tensors_handle": lambda: _XLAC._get_tensors_handle([data]),
    "_get_tensors_xla_device_data_node": lambda: _XLAC._get_tensors_xla_device_data_node([data]),
    "_is_placecholder": lambda: _XLAC._is_placecholder(data),
    "_on_ready_callback": lambda: _XLAC._on_ready_callback(data, lambda: None),
    "_is_on_device": lambda: _XLAC._is_on_device(torch.ones(2)),
    "_share_memory": lambda: _XLAC._share_memory(torch.ones(2)),
    "_unsafe_buffer_pointer": lambda: _XLAC._unsafe_buffer_pointer(data),
    "_xla_can_set_data": lambda: _XLAC._xla_can_set_data(data, data),
    "_xla_clear_memory_statistics": lambda: _XLAC._xla_clear_memory_statistics("xla:0"),
    "_xla_create_placeholder_tensor": lambda: _XLAC._xla_create_placeholder_tensor({"type": "f32", "sizes": (2,)}),
    "_xla_data_ptr": lambda: _XLAC._xla_data_ptr(data),
    "_xla_dot_general": lambda: _XLAC._xla_dot_general(data, data, (((0,), (0,)), ((), ()))),
    "_xla_get_enable_alias_with_buffer_donor_config": _XLAC._xla_get_enable_alias_with_buffer_donor_config,
    "_xla_set_enable_alias_with_buffer_donor_config": lambda: (
        _XLAC._xla_set_enable_alias_with_buffer_donor_config(False)
    ),
    "_xla_increment_counter": lambda: _XLAC._xla_increment_counter("a", 1),
    "_xla_op_tensor_shape": lambda: _XLAC._xla_op_tensor_shape(data, "xla:0"),
    "_xla_user_computation": lambda: _XLAC._xla_user_computation("twice", [data], twice()),
    "_xla_storage_contents": lambda: _XLAC._xla_storage_contents(data.untyped_storage()._cdata),
    "_xla_storage_data_ptr": lambda: _XLAC._xla_storage_data_ptr(data.untyped_storage()._cdata),
    "_xla_mark_tensor": lambda: _XLAC._xla_mark_tensor(data, "name", 0, "1", True, {}),
    "_xla_mark_location": lambda: _XLAC._xla_mark_location(data, "here"),
    "_xla_custom_call": lambda: _XLAC._xla_custom_call([data], "name", [list(data.shape)], [data.dtype]),
    "_xla_scan": lambda: _XLAC._xla_scan(body, [data], [], [], 3, False),
    "_xla_while": lambda: _XLAC._xla_while(is_small, body, [data], []),
    "_xla_branch": lambda: _XLAC._xla_branch(data.sum() > 0, body, body, [data]),
    "_run_cached_graph": lambda: _XLAC._run_cached_graph(kept_hash, [data]),
    "_xla_mark_dynamic": lambda: _XLAC._xla_mark_dynamic(data, 0),
    "_clear_pending_irs": lambda: _XLAC._clear_pending_irs("xla:0"),
    "_leave_runtime": _XLAC._leave_runtime,
}.items():
    count_beside(name, call)
"""

# Compiles for devices that are not here, or builds programs, and needs nothing of a runtime.
OF_NO_RUNTIME = {
    "_generalize_programs",
    "_instantiate_program",
    "_stablehlo_text",
    "_xla_compile_for",
    "_xla_computation_text",
    "_xla_op_build",
    "_xla_ordinal_count",
    "_xla_op_builder",
    "_xla_op_computation_from_module_proto",
    "_xla_op_create",
    "_xla_op_create_builder",
    "_xla_op_param",
    "_xla_op_shape",
}


@pytest.mark.skipif(
    not (library_directory() / REMOTE_PLUGIN).exists(), reason="built without the runtime server"
)
def test_while_the_runtime_starts(program):
    with socket.create_server(("localhost", 0)) as silent:
        address = f"localhost:{silent.getsockname()[1]}"
        token = program.folder / "token"
        token.touch(mode=0o600)
        token.write_text("0" * 64)
        program.run_code(
            COUNT + START,
            PJRT_DEVICE="REMOTE",
            PJRT_REMOTE_ADDRESS=address,
            PJRT_REMOTE_TOKEN_FILE=str(token),
        )


def test_while_another_thread_syncs(program):
    output = program.run_code(COUNT + SYNC + WAIT_FOR_A_SYNC + FINISH)
    assert output.stdout.endswith("done\n")


def test_beside_a_thread_that_syncs(program):
    output = program.run_code(COUNT + SYNC + BESIDE_A_SYNC + FINISH)
    assert output.stdout.endswith("done\n")


def test_no_function_is_left_out():
    functions = {
        name for name in dir(_XLAC) if isinstance(getattr(_XLAC, name), BuiltinFunctionType)
    }
    tested = set(
        re.findall(r"_XLAC\.(\w+)", COUNT + START + SYNC + WAIT_FOR_A_SYNC + BESIDE_A_SYNC)
    )
    assert functions - tested == OF_NO_RUNTIME
