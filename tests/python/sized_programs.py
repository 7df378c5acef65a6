"""Random programs whose sizes vary: each runs with many sizes, and must give what eager, or exact compilation, gives.

    python tests/python/sized_programs.py --steps 100000                    against eager
    python tests/python/sized_programs.py --steps 3000 --peer exact         against programs in which each size is a constant
    python tests/python/sized_programs.py --steps 20000 --processes 2       a world, whose ranks have sizes of their own, too

A program is a list of lines, made by running them in eager with a few sizes that have nothing in common. Then each step
runs it with other sizes: nothing, one, primes, multiples of vectors, equal ones that are equal by chance alone. From the
second step on the loops of the device read sizes from slots, so what is compared is whether a decision that was made for
one size is used for another. `make test-sizes` runs all three.
"""

import argparse
import contextlib
import dataclasses
import itertools
import os
import pickle
import random
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from typing import TextIO

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

SIZES = (
    [0, 1, 2, 3, 5, 7, 8, 13, 16, 17],
    [0, 1, 4, 15, 31, 32, 33, 64, 67, 97],
    [1, 128, 257, 600],
)
NAMES = "nmkr"  # the last is each rank's own
# No two sizes that come of these are equal by chance. The last two are the second again, as other ranks have it: one is the
# least of all, one the largest, so that what takes the smaller of two sizes shows that it differs.
PROBES = [(6, 10, 15, 21), (7, 11, 13, 23), (8, 14, 18, 27), (7, 11, 13, 3), (7, 11, 13, 97)]
MOST_ELEMENTS = 1 << 18
STEPS_OF_A_PROGRAM = 25
TOLERANCE = 1e-3

