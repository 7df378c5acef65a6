"""Training of models whose parameters no process holds as a whole.

Each process keeps a part of each parameter, of its gradient and of its optimizer state. A wrapped module gathers its
parameters when its forward begins, and again when its backward needs them; the gradients are averaged and each process
keeps the part that belongs to its own.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.nn as nn
import torch.utils._pytree as pytree

import torch_xla
from torch_xla import _XLAC
from torch_xla.core import _collectives
from torch_xla.core import xla_model as xm
from torch_xla.distributed.fsdp import wrap

# The begin of the names under which the parts stand in the wrapping module.
SHARD_PREFIX = "_fsdp_shard-"
# Where a module keeps the context in which it has its parameters, though its wrapper's forward has ended.
RECOMPUTATION = "_fsdp_recomputation"
_ENTERED = "_fsdp_recomputation_entered"


class _Gather(torch.autograd.Function):
    """A parameter from its parts; each process gets the mean of the gradients of its own."""

    @staticmethod
    def forward(ctx: Any, part: torch.Tensor, parameter: "_ShardedParameter") -> torch.Tensor:
        ctx.parameter = parameter
        return parameter.gather(part)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> tuple[torch.Tensor | None, None]:
        return ctx.parameter.scatter(gradient), None


class _ShardedParameter:
    """One parameter: where it belongs, and this process's part of it, a rank-1 tensor."""

    def __init__(
        self, owner: "XlaFullyShardedDataParallel", name: str, value: nn.Parameter
    ) -> None:
        self.owner = owner
        self.name = name
        self.shape = value.shape
        # The modules that use it, and what they call it.
        self.places: list[tuple[nn.Module, str]] = []
        self.attribute = SHARD_PREFIX + name.replace(".", "-")
        size = -(-value.numel() // owner.sharding_world_size)
        multiple = owner.shard_size_multiple
        self.size = -(-size // multiple) * multiple
        flat = value.detach().flatten()
        own = flat[self.size * owner.sharding_rank : self.size * (owner.sharding_rank + 1)]
        part = nn.functional.pad(own, (0, self.size - own.numel())).clone()
        self.part = nn.Parameter(part.to(owner.xla_device), requires_grad=value.requires_grad)
        self.part._is_sharded = True
        # The gradient of steps that did not exchange theirs (no_sync).
        self.unsynchronized: torch.Tensor | None = None

    def gather(self, part: torch.Tensor) -> torch.Tensor:
        """The whole parameter, in the type of the computation."""
        part = part.to(self.owner.compute_dtype or part.dtype)
        whole = xm.all_gather(part, groups=self.owner.sharding_groups)
        return whole[: self.shape.numel()].view(self.shape)

    def gather_again(self) -> torch.Tensor:
        """The whole parameter for backward, by itself."""
        with torch.no_grad():
            part = self.part.detach().clone()
            # Else the compiler would keep what forward has gathered.
            xm.optimization_barrier_([part])
            return self.gather(part)

    def take_back(self) -> None:
        """Leaves the modules without the parameter."""
        for inner, name in self.places:
            _remove(inner, name)

    def scatter(self, gradient: torch.Tensor) -> torch.Tensor | None:
        """This process's part of the mean gradient; None when it is kept for a later step."""
        if self.unsynchronized is not None:
            gradient = gradient + self.unsynchronized
            self.unsynchronized = None
        if not self.owner.synchronizes:
            self.unsynchronized = gradient
            return None
        self.owner.note_backward()
        if self.owner.fp32_reduce_scatter:
            gradient = gradient.float()
        count = self.owner.sharding_world_size
        flat = nn.functional.pad(gradient.flatten(), (0, self.size * count - gradient.numel()))
        own = xm.reduce_scatter(
            xm.REDUCE_SUM, flat, 1.0 / count, 0, count, groups=self.owner.sharding_groups
        )
        return own.to(self.part.dtype)


class _Saved:
    """What autograd keeps of a whole parameter: how to gather it again."""

    def __init__(self, parameter: _ShardedParameter, seen: torch.Tensor) -> None:
        self.parameter = parameter
        self.layout = seen.size(), seen.stride(), seen.storage_offset()

    def gather(self) -> torch.Tensor:
        with torch.no_grad():
            return self.parameter.gather_again().contiguous().as_strided(*self.layout)


class XlaFullyShardedDataParallel(nn.Module):
    """Shards a module's parameters over the processes.

    Wrap inner modules first, by hand or with `auto_wrap_policy`. Make the optimizer after, with `parameters()`, and call
    its `step` rather than `xm.optimizer_step`: the gradients are averaged already.

    Args:
      module: what is wrapped; its parameters may be on the CPU.
      reshard_after_forward: gather the parameters anew for backward, instead of keeping them.
      compute_dtype: the type in which parameters are gathered and floating-point inputs arrive.
      buffer_dtype: the type of floating-point buffers; that of the computation by default.
      fp32_reduce_scatter: average the gradients in float32.
      sharding_groups: lists of ranks that share parameters; all ranks by default.
      sharding_rank, sharding_world_size: this process's place in its group, and the group's size, which the groups say, too.
      auto_wrap_policy: which submodules are wrapped by themselves (`fsdp.wrap`).
      auto_wrapper_callable: what wraps them; this class by default.
      param_init_fn: gives values to a module with parameters on the meta device; without it they are made on the CPU, and
        each module's `reset_parameters()` fills its own. Processes keep their parts of what they draw themselves.
      execute_sharding_on_init: cut the parameters into parts at once, rather than with the next step.
      sync_on_finalization: run the step when backward has ended. Its old name is `mark_step_on_finalization`.

    The other arguments have no effect: parameters are always kept as flat parts, each of its own. Raises ValueError for a
    module that is wrapped already, and for a place or a size that is not the group's.
    """

    _is_fsdp = True

    def __init__(
        self,
        module: nn.Module,
        reshard_after_forward: bool = True,
        flatten_parameters: bool = False,
        execute_sharding_on_init: bool = True,
        optimization_barrier_in_forward: bool = True,
        optimization_barrier_in_backward: bool = True,
        sync_on_finalization: bool = False,
        disable_reshard_on_root: bool = True,
        compute_dtype: torch.dtype | None = None,
        buffer_dtype: torch.dtype | None = None,
        fp32_reduce_scatter: bool = False,
        sharding_groups: list[list[int]] | None = None,
        sharding_rank: int | None = None,
        sharding_world_size: int | None = None,
        shard_param_on_dim_0: bool = False,
        pin_layout_in_collective_ops: bool = True,
        reduce_scatter_bucket_size_mb: int | None = 0,
        coalesce_all_gather_ops: bool = False,
        auto_wrap_policy: wrap.Policy | None = None,
        auto_wrapper_callable: Callable[..., nn.Module] | None = None,
        param_init_fn: Callable[[nn.Module], None] | None = None,
        _shard_size_multiple: int = 1,
        _use_xla_patched_linear: bool = True,
        *,
        mark_step_on_finalization: bool = False,
        coalesce_reduce_scatter_ops: bool = False,
    ) -> None:
        super().__init__()
        if getattr(module, "_is_fsdp", False):
            raise ValueError("The module is an XlaFullyShardedDataParallel already.")
        options = {
            "reshard_after_forward": reshard_after_forward,
            "compute_dtype": compute_dtype,
            "buffer_dtype": buffer_dtype,
            "fp32_reduce_scatter": fp32_reduce_scatter,
            "sharding_groups": sharding_groups,
            "sharding_rank": sharding_rank,
            "sharding_world_size": sharding_world_size,
            "param_init_fn": param_init_fn,
            "_shard_size_multiple": _shard_size_multiple,
        }
        if auto_wrap_policy is not None:
            wrapper = auto_wrapper_callable or XlaFullyShardedDataParallel
            wrap.recursive_wrap(
                module, auto_wrap_policy, wrapper, only_wrap_children=True, **options
            )
        self.xla_device = torch_xla.device()
        self.sharding_groups = sharding_groups
        self.sharding_rank, self.sharding_world_size = _place_in_group(
            sharding_groups, sharding_rank, sharding_world_size
        )
        self.shard_size_multiple = _shard_size_multiple
        self.reshard_after_forward = reshard_after_forward
        self.compute_dtype = compute_dtype
        self.fp32_reduce_scatter = fp32_reduce_scatter
        self.sync_on_finalization = sync_on_finalization or mark_step_on_finalization
        self.synchronizes = True
        self._finalizing = False
        # While forward runs, the modules have their parameters.
        self._in_forward = False
        _fill_meta_parameters(module, param_init_fn)
        self._sharded = self._shard(module)
        self._serve_recomputation()
        self.module = module
        self._move_buffers(buffer_dtype or compute_dtype)
        if execute_sharding_on_init:
            torch_xla.sync(reset_scope=False)

    def _shard(self, module: nn.Module) -> list[_ShardedParameter]:
        """Replaces the parameters that no inner wrapper holds by parts that this module holds."""
        found: dict[int, _ShardedParameter] = {}
        for path, inner in _unwrapped_modules(module):
            for name, value in list(inner._parameters.items()):
                if value is None:
                    continue
                if id(value) not in found:
                    full_name = f"{path}.{name}" if path else name
                    found[id(value)] = _ShardedParameter(self, full_name, value)
                found[id(value)].places.append((inner, name))
        for parameter in found.values():
            parameter.take_back()
            self.register_parameter(parameter.attribute, parameter.part)
        return list(found.values())

    def _serve_recomputation(self) -> None:
        """Lets modules that backward runs again, outside of this module's forward, have their parameters."""
        parts: dict[int, list[tuple[str, _ShardedParameter]]] = {}
        modules: dict[int, nn.Module] = {}
        for parameter in self._sharded:
            for inner, name in parameter.places:
                parts.setdefault(id(inner), []).append((name, parameter))
                modules[id(inner)] = inner
        for key, inner in modules.items():
            inner.__dict__[RECOMPUTATION] = functools.partial(self._regathered, inner, parts[key])
            # What `repr` of the module itself calls.
            inner.__dict__["extra_repr"] = functools.partial(self._described, inner)
            inner.register_forward_pre_hook(self._enter_recomputation)
            inner.register_forward_hook(self._leave_recomputation, always_call=True)

    def _enter_recomputation(self, inner: nn.Module, args: Any) -> None:
        if not self._in_forward and not inner.__dict__.get(_ENTERED):
            inner.__dict__[_ENTERED] = context = inner.__dict__[RECOMPUTATION]()
            context.__enter__()

    def _leave_recomputation(self, inner: nn.Module, args: Any, output: Any) -> None:
        context = inner.__dict__.pop(_ENTERED, None)
        if context is not None:
            context.__exit__(None, None, None)

    @contextlib.contextmanager
    def _regathered(
        self, inner: nn.Module, parts: list[tuple[str, "_ShardedParameter"]]
    ) -> Iterator[None]:
        if self._in_forward or any(name in inner.__dict__ for name, _ in parts):
            yield
            return
        for name, parameter in parts:
            whole = parameter.gather_again()
            setattr(inner, name, whole.requires_grad_(parameter.part.requires_grad))
        try:
            yield
        finally:
            for name, _ in parts:
                _remove(inner, name)

    def _move_buffers(self, dtype: torch.dtype | None) -> None:
        for _, inner in _unwrapped_modules(self.module):
            for name, buffer in inner._buffers.items():
                if buffer is None:
                    continue
                is_float = dtype is not None and buffer.is_floating_point()
                inner._buffers[name] = buffer.to(self.xla_device, dtype if is_float else None)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("module"), name)

    @contextlib.contextmanager
    def _lent(self) -> Iterator[None]:
        """Modules look at their parameters to describe themselves, and have none outside of forward: they get the parts."""
        lent = []
        for parameter in self._sharded:
            for inner, name in parameter.places:
                # A module may be in two places, and be described in the midst of another.
                if name not in inner.__dict__:
                    inner.__dict__[name] = parameter.part
                    lent.append((inner.__dict__, name))
        try:
            yield
        finally:
            for attributes, name in lent:
                del attributes[name]

    def _described(self, inner: nn.Module) -> str:
        with self._lent():
            return type(inner).extra_repr(inner)

    def __repr__(self) -> str:
        with self._lent():
            return super().__repr__()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The wrapped module's forward, with its parameters gathered from all processes while it computes."""
        args, kwargs = self._cast((args, kwargs))
        wholes: dict[int, _ShardedParameter] = {}
        for parameter in self._sharded:
            # After a load or a move the part may be another object.
            parameter.part = self._parameters[parameter.attribute]
            whole = _Gather.apply(parameter.part, parameter)
            wholes[_XLAC._xla_get_tensor_id(whole)] = parameter
            for inner, name in parameter.places:
                setattr(inner, name, whole)
        self._in_forward = True
        try:
            with (
                self._regathering(wholes)
                if self.reshard_after_forward
                else contextlib.nullcontext()
            ):
                return self.module(*args, **kwargs)
        finally:
            self._in_forward = False
            for parameter in self._sharded:
                parameter.take_back()

    def _cast(self, value: Any) -> Any:
        if self.compute_dtype is None:
            return value
        return pytree.tree_map(
            lambda leaf: (
                leaf.to(self.compute_dtype)
                if isinstance(leaf, torch.Tensor) and leaf.is_floating_point()
                else leaf
            ),
            value,
        )

    def _regathering(
        self, wholes: dict[int, _ShardedParameter]
    ) -> contextlib.AbstractContextManager[None]:
        """Lets autograd remember how to gather whole parameters, instead of the parameters."""

        def pack(tensor: torch.Tensor) -> Any:
            if tensor.device.type != "xla":
                return tensor
            parameter = wholes.get(_XLAC._xla_get_tensor_id(tensor))
            return tensor if parameter is None else _Saved(parameter, tensor)

        def unpack(saved: Any) -> torch.Tensor:
            return saved.gather() if isinstance(saved, _Saved) else saved

        return torch.autograd.graph.saved_tensors_hooks(pack, unpack)

    def _wrappers(self) -> Iterator["XlaFullyShardedDataParallel"]:
        return (inner for inner in self.modules() if isinstance(inner, XlaFullyShardedDataParallel))

    def note_backward(self) -> None:
        """Called for each gradient of a backward."""
        if not self.sync_on_finalization or self._finalizing:
            return
        self._finalizing = True

        def finalize() -> None:
            self._finalizing = False
            torch_xla.sync(reset_scope=False)

        torch.autograd.Variable._execution_engine.queue_callback(finalize)

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """A context in which backward keeps whole gradients in this process, for the first backward after it."""
        before = [(inner, inner.synchronizes) for inner in self._wrappers()]
        for inner, _ in before:
            inner.synchronizes = False
        try:
            yield
        finally:
            for inner, synchronized in before:
                inner.synchronizes = synchronized

    @torch.no_grad()
    def clip_grad_norm_(
        self,
        max_norm: float | int,
        norm_type: float | int = 2.0,
        groups: list[list[int]] | None = None,
    ) -> torch.Tensor:
        """Scales the gradients so that their norm, over all processes, is at most `max_norm`; returns the norm before."""
        parameters = [value for value in self.parameters() if value.grad is not None]
        parts = [value.grad for value in parameters if getattr(value, "_is_sharded", False)]
        others = [value.grad for value in parameters if not getattr(value, "_is_sharded", False)]
        groups = groups or self.sharding_groups
        zero = torch.zeros((), device=self.xla_device)
        if norm_type == float("inf"):
            own = torch.stack([zero, *(part.abs().max().float() for part in parts)]).max()
            norm = xm.all_reduce(xm.REDUCE_MAX, own, groups=groups)
            norm = torch.stack([norm, *(other.abs().max().float() for other in others)]).max()
        else:
            own = sum((part.float().abs().pow(norm_type).sum() for part in parts), zero)
            total = xm.all_reduce(xm.REDUCE_SUM, own, groups=groups)
            total = sum((other.float().abs().pow(norm_type).sum() for other in others), total)
            norm = total.pow(1.0 / norm_type)
        factor = (max_norm / (norm + 1e-6)).clamp(max=1.0)
        for gradient in (*parts, *others):
            gradient.mul_(factor.to(gradient.dtype))
        return norm

    def get_shard_metadata(self) -> dict[str, Any]:
        """What `consolidate_sharded_state_dicts` needs to know of this process's `state_dict()`."""
        shards, names = {}, {}
        for path, inner in self.named_modules():
            if not isinstance(inner, XlaFullyShardedDataParallel):
                continue
            prefix = f"{path}." if path else ""
            for parameter in inner._sharded:
                shards[prefix + parameter.attribute] = {
                    "names": [
                        _original_name(self, prefix + "module." + name)
                        for name in inner._names(parameter)
                    ],
                    "shape": tuple(parameter.shape),
                }
        for key in self.state_dict():
            if key not in shards:
                names[key] = _original_name(self, key)
        return {
            "shard_info": shards,
            "names": names,
            "world_size": self.sharding_world_size,
            "rank": self.sharding_rank,
        }

    def _names(self, parameter: _ShardedParameter) -> list[str]:
        """All names of a parameter in the wrapped module."""
        paths = {id(inner): path for path, inner in self.module.named_modules()}
        return [
            f"{paths[id(inner)]}.{name}" if paths[id(inner)] else name
            for inner, name in parameter.places
        ]


def _place_in_group(
    groups: list[list[int]] | None, rank: int | None, size: int | None
) -> tuple[int, int]:
    """This process's place in its group, and the group's size; ValueError where `groups` say another one."""
    own = _collectives._own(_collectives._equal_ranks("XlaFullyShardedDataParallel", groups))
    place = own.index(_collectives._place_in_world()[1])
    if groups and (rank not in (None, place) or size not in (None, len(own))):
        raise ValueError(
            f"XlaFullyShardedDataParallel: sharding_rank={rank} and sharding_world_size={size}, but this process has place "
            f"{place} among the {len(own)} of its group, {own}."
        )
    return place, len(own)


def _remove(module: nn.Module, name: str) -> None:
    # Recurrent layers keep a list of their parameters, which follows what is set.
    setattr(module, name, None)
    delattr(module, name)


def _unwrapped_modules(module: nn.Module, path: str = "") -> Iterator[tuple[str, nn.Module]]:
    """The module and its submodules, without those that are wrapped, by name."""
    if getattr(module, "_is_fsdp", False):
        return
    yield path, module
    for name, child in module.named_children():
        yield from _unwrapped_modules(child, f"{path}.{name}" if path else name)


def _fill_meta_parameters(
    module: nn.Module, param_init_fn: Callable[[nn.Module], None] | None
) -> None:
    """Gives memory and values to the parameters that have neither and belong to no inner wrapper."""
    empty = [
        inner
        for _, inner in _unwrapped_modules(module)
        if any(tensor.is_meta for tensor in inner.parameters(recurse=False))
    ]
    if empty and param_init_fn is not None:
        param_init_fn(module)
        return
    for inner in empty:
        if not callable(getattr(inner, "reset_parameters", None)):
            raise ValueError(
                f"XlaFullyShardedDataParallel: the parameters of {type(inner).__name__} are on the meta device, and it "
                "has no reset_parameters() to fill them; give param_init_fn."
            )
        inner.to_empty(device="cpu", recurse=False)
        with torch.no_grad():
            inner.reset_parameters()


def _original_name(root: nn.Module, key: str) -> str:
    """What a key of the state dictionary would be without wrappers."""
    kept, current = [], root
    parts = key.split(".")
    for part in parts:
        if not (isinstance(current, XlaFullyShardedDataParallel) and part == "module"):
            kept.append(part)
        child = current._modules.get(part) if isinstance(current, nn.Module) else None
        current = child if child is not None else current
    return ".".join(kept)
