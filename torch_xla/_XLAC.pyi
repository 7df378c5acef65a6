"""The binding to the C++ core. The names that begin with `_xla` are those that clients of PyTorch/XLA call.

Devices are strings, `"xla:0"`; an empty string is the current device. Importing this module starts no runtime and
no thread; the first call that needs a device does.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

def _run_captured_graphs_apart(apart: bool) -> None:
    """Whether calls of captured graphs run as programs of their own, not together with what is around them."""

class CapturedGraph:
    """What a function of tensors records, as one operation (src/aten/captured_graph.h)."""

    def __init__(
        self, arguments: Sequence[Tensor], function: Callable[[list[Tensor]], Sequence[Tensor]]
    ) -> None: ...
    def call(self, arguments: Sequence[Tensor]) -> list[Tensor] | None: ...

class CapturedFunction:
    """A function of tensors as the body of a loop or branch (src/aten/control_flow.h)."""

    def __init__(
        self,
        device: torch.device,
        like: Sequence[Tensor],
        function: Callable[[list[Tensor]], Sequence[Tensor]],
    ) -> None: ...
    def does_the_same(self, other: CapturedFunction) -> bool:
        """Whether both do the same operations with the same numbers, and on the same other tensors."""
    @property
    def keeps_data(self) -> bool:
        """Whether it uses tensors that are neither arguments nor numbers, and keeps them alive."""

class PjRtPlugin:
    """A PJRT plugin: subclasses override the functions that differ from these defaults."""

    def __init__(self) -> None: ...
    def library_path(self) -> str: ...
    def client_create_options(self) -> dict[str, str | int | float | bool | list[int]]: ...
    def requires_xla_coordinator(self) -> bool: ...
    def starts_server(self) -> bool: ...

def _register_pjrt_plugin(name: str, plugin: PjRtPlugin) -> None: ...
def _init_computation_client() -> None:
    """Starts the runtime: loads the plugin that PJRT_DEVICE names and opens its devices."""

def _usable_cpus() -> int:
    """How many processors the affinity mask and the cgroup's quota leave this process, at least 1."""

def _xla_runtime_is_initialized() -> bool: ...
def _prepare_to_exit() -> None:
    """Waits for the work in flight, then closes the runtime if it was started."""

# Devices.
def _xla_get_devices() -> list[str]: ...
def _xla_num_devices() -> int: ...
def _xla_ordinal_count() -> int: ...
def _xla_real_devices(devices: Sequence[str] = ...) -> list[str]: ...
def _xla_device_kind(device: str = ...) -> str: ...
def _xla_device_attributes(device: str) -> dict[str, Any]: ...
def _xla_get_default_device() -> str: ...
def _xla_set_default_device(device: str) -> str: ...
def _xla_get_default_device_ordinal() -> int: ...
def _xla_memory_info(device: str) -> dict[str, int]: ...
def _xla_clear_memory_statistics(device: str) -> None: ...

# Steps.
def _xla_step_marker(
    device: str = ...,
    devices: Sequence[str] = ...,
    wait: bool = ...,
    reset_scope: bool = ...,
    cause: str = ...,
) -> None:
    """Cuts and runs what is pending. Debug reports call it by `cause`."""

def _sync_devices_of(tensors: Sequence[Tensor], wait: bool = ...) -> None:
    """Computes all that is pending on the tensors' devices, as one graph each."""

def _xla_sync_multi(
    tensors: Sequence[Tensor],
    devices: Sequence[str] = ...,
    wait: bool = ...,
    sync_xla_data: bool = ...,
) -> None:
    """Computes what the tensors need; other recorded work stays, and computes again what it shares with them."""

def _xla_wait_device_ops(devices: Sequence[str] = ...) -> None: ...
def _set_execution(word: str) -> None:
    """When operations run: "lazy" (with a sync), "eager" (as they are called), "eager_wait" (and have ended then)."""

def _get_execution() -> str: ...
def _set_use_eager_mode(use: bool) -> None: ...
def _get_use_eager_mode() -> bool: ...
def _set_allow_execution(allow: bool) -> None:
    """When off, anything but a step marker that would run a graph raises RuntimeError."""