PREAMBLE = """\
import torch
import torch.nn.functional as F

def numbers(start, *sizes):
    return (torch.arange(torch.Size(sizes).numel()) * (2 * start + 3) + start + 5 * rank).reshape(sizes) % 23

def made(start, *sizes):
    return ((numbers(start, *sizes) - 11) / 12).to(device).requires_grad_(gradients)

def whole(start, *sizes):
    return numbers(start, *sizes).to(device)

def step(carry, row):
    carry = carry * 0.5 + row
    return carry, carry.sin()

def scanned(x):
    carry = torch.zeros_like(x[0])
    if device == "xla":
        from torch_xla.experimental.scan import scan
        return scan(step, carry, x)[1]
    made = []
    for row in x:
        carry, result = step(carry, row)
        made.append(result)
    return torch.stack(made)

def halves(x):
    return torch.tensor([0, len(x) // 2, len(x)], device=device)

def targets(x, i):
    return i[: 2 * (x.size(-1) > 1)] % max(x.size(-1) - 1, 1) + 1
"""
LEAVES = """
made(1, n, m); made(2, m, k); made(3, k); made(4, n); made(5, 2, n, 4); made(6, k, n); made(7, r, m); made(8, m, 4); made(9, n, m, 3)
"""
# What differs little where its operands do: each may be part of a program with gradients.
SMOOTH = """
torch.tanh({x}); {x}.sin(); {x} * 0.5 + 0.25; F.gelu({x}); torch.exp(-{x}.square()); {x}.double().sigmoid().float();
{x} * {x}.size({d}) / ({x}.size({d}) + 1); {x}.softmax({d}); {x}.log_softmax({d}) * 0.1; F.normalize({x} + 2, dim={d});
{x}.cumsum({d}) / max({x}.size({d}), 1); {x}.sum({d}) / max({x}.size({d}), 1); {x}.mean({d}, keepdim=True);
{x}.sum() / max({x}.numel(), 1); {x}.square().mean({d}); {x}.logsumexp({d}) * 0.1; {x}.tanh().cumprod({d});
F.layer_norm({x}, {x}.shape[-1:]); {x}.var({d}, correction=0); {x}.flip({d}); {x}.roll(1, {d}); {x}.roll({x}.size({d}) // 2, {d});
{x}.narrow({d}, 0, {x}.size({d}) // 2); {x}.narrow({d}, {x}.size({d}) // 3, {x}.size({d}) - {x}.size({d}) // 3);
{x}[..., ::2]; {x}[1:]; {x}[..., :-1]; {x}[1::3]; {x}.select({d}, 0); {x}.select({d}, -1); {x}.diff(dim={d});
torch.cat([{x}, {x} * 2], {d}); torch.stack([{x}, -{x}], {d}); {x}.unsqueeze({d}); {x}.repeat_interleave(2, {d});
{x}.transpose(0, {d}); {x}.mT.contiguous(); {x}.flatten(); {x}.flatten(0, 1); {x}.reshape({x}.shape[::-1]); {x}.mT.flatten();
{x}.tril(1); {x}.triu(-1); {x}.diagonal(dim1=-2, dim2=-1); {x}.expand(3, *{x}.shape); {x}.repeat(2, *[1] * {x}.dim());
F.pad({x}, (1, 2)); F.pad({x}, (0, {x}.size(-1)), value=0.5); F.pad({x}, (2, 0, 0, 1));
{x} * torch.arange({x}.size(-1), device=device) / ({x}.size(-1) + 1);
{x} + torch.linspace(0, 1, {x}.size(-1), device=device);
F.avg_pool1d({x}, 3, 2, 1); F.conv1d({x}.unsqueeze(-2), torch.full((2, 1, 3), 0.3, device=device), padding=1);
scanned({x}); torch.segment_reduce({x}, "sum", offsets=halves({x})) / max(len({x}), 1); F.adaptive_avg_pool1d({x}, 3);
F.ctc_loss({x}.log_softmax(-1), targets({x}, {i}), (len({x}),), (len(targets({x}, {i})),), zero_infinity=True) * 0.1; {x}.half().float() * 0.5;
F.scaled_dot_product_attention({x}, {x}, {x}); F.scaled_dot_product_attention({x}, {x}, {x}, is_causal=True);
{x} @ {x}.mT / max({x}.size(-1), 1); {x} * {y}; {x} - {y}; torch.lerp({x}, {y}, 0.3); {x} + {y}.unsqueeze(-1);
{x}.flatten()[:, None] * {y}.flatten(); torch.cat([{x}, {y}], {d}); torch.cat([{x}, {y}, {x}], {d}); {x} @ {y} / max({x}.size(-1), 1);
F.linear({x}, {y}) / max({x}.size(-1), 1); torch.einsum("ij,kj->ik", {x}, {y}).tanh(); {x}.expand_as({y}); {x}.unsqueeze(-1).expand(*{x}.shape, {y}.size(0));
{x}.index_select({d}, {i} % max({x}.size({d}), 1)); {x}[{i} % max(len({x}), 1)]; F.embedding({i} % max(len({x}), 1), {x});
torch.zeros_like({x}).index_add({d}, {i} % max({x}.size({d}), 1), {x}) / 8; {x}.index_add(0, {i} % max(len({x}), 1), {y}) / 4;
F.cross_entropy({x}, {i} % max({x}.size(-1), 1)); F.one_hot({i} % 5, 5).float(); {x}.masked_fill(({i} % 2 == 0).unsqueeze(-1), 0.1);
torch.where({i} % 3 == 0, {x}, 1 - {x}); {x}[{i} % 3 == 0]; ({i} % 7).bincount(minlength=7).float() / 9; {x}[({i} % 4 == 1)[: len({x})].nonzero().squeeze(-1)]
"""
# What leaps in its gradient where elements meet.
ROUGH = """
{x}.relu(); {x}.abs(); {x}.clamp(-0.3, 0.4); {x}.amax({d}); {x}.amin({d}, keepdim=True) + {x}; {x}.sort({d}).values; {x}.cummax({d}).values;
F.max_pool1d({x}, 3, 2, 1); {x}.topk(2, {d}).values; torch.maximum({x}, {y}); {x}.median({d}).values; torch.cdist({x}, {y}) / 4;
torch.igamma({x}.abs() + 0.5, {y}.abs()); torch.special.zeta({x}.abs() + 1.5, {y}.abs() + 0.5) / 9; torch.polygamma(1, {x}.abs() + 0.5) / 9;
torch.segment_reduce({x}, "max", offsets=halves({x}), initial=-9.0); F.adaptive_max_pool1d({x}, 3); F.max_pool1d({x}, 5, 1, 2)
"""
WRITES = """
{v}[1:] *= 0.5; {v}[..., ::2] -= 0.25; {v}[{i} % max(len({v}), 1)] = 0.75; {v}.narrow({d}, 0, {v}.size({d}) // 2).tanh_();
{v}.select({d}, -1).fill_(0.3); {v}.mT.mul_(0.5); {v}.copy_({y}); {v}.diagonal(dim1=0, dim2=-1).add_(0.1)
"""


