"""The reports of compilations and executions that PT_XLA_DEBUG, PT_XLA_DEBUG_LEVEL and XLA_SAVE_TENSORS_FILE ask for.

Each report says why the graph was cut, as the one who cut it has said (`lazy/cut_reason.h`), and each compilation after the
first what is different from the nearest graph before it.
"""

import atexit
import collections
import functools
import hashlib
import os
import sys
from typing import Any

from torch_xla import _XLAC
from torch_xla import runtime as xr
from torch_xla._internal import fork_lock
from torch_xla.debug import memory, observers, user_frame, what_changed
from torch_xla.utils.utils import getenv_as

# Where a compilation is called otherwise than an execution.
_COMPILE_CAUSES = {
    "dynamo is executing a compiled program": "dynamo is compiling a FX graph to HLO"
}
_READ_CAUSE = "most likely user code trying to access tensor value before torch_xla.sync"


def level() -> int:
    """PT_XLA_DEBUG_LEVEL; 100 with PT_XLA_DEBUG, 0 without either."""
    if getenv_as("PT_XLA_DEBUG", bool, False):
        return 100
    return getenv_as("PT_XLA_DEBUG_LEVEL", int, 0) or 0


def start() -> None:
    """Starts what the environment asks for."""
    wants_reports = level() > 0
    if wants_reports or any(
        getenv_as(name, bool, False) for name in ("XLA_IR_DEBUG", "XLA_HLO_DEBUG")
    ):
        _XLAC._keep_locations(True)
    if wants_reports and "TORCH_XLA_INTERPRET" not in os.environ:
        # Each graph has its program, which is reported.
        _XLAC._xla_set_interpretation("never")
    if wants_reports or os.environ.get("XLA_SAVE_TENSORS_FILE"):
        observe_graphs()
    if wants_reports:
        observers.add(wait=waits.add, step=lambda _: analyze_metrics())
    if level() >= 100:
        atexit.register(_write_summary)


# --- Graphs ---


@functools.cache
def observe_graphs() -> None:
    """From the first call on each graph is reported and saved, as the environment says by then.

    Each compiled function has a graph of its own then, which is there when it has been called.
    """
    _XLAC._run_captured_graphs_apart(True)
    observers.add(graph=_observe)


class ProgramBytes:
    """What programs need besides their arguments, by their graphs' hashes; of those used last."""

    MOST = 4096

    def __init__(self) -> None:
        self._bytes: dict[int, int] = {}

    def note(self, event: Any) -> None:
        """Of the event "compiled"."""
        self._bytes.pop(event.hash, None)
        self._bytes[event.hash] = own_bytes(event)
        if len(self._bytes) > self.MOST:
            del self._bytes[next(iter(self._bytes))]

    def of(self, graph: int) -> int:
        """0 of a program that was not used for long."""
        if graph not in self._bytes:
            return 0
        self._bytes[graph] = found = self._bytes.pop(graph)
        return found


_history = what_changed.History()
_program_bytes = ProgramBytes()


def _observe(event: Any) -> None:
    if event.stage == "cut" and os.environ.get("XLA_SAVE_TENSORS_FILE"):
        _save_graph(event)
    if level() == 0 or xr.global_ordinal() != 0:
        return
    if event.stage == "compile":
        _write(_graph_report("Compilation", event, _changes(event)))
    elif event.stage == "compiled":
        _write(_compiled_report(event))
        waits.add("compile", "a compilation", event.seconds)
        _program_bytes.note(event)
    elif event.stage == "execute":
        memory.note_execution(_program_bytes.of(event.hash))
        if level() >= 2:
            _write(_graph_report("Execution", event, None))
    elif event.stage == "refused":
        _write(_refused_report(event))


def own_bytes(event: Any) -> int:
    """What a program needs besides its arguments."""
    sizes = event.memory
    return max(sizes["outputs"] - sizes["aliased"], 0) + sizes["temporaries"]


def snapshot(event: Any) -> what_changed.Graph:
    """The graph of an event, to be kept."""
    nodes = tuple(
        what_changed.Node(
            kind,
            attributes,
            tuple(shapes),
            tuple(operands),
            what_changed.Location(*location) if location is not None else None,
            name,
            callers,
        )
        for kind, attributes, shapes, operands, location, name, callers in event.nodes()
    )
    return what_changed.Graph(
        nodes, tuple(event.results()), event.donations, event.name, tuple(event.varies)
    )


def _changes(event: Any) -> what_changed.Change | None:
    return _history.add(snapshot(event))


def cause_text(event: Any) -> str:
    """Who asked for the values of a graph, in upstream's words."""
    kind, text = event.reason
    if kind == "caller":
        return _COMPILE_CAUSES.get(text, text) if event.stage == "compile" else text
    if kind == "fallback":
        return f"{text} is not lowered and runs on the CPU, which needs the values of its inputs"
    return _READ_CAUSE