def _get_allow_execution() -> bool: ...
def _set_current_graph_name(name: str) -> None: ...
def _get_current_graph_name() -> str: ...
def _xla_set_custom_compile_options(options: dict[str, str | int | float | bool]) -> None: ...
def _xla_computation_cache_is_initialized() -> bool: ...
def _xla_get_num_cached_compilation_graph() -> int: ...
def _xla_computation_cache_bytes() -> int:
    """Memory of the cached programs, as far as it is known."""

def _xla_interned_counts() -> tuple[int, int]:
    """How many kinds of recorded operations are kept, by what they do to which shapes, and how many shapes."""

def _xla_clear_computation_cache() -> None: ...
def _xla_initialize_cache(path: str, readonly: bool) -> None: ...

# Random numbers. An empty device means every device, those not opened yet included.
def _xla_set_rng_seed(seed: int, device: str = ...) -> None: ...
def _xla_get_rng_seed(device: str = ...) -> int: ...
def _xla_default_generator(ordinal: int) -> torch.Generator: ...

# Tensors.
def _xla_get_tensor_id(tensor: Tensor) -> int: ...
def _xla_can_set_data(variable: Tensor, data: Tensor) -> bool: ...
def _xla_data_ptr(tensor: Tensor) -> int: ...
def _xla_storage_data_ptr(cdata: int) -> int: ...
def _xla_storage_contents(cdata: int) -> Tensor: ...
def _xla_get_cpu_tensors(tensors: Sequence[Tensor]) -> list[Tensor]: ...
def _xla_tensors_from_aten(tensors: Sequence[Tensor], devices: Sequence[str]) -> list[Tensor]: ...
def _xla_optimization_barrier_(tensors: Sequence[Tensor]) -> None: ...
def _replace_xla_tensor(tensor: Tensor, source: Tensor) -> None: ...
def _get_xla_tensors_text(tensors: Sequence[Tensor]) -> str: ...
def _get_xla_tensors_dot(tensors: Sequence[Tensor]) -> str: ...
def _get_xla_tensors_hlo(tensors: Sequence[Tensor]) -> str: ...
def _get_stablehlo(
    tensors: Sequence[Tensor], device: str, devices: Sequence[str], emit_bytecode: bool
) -> str | bytes: ...
def _lowered_tensors(
    tensors: Sequence[Tensor], name: str
) -> tuple[bytes, str, list[int], list[Tensor], list[Tensor]]:
    """The tensors' program as bytecode and as JSON, ids and tensors of its data, and its numbers, which come after them."""

def _xla_tensors_report(nodes_threshold: int, device: str) -> str:
    """The tensors of a device whose graphs have more nodes than that, with these graphs, and the lines that recorded them where
    they are noted. Data is a graph of one node."""

def _set_xla_custom_op_name_prefix(tensor: Tensor, prefix: str, max_call_stack_depth: int) -> bool:
    """Names the operation that a tensor is recorded as: `prefix` stands before its name in programs, which also say where the so
    many outermost functions of this thread are. False if it is no xla tensor; one that is data has no operation to be named."""

def _xla_compile_for(
    library: str, topology: str, options: dict[str, Any], bytecode: bytes
) -> dict[str, Any]: ...
def _get_xla_tensor_debug_info(tensor: Tensor) -> str: ...
def _get_graph_hash(tensors: Sequence[Tensor]) -> bytes: ...
def _xla_warm_up_cache(tensors: Sequence[Tensor], devices: Sequence[str]) -> None:
    """Keeps the recorded work of the tensors under its hash."""

def _run_cached_graph(hash: bytes, inputs: Sequence[Tensor]) -> list[Tensor]:
    """Records a call of work that is kept, with other data in the order of `_get_tensors_xla_device_data_node`."""

def _clear_pending_irs(device: str) -> None:
    """Forgets what is recorded on the device; tensors that wait for it can be read no more."""

def _xla_mark_dynamic(tensor: Tensor, dimension: int) -> None:
    """Makes exports of what takes the tensor take any size of its dimension."""

# The memory behind tensors.
def _xla_create_placeholder_tensor(shape: dict[str, Any]) -> Tensor: ...
def _is_placecholder(tensor: Tensor) -> bool:
    """Whether the tensor has neither a value nor recorded work: a placeholder, or given up by `_set_buffer_donation`."""

def _get_tensors_handle(tensors: Sequence[Tensor]) -> list[int]: ...
def _unsafe_buffer_pointer(tensor: Tensor) -> int: ...
def _check_tensor_need_materialization(tensors: Sequence[Tensor]) -> list[bool]: ...
def _set_buffer_donation(tensor: Tensor, should_donate: bool) -> bool:
    """Wishes that the next program that takes the tensor gets its memory; False for recorded work, which has none."""