def templates(text: str) -> list[str]:
    return [line.strip() for line in text.split(";") if line.strip()]


Outcome = list[torch.Tensor] | str  # or the error's type


class Run:
    """The variables of a program with some sizes on one device."""

    def __init__(self, device: str, gradients: bool, sizes: tuple[int, ...], rank: int = 0) -> None:
        self.names: dict = {"device": device, "gradients": gradients, "rank": rank}
        self.names |= dict(zip(NAMES, sizes, strict=True))
        exec(PREAMBLE, self.names)

    def line(self, line: str) -> None:
        exec(line, self.names)

    def floats(self) -> dict[str, torch.Tensor]:
        return {k: v for k, v in self.names.items() if k[0] == "v" and k[1:].isdigit()}

    def results(self, kept: list[str]) -> list[torch.Tensor]:
        """These values; nothing needs the others any more."""
        found = [self.names[name].detach() for name in kept]
        self.names.clear()
        return found

    def gradients(self) -> list[torch.Tensor]:
        """Of the last value, with respect to the leaves that it depends on."""
        last = list(self.floats().values())[-1]
        leaves = [v for v in self.floats().values() if v.is_leaf and v.requires_grad]
        if not last.requires_grad or not leaves:
            return []
        found = torch.autograd.grad(last.sin().sum(), leaves, allow_unused=True)
        return [x for x in found if x is not None]


@dataclasses.dataclass
class Program:
    lines: list[str]
    gradients: bool
    kept: list[str]  # the variables that are compared
    own: set[str]  # those whose sizes differ from rank to rank

    def outcome(self, device: str, sizes: tuple[int, ...], rank: int = 0) -> Outcome:
        """What it gives, or the type of the error."""
        try:
            run = Run(device, self.gradients, sizes, rank)
            for line in self.lines:
                run.line(line)
            gradients = run.gradients() if self.gradients else []
            return [x.cpu() for x in [*run.results(self.kept), *gradients]]
        except (RuntimeError, IndexError, ValueError) as error:
            return type(error).__name__

    def __str__(self) -> str:
        return "\n".join(self.lines)


