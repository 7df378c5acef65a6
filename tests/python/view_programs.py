"""Random programs of views, writes and syncs: every alias holds after each step what eager's does.

`tests/python/test_views.py` runs some tens, `tests/conformance/test_views.py` some thousands.
"""

import itertools
from typing import NamedTuple

import hypothesis
import hypothesis.strategies as st
import torch

import torch_xla

SHAPES = [(4, 6), (3, 4, 5), (8,), (2, 3, 2, 4), (1, 5), (), (2, 0, 3), (4, 2)]
TYPES = [torch.float32, torch.float32, torch.int64, torch.complex64, torch.bool]
STEPS = 12


class Pair(NamedTuple):
    """The same tensor in eager and on the device."""

    eager: torch.Tensor
    device: torch.Tensor


def both(function, *pairs: Pair) -> Pair | None:
    """The function's results; None where both refuse."""
    try:
        expected = function(*(pair.eager for pair in pairs))
    except (RuntimeError, IndexError, ValueError) as error:
        try:
            function(*(pair.device for pair in pairs))
        except type(error):
            return None
        raise AssertionError(f"eager refuses: {error}") from error
    return Pair(expected, function(*(pair.device for pair in pairs)))


def check(pairs: list[Pair]) -> None:
    for expected, actual in pairs:
        assert expected.shape == actual.shape
        assert expected.stride() == actual.stride()
        assert torch.equal(expected, actual.cpu()), (expected, actual)


def shows_an_element_twice(x: torch.Tensor) -> bool:
    """What a write does there depends on the order of the elements, which eager leaves open."""
    last = x.storage_offset() + sum(
        (size - 1) * stride for size, stride in zip(x.shape, x.stride(), strict=True)
    )
    if x.numel() == 0:
        return False
    places = torch.arange(last + 1).as_strided(x.shape, x.stride(), x.storage_offset())
    return places.unique().numel() < places.numel()


