"""The functions of the package itself: devices, steps, seeds, launching."""

import contextlib
import functools
import itertools
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist

from torch_xla import _XLAC
from torch_xla._graph_limit import GraphLimit, graph_limit

_compile_ids = itertools.count()


def device(index: int | None = None) -> torch.device:
    """The `xla` device of this process, or the one with this index.

    Raises IndexError when there is no device with this index, and RuntimeError when the runtime cannot start.
    """
    from torch_xla.core import xla_model as xm

    return xm._device(index)


def devices() -> list[torch.device]:
    """All `xla` devices of this process."""
    return [torch.device(name) for name in _XLAC._xla_get_devices()]


def real_devices() -> list[str]:
    """What stands behind `devices()`, as `"CPU:0"`."""
    return _XLAC._xla_real_devices([])


def device_count() -> int:
    """The number of `xla` devices of this process."""
    return len(real_devices())


def sync(wait: bool = False, reset_scope: bool = True) -> None:
    """Cuts the recorded graph, compiles it unless that has been done before, and starts its execution.

    Args:
      wait: return only when the execution has ended.
      reset_scope: a step ends outside of `xp.Trace`; within one it is a RuntimeError. With False it may.
    """
    _sync("user torch_xla.sync", wait, reset_scope)


def _sync(cause: str, wait: bool = False, reset_scope: bool = False) -> None:
    """`sync` by somebody whom debug output shall name."""
    from torch_xla.core import xla_model as xm
    from torch_xla.debug import observers, start_saving

    start_saving()
    start = time.perf_counter()
    _XLAC._xla_step_marker("", [], wait=wait, reset_scope=reset_scope, cause=cause)
    end = time.perf_counter()
    xm._run_step_closures()
    if observers.are_set():
        observers.tell_step(observers.StepEnd(cause, wait, start, end))
    if _metrics_file():
        from torch_xla.debug import metrics_saver

        metrics_saver.save_metrics()


@functools.cache
def _metrics_file() -> bool:
    return bool(os.environ.get("XLA_METRICS_FILE"))


def step() -> contextlib.AbstractContextManager[None]:
    """A context whose body is one step: what was pending runs before it, and the body's graph after it."""
    return compile()


def compile(
    f: Callable[..., Any] | None = None,
    full_graph: bool = False,
    name: str | None = None,
    max_different_graphs: int | None = None,
    custom_compile_options: dict[str, Any] | None = None,
) -> Any:
    """Makes a function, or the body of a `with` statement, one graph.

    As a function call or decorator it returns the wrapped function; without a function, a context manager. In eager
    mode (`experimental.eager_mode`) the body is recorded all the same.

    Args:
      f: the function.
      full_graph: raise RuntimeError when the body needs a value before its end (a print, `.item()`, a branch on a
        tensor), which would cut its graph in two.
      name: how debug output calls the graph; the function's name by default.
      max_different_graphs: raise RuntimeError when the function has been more graphs than this, each of which
        compiles; the message says where the new one leaves those before.
      custom_compile_options: options of the plugin's compiler that hold for this body.

    Raises TypeError for a `f` that cannot be called.
    """
    if f is not None and not callable(f):
        raise TypeError(f"torch_xla.compile takes a function, and {f!r} is none.")
    if name is None:
        name = getattr(f, "__name__", "compiled") if f is not None else "compiled"
    region = _CompiledRegion(name, full_graph, custom_compile_options)
    limit = graph_limit(f)
    if f is None:
        return _entered(region, limit, max_different_graphs)

    @functools.wraps(f)
    def compiled(*args: Any, **kwargs: Any) -> Any:
        with _entered(region, limit, max_different_graphs):
            return f(*args, **kwargs)

    return compiled


@contextlib.contextmanager
def _entered(region: "_CompiledRegion", limit: GraphLimit, allowed: int | None) -> Iterator[None]:
    region.clear_pending()
    with limit.hold(allowed), region.enter():
        yield


class _CompiledRegion:
    """How one body of `compile` runs."""

    def __init__(
        self,
        name: str,
        full_graph: bool,
        options: dict[str, Any] | None,
    ) -> None:
        self._name = f"{name}_{next(_compile_ids)}" if name == "compiled" else name
        self._full_graph = full_graph
        self._options = options

    def clear_pending(self) -> None:
        """Starts what is pending, which belongs to no step of this body."""
        outer_name = _XLAC._get_current_graph_name()
        _XLAC._set_current_graph_name(f"{self._name}_clear_pending")
        try:
            _sync("torch_xla.compile clear the pending graph prior calling the target function")
        finally:
            _XLAC._set_current_graph_name(outer_name)

    @contextlib.contextmanager
    def enter(self) -> Iterator[None]:
        """The body, recorded as one graph that runs at its end."""
        allowed = _XLAC._get_allow_execution()
        outer_name = _XLAC._get_current_graph_name()
        execution = _XLAC._get_execution()
        options_before = _custom_compile_options
        try:
            _XLAC._set_execution("lazy")
            if self._options is not None:
                set_custom_compile_options(self._options)
            _XLAC._set_current_graph_name(self._name)
            if self._full_graph:
                _XLAC._set_allow_execution(False)
            try:
                yield
            finally:  # an exception ends the step too
                _XLAC._set_allow_execution(allowed)
                _sync("torch_xla.compile")
        finally:
            _XLAC._set_execution(execution)
            _XLAC._set_current_graph_name(outer_name)
            if self._options is not None:
                set_custom_compile_options(options_before)


def manual_seed(seed: int, device: torch.device | str | None = None) -> None:
    """Seeds the random numbers of a device; of the current one when none is given."""
    from torch_xla.core import xla_model as xm

    xm.set_rng_state(seed, device)


def launch(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    start_method: str = "spawn",
    debug_single_process: bool = False,
) -> Any:
    """Runs `fn(index, *args)` in one process per device; see `distributed.xla_multiprocessing.spawn`.

    Under `torchrun` this process is one of them already, and `fn` is called in place with its local rank. With
    `debug_single_process` it is called in place too, as the only process.
    """
    from torch_xla.distributed import xla_multiprocessing as xmp

    if dist.is_available() and dist.is_torchelastic_launched():
        from torch_xla import runtime as xr

        xmp.name_hosts(os.environ.get("GROUP_WORLD_SIZE", "1"), os.environ.get("GROUP_RANK", "0"))
        fn(xr.local_ordinal(), *args)
        xmp.finish()
        return None
    if debug_single_process:
        xmp.name_hosts("1", "0")
        fn(0, *args)
        return None
    return xmp.spawn(fn, args=args, start_method=start_method)


def set_dynamic(mode: str) -> None:
    """What becomes of sizes and indices that vary, from now on; programs of another mode are forgotten.

    "exact" compiles each value. "symbolic", the default, makes arguments of indices, and of sizes where the engine can. "bucketed" pads sizes to powers of two, of which each is compiled once, where that changes no result: for plugins whose programs have fixed sizes (docs/shapes.md). Raises RuntimeError for any other word.
    """
    _XLAC._set_dynamic_mode(mode)


_custom_compile_options: dict[str, Any] = {}


def set_custom_compile_options(options: dict[str, Any]) -> None:
    """Options that the plugin's compiler gets with every compilation from now on; an empty dictionary clears them."""
    global _custom_compile_options
    _XLAC._xla_set_custom_compile_options(options)
    _custom_compile_options = dict(options)