def _get_buffer_donation(tensor: Tensor) -> bool: ...
def _xla_set_enable_alias_with_buffer_donor_config(enabled: bool) -> None: ...
def _xla_get_enable_alias_with_buffer_donor_config() -> bool: ...
def _get_tensors_xla_device_data_node(
    tensors: Sequence[Tensor], input_tensors: Sequence[Tensor] = ...
) -> tuple[list[int], list[Tensor]]:
    """Ids and tensors of the data that the tensors' recorded work takes."""

def _to_dlpack(tensor: Tensor) -> Any:
    """A DLPack capsule of the tensor's memory."""

def _is_on_device(tensor: Tensor) -> bool:
    """Whether a tensor of torch's own devices lies in the memory of the current xla device."""

def _share_memory(tensor: Tensor) -> Tensor:
    """An xla tensor of the memory of such a dense tensor, whose contents must be there and stay as they are."""

# torch_xla/_lowering_context.py puts the class LoweringContext there.
lowering: ModuleType

# torch_xla/_binding_names.py puts these here.
def _get_xla_tensor_dimension_size(tensor: Tensor, dimension: int) -> Tensor: ...
def _get_xla_tensor_shape_type(tensor: Tensor) -> str: ...
def _get_base_seed_as_tensor(device: str = ...) -> Tensor: ...
def _get_seed_info_id() -> int: ...
def _get_xla_sharding_spec(tensor: Tensor) -> str: ...
def _get_git_revs() -> dict[str, str]: ...
def _xla_get_all_devices() -> list[str]: ...
def _init_xla_lazy_backend() -> None: ...
def _ensure_xla_coordinator_initialized(
    global_rank: int, world_size: int, master_addr: str, master_port: str = ""
) -> None: ...
def _activate_preemption_sync_manager() -> None: ...
def _deactivate_preemption_sync_manager() -> None: ...
def _sync_point_reached(step: int) -> bool: ...
def _on_ready_callback(tensor: Tensor, callback: Callable[[], Any]) -> None: ...
def _xla_dot_general(
    lhs: Tensor,
    rhs: Tensor,
    dim_numbers: Sequence[Sequence[Sequence[int]]],
    precision_config: Any = ...,
    preferred_element_type: torch.dtype | None = ...,
) -> Tensor: ...

# Programs built by hand: torch_xla/core/xla_builder.py.
class XlaBuilder: ...
class XlaOp: ...
class XlaComputation: ...

def _xla_op_create_builder(name: str) -> XlaBuilder: ...
def _xla_op_builder(op: XlaOp) -> XlaBuilder: ...
def _xla_op_shape(op: XlaOp) -> Any: ...
def _xla_op_tensor_shape(tensor: Tensor, device: str) -> Any: ...
def _xla_op_param(builder: XlaBuilder, number: int, shape: Any) -> XlaOp: ...
def _xla_op_create(
    builder: XlaBuilder, name: str, operands: Sequence[XlaOp], attributes: dict[str, Any]
) -> XlaOp: ...
def _xla_op_build(name: str, root: XlaOp) -> XlaComputation: ...
def _xla_op_computation_from_module_proto(name: str, program: bytes) -> XlaComputation: ...
def _xla_computation_text(computation: XlaComputation) -> str: ...
def _xla_user_computation(
    name: str, arguments: Sequence[Tensor], computation: XlaComputation
) -> list[Tensor]: ...

# Loops and branches, each one recorded operation (src/aten/control_flow.h).
def _xla_scan(
    body: CapturedFunction,
    carries: Sequence[Tensor],
    xs: Sequence[Tensor],
    invariants: Sequence[Tensor],
    length: int,
    reverse: bool,
) -> list[Tensor]: ...
def _xla_while(
    condition: CapturedFunction,
    body: CapturedFunction,
    carries: Sequence[Tensor],
    invariants: Sequence[Tensor],
) -> list[Tensor]: ...
def _xla_branch(
    predicate: Tensor,
    on_true: CapturedFunction,
    on_false: CapturedFunction,
    operands: Sequence[Tensor],
) -> list[Tensor]: ...