def _hashes(graph: what_changed.Graph) -> list[str]:
    """A hash for each node, which is the same in each run of the program."""
    hashes: list[str] = []
    for node in graph.nodes:
        digest = hashlib.blake2b(digest_size=16)
        digest.update(repr((node.kind, node.attributes, node.shapes)).encode())
        for at, index in node.operands:
            digest.update(f"{hashes[at]}.{index} ".encode())
        hashes.append(digest.hexdigest())
    return hashes


def _graph_hash(event: Any) -> str:
    graph = snapshot(event)
    hashes = _hashes(graph)
    digest = hashlib.blake2b(digest_size=16)
    for at, index in graph.results:
        digest.update(f"{hashes[at]}.{index} ".encode())
    digest.update(str((len(graph.nodes), graph.donations)).encode())
    return digest.hexdigest()


def _graph_report(what: str, event: Any, changes: what_changed.Change | None) -> str:
    lines = [f"{what} Cause", f"  {cause_text(event)}"]
    read = _read_text(event)
    if read:
        lines += ["Value Read: ", f"  {read}"]
    if changes is not None:
        lines += ["What Changed: ", f"  {changes}"]
    lines.append("Graph Info: ")
    if event.name:
        lines.append(f"  Graph Name: {event.name}")
    lines += [
        f"  Graph Hash: {_graph_hash(event)}",
        f"  Number of Graph Inputs: {event.inputs}",
        f"  Number of Graph Outputs: {event.outputs}",
    ]
    return _block(f"{what} Analysis: ", lines + _frame_lines())


def _read_text(event: Any) -> str:
    """Which operator reads at which line of the user's."""
    kind, operator = event.reason
    if kind not in ("read", "fallback"):
        return ""
    frame = user_frame.innermost()
    where = ""
    if frame is not None:
        at = user_frame.location(frame)
        where = f" at {at}: {user_frame.line_text(at.file, at.line)}"
    reader = user_frame.reader(operator)
    return operator + (f" ({reader})" if reader else "") + where


def _refused_report(event: Any) -> str:
    lines = ["Execution Cause", f"  {cause_text(event)}"]
    read = _read_text(event)
    if read:
        lines += ["Value Read: ", f"  {read}"]
    if event.name:
        lines += ["Graph Info: ", f"  Graph Name: {event.name}"]
    return _block("Unexpected Execution Analysis: ", lines + _frame_lines())


def _compiled_report(event: Any) -> str:
    names = {
        "Graph input size": "inputs",
        "Graph output size": "outputs",
        "Aliased Input size": "aliased",
        "Intermediate tensor size": "temporaries",
        "Compiled program size": "code",
    }
    sizes = event.memory
    lines = [f"{name}: {sizes[key] / 1e9:.6f} GB" for name, key in names.items()]
    return f"\nComputation hash: {_graph_hash(event)}\n" + _block(
        "Post Compilation Analysis: ", lines
    )


def _block(prefix: str, lines: list[str]) -> str:
    frame = ["=" * 80, *lines, "-" * 80, "=" * 80]
    return "\n" + "".join(f"{prefix}{line}\n" for line in frame)


# --- Where the program is ---


def _frame_lines() -> list[str]:
    most = getenv_as("PT_XLA_DEBUG_MAX_FRAME", int, 8) or 8
    frames = user_frame.frames()
    lines = [
        f"  {frame.f_code.co_name} ({frame.f_code.co_filename}:{frame.f_lineno})"
        for frame in frames[:most]
    ]
    if len(frames) > most:
        lines.append("  ..........")
    return ["Python Frame Triggered Execution: ", *lines]


# --- Files ---

_write_lock = fork_lock.Lock()


def _write(text: str) -> None:
    path = os.environ.get("PT_XLA_DEBUG_FILE")
    with _write_lock:
        if path:
            with open(path, "a") as file:
                file.write(text)
        else:
            sys.stderr.write(text)
            sys.stderr.flush()


def _save_graph(event: Any) -> None:
    """Appends a graph to XLA_SAVE_TENSORS_FILE, in the format that XLA_SAVE_TENSORS_FMT names."""
    form = os.environ.get("XLA_SAVE_TENSORS_FMT", "text")
    writers = {
        "text": event.text,
        "dot": event.dot,
        "hlo": event.hlo,
        "stablehlo": event.stablehlo,
    }
    if form not in writers:
        raise ValueError(f"XLA_SAVE_TENSORS_FMT={form} is none of {', '.join(writers)}.")
    graph = snapshot(event)
    hashes = _hashes(graph)
    roots = ", ".join(hashes[at] for at, _ in graph.results)
    frames = "".join(f"{line}\n" for line in _frame_lines()[1:])
    record = (
        f"[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n{frames}\nRoot Hashes: ({roots})\n"
        f"\n## BEGIN_GRAPH\n{writers[form]()}\nGraph Hash: {_graph_hash(event)}\n\n\n## END_GRAPH\n\n"
    )
    path = f"{os.environ['XLA_SAVE_TENSORS_FILE']}.{xr.global_ordinal()}"
    with _write_lock, open(path, "a") as file:
        file.write(record)


