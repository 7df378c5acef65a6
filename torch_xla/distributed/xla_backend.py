"""The backend `xla` of `torch.distributed`.

    import torch_xla.distributed.xla_backend
    torch.distributed.init_process_group("xla", init_method="xla://")  # or env://

Importing this module registers it. Operations on xla tensors are recorded in the program of the step, as those of
`torch_xla.core.xla_model`; operations on CPU tensors run at once, over gloo.
"""

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import ProcessGroupGloo, Work, _create_work_from_future

import torch_xla
from torch_xla import runtime as xr
from torch_xla._internal import world
from torch_xla.core import _collectives
from torch_xla.core import xla_model as xm
from torch_xla.distributed import _ddp_buckets, _device_mesh

_REDUCTIONS = {
    dist.ReduceOp.SUM: xm.REDUCE_SUM,
    dist.ReduceOp.AVG: xm.REDUCE_SUM,
    dist.ReduceOp.PRODUCT: xm.REDUCE_MUL,
    dist.ReduceOp.MIN: xm.REDUCE_MIN,
    dist.ReduceOp.MAX: xm.REDUCE_MAX,
    dist.ReduceOp.BAND: xm.REDUCE_AND,
    dist.ReduceOp.BOR: xm.REDUCE_OR,
}


def _on_xla(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return value.device.type == "xla"
    return isinstance(value, (list, tuple)) and any(_on_xla(item) for item in value)


def _must_fit(output: torch.Tensor, value: torch.Tensor) -> None:
    """Asked before anything is recorded: a result of fewer elements would be repeated in what receives it."""
    if output.numel() != value.numel():
        raise ValueError(
            f"A tensor of the shape {tuple(output.shape)} is to receive one of the shape {tuple(value.shape)}: they must "
            "have the same number of elements."
        )


def _done(result: list[torch.Tensor]) -> Work:
    """The work of an operation that is recorded: whoever waits for it can go on recording."""
    future: torch.futures.Future = torch.futures.Future()
    future.set_result(result)
    return _create_work_from_future(future)


def _by_device(method: Callable[..., Any]) -> Callable[..., Any]:
    """Lets the group's CPU side do what comes with CPU tensors."""
    name = method.__name__

    @functools.wraps(method)
    def operation(self: "ProcessGroupXla", *args: Any, **kwargs: Any) -> Any:
        tensors = [value for value in (*args, *kwargs.values()) if _holds_tensors(value)]
        if not any(_on_xla(value) for value in tensors):
            return getattr(self._host_group(), name)(*args, **kwargs)
        with torch.no_grad(), self._recording():
            return method(self, *args, **kwargs)

    return operation


def _holds_tensors(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_holds_tensors(item) for item in value)
    return isinstance(value, torch.Tensor)


class ProcessGroupXla(dist.ProcessGroup):
    """A process group whose operations on xla tensors are part of the step's program.

    Args:
      store: the rendezvous of the group's processes.
      rank, size: this process's place in the group.
      timeout: how long operations on CPU tensors wait for the others.
      ranks: the group's processes by their ranks among all; all of them by default.
      mesh: all groups of the world that are like this one, where they are known; operations name all of them.

    A group of ranks that are not started records its operations all the same, to be looked at; they cannot run. One that was
    made without `ranks`, in a world of another size, is of the processes that run.
    """

    def __init__(
        self,
        store: dist.Store | None,
        rank: int,
        size: int,
        timeout: timedelta,
        ranks: Sequence[int] | None = None,
        mesh: list[list[int]] | None = None,
    ) -> None:
        super().__init__(rank, size)
        self._ranks = list(ranks) if ranks else list(range(size))
        self._mesh = mesh or [self._ranks]
        self._cpu: dist.ProcessGroup | None = None
        if max(self._ranks) >= xr.world_size() or self._ranks[rank] != xr.global_ordinal():
            if ranks is None:
                self._mesh = []  # as in PyTorch/XLA, all that run: nobody has named others
            return
        if store is None:
            store = dist.HashStore()
        gloo = ProcessGroupGloo(store, rank, size, timeout=timeout)
        self._cpu = _group_of(gloo, store, rank, size)
        # What asks a group for its backend, as object collectives do, finds the one for CPU tensors.
        self._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, gloo)

    def getBackendName(self) -> str:  # noqa: N802, the name that torch calls
        """The name under which `torch.distributed` knows the backend: "xla"."""
        return "xla"

    def _groups(self) -> list[list[int]]:
        return self._mesh

    def _host_group(self) -> dist.ProcessGroup:
        """The group's CPU side. Raises RuntimeError where its processes are not started."""
        if self._cpu is None:
            raise RuntimeError(
                f"The process group of the ranks {self._ranks} can only record operations on xla tensors: this is rank "
                f"{xr.global_ordinal()} of {xr.world_size()}. torchrun or torch_xla.launch starts processes (WORLD_SIZE, RANK)."
            )
        return self._cpu

    def _recording(self) -> contextlib.AbstractContextManager[None]:
        if self._cpu is not None or not self._mesh:
            return contextlib.nullcontext()
        size = max(max(group) for group in self._mesh) + 1
        return _collectives.planned_world(size, self._ranks[self.rank()])

    def _reduced(
        self, tensors: Sequence[torch.Tensor], operation: dist.ReduceOp
    ) -> list[torch.Tensor]:
        if operation == dist.ReduceOp.BXOR:
            return [self._exclusive_or(tensor) for tensor in tensors]
        reduction, scale = self._reduction(operation)
        return [
            xm.all_reduce(reduction, tensor, scale=scale, groups=self._groups())
            for tensor in tensors
        ]

    def _exclusive_or(self, tensor: torch.Tensor) -> torch.Tensor:
        # The reductions that xm names, as PyTorch/XLA does, do not include this one.
        return functools.reduce(torch.bitwise_xor, self._gathered([tensor])[0])

    def _reduction(self, operation: dist.ReduceOp) -> tuple[str, float]:
        for known, reduction in _REDUCTIONS.items():
            if operation == known:
                scale = 1.0 / self.size() if known == dist.ReduceOp.AVG else 1.0
                return reduction, scale
        raise NotImplementedError(f"The reduction {operation} is not implemented for xla tensors.")

    @_by_device
    def allreduce(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        operation = opts.reduceOp if opts is not None else dist.ReduceOp.SUM
        if operation == dist.ReduceOp.BXOR:
            for tensor, result in zip(tensors, self._reduced(tensors, operation), strict=True):
                tensor.copy_(result)
            return _done(list(tensors))
        reduction, scale = self._reduction(operation)
        xm.all_reduce(reduction, list(tensors), scale=scale, groups=self._groups())
        return _done(list(tensors))

    def allreduce_coalesced(self, tensors: list[torch.Tensor], opts: Any = None) -> Work:
        if isinstance(tensors, torch.Tensor):  # its rows are no list of tensors
            raise NotImplementedError(
                "allreduce_coalesced takes a list of tensors; allreduce([tensor]) takes one."
            )
        if not _on_xla(tensors):
            return self._host_group().allreduce_coalesced(tensors, opts)
        return self.allreduce(tensors, opts)

    @_by_device
    def reduce(self, tensors: list[torch.Tensor], opts: Any) -> Work:
        reduced = self._reduced(tensors, opts.reduceOp)
        if self.rank() == opts.rootRank:
            for tensor, result in zip(tensors, reduced, strict=True):
                tensor.copy_(result)
        return _done(list(tensors))

    @_by_device
    def broadcast(self, tensors: list[torch.Tensor], opts: Any) -> Work:
        root = self._ranks[opts.rootRank]
        xm.collective_broadcast(list(tensors), root_ordinal=root, groups=self._groups())
        return _done(list(tensors))

    def _gathered(self, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Of each tensor all processes', along a new first dimension. They travel together."""
        count = len(self._ranks) if self._mesh else xr.world_size()
        gathered = xm.all_gather(list(tensors), dim=0, groups=self._groups())
        return [
            every.reshape(count, *tensor.shape)
            for every, tensor in zip(gathered, tensors, strict=True)
        ]

    @_by_device
    def allgather(
        self,
        output_tensors: list[list[torch.Tensor]],
        input_tensors: list[torch.Tensor],
        opts: Any = None,
    ) -> Work:
        for outputs, tensor in zip(output_tensors, input_tensors, strict=True):
            for output in outputs:
                _must_fit(output, tensor)
        for outputs, parts in zip(output_tensors, self._gathered(input_tensors), strict=True):
            # As in PyTorch/XLA there may be more of them than processes.
            for output, part in zip(outputs, parts, strict=False):
                output.copy_(part)
        return _done([output for outputs in output_tensors for output in outputs])

    @_by_device
    def allgather_coalesced(
        self,
        output_lists: list[list[torch.Tensor]],
        input_list: list[torch.Tensor],
        opts: Any = None,
    ) -> Work:
        if len(output_lists) != self.size():  # PyTorch/XLA's order: the first index is the input
            return self.allgather(output_lists, input_list)
        # As elsewhere in torch the first index is the process.
        for outputs in output_lists:
            for output, tensor in zip(outputs, input_list, strict=True):
                _must_fit(output, tensor)
        gathered = self._gathered(input_list)
        for member, outputs in enumerate(output_lists):
            for output, parts in zip(outputs, gathered, strict=True):
                output.copy_(parts[member])
        return _done([output for outputs in output_lists for output in outputs])

    @_by_device
    def _allgather_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any = None) -> Work:
        output.copy_(self._gathered([input])[0].reshape(output.shape))
        return _done([output])

    @_by_device
    def allgather_into_tensor_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        for output, gathered in zip(outputs, self._gathered(inputs), strict=True):
            output.copy_(gathered.reshape(output.shape))
        return _done(list(outputs))

    def _scattered(self, parts: torch.Tensor, operation: dist.ReduceOp) -> torch.Tensor:
        """This process's part, along the first dimension, of the reduction."""
        if operation == dist.ReduceOp.BXOR:
            return self._exclusive_or(parts)[self.rank() : self.rank() + 1]
        reduction, scale = self._reduction(operation)
        return xm.reduce_scatter(reduction, parts, scale, 0, self.size(), groups=self._groups())

    @_by_device
    def reduce_scatter(
        self, output_tensors: list[torch.Tensor], input_tensors: list[list[torch.Tensor]], opts: Any
    ) -> Work:
        for output, parts in zip(output_tensors, input_tensors, strict=True):
            _must_fit(output, parts[0])
            output.copy_(self._scattered(torch.stack(list(parts)), opts.reduceOp)[0])
        return _done(list(output_tensors))

    @_by_device
    def _reduce_scatter_base(self, output: torch.Tensor, input: torch.Tensor, opts: Any) -> Work:
        parts = input.reshape(self.size(), *output.shape)
        output.copy_(self._scattered(parts, opts.reduceOp)[0])
        return _done([output])

    @_by_device
    def reduce_scatter_tensor_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any
    ) -> Work:
        for output, tensor in zip(outputs, inputs, strict=True):
            parts = tensor.reshape(self.size(), *output.shape)
            output.copy_(self._scattered(parts, opts.reduceOp)[0])
        return _done(list(outputs))

    def _exchanged(self, parts: torch.Tensor) -> torch.Tensor:
        """Part i of the first dimension goes to process i."""
        return xm.all_to_all(parts, 0, 0, self.size(), groups=self._groups())

    def alltoall(
        self,
        output_tensors: list[torch.Tensor],
        input_tensors: list[torch.Tensor],
        opts: Any = None,
    ) -> Work:
        shapes = {tuple(tensor.shape) for tensor in (*output_tensors, *input_tensors)}
        if self._anywhere(len(shapes) > 1):
            return self._alltoall_of_any_sizes(output_tensors, input_tensors)
        if not _on_xla(input_tensors):
            return self._host_group().alltoall(
                output_tensors, input_tensors, opts or dist.AllToAllOptions()
            )
        with torch.no_grad():
            received = self._exchanged(torch.stack(list(input_tensors)))
            for output, part in zip(output_tensors, received, strict=True):
                output.copy_(part)
        return _done(list(output_tensors))

    def _alltoall_of_any_sizes(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor]
    ) -> Work:
        """On the CPU, and in one piece: programs cannot express it, and gloo wants equal sizes otherwise."""
        with torch.no_grad():
            host = torch.cat([tensor.cpu().flatten() for tensor in inputs])
            received = torch.empty(sum(tensor.numel() for tensor in outputs), dtype=host.dtype)
            sizes = [[tensor.numel() for tensor in tensors] for tensors in (outputs, inputs)]
            self._host_group().alltoall_base(received, host, *sizes).wait()
            for output, part in zip(outputs, received.split(sizes[0]), strict=True):
                output.copy_(part.view(output.shape))
        return _done(list(outputs))

    def _anywhere(self, here: bool) -> bool:
        """Whether it is so in any process of the group; all of them call it."""
        flag = torch.tensor([int(here)])
        self._host_group().allreduce([flag]).wait()
        return flag.item() > 0

    @_by_device
    def alltoall_base(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: list[int],
        input_split_sizes: list[int],
        opts: Any = None,
    ) -> Work:
        if not output_split_sizes and not input_split_sizes:
            parts = input.reshape(self.size(), input.size(0) // self.size(), *input.shape[1:])
            output.copy_(self._exchanged(parts).reshape(output.shape))
            return _done([output])
        host = torch.empty(output.shape, dtype=output.dtype)
        self._host_group().alltoall_base(
            host, input.cpu(), output_split_sizes, input_split_sizes
        ).wait()
        output.copy_(host)
        return _done([output])

    @_by_device
    def gather(
        self, output_tensors: list[list[torch.Tensor]], input_tensors: list[torch.Tensor], opts: Any
    ) -> Work:
        is_root = self.rank() == opts.rootRank
        if is_root:
            for outputs, tensor in zip(output_tensors, input_tensors, strict=True):
                for output in outputs:
                    _must_fit(output, tensor)
        gathered = self._gathered(input_tensors)
        if not is_root:
            return _done([])
        for outputs, parts in zip(output_tensors, gathered, strict=True):
            for output, part in zip(outputs, parts, strict=True):
                output.copy_(part)
        return _done([output for outputs in output_tensors for output in outputs])

    @_by_device
    def scatter(
        self, output_tensors: list[torch.Tensor], input_tensors: list[list[torch.Tensor]], opts: Any
    ) -> Work:
        root = self._ranks[opts.rootRank]
        for place, output in enumerate(output_tensors):
            if self.rank() == opts.rootRank:
                _must_fit(output, input_tensors[place][0])
                parts = torch.stack(list(input_tensors[place]))
            else:
                parts = output.new_zeros((self.size(), *output.shape))
            xm.collective_broadcast([parts], root_ordinal=root, groups=self._groups())
            output.copy_(parts[self.rank()])
        return _done(list(output_tensors))

    @_by_device
    def send(self, tensors: list[torch.Tensor], dst_rank: int, tag: int = 0) -> Work:
        channel = xr.global_ordinal() * xr.world_size() + self._ranks[dst_rank]
        for tensor in tensors:
            xm.send(tensor, channel)
        return _done(list(tensors))

    @_by_device
    def recv(self, out_tensors: list[torch.Tensor], src_rank: int, tag: int = 0) -> Work:
        channel = self._ranks[src_rank] * xr.world_size() + xr.global_ordinal()
        for tensor in out_tensors:
            xm.recv(tensor, channel)
        return _done(list(out_tensors))

    @_by_device
    def recv_anysource(self, out_tensors: list[torch.Tensor], tag: int = 0) -> Work:
        raise NotImplementedError(
            "Receiving an xla tensor from any process is not implemented: name the source, which the program of the "
            "step must know."
        )

    # What is recorded travels together anyway.
    def _start_coalescing(self, device: torch.device) -> None:
        if device.type != "xla":
            super()._start_coalescing(device)

    def _end_coalescing(self, device: torch.device) -> Work:
        return _done([]) if device.type == "xla" else super()._end_coalescing(device)

    def barrier(self, opts: Any = None) -> Work:
        """Waits until all have come here and have run what they had recorded."""
        torch_xla.sync(wait=True, reset_scope=False)
        return (
            self._host_group().barrier(opts) if opts is not None else self._host_group().barrier()
        )

    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        """See `torch.distributed.monitored_barrier`."""
        if isinstance(timeout, torch.Tensor):
            raise NotImplementedError(
                "monitored_barrier takes no tensor: it waits, for `timeout`, on the host."
            )
        torch_xla.sync(wait=True, reset_scope=False)
        self._host_group().monitored_barrier(timeout, wait_all_ranks)

    # The names of torch 2.13 and later.
    def all_gather_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Work:
        return self._allgather_base(output, input, opts or dist.AllgatherOptions())

    def all_gather_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        return self.allgather_into_tensor_coalesced(
            outputs, inputs, opts or dist.AllgatherOptions()
        )

    def reduce_scatter_single(
        self, output: torch.Tensor, input: torch.Tensor, opts: Any = None
    ) -> Work:
        return self._reduce_scatter_base(output, input, opts or dist.ReduceScatterOptions())

    def reduce_scatter_single_coalesced(
        self, outputs: list[torch.Tensor], inputs: list[torch.Tensor], opts: Any = None
    ) -> Work:
        return self.reduce_scatter_tensor_coalesced(
            outputs, inputs, opts or dist.ReduceScatterOptions()
        )

    def all_to_all_single(
        self,
        output: torch.Tensor,
        input: torch.Tensor,
        output_split_sizes: list[int],
        input_split_sizes: list[int],
        opts: Any = None,
    ) -> Work:
        return self.alltoall_base(
            output, input, output_split_sizes, input_split_sizes, opts or dist.AllToAllOptions()
        )


def _group_of(
    backend: ProcessGroupGloo, store: dist.Store, rank: int, size: int
) -> dist.ProcessGroup:
    group = dist.ProcessGroup(store, rank, size)
    group._set_default_backend(dist.ProcessGroup.BackendType.GLOO)
    group._register_backend(torch.device("cpu"), dist.ProcessGroup.BackendType.GLOO, backend)
    return group


def _create_xla_process_group(
    options: Any = None,
    backend_options: Any = None,
    *,
    prefix_store: dist.Store | None = None,
    rank: int = 0,
    size: int = 1,
    timeout: timedelta = dist.default_pg_timeout,
) -> ProcessGroupXla:
    """As torch calls it, with what it knows of the group; or with a store and this process's place."""
    if xr.is_spmd():
        raise AssertionError(
            "The backend xla is not there after use_spmd(), or with XLA_USE_SPMD: one program runs on all devices, and needs "
            'no collectives of processes. What hosts tell each other goes over "gloo".'
        )
    if options is None:
        return ProcessGroupXla(prefix_store, rank, size, timeout)
    ranks = list(options.global_ranks_in_group)
    wishes = backend_options.get("xla_pg_options", {}) if isinstance(backend_options, dict) else {}
    mesh = _groups_like(ranks, dist.get_world_size()) if wishes.get("spmd") else None
    return ProcessGroupXla(
        options.store, options.group_rank, options.group_size, options.timeout, ranks, mesh
    )


def _groups_like(ranks: list[int], world_size: int) -> list[list[int]]:
    """The groups into which the world falls if all are like this one: neighbours, or one of each so many neighbours.

    Raises ValueError where it is of neither kind.
    """
    count = world_size // len(ranks)
    everybody = list(range(world_size))
    neighbours = [everybody[first : first + len(ranks)] for first in everybody[:: len(ranks)]]
    apart = [everybody[first::count] for first in everybody[:count]]
    for groups in (neighbours, apart):
        if ranks in groups and len(ranks) * count == world_size:
            return groups
    raise ValueError(
        f"The ranks {ranks} and others like them do not make up a world of {world_size}."
    )


def new_xla_process_group(
    ranks: list[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
) -> dist.ProcessGroup:
    """`torch.distributed.new_group`, with the backend `xla` unless another is named."""
    return dist.new_group(
        ranks=ranks, timeout=timeout, backend=backend or "xla", pg_options=pg_options
    )


_rendezvous_numbers = itertools.count()


def _xla_rendezvous(
    url: str, timeout: timedelta | None = None, **kwargs: Any
) -> Iterator[tuple[dist.Store, int, int]]:
    """What `init_method="xla://"` means: the world of this process, whoever has launched it."""
    if xr.world_size() == 1:
        store: dist.Store = dist.HashStore()
    else:
        # A group that is made again must not find what the one before it has left.
        store = dist.PrefixStore(f"c10d/{next(_rendezvous_numbers)}", world.store())
    yield store, xr.global_ordinal(), xr.world_size()
    raise RuntimeError("The rendezvous xla:// cannot be repeated.")


def _register_xla_backend() -> None:
    # A list: the letters of a string would be taken for devices.
    dist.Backend.register_backend(
        "xla", _create_xla_process_group, extended_api=True, devices=["xla"]
    )
    dist.register_rendezvous_handler("xla", _xla_rendezvous)
    _device_mesh.give_groups_to_xla_meshes()
    _ddp_buckets.agree_in_full_graphs()


if "XLA" not in dist.Backend._plugins:
    _register_xla_backend()