class Draw:
    """Draws what fits a tensor."""

    def __init__(self, data: st.DataObject) -> None:
        self.data = data

    def number(self, low: int, high: int) -> int:
        return self.data.draw(st.integers(low, high))

    def choice(self, options):
        return self.data.draw(st.sampled_from(options))

    def dim(self, x: torch.Tensor) -> int:
        return self.number(-x.dim(), x.dim() - 1) if x.dim() else 0

    def permutation(self, n: int) -> list[int]:
        return list(self.data.draw(st.permutations(range(n))))

    def view(self, x: torch.Tensor):
        """A view of a tensor like x, as a function."""
        dim = self.dim(x)
        size = x.size(dim) if x.dim() else 1
        kind = self.choice(
            "select slice narrow unfold expand chunk split unbind squeeze unsqueeze transpose permute diagonal "
            "as_strided view_as_real real bits flat flatten reshape movedim detach alias view_split".split()
        )
        match kind:
            case "select":
                index = self.number(-size - 1, size)
                return lambda v: v.select(dim, index)
            case "slice":
                start, stop, step = self.number(-3, 5), self.number(-3, 7), self.number(1, 3)
                return lambda v: torch.ops.aten.slice(v, dim, start, stop, step)
            case "narrow":
                start, length = self.number(0, size), self.number(0, size)
                return lambda v: v.narrow(dim, start, length)
            case "unfold":
                width, step = self.number(1, max(size, 1)), self.number(1, size + 1)
                return lambda v: v.unfold(dim, width, step)
            case "expand":
                times = self.number(1, 3)
                return lambda v: v.expand(times, *v.shape)
            case "chunk":
                count, which = self.number(1, 4), self.number(0, 3)
                return lambda v: (parts := v.chunk(count, dim))[which % len(parts)]
            case "split":
                part, which = self.number(1, 4), self.number(0, 3)
                return lambda v: (parts := v.split(part, dim))[which % len(parts)]
            case "unbind":
                return lambda v: v.unbind(dim)[-1]
            case "squeeze":
                return lambda v: v.squeeze(dim)
            case "unsqueeze":
                at = self.number(-x.dim() - 1, x.dim())
                return lambda v: v.unsqueeze(at)
            case "transpose":
                other = self.dim(x)
                return lambda v: v.transpose(dim, other)
            case "permute":
                order = self.permutation(x.dim())
                return lambda v: v.permute(order)
            case "movedim":
                other = self.dim(x)
                return lambda v: v.movedim(dim, other)
            case "diagonal":
                other, offset = self.dim(x), self.number(-2, 2)
                return lambda v: v.diagonal(offset, dim, other)
            case "as_strided":
                sizes = [self.number(0, 3) for _ in range(self.number(0, 3))]
                strides = [self.number(0, 3) for _ in sizes]
                offset = self.number(0, 3)
                last = offset + sum(max(s - 1, 0) * t for s, t in zip(sizes, strides, strict=True))
                bound = x.untyped_storage().nbytes() // x.element_size()
                if last >= bound:
                    return lambda v: v.as_strided((0,), (1,))
                return lambda v: v.as_strided(sizes, strides, offset)
            case "view_as_real":
                return torch.view_as_real
            case "real":
                return lambda v: v.real
            case "bits":
                to = {torch.float32: torch.int32, torch.int64: torch.float64}.get(x.dtype, x.dtype)
                return lambda v: v.view(to)
            case "flat":
                return lambda v: v.view(-1)
            case "flatten":
                return lambda v: v.flatten(0, 1)
            case "reshape":
                return lambda v: v.reshape(-1)
            case "alias":
                return torch.ops.aten.alias
            case "view_split":
                return lambda v: v.view(2, -1)
            case _:
                return lambda v: v.detach()

    def write(self, x: torch.Tensor):
        """A write into a tensor like x, as a function of it."""
        dim = self.dim(x)
        size = x.size(dim) if x.dim() else 1
        number = self.number(0, 4)
        # In bounds: out of bounds is undefined on an accelerator, which does not wait to see.
        indices = torch.tensor([self.number(0, size - 1)] if size else [])
        kind = self.choice(
            "add_ mul_ fill_ zero_ copy_ put index_fill_ masked_fill_ setitem data set_ clamp_ where".split()
        )
        match kind:
            case "add_":
                return lambda v: v.add_(number)
            case "mul_":
                return lambda v: v.mul_(number)
            case "fill_":
                return lambda v: v.fill_(number)
            case "zero_":
                return lambda v: v.zero_()
            case "clamp_":
                return lambda v: v.clamp_(max=number)
            case "copy_":
                values = torch.arange(x.numel()).reshape(x.shape) % 5
                return lambda v: v.copy_(values)
            case "put":
                rows = torch.tensor([self.number(0, len(x) - 1)] if x.dim() and len(x) else [0])
                return lambda v: v.index_put_((rows.to(v.device),), v.new_full((), number))
            case "index_fill_":
                return lambda v: v.index_fill_(dim, indices.long().to(v.device), number)
            case "masked_fill_":
                mask = (torch.arange(x.numel()) % 3 == 0).reshape(x.shape)
                return lambda v: v.masked_fill_(mask.to(v.device), number)
            case "setitem":
                return lambda v: v.__setitem__(slice(0, 1), number) or v
            case "where":
                return lambda v: v.copy_(torch.where(v == number, v.new_zeros(()), v))
            case _:
                return None


def rebind(draw: Draw, pair: Pair) -> Pair | None:
    """The tensor becomes another one, and its views stay with the old one."""
    shape = draw.choice(SHAPES)
    if draw.choice([True, False]):

        def assign(v):
            v.data = torch.ones(shape, dtype=v.dtype, device=v.device)
            return v

        return both(assign, pair)
    return both(lambda v: v.set_(torch.ones(shape, dtype=v.dtype, device=v.device)), pair)


def _run(data: st.DataObject) -> None:
    draw = Draw(data)
    dtype = draw.choice(TYPES)
    shape = draw.choice(SHAPES)
    base = (torch.arange(torch.Size(shape).numel()) % 7).reshape(shape).to(dtype)
    pairs = [Pair(base.clone(), base.to("xla"))]
    for _ in range(draw.number(2, STEPS)):
        pair = draw.choice(pairs)
        action = draw.choice(["view", "view", "view", "write", "write", "copy", "rebind", "sync"])
        if action == "view":
            made = both(draw.view(pair.eager), pair)
            if made is not None:
                pairs.append(made)
        elif action == "write":
            write = draw.write(pair.eager)
            if write is not None and not shows_an_element_twice(pair.eager):
                both(write, pair)
        elif action == "copy" and not shows_an_element_twice(pair.eager):
            # Of a copy: eager leaves open what a copy between overlapping parts of one memory does.
            both(lambda v, w: v.copy_(w.clone()), pair, draw.choice(pairs))
        elif action == "rebind":
            rebind(draw, pair)
        elif action == "sync":
            torch_xla.sync()
        check(pairs)


def run_programs(count: int) -> None:
    """So many; one that fails is shrunk to its smallest form."""
    seen = itertools.count()

    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(st.data())
    def programs(data):
        next(seen)
        _run(data)

    programs()
    assert next(seen) >= count
