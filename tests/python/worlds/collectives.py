"""Every collective operation, between as many processes as there are devices."""

import itertools
import sys

import torch

import torch_xla
from torch_xla import runtime as xr
from torch_xla.core import functions
from torch_xla.core import xla_model as xm

TYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int16,
    torch.int8,
    torch.uint8,
    torch.uint16,
    torch.uint32,
    torch.uint64,
]
REDUCTIONS = {
    xm.REDUCE_SUM: lambda values: values.sum(0),
    xm.REDUCE_MUL: lambda values: values.prod(0),
    xm.REDUCE_MIN: lambda values: values.amin(0),
    xm.REDUCE_MAX: lambda values: values.amax(0),
}


def of(rank: int, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """What the process of this rank contributes."""
    generator = torch.Generator().manual_seed(rank)
    return torch.randint(0, 5, shape, generator=generator).to(dtype)


def same(actual: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(actual.cpu(), expected)


class Checks:
    def __init__(self) -> None:
        self.rank, self.size = xr.global_ordinal(), xr.world_size()
        self.device = torch_xla.device()

    def own(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return of(self.rank, *shape, dtype=dtype).to(self.device)

    def all(self, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        return torch.stack([of(rank, *shape, dtype=dtype) for rank in range(self.size)])

    def groups(self) -> list[list[int]]:
        """Even and odd ranks."""
        found = [list(range(first, self.size, 2)) for first in (0, 1)]
        return [group for group in found if group]

    def check_all_reduce(self) -> None:
        for (reduction, expected), dtype in itertools.product(REDUCTIONS.items(), TYPES):
            every = self.all(3, 5)
            same(xm.all_reduce(reduction, self.own(3, 5, dtype=dtype)), expected(every).to(dtype))
        for dtype in (torch.complex64, torch.complex128):
            turn = torch.tensor([1 + 2j, 3, -1j, 2 - 1j, 1], dtype=dtype)
            every = self.all(3, 5, dtype=dtype) * turn
            own = self.own(3, 5, dtype=dtype) * turn.to(self.device)
            same(xm.all_reduce(xm.REDUCE_SUM, own), every.sum(0))
            same(xm.all_reduce(xm.REDUCE_MUL, own), every.prod(0))

    def check_all_reduce_of_bits(self) -> None:
        every = self.all(40, dtype=torch.int32)
        both, either = every[0], every[0]
        for value in every[1:]:
            both, either = both & value, either | value
        same(xm.all_reduce(xm.REDUCE_AND, self.own(40, dtype=torch.int32)), both)
        same(xm.all_reduce(xm.REDUCE_OR, self.own(40, dtype=torch.int32)), either)
        truth = self.all(40) > 2
        same(xm.all_reduce(xm.REDUCE_AND, self.own(40) > 2), truth.all(0))
        same(xm.all_reduce(xm.REDUCE_OR, self.own(40) > 2), truth.any(0))

    def check_all_reduce_in_place(self) -> None:
        tensors = [self.own(4), self.own(2, 3, dtype=torch.int64), self.own(7)]
        alias = tensors[0][1:]
        assert xm.all_reduce(xm.REDUCE_SUM, tensors, scale=0.5) is None
        same(tensors[0], self.all(4).sum(0) * 0.5)
        same(alias, self.all(4).sum(0)[1:] * 0.5)
        same(tensors[1], (self.all(2, 3).sum(0) * 0.5).long())
        same(tensors[2], self.all(7).sum(0) * 0.5)

    def check_groups(self) -> None:
        group = next(group for group in self.groups() if self.rank in group)
        expected = self.all(6)[group].sum(0)
        same(xm.all_reduce(xm.REDUCE_SUM, self.own(6), groups=self.groups()), expected)
        same(
            xm.all_gather(self.own(6), groups=self.groups()),
            torch.cat([of(rank, 6) for rank in group]),
        )

    def check_all_gather(self) -> None:
        for dtype in [*TYPES, torch.bool, torch.complex64]:
            every = self.all(2, 3, dtype=dtype)
            same(xm.all_gather(self.own(2, 3, dtype=dtype)), torch.cat(list(every)))
            same(xm.all_gather(self.own(2, 3, dtype=dtype), dim=-1), torch.cat(list(every), -1))
        output = torch.zeros(self.size * 4, device=self.device)
        assert xm.all_gather(self.own(4), output=output) is output
        same(output, torch.cat(list(self.all(4))))
        first, second = xm.all_gather([self.own(2), self.own(3)])
        same(first, torch.cat(list(self.all(2))))
        same(second, torch.cat(list(self.all(3))))

    def check_all_gather_of_many(self) -> None:
        # Of several types, sizes and numbers of dimensions; the last two are without elements, and numbers.
        kinds = [(dtype, shape) for dtype in [*TYPES, torch.bool] for shape in ((2, 3), (5,))]
        kinds += [(torch.float32, (0, 2)), (torch.float32, ())]
        for dim in (0, -1):
            own = [self.own(*shape, dtype=dtype) for dtype, shape in kinds]
            for gather in (xm.all_gather, xm.all_gather_bucketized):
                gathered = gather(own, dim=dim)
                for (dtype, shape), result in zip(kinds, gathered, strict=True):
                    every = self.all(*shape, dtype=dtype)
                    same(result, torch.cat(list(every), dim) if shape else every)
        pair = xm.all_gather([self.own(6), self.own(1)], groups=self.groups())
        group = next(group for group in self.groups() if self.rank in group)
        for result, size in zip(pair, (6, 1), strict=True):
            same(result, torch.cat([of(rank, size) for rank in group]))

    def check_reduce_scatter(self) -> None:
        expected = self.all(3, 2 * self.size).sum(0).chunk(self.size, 1)[self.rank]
        value = self.own(3, 2 * self.size)
        same(xm.reduce_scatter(xm.REDUCE_SUM, value, 1.0, 1, self.size), expected)
        output = torch.zeros(3, 2, device=self.device)
        xm.reduce_scatter(xm.REDUCE_SUM, value, 0.5, 1, self.size, output=output)
        same(output, expected * 0.5)
        results = xm.reduce_scatter(xm.REDUCE_MAX, [value, value + 1], 1.0, 1, self.size)
        most = self.all(3, 2 * self.size).amax(0).chunk(self.size, 1)[self.rank]
        same(results[0], most)
        same(results[1], most + 1)

    def check_all_to_all(self) -> None:
        value = self.own(2 * self.size, 3)
        received = xm.all_to_all(value, 0, 1, self.size)
        parts = [
            of(rank, 2 * self.size, 3).chunk(self.size)[self.rank] for rank in range(self.size)
        ]
        same(received, torch.cat(parts, 1))

    def check_collective_permute(self) -> None:
        ring = [[rank, (rank + 1) % self.size] for rank in range(self.size)]
        same(xm.collective_permute(self.own(5), ring), of((self.rank - 1) % self.size, 5))
        only = xm.collective_permute(self.own(5), [[0, self.size - 1]])
        same(only, of(0, 5) if self.rank == self.size - 1 else torch.zeros(5))

    def check_collective_broadcast(self) -> None:
        tensors = [self.own(4), self.own(9, dtype=torch.uint8)]
        root = self.size - 1
        xm.collective_broadcast(tensors, root_ordinal=root)
        same(tensors[0], of(root, 4))
        same(tensors[1], of(root, 9, dtype=torch.uint8))
        module = torch.nn.BatchNorm1d(3).to(self.device)
        with torch.no_grad():
            module.weight.fill_(self.rank + 2)
        xm.broadcast_master_param(module)
        same(module.weight.detach(), torch.full((3,), 2.0))

    def check_send_and_recv(self) -> None:
        if self.size == 1:
            return
        if self.rank == 0:
            xm.send(self.own(3), self.size - 1)
        if self.rank == self.size - 1:
            output = torch.zeros(3, device=self.device)
            same(xm.recv(output, self.size - 1), of(0, 3))

    def check_results_that_nobody_reads(self) -> None:
        reduced = xm.all_reduce(xm.REDUCE_SUM, self.own(3))
        if self.rank == 0:
            same(reduced, self.all(3).sum(0))
        del reduced
        torch_xla.sync()
        same(xm.all_reduce(xm.REDUCE_SUM, self.own(2)), self.all(2).sum(0))

    def check_processes_that_sync_at_other_places(self) -> None:
        a = xm.all_reduce(xm.REDUCE_SUM, self.own(3))
        if self.rank == 0:
            torch_xla.sync()
        b = xm.all_reduce(xm.REDUCE_MAX, a + self.rank)
        same(b, self.all(3).sum(0) + self.size - 1)

    def check_gradients(self) -> None:
        value = self.own(4).requires_grad_()
        functions.all_reduce(xm.REDUCE_SUM, value * 2, scale=0.5).backward(self.own(4))
        same(value.grad, self.all(4).sum(0))
        value = self.own(2, 3).requires_grad_()
        gathered = functions.all_gather(value, dim=1)
        weight = of(100, 2, 3 * self.size)
        (gathered * weight.to(self.device)).sum().backward()
        same(value.grad, weight.chunk(self.size, 1)[self.rank] * self.size)

    def check_gradients_of_other_reductions(self) -> None:
        weight = of(200, self.size, 4) + 1
        for reduction, combine in (
            (xm.REDUCE_MIN, lambda every: every.amin(0)),
            (xm.REDUCE_MAX, lambda every: every.amax(0)),
            (xm.REDUCE_MUL, lambda every: every.prod(0)),
        ):
            # No two processes hold the same extreme value; some hold zeros.
            every = torch.stack([of(rank, 4) * self.size + rank for rank in range(self.size)])
            value = every[self.rank].to(self.device).requires_grad_()
            reduced = functions.all_reduce(reduction, value, scale=0.5)
            (reduced * weight[self.rank].to(self.device)).sum().backward()
            every.requires_grad_()
            (combine(every) * 0.5 * weight.sum(0)).sum().backward()
            same(value.grad, every.grad[self.rank])

    def check_products_with_a_matrix_in_parts(self) -> None:
        columns, width = 3, 4
        matrix = torch.cat([of(rank, 5, columns) for rank in range(self.size)], 1).requires_grad_()
        operands = [
            of(50 + rank, columns * self.size, width).requires_grad_() for rank in range(self.size)
        ]
        weights = [of(90 + rank, 5, width) for rank in range(self.size)]
        sum((matrix @ x * w).sum() for x, w in zip(operands, weights, strict=True)).backward()
        for split in (1, 2):
            own = of(self.rank, 5, columns).to(self.device).requires_grad_()
            operand = operands[self.rank].detach().to(self.device).requires_grad_()
            product = functions.distributed_mm(own, operand, split)
            same(product.detach(), (matrix @ operands[self.rank]).detach())
            (product * weights[self.rank].to(self.device)).sum().backward()
            same(own.grad, matrix.grad.chunk(self.size, 1)[self.rank])
            same(operand.grad, operands[self.rank].grad)

    def check_reduced_gradients(self) -> None:
        parameters = [
            torch.zeros(size, device=self.device, requires_grad=True) for size in (3, 400)
        ]
        unused = torch.zeros(2, device=self.device, requires_grad=True)
        for parameter in parameters:
            parameter.grad = self.own(len(parameter))
        optimizer = torch.optim.SGD([*parameters, unused], lr=1.0)
        xm.optimizer_step(optimizer, barrier=True)
        for parameter in parameters:
            mean = self.all(len(parameter)).sum(0) * (1.0 / self.size)
            same(parameter.grad, mean)
            same(parameter.detach(), -mean)
        gradients = [self.own(300), self.own(5)]
        xm.all_reduce_bucketized_gradients(gradients, scale=1.0, bucket_cap_mb=0.0005)
        same(gradients[0], self.all(300).sum(0))
        same(gradients[1], self.all(5).sum(0))

    def check_batch_normalization(self) -> None:
        generator = torch.Generator().manual_seed(7)
        whole = torch.randn(4 * self.size, 3, 2, 2, generator=generator)
        target = torch.randn(whole.shape, generator=generator)
        reference = torch.nn.BatchNorm2d(3)
        part = slice(4 * self.rank, 4 * self.rank + 4)
        expected_input = whole.clone().requires_grad_()
        expected = reference(expected_input)
        (expected * target).sum().backward()

        module = functions.SyncBatchNorm(3).to(self.device)
        value = whole[part].to(self.device).requires_grad_()
        output = module(value)
        (output * target[part].to(self.device)).sum().backward()
        torch.testing.assert_close(output.cpu(), expected[part].detach(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(
            value.grad.cpu(), expected_input.grad[part], rtol=1e-4, atol=1e-5
        )
        torch.testing.assert_close(module.running_var.cpu(), reference.running_var)
        torch.testing.assert_close(module.running_mean.cpu(), reference.running_mean)
        xm.all_reduce(xm.REDUCE_SUM, [module.weight.grad])
        torch.testing.assert_close(
            module.weight.grad.cpu(), reference.weight.grad, rtol=1e-4, atol=1e-4
        )

    def check_host_exchange(self) -> None:
        total = xm.mesh_reduce("mean", self.own(3), lambda values: torch.stack(values).sum(0))
        assert torch.equal(total, self.all(3).sum(0))

    def check_steps_compile_once(self) -> None:
        value = self.own(3)
        for step in range(4):
            if step == 2:
                before = torch_xla._XLAC._xla_counter_value("ProgramCompile")
            value = xm.all_reduce(xm.REDUCE_MAX, value + step)
            torch_xla.sync()
        assert torch_xla._XLAC._xla_counter_value("ProgramCompile") == before

    def check_wrong_arguments(self) -> None:
        of_several = (
            lambda: xm.reduce_scatter(xm.REDUCE_SUM, self.own(self.size + 1), 1.0, 0, self.size),
            lambda: xm.all_to_all(self.own(self.size + 1), 0, 0, self.size),
            lambda: xm.rendezvous("here", b"", [(self.rank + 1) % self.size]),
        )
        if self.size > 2:
            uneven = [[0], list(range(1, self.size))]
            count = 1 if self.rank == 0 else self.size - 1
            of_several += (
                lambda: xm.all_gather(self.own(12), groups=uneven),
                lambda: xm.reduce_scatter("sum", self.own(12), 1.0, 0, count, groups=uneven),
                lambda: xm.all_to_all(self.own(12), 0, 0, count, groups=uneven),
            )
        for call in (
            lambda: xm.all_reduce("mean", self.own(1)),
            lambda: xm.all_reduce(xm.REDUCE_SUM, self.own(1), groups=[[self.size]]),
            lambda: xm.reduce_scatter(xm.REDUCE_SUM, self.own(1), 1.0, 0, self.size + 1),
            lambda: xm.rendezvous("here", b"", [self.rank, self.size]),
            lambda: xm.collective_permute(self.own(1), [[0, 0], [0, 0]]),
            lambda: functions.distributed_mm(self.own(2, 2), self.own(3, 2)),
            *(of_several if self.size > 1 else ()),
        ):
            try:
                call()
            except ValueError:
                continue
            raise AssertionError("no ValueError")


def run(index: int) -> None:
    checks = Checks()
    for name in dir(checks):
        if name.startswith("check_"):
            try:
                getattr(checks, name)()
            except Exception as error:
                raise AssertionError(f"{name} on rank {index}") from error
    xm.rendezvous("end")


if __name__ == "__main__":
    torch_xla.launch(run, start_method=sys.argv[1])
    print("passed")