# --- Time lost ---


class Wait:
    """What was waited for at one line, how often, and for how long."""

    def __init__(self) -> None:
        self.count = 0
        self.seconds = 0.0
        self.frames: list[str] = []


class Waits:
    """The times that the program waited for: for values that it reads, operators on the CPU, compilations."""

    def __init__(self) -> None:
        self._lock = fork_lock.Lock()
        self._waits: dict[tuple[str, str, str], Wait] = collections.defaultdict(Wait)

    def add(self, kind: str, operator: str, seconds: float) -> None:
        """Notes a wait of the line that runs now; uploads are none."""
        if kind == "upload":
            return
        frame = user_frame.innermost()
        where = str(user_frame.location(frame)) if frame is not None else "an unknown line"
        with self._lock:
            wait = self._waits[kind, operator, where]
            wait.count += 1
            wait.seconds += seconds
            wait.frames = wait.frames or _frame_lines()[1:]

    def clear(self) -> None:
        """Forgets them."""
        with self._lock:
            self._waits.clear()

    def longest_first(self) -> list[tuple[tuple[str, str, str], Wait]]:
        """Each (kind, operator, line), and what was waited for there."""
        with self._lock:
            return sorted(self._waits.items(), key=lambda item: -item[1].seconds)

    def report(self, steps: int) -> list[str]:
        """A line for each, with the time per step."""
        return [
            f"{wait.seconds / max(steps, 1) * 1e3:.3f} ms a step, {wait.count} times: {operator}"
            f"{' on the CPU' if kind == 'fallback' else ''} at {where}"
            for (kind, operator, where), wait in self.longest_first()
        ]


waits = Waits()


# --- PT_XLA_DEBUG: what the metrics say ---

_PROFILER = "pt-xla-profiler: "
_TOO_OFTEN = 0.5
# What no lowering could do: it brings a value to Python.
_READS = ("aten::_local_scalar_dense",)
_TOO_SLOW = {"CompileTime": 300.0, "ExecuteTime": 30.0}
_said: set[str] = set()
_steps = 0


def analyze_metrics() -> None:
    """At each step: says what the metrics show to be too frequent or too slow."""
    global _steps
    _steps += 1
    if level() < 100 or xr.global_ordinal() != 0:
        return
    lines = []
    for name in ("CompileTime", "TransferFromDeviceTime"):
        count = (_XLAC._xla_metric_data(name) or (0,))[0]
        if _steps > 10 and count > _TOO_OFTEN * _steps:
            lines.append(f"{name} too frequent: {count} counts during {_steps} steps")
    for name, limit in _TOO_SLOW.items():
        data = _XLAC._xla_metric_data(name)
        longest = max((value for _, value in data[2]), default=0) * 1e-9 if data else 0
        if longest > limit:
            lines.append(f"{name} too slow: longest instance took {longest:.1f}s")
    fallbacks = [op for op in _XLAC._get_executed_fallback_ops() if op not in _READS]
    if fallbacks:
        lines.append(
            f"Op(s) not lowered: {', '.join(fallbacks)}, Please open a GitHub issue with the above op lowering requests."
        )
    # What is not lowered is said once.
    new = [line for line in lines if line not in _said]
    _said.update(new)
    if new:
        _write("".join(f"{_PROFILER}{line}\n" for line in new))


def _write_summary() -> None:
    if xr.global_ordinal() != 0:
        return
    lost = waits.report(_XLAC._xla_counter_value("MarkStep") or 0)
    if lost:
        _write(_block("Wait Analysis: ", ["Time Lost", *(f"  {line}" for line in lost)]))
    peak = memory.peak_report()
    if peak:
        _write(_block("Memory Analysis: ", peak.splitlines()))
    unlowered = [
        (operator, wait)
        for (kind, operator, _), wait in waits.longest_first()
        if kind == "fallback" or operator == "aten::_local_scalar_dense"
    ]
    if not unlowered:
        return
    lines = [
        "=" * 80,
        "Unlowered Op usage summary (more of these ops, lower performance)",
        "Note: _local_scalar_dense typically indicates CPU context access",
        "-" * 80,
    ]
    for operator, wait in unlowered:
        lines += [f"FRAME (count={wait.count}):", f'Unlowered Op: "{operator}"', "Python Frames:"]
        lines += [*wait.frames, ""]
    _write("".join(f"{_PROFILER}{line}\n" for line in [*lines, "=" * 80]))