# The other processes. A list of groups holds the ranks that work among themselves.
def _set_world_provider(
    provider: Callable[[], tuple[int, int, torch.distributed.Store, bytes | None] | None],
) -> None:
    """Called when the runtime starts: None for a process that is alone, or (rank, size, store, the job's secret)."""

def _leave_runtime() -> None:
    """In a forked child: the next use of a device starts the runtime anew. Tensors keep their values."""

def _xla_global_device_attributes() -> list[dict[str, Any]]: ...
def _xla_has_pending_collectives() -> bool: ...
def _xla_all_reduce(
    tensors: Sequence[Tensor], reduce_type: str, scale: float, groups: Sequence[Sequence[int]]
) -> list[Tensor]: ...
def _xla_all_reduce_(
    tensors: Sequence[Tensor], reduce_type: str, scale: float, groups: Sequence[Sequence[int]]
) -> None: ...
def _xla_all_gather(
    tensors: Sequence[Tensor], dim: int, groups: Sequence[Sequence[int]]
) -> list[Tensor]: ...
def _xla_reduce_scatter(
    tensor: Tensor, reduce_type: str, scale: float, dim: int, groups: Sequence[Sequence[int]]
) -> Tensor: ...
def _xla_all_to_all(
    tensor: Tensor,
    split_dim: int,
    concat_dim: int,
    split_count: int,
    groups: Sequence[Sequence[int]],
) -> Tensor: ...
def _xla_collective_permute(tensor: Tensor, pairs: Sequence[Sequence[int]]) -> Tensor: ...
def _xla_collective_broadcast(tensor: Tensor, groups: Sequence[Sequence[int]]) -> Tensor: ...

# Metrics.
def _xla_metrics_report() -> str: ...
def _short_xla_metrics_report(counters: Sequence[str], metrics: Sequence[str]) -> str: ...
def _xla_counter_names() -> list[str]: ...
def _xla_counter_value(name: str) -> int | None: ...
def _xla_increment_counter(name: str, n: int) -> None: ...
def _xla_metric_names() -> list[str]: ...
def _xla_metric_data(name: str) -> tuple[int, float, list[tuple[float, float]]] | None: ...
def _clear_xla_counters() -> None: ...
def _clear_xla_metrics() -> None: ...
def _get_executed_fallback_ops() -> list[str]: ...

# Operators without a lowering.
def _set_decomposition(function: Callable[[str, str, dict[str, Any]], Any]) -> None:
    """Called with an operator's name, overload and arguments; returns the results, or NotImplemented."""

def _set_fallback_observer(observer: Callable[[str], None] | None) -> None:
    """Called with "aten::name" before an operator runs on the CPU."""

# Numerics.
def _xla_set_mat_mul_precision(precision: str) -> None: ...
def _xla_get_mat_mul_precision() -> str: ...
def _set_dynamic_mode(mode: str) -> None:
    """ "exact", "symbolic" or "bucketed"; programs of another mode are forgotten."""

def _get_dynamic_mode() -> str: ...
def _xla_set_interpretation(when: str) -> None:
    """When graphs without a program run operation by operation: "never", "auto" or "always"."""

def _xla_get_interpretation() -> str: ...
def _xla_finish_background_compiles() -> None:
    """Waits for the programs that are compiled while their graphs are interpreted."""

# Debug reports.
Location = tuple[str, int, str, bool]
"""File, line, function, and whether it is the gradient of what stands there."""

