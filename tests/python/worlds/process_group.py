"""torch.distributed with the backend `xla`, on xla and on CPU tensors; the arguments are init_methods."""

import contextlib
import functools
import operator
import sys

import torch
import torch.distributed as dist

import torch_xla
import torch_xla.distributed.xla_backend
from torch_xla import runtime as xr


def value_of(rank: int, *shape: int) -> torch.Tensor:
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape) * (rank + 1)


class Checks:
    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.rank, self.size = dist.get_rank(), dist.get_world_size()

    def own(self, *shape: int) -> torch.Tensor:
        return value_of(self.rank, *shape).to(self.device)

    def all(self, *shape: int) -> torch.Tensor:
        return torch.stack([value_of(rank, *shape) for rank in range(self.size)])

    def same(self, actual: torch.Tensor, expected: torch.Tensor) -> None:
        assert actual.device.type == self.device.type
        torch.testing.assert_close(actual.cpu(), expected)

    def check_all_reduce(self) -> None:
        for operation, expected in (
            (dist.ReduceOp.SUM, self.all(3).sum(0)),
            (dist.ReduceOp.MAX, self.all(3).amax(0)),
            (dist.ReduceOp.MIN, self.all(3).amin(0)),
            (dist.ReduceOp.PRODUCT, self.all(3).prod(0)),
        ):
            value = self.own(3)
            dist.all_reduce(value, operation)
            self.same(value, expected)
        value = self.own(3)
        work = dist.all_reduce(value, async_op=True)
        work.wait()
        self.same(value, self.all(3).sum(0))
        if self.device.type == "xla":
            value = self.own(3)
            dist.all_reduce(value, dist.ReduceOp.AVG)
            self.same(value, self.all(3).mean(0))

    def check_reductions_of_bits(self) -> None:
        values = [3 * rank + 1 for rank in range(self.size)]
        for operation, combine in (
            (dist.ReduceOp.BAND, operator.and_),
            (dist.ReduceOp.BOR, operator.or_),
            (dist.ReduceOp.BXOR, operator.xor),
        ):
            value = torch.tensor([values[self.rank]], device=self.device)
            dist.all_reduce(value, operation)
            assert value.item() == functools.reduce(combine, values)

    def check_coalesced(self) -> None:
        tensors = [self.own(2), self.own(3)]
        dist.all_reduce_coalesced(tensors)
        self.same(tensors[0], self.all(2).sum(0))
        self.same(tensors[1], self.all(3).sum(0))
        tensors = [self.own(2), self.own(3)]
        with dist.distributed_c10d._coalescing_manager():
            for tensor in tensors:
                dist.all_reduce(tensor)
        self.same(tensors[1], self.all(3).sum(0))
        outputs = [[torch.zeros(2, device=self.device)] for _ in range(self.size)]
        dist.all_gather_coalesced(outputs, [self.own(2)])
        for rank, (output,) in enumerate(outputs):
            self.same(output, value_of(rank, 2))
        shapes = [(3,), (2, 2), ()]
        outputs = [[torch.zeros(s, device=self.device) for s in shapes] for _ in range(self.size)]
        dist.all_gather_coalesced(outputs, [self.own(*shape) for shape in shapes])
        for rank, each in enumerate(outputs):
            for shape, output in zip(shapes, each, strict=True):
                self.same(output, value_of(rank, *shape))
        if self.device.type == "xla":
            outputs = [torch.zeros(self.size * n, device=self.device) for n in (2, 3)]
            with dist.distributed_c10d._coalescing_manager(device=self.device):
                for output in outputs:
                    dist.all_gather_into_tensor(output, self.own(output.numel() // self.size))
            self.same(outputs[1], torch.cat(list(self.all(3))))

    def check_futures(self) -> None:
        value = self.own(3)
        work = dist.all_reduce(value, async_op=True)
        (result,) = work.get_future().wait()
        self.same(result, self.all(3).sum(0))
        assert work.wait() and work.is_completed()

    def check_gradients_of_collectives(self) -> None:
        import torch.distributed.nn.functional as functional

        value = self.own(2).requires_grad_()
        functional.all_reduce(value).backward(torch.ones(2, device=self.device))
        self.same(value.grad, torch.full((2,), float(self.size)))
        value = self.own(2).requires_grad_()
        torch.cat(functional.all_gather(value)).sum().backward()
        self.same(value.grad, torch.full((2,), float(self.size)))

    def check_broadcast_and_reduce(self) -> None:
        value = self.own(2, 2)
        dist.broadcast(value, self.size - 1)
        self.same(value, value_of(self.size - 1, 2, 2))
        value = self.own(4)
        dist.reduce(value, 0)
        if self.rank == 0:
            self.same(value, self.all(4).sum(0))

    def check_all_gather(self) -> None:
        outputs = [torch.zeros(2, 3, device=self.device) for _ in range(self.size)]
        dist.all_gather(outputs, self.own(2, 3))
        for rank, output in enumerate(outputs):
            self.same(output, value_of(rank, 2, 3))
        output = torch.zeros(2 * self.size, 3, device=self.device)
        dist.all_gather_into_tensor(output, self.own(2, 3))
        self.same(output, torch.cat(list(self.all(2, 3))))

    def check_results_of_other_sizes(self) -> None:
        # gloo passes over what has no elements.
        for rows in (0, 1, 4) if self.device.type == "xla" else (1, 4):
            outputs = [torch.zeros(3, 2, device=self.device) for _ in range(self.size)]
            with contextlib.suppress(ValueError, RuntimeError):
                dist.all_gather(outputs, torch.ones(rows, 2, device=self.device))
                raise AssertionError(f"{rows} rows went into 3")

    def check_reduce_scatter(self) -> None:
        output = torch.zeros(2, device=self.device)
        parts = list(self.own(2 * self.size).chunk(self.size))
        expected = self.all(2 * self.size).sum(0).chunk(self.size)[self.rank]
        dist.reduce_scatter(output, parts)
        self.same(output, expected)
        output.zero_()
        dist.reduce_scatter_tensor(output, self.own(2 * self.size))
        self.same(output, expected)

    def check_all_to_all(self) -> None:
        output = torch.zeros(2 * self.size, device=self.device)
        dist.all_to_all_single(output, self.own(2 * self.size))
        parts = [
            value_of(rank, 2 * self.size).chunk(self.size)[self.rank] for rank in range(self.size)
        ]
        self.same(output, torch.cat(parts))
        # Rank r sends r + 1 elements to each.
        given = self.own((self.rank + 1) * self.size)
        counts = list(range(1, self.size + 1))
        output = torch.zeros(sum(counts), device=self.device)
        dist.all_to_all_single(output, given, counts, [self.rank + 1] * self.size)
        parts = [
            value_of(rank, (rank + 1) * self.size).chunk(self.size)[self.rank]
            for rank in range(self.size)
        ]
        self.same(output, torch.cat(parts))
        if self.device.type == "xla":
            outputs = [torch.zeros(2, device=self.device) for _ in range(self.size)]
            dist.all_to_all(outputs, list(self.own(2 * self.size).chunk(self.size)))
            for rank, part in enumerate(outputs):
                self.same(part, value_of(rank, 2 * self.size).chunk(self.size)[self.rank])
        outputs = [torch.zeros(rank + 1, device=self.device) for rank in range(self.size)]
        dist.all_to_all(outputs, list(given.chunk(self.size)))
        for rank, part in enumerate(outputs):
            self.same(part, value_of(rank, (rank + 1) * self.size).chunk(self.size)[self.rank])

    def check_gather_and_scatter(self) -> None:
        outputs = [torch.zeros(2, device=self.device) for _ in range(self.size)]
        dist.gather(self.own(2), outputs if self.rank == 0 else None, dst=0)
        if self.rank == 0:
            for rank, output in enumerate(outputs):
                self.same(output, value_of(rank, 2))
        output = torch.zeros(2, device=self.device)
        parts = [value_of(rank, 2).to(self.device) for rank in range(self.size)]
        dist.scatter(output, parts if self.rank == self.size - 1 else None, src=self.size - 1)
        self.same(output, value_of(self.rank, 2))

    def check_send_and_recv(self) -> None:
        if self.rank == 0 and self.size > 1:
            dist.send(self.own(3), 1)
            value = torch.zeros(2, device=self.device)
            dist.recv(value, 1)
            self.same(value, value_of(1, 2))
        elif self.rank == 1:
            value = torch.zeros(3, device=self.device)
            dist.recv(value, 0)
            dist.send(self.own(2), 0)
            self.same(value, value_of(0, 3))

    def check_many_sends_at_once(self) -> None:
        if self.size == 1:
            return
        received = torch.zeros(2, device=self.device)
        works = dist.batch_isend_irecv(
            [
                dist.P2POp(dist.isend, self.own(2), (self.rank + 1) % self.size),
                dist.P2POp(dist.irecv, received, (self.rank - 1) % self.size),
            ]
        )
        for work in works:
            work.wait()
        self.same(received, value_of((self.rank - 1) % self.size, 2))

    def check_new_group(self) -> None:
        evens = list(range(0, self.size, 2))
        group = dist.new_group(
            evens, use_local_synchronization=False, group_desc="evens", device_id=None
        )
        if self.rank in evens:
            value = self.own(3)
            dist.all_reduce(value, group=group)
            self.same(value, self.all(3)[evens].sum(0))
            assert dist.get_world_size(group) == len(evens)
        dist.barrier()


def check_objects(rank: int, size: int) -> None:
    gathered = [None] * size
    dist.all_gather_object(gathered, {"rank": rank})
    assert gathered == [{"rank": other} for other in range(size)]
    objects = ["from 0", rank] if rank == 0 else [None, None]
    dist.broadcast_object_list(objects, src=0)
    assert objects == ["from 0", 0]
    received = [None]
    dist.scatter_object_list(
        received, [f"for {other}" for other in range(size)] if rank == 0 else None
    )
    assert received == [f"for {rank}"]
    everyone = [None] * size if rank == 0 else None
    dist.gather_object({"rank": rank}, everyone, dst=0)
    assert rank != 0 or everyone == [{"rank": other} for other in range(size)]
    if rank == 0:
        dist.send_object_list(["from 0", 5], dst=1)
    elif rank == 1:
        objects = [None, None]
        dist.recv_object_list(objects, src=0)
        assert objects == ["from 0", 5]
    # torch.distributed.monitored_barrier itself refuses every backend but gloo.
    dist.group.WORLD.monitored_barrier(dist.default_pg_timeout)


def check_mesh(size: int) -> None:
    from torch.distributed.device_mesh import init_device_mesh

    mesh = init_device_mesh("xla", (2, size // 2), mesh_dim_names=("outer", "inner"))
    rank = dist.get_rank()
    assert mesh.size() == size
    assert tuple(mesh.get_coordinate()) == divmod(rank, size // 2)
    outer = mesh["outer"]
    assert outer.get_local_rank() == mesh.get_local_rank("outer") == rank // (size // 2)
    value = torch.tensor([rank], device="xla")
    dist.all_reduce(value, group=outer.get_group())
    assert value.item() == sum(mesh.mesh[:, rank % (size // 2)].tolist())


def run(index: int, method: str) -> None:
    dist.init_process_group("xla", init_method=method)
    assert dist.get_backend() == "xla"
    assert (dist.get_rank(), dist.get_world_size()) == (xr.global_ordinal(), xr.world_size())
    for device in ("cpu", "xla"):
        checks = Checks(device)
        for name in dir(checks):
            if name.startswith("check_"):
                try:
                    getattr(checks, name)()
                except Exception as error:
                    raise AssertionError(f"{name} on {device}, rank {index}") from error
    check_objects(checks.rank, checks.size)
    check_mesh(checks.size)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    for init_method in sys.argv[1:]:
        torch_xla.launch(run, (init_method,), start_method="fork")
    print("passed")
