"""Functions that depend on their arguments alone, which need not be traced again."""

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from functorch.compile import default_partition, make_boxed_func
from torch import fx
from torch._functorch.aot_autograd import aot_function
from torch.autograd import forward_ad
from torch.utils import _pytree as pytree

from torch_xla import _XLAC, _tracing
from torch_xla.core import xla_model as xm
from torch_xla.core._computation_calls import static_key
from torch_xla.core.dynamo_bridge import extract_compiled_graph

# A function that is called with other shapes or numbers again and again is traced for each. So many traces are kept.
_KEPT = 64

# By the function, and by the shapes and types of the tensors and the other arguments that it was traced with.
_XLA_COMPUTATION_CACHE: "weakref.WeakKeyDictionary[Any, dict[Any, _Traced]]" = (
    weakref.WeakKeyDictionary()
)


def assume_pure(
    fn: Callable[..., Any], *, add_rng_seed_argument: bool = False
) -> Callable[..., Any]:
    """`fn` as a function whose calls, once it is traced, run none of its Python. It has `fn`'s gradients.

    Args:
      fn: takes and gives tensors on xla in any structure, and reads nothing else that changes: a module's parameters come
        in as an argument (`torch.func.functional_call`). It is traced, which calls it a few times, for each combination of
        shapes, types, arguments that are no tensors, and tensors that need a gradient. Random numbers are drawn anew in
        each call. Arguments on other devices are simply handed to it, as are those of a transform (`torch.func.vmap`,
        forward mode, `torch.compile`). What is no tensor is hashable; tensors that it writes to share no memory with others.
      add_rng_seed_argument: whether calls take an integer more, `rng_seed=`, on which alone the numbers drawn depend.

    Raises (the function that is given back):
      RuntimeError, AssertionError: where it reads a value while it is traced, or a tensor that is no argument.
      AssertionError: for a call without the seed that it takes.
    """
    traces: dict[Any, _Differentiable] = {}
    adding = threading.Lock()

    @functools.wraps(fn)
    def pure(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = pytree.tree_flatten((args, kwargs))
        tensors = _tensors_of(leaves)
        if not _are_on_one_xla_device(tensors) or _is_transformed(tensors):
            return fn(*args, **kwargs)
        key = (spec, *_context_of(tensors), *map(_key_of, leaves))
        traced = traces.get(key)
        if traced is None:
            with adding:
                traced = traces.setdefault(key, _Differentiable(fn, leaves, spec))
                if len(traces) > _KEPT:
                    del traces[next(iter(traces))]
        return traced(tensors)

    if not add_rng_seed_argument:
        return pure

    @functools.wraps(fn)
    def seeded(*args: Any, rng_seed: int | None = None, **kwargs: Any) -> Any:
        if rng_seed is None:
            raise AssertionError(
                "A function with add_rng_seed_argument takes rng_seed=, an integer."
            )
        with _seeded(int(rng_seed)):
            return pure(*args, **kwargs)

    return seeded


class PureModule(torch.nn.Module):
    """A module whose forward depends on its arguments, parameters and buffers alone: traced once, as by `assume_pure`.

    Args:
      module: what it runs; it may write into its buffers. `train()` and `eval()` are each traced.
    """

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self._module = module
        self._forget_traces()

    def _forget_traces(self) -> None:
        self._pure_forward = assume_pure(functools.partial(_pure_forward, self._module))

    # The function holds the module that it was made for: a copy has its own.
    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_pure_forward"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget_traces()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module gives."""
        modes = tuple(module.training for module in self._module.modules())
        state = dict(self._module.named_parameters()), dict(self._module.named_buffers())
        return self._pure_forward(modes, state, args, kwargs)


def _pure_forward(
    module: torch.nn.Module, _: tuple[bool, ...], state: Any, args: Any, kwargs: Any
) -> Any:
    return torch.func.functional_call(module, state, args, kwargs)


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    before = xm.get_rng_state()
    xm.set_rng_state(seed)
    try:
        yield
    finally:
        xm.set_rng_state(before)


def _is_transformed(tensors: list[torch.Tensor]) -> bool:
    """Whether somebody else traces or transforms what is called here."""
    return (
        torch.compiler.is_compiling()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or forward_ad._current_level >= 0
        or any(map(_tracing.is_traced, tensors))
    )


def _context_of(tensors: list[torch.Tensor]) -> tuple[Any, ...]:
    """What a trace depends on beside shapes: settings, which tensors gradients flow to, and which of them are one."""
    needs_gradients = torch.is_grad_enabled()
    places = {id(tensor): place for place, tensor in reversed(list(enumerate(tensors)))}
    return (
        torch.get_default_dtype(),
        _tracing.autocast_state(),
        *((needs_gradients and tensor.requires_grad, places[id(tensor)]) for tensor in tensors),
    )


def _are_on_one_xla_device(tensors: list[torch.Tensor]) -> bool:
    devices = {tensor.device for tensor in tensors}
    return len(devices) == 1 and devices.pop().type == "xla"


class _Differentiable:
    """A function of tensors, traced with its gradient: each of the two is one operation where it is called."""

    def __init__(self, func: Callable[..., Any], leaves: list[Any], spec: Any) -> None:
        arguments = _Nest(leaves, spec)
        self._is_traced = False  # by the first call

        def flat(*tensors: torch.Tensor) -> list[torch.Tensor]:
            tensors_given, self._results = _called(func, arguments, tensors)
            return tensors_given

        self._call = aot_function(
            flat, fw_compiler=_captured, bw_compiler=_captured, partition_fn=default_partition
        )

    def __call__(self, tensors: list[torch.Tensor]) -> Any:
        with contextlib.nullcontext() if self._is_traced else _tracing.LOCK:
            computed = self._call(*tensors)
        self._is_traced = True
        return self._results.of(computed)


def _captured(graph: fx.GraphModule, arguments: list[Any]) -> Callable[..., Any]:
    return make_boxed_func(extract_compiled_graph(graph, arguments))


def assume_pure_torch(func: Callable[..., Any], use_cache: bool = False) -> Callable[..., Any]:
    """`func` as a function whose calls, once it is traced, run none of its Python.

    Args:
      func: takes and gives tensors on xla in any structure, and reads nothing else that changes: a module's parameters
        come in as an argument (`torch.func.functional_call`). Forward only.
      use_cache: trace it once for each combination of shapes, types and arguments that are no tensors. Otherwise, and on
        other devices, it is called each time.

    Raises (the function that is given back):
      NotImplementedError: where gradients are to flow through it.
      RuntimeError: where it reads a value while it is traced, or a tensor of xla that is no argument.
    """
    if not use_cache:
        return _without_gradients(func)
    return _without_gradients(functools.wraps(func)(functools.partial(_call_traced, func)))


def _without_gradients(func: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        if torch.is_grad_enabled() and any(
            isinstance(leaf, torch.Tensor) and leaf.requires_grad
            for leaf in pytree.tree_leaves((args, kwargs))
        ):
            raise NotImplementedError(
                "assume_pure_torch has no gradients: call it under torch.no_grad(), or use "
                'torch.compile(backend="openxla"), which traces once and has them.'
            )
        with torch.no_grad():
            return func(*args, **kwargs)

    return call


class _Traced:
    """What a function records of its arguments, as one operation."""

    def __init__(self, func: Callable[..., Any], leaves: list[Any], spec: Any) -> None:
        arguments = _Nest(leaves, spec)

        def run(placeholders: list[torch.Tensor]) -> list[torch.Tensor]:
            tensors, self._results = _called(func, arguments, placeholders)
            return tensors

        self._graph = _XLAC.CapturedGraph(_tensors_of(leaves), run)

    def __call__(self, leaves: list[Any]) -> Any:
        computed = self._graph.call(_tensors_of(leaves))
        assert computed is not None, "the key of the cache has the shapes and types"
        return self._results.of(computed)


class _Nest:
    """A nested structure without its tensors. What else is in it is the same in every call."""

    def __init__(self, leaves: list[Any], spec: Any) -> None:
        self._spec = spec
        self._is_tensor = [isinstance(leaf, torch.Tensor) for leaf in leaves]
        self._others = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]

    def of(self, tensors: Iterable[torch.Tensor]) -> Any:
        """The structure with these tensors."""
        given = iter(tensors)
        leaves = [
            next(given) if is_tensor else other
            for is_tensor, other in zip(self._is_tensor, self._others, strict=True)
        ]
        return pytree.tree_unflatten(leaves, self._spec)


def _called(
    func: Callable[..., Any], arguments: _Nest, tensors: Iterable[torch.Tensor]
) -> tuple[list[torch.Tensor], _Nest]:
    """The tensors that `func` gives, and what is around them."""
    args, kwargs = arguments.of(tensors)
    leaves, spec = pytree.tree_flatten(func(*args, **kwargs))
    return _tensors_of(leaves), _Nest(leaves, spec)


def _tensors_of(leaves: list[Any]) -> list[torch.Tensor]:
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _key_of(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return (leaf.shape, leaf.stride(), leaf.dtype, leaf.device)
    return static_key(leaf)


def _call_traced(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    leaves, spec = pytree.tree_flatten((args, kwargs))
    if not _are_on_one_xla_device(_tensors_of(leaves)):
        return func(*args, **kwargs)
    key = (spec, *map(_key_of, leaves))
    traced = _XLA_COMPUTATION_CACHE.setdefault(func, {})
    if key not in traced:
        traced[key] = _Traced(func, leaves, spec)
    return traced[key](leaves)