class GraphEvent:
    """A graph that is cut, compiled or executed. Can be looked at while the observer that got it is called."""

    @property
    def stage(self) -> str:
        """ "cut", "compile", "compiled" (`memory` and `seconds` are known), "execute"; "refused" has no graph."""

    @property
    def hash(self) -> int: ...
    @property
    def inputs(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def seconds(self) -> float: ...
    @property
    def operators(self) -> int:
        """How many operations were recorded for it."""

    @property
    def donations(self) -> int: ...
    @property
    def varies(self) -> list[bool]:
        """From "compile" on: which of the graph's indices the program takes as arguments; empty: none of them."""

    @property
    def reason(self) -> tuple[str, str]:
        """Who asked for the values: ("caller", what it says), ("read" or "fallback", the operator), ("unknown", "")."""

    @property
    def memory(self) -> dict[str, int]:
        """Bytes of the inputs, outputs, aliased, temporaries, code."""

    def nodes(
        self,
    ) -> list[
        tuple[
            str,
            str,
            list[str],
            list[tuple[int, int]],
            Location | None,
            str,
            tuple[tuple[str, int], ...],
        ]
    ]:
        """Kind, attributes, shapes of the results, operands (node, result), where recorded, name of a leaf, callers.

        The callers are the user's lines that called where it was recorded, (file, line), the nearest first.
        """

    def results(self) -> list[tuple[int, int]]: ...
    def text(self) -> str: ...
    def dot(self) -> str: ...
    def hlo(self) -> str: ...
    def stablehlo(self) -> str: ...

def _set_graph_observer(observer: Callable[[GraphEvent], None] | None) -> None: ...
def _set_wait_observer(observer: Callable[[str, str, float], None] | None) -> None:
    """Called after each wait for values: kind ("read", "fallback", "upload"), operator, seconds."""

def _keep_locations(keep: bool) -> None:
    """Notes for each recorded operation the user's line, and for each tensor that it takes the user's name."""

def _set_ir_debug(enabled: bool) -> None:
    """The same, as PyTorch/XLA calls it; and what is recorded within a `profiler.Trace` is noted with its name."""

def _get_ir_debug() -> bool: ...
def _put_locations_into_programs(put: bool) -> None:
    """Programs that are compiled from now on carry the noted lines, as with XLA_HLO_DEBUG=1."""

def _location_seconds() -> float:
    """How long the noting has taken so far, of all threads."""

def _live_tensors() -> list[tuple[str, str, str, Location | None, int, int]]:
    """Device, shape, operation that made it, where, how many of these, their bytes; the largest first."""

# Profiles.
def _start_profile() -> None:
    """Records spans and starts the plugin's profiler; RuntimeError if that has been done."""

def _is_profiling() -> bool: ...
def _stop_profile() -> bytes:
    """Ends what _start_profile started; a serialized XSpace."""

def _parse_xspace(
    xspace: bytes,
) -> tuple[
    list[
        tuple[
            str,
            dict[str, Any],
            list[tuple[int, str, list[tuple[str, str, int, int, dict[str, Any]]]]],
        ]
    ],
    list[str],
    list[str],
    list[str],
]:
    """(planes, hostnames, warnings, errors), a plane being (name, stats, lines), a line (id, name, events), and an
    event (name, display name, start and duration in picoseconds, stats)."""

class _TraceMe:
    """A context that is a span. Integers and floats among the arguments stay numbers, all else is text."""

    def __init__(self, name: str, **kwargs: Any) -> None: ...
    def __enter__(self) -> _TraceMe: ...
    def __exit__(self, *args: object) -> None: ...
    def set_metadata(self, **kwargs: Any) -> None: ...

# Programs for others: torch_xla/stablehlo.py.
def _export_program(
    device: str,
    arguments: Sequence[Tensor],
    kept: Sequence[int],
    inlines_numbers: bool,
    has_locations: bool,
    is_sample: bool,
    function: Callable[[list[Tensor]], Sequence[Tensor]],
) -> tuple[bytes, str, list[int | Tensor]]:
    """Bytecode, text, and for each parameter its argument's index or its value (src/aten/exported_program.h).

    A sample is a program of some sizes, from which one for any is made."""

def _generalize_programs(samples: Sequence[bytes], has_locations: bool) -> tuple[bytes, str]:
    """One program for any sizes, from those for a few (src/passes/generalize_sizes.h)."""

def _instantiate_program(program: bytes, arguments: Sequence[Tensor]) -> bytes:
    """A program for any sizes with the sizes of these arguments."""

def _stablehlo_text(program: bytes) -> str: ...
def _xla_mark_tensor(
    x: Tensor, name: str, position: int, id: str, is_input: bool, attributes: dict[str, Any]
) -> Tensor: ...
def _xla_mark_location(x: Tensor, name: str) -> Tensor: ...
def _xla_register_custom_call_target(fn_name: str, function_ptr: Any, platform: str) -> None:
    """Lets programs call a handler of XLA's FFI, in a capsule, by `custom_call @fn_name` of api_version 4."""

def _xla_custom_call(
    operands: Sequence[Tensor],
    target: str,
    shapes: Sequence[Sequence[int]],
    dtypes: Sequence[torch.dtype],
    has_side_effect: bool = ...,
    backend_config: str = ...,
    api_version: int = ...,
    attributes: dict[str, Any] = ...,
) -> list[Tensor]: ...