def generate(number: int, may_select: bool = True) -> Program:
    """A program of about a dozen lines; `may_select`: with counts that the data decides."""
    rng = random.Random(number)
    gradients = rng.random() < 0.4
    runs = [Run("cpu", gradients, sizes, i // 3) for i, sizes in enumerate(PROBES)]
    lines: list[str] = []

    def add(line: str) -> bool:
        before = [dict(run.names) for run in runs]
        try:
            for run in runs:
                run.line(line)
                last = list(run.floats().values())[-1]
                if last.numel() > 20_000 or last.dim() > 4 or not last.abs().lt(100).all():
                    raise ValueError
        except (RuntimeError, IndexError, ValueError, TypeError):
            for run, names in zip(runs, before, strict=True):
                run.names = names
            return False
        lines.append(line)
        return True

    for leaf in rng.sample(templates(LEAVES), rng.randint(1, 3)):
        add(f"v{len(lines)} = {leaf}")
    add(f"i0 = whole(2, {rng.choice('nmk')})")
    kinds = templates(SMOOTH) + ([] if gradients else 2 * templates(ROUGH))
    if not may_select:
        kinds = [kind for kind in kinds if "== 0]" not in kind and "nonzero" not in kind]
    length = len(lines) + rng.randint(3, 12)
    for _ in range(40 * length):
        if len(lines) == length:
            break
        values = list(runs[0].floats())
        x, y = (rng.choice(values[-3:] if rng.random() < 0.6 else values) for _ in "xy")
        name = f"v{len(lines)}"
        parts = {"x": x, "y": y, "i": "i0", "v": name}
        parts["d"] = rng.randrange(max(runs[0].names[x].dim(), 1))
        if not gradients and rng.random() < 0.15:
            write = rng.choice(templates(WRITES)).format(**parts)
            add(f"{name} = {x}.clone(); {write}")
        else:
            add(f"{name} = {rng.choice(kinds).format(**parts)}")
    first, *others = (runs[i].floats() for i in (1, 3, 4))
    kept = [name for name in first if rng.random() < 0.4 or name == list(first)[-1]]
    own = {name for name in first if any(first[name].shape != x[name].shape for x in others)}
    return Program(lines, gradients, kept, own)


def assignments(number: int, program: Program, ranks: int = 1) -> Iterator[list[tuple[int, ...]]]:
    """For each step the sizes on each rank, of which all but the last are the same; none are too large for eager."""
    rng = random.Random(f"sizes of {number}")
    while True:
        pool = rng.choices(SIZES, [6, 5, 1])[0]
        shared = [rng.choice(pool) for _ in NAMES[:-1]]
        if rng.random() < 0.3:  # equal by chance
            at, other = rng.sample(range(3), 2)
            shared[at] = shared[other]
        chosen = [(*shared, rng.choice(pool)) for _ in range(ranks)]
        if all(is_small(program, sizes) for sizes in chosen):
            yield chosen


class Progress:
    """How many steps are done, told to a person: by a bar on a terminal, else by a line every half minute."""

    WIDTH = 30

    def __init__(self, steps: int, stream: TextIO = sys.stderr) -> None:
        self.steps, self.stream = steps, stream
        self.is_bar = stream.isatty()
        self.period = 0.2 if self.is_bar else 30.0
        self.start = self.told = time.monotonic()

    def tell(self, done: int, wrong: int = 0) -> None:
        """Nothing, where the last time was not long ago."""
        now = time.monotonic()
        if done < self.steps and now - self.told < self.period:
            return
        self.told = now
        left = (now - self.start) / max(done, 1) * (self.steps - done)
        text = f"{done} of {self.steps} steps, {wrong} differ, {left:.0f} s left"
        if self.is_bar:
            filled = self.WIDTH * done // self.steps
            bar = "#" * filled + "." * (self.WIDTH - filled)
            text = f"\r\033[K[{bar}] {text}"
        print(
            text,
            end="" if self.is_bar and done < self.steps else "\n",
            file=self.stream,
            flush=True,
        )


class TooLarge(BaseException):
    """Not to be taken for an error of the program's."""


class SizesFirst(TorchDispatchMode):
    """Operators whose results have more than MOST_ELEMENTS raise TooLarge instead of taking the memory."""

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        in_sizes = tree_map_only(torch.Tensor, with_sizes_alone, (args, kwargs))
        if any(argument.name == "device" for argument in operator._schema.arguments):
            in_sizes[1]["device"] = "meta"
        try:
            sizes = operator(*in_sizes[0], **in_sizes[1])
        except Exception:  # it has none without values, or is an error: eager says so
            sizes = None
        if any(
            x.numel() > MOST_ELEMENTS for x in tree_leaves(sizes) if isinstance(x, torch.Tensor)
        ):
            raise TooLarge
        return operator(*args, **kwargs)


def with_sizes_alone(tensor):
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def is_small(program: Program, sizes: tuple[int, ...]) -> bool:
    """By eager's shapes alone; an error is small."""
    try:
        with (
            contextlib.suppress(RuntimeError, IndexError, ValueError),
            torch.no_grad(),
            SizesFirst(),
        ):
            run = Run("cpu", False, sizes)
            for line in program.lines:
                run.line(line)
    except TooLarge:
        return False
    return True


def difference(actual: Outcome, expected: Outcome) -> str | None:
    """How they differ, or None."""
    if isinstance(actual, str) or isinstance(expected, str):
        kinds = [x if isinstance(x, str) else "values" for x in (actual, expected)]
        return None if kinds[0] == kinds[1] else f"{kinds[0]}, not {kinds[1]}"
    for i, (a, e) in enumerate(itertools.zip_longest(actual, expected)):
        if a is None or e is None or a.shape != e.shape or a.dtype != e.dtype:
            return f"result {i}: {a if a is None else a.shape}, not {e if e is None else e.shape}"
        finite = e[e.isfinite()].abs()
        allowed = TOLERANCE * max(1.0, finite.max().item() if len(finite) else 0.0)
        wrong = ~torch.isclose(a, e, rtol=0, atol=allowed, equal_nan=True)
        if wrong.any():
            found, right = a[wrong][:4].tolist(), e[wrong][:4].tolist()
            return f"result {i} of {tuple(a.shape)}: {found}, not {right}"
    return None


def steps(first: int, count: int) -> Iterator[tuple[int, Program, tuple[int, ...]]]:
    for step in range(count):
        if step % STEPS_OF_A_PROGRAM == 0:
            number = first + step // STEPS_OF_A_PROGRAM
            program = generate(number)
            sizes = assignments(number, program)
        yield number, program, next(sizes)[0]


def outcomes_of_device(first: int, count: int) -> None:
    """The other side of `exactly`: writes each step's outcome."""
    for _, program, sizes in steps(first, count):
        pickle.dump(program.outcome("xla", sizes), sys.stdout.buffer)
        sys.stdout.buffer.flush()


@contextlib.contextmanager
def exactly(first: int, count: int) -> Iterator[Iterator[Outcome]]:
    """The outcomes of steps in a process whose programs have every size as a constant."""
    numbers = ["--first", str(first), "--steps", str(count)]
    command = [sys.executable, __file__, *numbers, "--peer", "write"]
    environment = {**os.environ, "TORCH_XLA_DYNAMIC": "exact"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        yield (pickle.load(process.stdout) for _ in range(count))


def compare(first: int, count: int, peer: str) -> int:
    """On one device; how many steps differ."""
    import torch_xla  # noqa: F401

    wrong = 0
    progress = Progress(count)
    with exactly(first, count) if peer == "exact" else contextlib.nullcontext() as exact:
        for done, (number, program, sizes) in enumerate(steps(first, count), 1):
            expected = next(exact) if exact else program.outcome("cpu", sizes)
            if found := difference(program.outcome("xla", sizes), expected):
                wrong += 1
                print(f"program {number} with sizes {sizes}: {found}\n{program}", flush=True)
            progress.tell(done, wrong)
    return wrong


def updated(total: torch.Tensor, reduce) -> list[torch.Tensor]:
    """Sums over all ranks that are updated in place, summed again, and updated again."""
    work = total.clone()
    if work.dim() > 0:
        work[1:] *= 0.5
    again = reduce(work)
    if work.dim() > 0:
        again[..., ::2] -= 0.25
    return [work, again]


def rank_of_a_world(_: int, first: int, count: int) -> None:
    """Compares on each rank: its own values, and their sums over all."""
    import torch_xla.core.xla_model as xm
    import torch_xla.runtime as xr

    rank, ranks = xr.global_ordinal(), xr.world_size()
    numbers = range(first, first + count // STEPS_OF_A_PROGRAM)
    progress = Progress(len(numbers) * STEPS_OF_A_PROGRAM)
    for number in numbers:
        program = generate(number, may_select=False)  # ranks would select other counts
        for chosen in itertools.islice(assignments(number, program, ranks), STEPS_OF_A_PROGRAM):
            everyones = [program.outcome("cpu", sizes, r) for r, sizes in enumerate(chosen)]
            if any(isinstance(outcome, str) for outcome in everyones):
                continue  # all ranks must run it
            run = Run("xla", program.gradients, chosen[rank], rank)
            for line in program.lines:
                run.line(line)
            values = run.results(program.kept)
            shared = [i for i, name in enumerate(program.kept) if name not in program.own]

            def reduce(x):
                return xm.all_reduce(xm.REDUCE_SUM, x * 1.0)

            sums = [reduce(values[i]) for i in shared]
            more = [x for total in sums for x in updated(total, reduce)]
            expected = everyones[rank][: len(values)]
            totals = [sum(outcome[i] for outcome in everyones) for i in shared]
            expected += totals
            expected += [x for total in totals for x in updated(total, lambda x: x * ranks)]
            if found := difference([x.cpu() for x in [*values, *sums, *more]], expected):
                raise AssertionError(f"program {number} with sizes {chosen}: {found}\n{program}")
        if rank == 0:
            progress.tell((number + 1 - first) * STEPS_OF_A_PROGRAM)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--first", type=int, default=0, help="the number of the first program")
    parser.add_argument("--peer", choices=("eager", "exact", "write"), default="eager")
    parser.add_argument("--processes", type=int, default=1)
    arguments = parser.parse_args()
    # Compared are programs; small ones would be interpreted.
    os.environ["TORCH_XLA_INTERPRET"] = "never"
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # variances of nothing
    first, count = arguments.first, arguments.steps
    start = time.monotonic()
    wrong = 0
    if arguments.peer == "write":
        import torch_xla

        outcomes_of_device(first, count)
        return 0
    if arguments.processes > 1:
        import torch_xla

        os.environ["CPU_NUM_DEVICES"] = str(arguments.processes)
        torch_xla.launch(rank_of_a_world, args=(first, count), start_method="fork")
    else:
        wrong = compare(first, count, arguments.peer)
    print(f"{count} steps in {time.monotonic() - start:.0f} s, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
