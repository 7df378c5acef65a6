"""Random programs of torch's operators: made while eager runs them, run again on the device, compared, shrunk.

A program is a list of lines of Python, of which each names its results; so a failing one can be printed and run.

Lines are made on the eager tensors that the lines before them gave, hence a line that eager refuses is never part of a
program. What the device must give follows from two runs of eager: as written, and with every floating type replaced by
the widest, which is then the default type, too. Where the two are the same the value is exact, and the device's must be the same; operators that
leap, such as comparisons and roundings, are given exact values only. Else the device may err as far as eager does, and
as far as roundings in a type do.
"""

import contextlib
import math
import random
import re
import warnings
from collections.abc import Callable, Iterator

import torch

import torch_xla

Value = torch.Tensor

FLOATS = [torch.float32] * 5 + [torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int64, torch.int32, torch.uint8, torch.int8, torch.int16]
EPSILON = {torch.float64: 1e-12, torch.float32: 4e-6, torch.float16: 4e-3, torch.bfloat16: 3e-2}
EPSILON |= {torch.complex64: 4e-6, torch.complex128: 1e-12}
# What programs cannot hold, though eager computes with it inside some operators.
UNSUPPORTED = "dtype ComplexHalf is not supported on the xla device"
# Numbers stay so small that sums and products of them are exact for some lines.
LARGEST = 1e5

WIDER = [
    ("torch.float32", "torch.float64"),
    ("torch.bfloat16", "torch.float64"),
    ("torch.float16", "torch.float64"),
    ("torch.complex64", "torch.complex128"),
]
PREAMBLE = """\
import torch
import torch.nn.functional as F

def made(start, step, scale, dtype, *sizes):
    n = torch.Size(sizes).numel()
    numbers = (torch.arange(n) * step + start) % 23 - (0 if dtype == torch.uint8 else 9)
    return (numbers.reshape(sizes) / scale if dtype.is_floating_point or dtype.is_complex else numbers).to(dtype).to(device)
"""


def widened(line: str) -> str:
    for narrow, wide in WIDER:
        line = line.replace(narrow, wide)
    return line


@contextlib.contextmanager
def default_type(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


class Run:
    """The variables of a program on one device; `wide`: in the widest types."""

    def __init__(self, device: str, wide: bool = False) -> None:
        self.names: dict = {"device": device}
        self.names["sync"] = torch_xla.sync if device == "xla" else lambda: None
        self.wide = wide
        exec(PREAMBLE, self.names)

    def run(self, line: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if not self.wide:
                exec(line, self.names)
                return
            # What is made of integers, too, is computed in the default type.
            with default_type(torch.float64):
                exec(widened(line), self.names)

    def tensors(self) -> dict[str, Value]:
        return {k: v for k, v in self.names.items() if re.fullmatch(r"[vg]\d+", k)}


def host(x: Value) -> Value:
    return x.detach().cpu().resolve_conj().resolve_neg()


def same(x: Value, y: Value) -> bool:
    return x.shape == y.shape and bool(torch.equal(torch.isnan(x), torch.isnan(y))) and bool(
        ((x == y) | torch.isnan(x)).all()
    )  # fmt: skip


def as_wide(x: Value) -> Value:
    return x.to(torch.complex128 if x.is_complex() else torch.float64)


def writes(line: str) -> bool:
    return re.search(r"\w_\(|\] [-+*]?= ", line) is not None


def is_usable(x: Value) -> bool:
    """Eager refuses one of many views that an operator gave once another of them is written."""
    try:
        x.grad_fn  # noqa: B018 - made anew after a write
    except RuntimeError:
        return False
    return True


class Program:
    """Lines, and the two eager runs of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.eager, self.wide = Run("cpu"), Run("cpu", wide=True)
        self.count = 0
        # By the identity of its memory, whether what was made first in it is row-major.
        self.row_major: dict[int, bool] = {}

    # --- What lines are made of

    def chance(self, p: float) -> bool:
        return self.random.random() < p

    def number(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def choice(self, options):
        return self.random.choice(options)

    def name(self, letter: str = "v") -> str:
        self.count += 1
        return f"{letter}{self.count}"

    def exact(self, name: str) -> bool:
        x, y = self.eager.names[name], self.wide.names[name]
        if not (x.is_floating_point() or x.is_complex()):
            return True
        # Nothing is wider than the widest types, whose numbers of few digits are taken for exact.
        if x.dtype in (torch.float64, torch.complex128):
            y = y.to(torch.complex64 if x.is_complex() else torch.float32)
        return same(as_wide(x), as_wide(y))

    def pick(self, where: Callable[[Value], bool] = lambda x: True, exact: bool = False) -> str:
        """A variable that fits; LookupError if none does. The latest ones are the likeliest."""
        fits = [k for k, v in self.eager.tensors().items() if where(v)]
        if exact:
            fits = [k for k in fits if self.exact(k)]
        if not fits:
            raise LookupError
        return self.choice(fits[-4:] if self.chance(0.6) else fits)

    def value(self, name: str) -> Value:
        return self.eager.names[name]

    def dim(self, x: Value) -> int:
        if x.dim() == 0:
            raise LookupError
        return self.number(-x.dim(), x.dim() - 1)

    def sizes(self) -> list[int]:
        if self.chance(0.1):
            return [self.choice([17, 33, 64, 100, 257])]
        return [
            self.choice([1, 2, 3, 4, 4, 5, 8]) for _ in range(self.choice([0, 1, 2, 2, 2, 3, 3, 4]))
        ]

    def like(self, name: str) -> str:
        """A variable that broadcasts with this one, made where there is none."""
        x = self.value(name)

        def fits(y: Value) -> bool:
            try:
                return torch.broadcast_shapes(x.shape, y.shape).numel() <= 4096
            except RuntimeError:
                return False

        if self.chance(0.8):
            return self.pick(fits)
        sizes = [size if self.chance(0.7) else 1 for size in x.shape][self.number(0, 1) :]
        return self.create(sizes)

    def create(self, sizes=None, dtype=None) -> str:
        sizes = self.sizes() if sizes is None else sizes
        dtype = dtype or self.choice([*FLOATS, *FLOATS, *INTEGERS, torch.bool, torch.complex64])
        scale = self.choice([1, 1, 2, 4])
        arguments = ", ".join(
            map(str, [self.number(0, 22), self.number(1, 22), scale, dtype, *sizes])
        )
        name = self.name()
        gradient = dtype.is_floating_point and self.chance(0.25)
        if not self.add(f"{name} = made({arguments}){'.requires_grad_()' if gradient else ''}"):
            raise LookupError
        return name

    def indices(self, below: int, sizes: list[int], distinct: bool = False) -> str:
        """Literal indices into a dimension."""
        if below == 0:
            raise LookupError
        count = math.prod(sizes)
        if (distinct and count > below) or count > 64:
            raise LookupError
        numbers = (
            self.random.sample(range(below), count)
            if distinct
            else [self.number(0, below - 1) for _ in range(count)]
        )
        return f"torch.tensor({torch.tensor(numbers, dtype=torch.int64).reshape(sizes).tolist()}, device=device)"

    def scalar(self, x: Value) -> str:
        if x.dtype == torch.bool:
            return self.choice(["True", "False"])
        if x.is_floating_point() and self.chance(0.5):
            return self.choice(["0.5", "-2.0", "1.5", "0.25", "-0.75"])
        return str(self.number(0 if x.dtype == torch.uint8 else -3, 4))

    # --- Running

    def add(self, line: str) -> bool:
        """Adds a line unless eager refuses it, or makes too large numbers or tensors of it."""
        before = {id(v) for v in self.eager.tensors().values()}
        kept = dict(self.eager.names), dict(self.wide.names)
        is_write = writes(line)
        try:
            self.eager.run(line)
            self.wide.run(line)
        except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError):
            pass
        else:
            made = [v for v in self.eager.tensors().values() if is_write or id(v) not in before]
            if all(isinstance(v, Value) and is_usable(v) and self.is_tame(v) for v in made):
                self.lines.append(line)
                for v in made:
                    self.row_major.setdefault(v.untyped_storage()._cdata, v.is_contiguous())
                return True
        self.eager.names, self.wide.names = kept
        if is_write:
            raise SpoiledError
        return False

    @staticmethod
    def is_tame(x: Value) -> bool:
        if x.numel() > 5000 or x.layout != torch.strided or x.dtype == torch.complex32:
            return False
        x = host(x)
        if x.dtype == torch.bool or x.numel() == 0:
            return True
        finite = x[x.isfinite()]
        return bool((as_wide(finite).abs() <= LARGEST).all())


class SpoiledError(Exception):
    """A write failed half-way; the program ends before it."""


def is_float(x: Value) -> bool:
    return x.is_floating_point()


def is_real(x: Value) -> bool:
    return not x.is_complex()


def is_number(x: Value) -> bool:
    return not x.is_complex() and x.dtype != torch.bool


def is_whole(x: Value) -> bool:
    return not x.is_complex() and not x.is_floating_point()


def has_dims(x: Value) -> bool:
    return x.dim() > 0


# Eager's trigamma, the gradient of digamma, has ten digits of float64.
SMOOTH = """
torch.exp({x}.clamp(-4, 4)); torch.sin({x}); torch.cos({x}); torch.tanh({x}); torch.sigmoid({x}); torch.erf({x}); F.gelu({x});
F.gelu({x}, approximate="tanh"); F.silu({x}); F.softplus({x}); torch.log1p({x}.abs()); torch.sqrt({x}.abs() + 1); torch.atan({x});
torch.rsqrt({x}.abs() + 0.5); torch.expm1({x}.clamp(-4, 4)); F.elu({x}); F.selu({x}); F.logsigmoid({x}); torch.asinh({x});
F.mish({x}); torch.log({x}.abs() + 1); torch.exp2({x}.clamp(-4, 4)); torch.sinc({x}); torch.cosh({x}.clamp(-4, 4)); F.celu({x});
torch.reciprocal({x}.abs() + 0.5); torch.erfc({x}); torch.lgamma({x}.abs() + 1); torch.digamma({x}.detach().abs() + 1); torch.log2({x}.abs() + 1);
torch.special.entr({x}.abs() + 0.5); torch.logit(torch.sigmoid({x}.clamp(-4, 4))); torch.i0({x}.clamp(-3, 3)); F.tanhshrink({x})
"""
# Of float64, too, eager multiplies the gradient of hardsigmoid by a sixth in float32.
STRAIGHT = """
{x}.abs(); -{x}; F.relu({x}); {x}.square(); torch.positive({x}); F.leaky_relu({x}, 0.5); F.hardtanh({x}); F.relu6({x}); {x}.clamp(-2, 3);
{x}.clamp(min=1); {x} * 2; {x} + 1; {x} - 0.5; 3 - {x}; {x} / 2; {x}.clone(); {x}.contiguous(); torch.zeros_like({x}); torch.ones_like({x});
torch.full_like({x}, 2); {x}.detach(); {x}.nan_to_num(); {x}.nan_to_num(nan=1.0); torch.rad2deg({x} / 4); F.hardsigmoid({x}.detach()); F.hardswish({x});
{x}.pow(2); {x} ** 3; 2 ** {x}.clamp(-3, 3); F.softsign({x}); torch.threshold({x}, 0.5, 2.0); torch.deg2rad({x})
"""
LEAPING = """
{x}.floor(); {x}.ceil(); {x}.round(); {x}.trunc(); {x}.sign(); {x}.frac(); {x} // 2; {x} % 3; {x} > 0; {x} == 1; {x} <= 2; {x} != 0; {x}.isnan();
{x}.isfinite(); {x}.logical_not(); F.hardshrink({x}); F.softshrink({x}); torch.heaviside({x}, {x}); {x}.nan_to_num().signbit(); {x}.fmod(3); {x}.bool();
torch.round({x}, decimals=1); F.threshold({x}, 1, 0)
"""
PAIRS = """
{x} + {y}; {x} - {y}; {x} * {y}; torch.maximum({x}, {y}); torch.minimum({x}, {y}); torch.add({x}, {y}, alpha=2); torch.fmax({x}, {y});
torch.sub({x}, {y}, alpha=3); torch.fmin({x}, {y}); torch.lerp({x}, {y}, 0.5); {x} / ({y}.abs() + 1); torch.rsub({x}, {y}); torch.true_divide({x}, 4)
"""
SMOOTH_PAIRS = """
torch.atan2({x}, {y}.abs() + 1); torch.hypot({x}, {y}); torch.logaddexp({x}, {y}); torch.pow({x}.abs() + 0.5, {y}.clamp(-2, 2));
torch.xlogy({x}, {y}.abs() + 1); torch.addcdiv({x}, {y}, {y}.abs() + 1, value=0.5); F.smooth_l1_loss({x}, {y}); F.mse_loss({x}, {y});
F.huber_loss({x}, {y}); torch.addcmul({x}, {x}, {y}, value=0.5); F.l1_loss({x}, {y}); torch.ldexp({x}, {y}.clamp(-2, 2)); torch.dist({x}, {y});
torch.igamma({x}.detach().abs() + 0.5, {y}.detach().abs()); torch.igammac({x}.detach().abs() + 0.5, {y}.detach().abs());
torch.special.zeta({x}.detach().abs() + 1.5, {y}.detach().abs() + 0.5)
"""
LEAPING_PAIRS = """
{x} < {y}; {x} == {y}; {x} >= {y}; torch.eq({x}, {y}).sum(); torch.floor_divide({x}, {y}); torch.remainder({x}, {y}); torch.fmod({x}, {y}); {x} / {y};
torch.logical_and({x}, {y}); torch.logical_xor({x}, {y}); torch.copysign({x}, {y}.nan_to_num()); torch.heaviside({x}, {y}); torch.isclose({x}, {y});
torch.div({x}, {y}, rounding_mode="floor"); torch.div({x}, {y}, rounding_mode="trunc"); torch.logical_or({x}, {y}); torch.nextafter({x}, {y})
"""
WHOLE_PAIRS = """
{x} & {y}; {x} | {y}; {x} ^ {y}; {x} << ({y} & 3); {x} >> ({y} & 3); torch.gcd({x}, {y}); ~{x}; torch.lcm({x}, {y}); torch.bitwise_left_shift({x}, 2);
{x} // ({y} | 1); {x} % ({y} | 1)
"""
REDUCTIONS = """
{x}.sum(); {x}.sum({d}); {x}.sum({d}, keepdim=True); {x}.mean({d}); {x}.mean(); {x}.amax({d}); {x}.amin({d}, keepdim=True); {x}.cumsum({d});
{x}.max(); {x}.min(); {x}.nansum({d}); {x}.amax(); {x}.max({d}).values; {x}.min({d}).values; torch.aminmax({x}).max; {x}.sum({d}, dtype=torch.float64);
{x}.cummax({d}).values; {x}.cummin({d}).values; {x}.sort({d}).values; {x}.median({d}).values; {x}.diff(dim={d}); {x}.clamp(-1, 1).prod({d});
{x}.sort({d}, descending=True).values; {x}.median(); {x}.kthvalue(1, {d}).values; {x}.topk(1, {d}).values; {x}.msort(); {x}.trace();
{x}.sum(dim=(0, -1)); {x}.amax(dim=(0, 1)); {x}.flatten().topk(2).values; {x}.clamp(-1, 1).cumprod({d}); {x}.nanmedian(); {x}.logcumsumexp({d})
"""
SMOOTH_REDUCTIONS = """
{x}.std({d}); {x}.var({d}, unbiased=False); {x}.norm(); {x}.norm(dim={d}); {x}.logsumexp({d}); F.softmax({x}, {d}); F.log_softmax({x}, {d}); {x}.norm(p=1);
F.normalize({x}, dim={d}); F.layer_norm({x}, {x}.shape[-1:]); torch.var_mean({x}, {d})[0]; F.softmin({x}, {d}); F.cosine_similarity({x}, {x} + 1, dim={d});
torch.linalg.vector_norm({x}, 3, {d}); F.glu({x}, {d}); {x}.renorm(2, {d}, 1.0); F.softmax({x}, {d}, dtype=torch.float32); torch.std_mean({x})[1];
F.batch_norm({x}, None, None, training=True); F.instance_norm({x}); F.group_norm({x}, 1); {x}.quantile(0.5, {d}); torch.cdist({x}, {x} + 1);
torch.segment_reduce({x}, "sum", offsets=torch.tensor([0, len({x}) // 2, len({x})], device=device));
torch.segment_reduce({x}, "max", offsets=torch.tensor([0, len({x}) // 3, len({x})], device=device));
F.rms_norm({x}, {x}.shape[-1:]); torch.cov({x}); 0.75 * {x}.corrcoef(); F.local_response_norm({x}, 2)
"""
LEAPING_REDUCTIONS = """
{x}.argmax({d}); {x}.argmin({d}); {x}.argmax(); {x}.all({d}); {x}.any({d}); {x}.any(); {x}.count_nonzero({d}); {x}.sort({d}, stable=True).indices; {x}.unique();
{x}.argsort({d}, stable=True); {x}.nonzero().contiguous(); {x}.cummax({d}).indices; {x}.max({d}).indices; {x}.bincount(); {x}.histc(5);
torch.bucketize({x}, {x}.nan_to_num().flatten().sort().values)
"""
VIEWS = """
{x}.unsqueeze({d}); {x}.squeeze(); {x}.transpose({d}, {e}); {x}.flatten(); {x}.reshape(-1); {x}.select({d}, 0); {x}.narrow({d}, 0, 1); {x}.t(); {x}.mT;
{x}[..., ::2]; {x}[1:]; {x}[:-1]; {x}[None]; {x}.unfold({d}, 1, 1); {x}.diagonal(); {x}.expand(2, *{x}.shape); {x}.movedim({d}, {e}); {x}.chunk(2, {d})[-1];
{x}.split(2, {d})[0]; {x}.unbind({d})[-1]; {x}.view({x}.shape); {x}.reshape(2, -1); {x}.permute(*reversed(range({x}.dim()))); {x}[:, 0]; {x}.squeeze({d});
{x}[0]; {x}[..., -1:]; {x}.ravel(); {x}.swapaxes({d}, {e}); {x}.view_as({x}); {x}.unflatten({d}, (-1, 1)); {x}.expand(3, -1); {x}.tensor_split(2, {d})[0]; {x}.T
"""
MOVES = """
{x}.flip({d}); {x}.roll(1, {d}); {x}.tril(); {x}.triu(1); {x}.repeat(2, *[1] * ({x}.dim() - 1)); {x}.repeat_interleave(2, {d}); torch.diag({x}); {x}.rot90();
F.pad({x}, (1, 2)); F.pad({x}, (1, -1), value=2); F.pad({x}[None], (1, 1), mode="reflect"); torch.cat([{x}, {x}], {d}); torch.stack([{x}, {x}], {d}); {x}.tile(2);
torch.diag_embed({x}); torch.cat([{x}, {x}.flip({d})], {d}); F.pad({x}, (0, 1, 1, 0)); F.interpolate({x}, scale_factor=2); torch.combinations({x}, 2);
torch.kron({x}, {x}); {x}.tril(-1); torch.block_diag({x}, {x}); torch.vander({x}); F.pixel_shuffle({x}, 2); {x}.roll((1, 1), (0, 1)); torch.cartesian_prod({x}, {x});
F.pad({x}[None], (1, 1), mode="replicate"); F.pad({x}[None], (1, 1), mode="circular"); {x}.fliplr(); F.channel_shuffle({x}, 2); torch.atleast_3d({x})
"""
NETWORK = """
F.max_pool1d({x}, 2); F.max_pool2d({x}, 2); F.avg_pool1d({x}, 2); F.avg_pool2d({x}, 2, stride=1); F.adaptive_avg_pool2d({x}, 1); F.max_pool2d({x}, 3, stride=1, padding=1);
F.adaptive_max_pool1d({x}, 2); F.avg_pool2d({x}, 2, ceil_mode=True); F.lp_pool1d({x}, 2, 2); F.fold({x}, (3, 3), (1, 1)); F.unfold({x}, 2); F.adaptive_avg_pool1d({x}, 3);
F.ctc_loss({x}.log_softmax(-1), torch.ones({x}.size(1), 2, dtype=torch.long, device=device) % {x}.size(-1), [len({x})] * {x}.size(1), [1] * {x}.size(1), zero_infinity=True)
"""
WRITES = """
{x}.add_({s}); {x}.mul_({s}); {x}.zero_(); {x}.fill_({s}); {x}.clamp_(-2, 3); {x}.relu_(); {x}.neg_(); {x}.copy_({y}); {x}.add_({y}); {x}.sub_({y}, alpha=2); {x}.mul_({y});
{x}[0] = {s}; {x}[..., 0] = {s}; {x}[1:] = {y}; {x}[..., ::2] += {s}; {x}.select({d}, 0).fill_({s}); {x}.narrow({d}, 0, 1).mul_({s}); {x}.t_(); {x}.square_();
{x}.masked_fill_({x} > 1, {s}); {x}[{x} > 0] = {s}; {x}.index_fill_({d}, {i}, {s}); {x}.index_add_({d}, {i}, {x}.index_select({d}, {i})); {x}.transpose({d}, {e}).add_({s});
{x}.index_copy_({d}, {i}, {x}.index_select({d}, {i}) + 1); {x}.fill_diagonal_({s}); {x}.unsqueeze_({d}); {x}.tril_(); {x}.diagonal().add_({s}); {x}.flatten()[::3] = {s};
{x}.addcmul_({x}, {y}); {x}.lerp_({y}, 0.5); {x}.cumsum_({d}); {x}.abs_(); {x}[:, 0] = {y}; {x}.view(-1)[0] = {s}; {x}.transpose_({d}, {e}); {x}.div_(2); {x}.pow_(2);
{x}.put_({i}, {x}.flatten()[{i}] * 2); {x}[{i}] = {s}; {x}[{i}] += {s}; {x}.index_put_(({i},), {x}[{i}], accumulate=True); {x}.masked_fill_({x} == 0, {s}); {x}.squeeze_()
"""
INDEXING = """
{x}.index_select({d}, {i}); {x}[{i}]; {x}[..., {i}]; {x}.take({i}); {x}.index_add({d}, {i}, {x}.index_select({d}, {i})); {x}.index_fill({d}, {i}, {s});
{x}.masked_fill({x} > 1, {s}); {x}[{x} > 0]; torch.where({x} > 0, {x}, {s}); {x}.masked_select({x} != 1); torch.where({x} == 1)[0].clone(); {x}[:, {i}]; {x}[{i}, {i}]; {x}[{i}][:, {i}];
torch.take_along_dim({x}, {x}.argsort({d}, stable=True), {d}); {x}.gather({d}, {x}.argsort({d}, stable=True)); {x}.scatter({d}, {x}.argsort({d}, stable=True), {x}); {x}[{i}, None];
torch.zeros_like({x}).scatter_add({d}, ({x}.argsort({d}, stable=True) // 2), {x}); torch.ones_like({x}).scatter_reduce({d}, {x}.argsort({d}, stable=True) // 2, {x}, "amax");
torch.zeros_like({x}).scatter({d}, {x}.argsort({d}, stable=True), {s}); F.embedding({i}, {x}); F.one_hot({i}, 9); torch.ones_like({x}).scatter_reduce({d}, {x}.argsort({d}, stable=True) // 3, {x}, "mean");
torch.masked_scatter({x}, {x} > 0, {x}.flip(0)); {x}.index_copy({d}, {i}, {x}.index_select({d}, {i}) * 2); {x}.index_put(({i},), {x}[{i}] + 1); F.embedding_bag({i}[None], {x});
{x}.index_reduce({d}, {i}, {x}.index_select({d}, {i}), "amax"); {x}.select_scatter({x}.select({d}, 0) + 1, {d}, 0); {x}.slice_scatter({x}[:1] * 2, 0, 0, 1); {x}.diagonal_scatter({x}.diagonal() + 1)
"""
CONVERSIONS = [
    torch.float32,
    torch.float64,
    torch.int64,
    torch.int32,
    torch.float16,
    torch.bfloat16,
    torch.bool,
    torch.int16,
    torch.int8,
    torch.uint8,
]


def templates(text: str) -> list[str]:
    return [line for line in (t.strip() for t in text.replace("\n", " ").split(";")) if line]


# Templates, which values they take, whether these must be exact, and how often they are drawn.
FAMILIES = [
    (templates(SMOOTH), is_real, False, 3),
    (templates(STRAIGHT), lambda x: True, False, 3),
    (templates(LEAPING), is_real, True, 2),
    (templates(PAIRS), lambda x: True, False, 4),
    (templates(SMOOTH_PAIRS), is_real, False, 2),
    (templates(LEAPING_PAIRS), is_real, True, 2),
    (templates(WHOLE_PAIRS), is_whole, False, 1),
    (templates(REDUCTIONS), has_dims, False, 4),
    (templates(SMOOTH_REDUCTIONS), lambda x: has_dims(x) and is_float(x), False, 3),
    (templates(LEAPING_REDUCTIONS), has_dims, True, 2),
    (templates(VIEWS), lambda x: True, False, 6),
    (templates(MOVES), has_dims, False, 3),
    (templates(NETWORK), lambda x: x.dim() in (3, 4) and is_float(x), False, 1),
    (templates(INDEXING), has_dims, True, 3),
]
CHOSEN = [family for family in FAMILIES for _ in range(family[3])]


# Results that are elements of a place, and those of which any of several equal ones may be meant.
PICKS_ANY = re.compile(r"\.(sort\((?!.*stable)|msort|topk|kthvalue|median|nanmedian|quantile)")
PICKS = re.compile(
    PICKS_ANY.pattern + r"|\.(sort|max|min|amax|amin|cummax|cummin)\(|aminmax|max_pool"
)
# Of a dimension whose elements are all in one place, eager's give what its memory held before.
REORDERS = re.compile(r"edian\(\d|edian\(-")
# Views of a tensor, or copies where its layout does not allow one.
MAY_BE_VIEWS = re.compile(r"\.(flatten|reshape|ravel|contiguous)\(|_shuffle\(")


def shows_twice(x: Value) -> bool:
    """Whether an element of memory is several of it."""
    return any(s == 0 and n > 1 for s, n in zip(x.stride(), x.shape, strict=True))


def has_one_place_for_each(p: Program, template: str, x: str) -> bool:
    """Whether it is defined which elements' gradients are those of the picked ones."""
    value = p.value(x).detach()
    if value.is_complex():
        return False
    is_distinct = value.unique().numel() == value.numel() and int(value.isnan().sum()) <= 1
    return p.exact(x) and (is_distinct or not PICKS_ANY.search(template))


def may_be_cast(p: Program, y: str, dtype: torch.dtype) -> bool:
    """Whether the numbers are defined in a type; floats are, as a byte, modulo 256."""
    value = host(p.value(y))
    value = value.real if value.is_complex() else value
    if dtype.is_floating_point or dtype.is_complex or not value.is_floating_point():
        return True
    limits = (
        torch.iinfo(dtype) if dtype not in (torch.bool, torch.uint8) else torch.iinfo(torch.int64)
    )
    return p.exact(y) and bool(((value > limits.min) & (value < limits.max)).all())


def fill(p: Program, template: str, x: str, exact: bool) -> str:
    value = p.value(x)
    parts = {"x": x}
    if (
        value.requires_grad
        and PICKS.search(template)
        and not has_one_place_for_each(p, template, x)
    ):
        parts["x"] = f"{x}.detach()"
    if not p.row_major[value.untyped_storage()._cdata]:
        # Eager laid it out as what it was made of; on the device what is new is row-major, so that views and copies
        # are not those of eager.
        if "view(-1)" in template or template.startswith("{x}.flatten()["):
            raise LookupError
        if MAY_BE_VIEWS.search(template):
            template += ".clone()"
    if "{y}" in template:
        parts["y"] = p.like(x)
        if exact and not p.exact(parts["y"]):
            raise LookupError
    if writes(template) and "y" in parts:
        y = p.value(parts["y"])
        if not may_be_cast(p, parts["y"], value.dtype):
            raise LookupError
        if y is not value and y.untyped_storage()._cdata == value.untyped_storage()._cdata:
            parts["y"] += ".clone()"  # eager leaves open what is read before it is written
    if "{d}" in template:
        parts["d"] = p.dim(value)
    if "{e}" in template:
        parts["e"] = p.dim(value)
    if "{i}" in template:
        size = value.size(parts.get("d", 0)) if value.dim() else 0
        size = min(size, *value.shape) if value.dim() and "d" not in parts else size
        distinct = "index_copy" in template or "= " in template or "_put" in template
        count = p.number(1, max(1, min(size, 4)))
        parts["i"] = p.indices(size, [count], distinct)
    if "{s}" in template:
        parts["s"] = p.scalar(value)
    line = template.format(**parts)
    if shows_twice(value) and REORDERS.search(line):
        raise LookupError
    return line


def operator(p: Program) -> None:
    family, where, exact, _ = p.choice(CHOSEN)
    template = p.choice(family)
    p.add(f"{p.name()} = {fill(p, template, p.pick(where, exact), exact)}")


def conversion(p: Program) -> None:
    to = p.choice(CONVERSIONS)
    x = p.pick(is_real, exact=True)
    value = p.value(x).detach()
    small = value.numel() == 0 or bool((value.double().abs() <= 100).all())
    if to.is_floating_point or to == torch.bool or small:
        p.add(f"{p.name()} = {x}.to({to})")


def product(p: Program) -> None:
    a = p.pick(lambda v: 1 <= v.dim() <= 3 and v.dtype != torch.bool)
    x = p.value(a)
    inner, dtype = x.size(-1), x.dtype
    kind = p.number(0, 6)
    if kind == 0:
        b = p.create([inner, p.number(1, 9)], dtype)
        p.add(f"{p.name()} = torch.matmul({a}, {b})")
    elif kind == 1:
        p.add(f"{p.name()} = {a} @ {a}.mT")
    elif kind == 2:
        b = p.create([p.number(1, 9), inner], dtype)
        p.add(f"{p.name()} = F.linear({a}, {b})")
    elif kind == 3:
        b, c = p.create([inner, 4], dtype), p.create([4], dtype)
        p.add(f"{p.name()} = torch.addmm({c}, {a}, {b}, beta=2, alpha=0.5)")
    elif kind == 4:
        p.add(f'{p.name()} = torch.einsum("...i,...j->...ij", {a}, {a})')
    elif kind == 5:
        p.add(f"{p.name()} = torch.outer({a}.flatten()[:9], {a}.flatten()[:7])")
    else:
        b = p.create([inner], dtype)
        p.add(f"{p.name()} = torch.matmul({a}, {b})")


def convolution(p: Program) -> None:
    x = p.pick(lambda v: v.dim() in (3, 4) and is_float(v) and 0 not in v.shape)
    value = p.value(x)
    rank = value.dim() - 2
    channels, width = value.size(1), p.number(1, 3)
    weights = p.create([p.number(1, 4), channels, *[width] * rank], value.dtype)
    options = f"stride={p.number(1, 2)}, padding={p.number(0, 2)}, dilation={p.number(1, 2)}"
    p.add(f"{p.name()} = F.conv{rank}d({x}, {weights}, {options})")


def joined(p: Program) -> None:
    x = p.pick(has_dims)
    shape = p.value(x).shape
    y = p.pick(lambda v: v.shape == shape)
    d = p.dim(p.value(x))
    p.add(f"{p.name()} = torch.{p.choice(['cat', 'stack'])}([{x}, {y}], {d})")


def chosen(p: Program) -> None:
    mask = p.pick(lambda v: v.dtype == torch.bool)
    x = p.like(mask)
    p.add(f"{p.name()} = torch.where({mask}, {x}, {p.like(x)})")


def loss(p: Program) -> None:
    x = p.pick(lambda v: v.dim() == 2 and is_float(v) and 0 not in v.shape)
    rows, classes = p.value(x).shape
    p.add(f"{p.name()} = F.cross_entropy({x}, {p.indices(classes, [rows])})")


def write(p: Program) -> None:
    template = p.choice(templates(WRITES))
    leaps = any(sign in template for sign in "><") or "==" in template
    x = p.pick(lambda v: not (v.is_leaf and v.requires_grad), exact=leaps)
    value = p.value(x)
    if value.numel() > 1 and shows_twice(value):
        return  # Eager leaves the order of writes open.
    if "unfold" in str(value.grad_fn):
        return
    if "cumsum_" in template and value.dtype == torch.bool:
        return  # Eager has it for none and for a single one.
    p.add(fill(p, template, x, leaps))


def gradient(p: Program) -> None:
    y = p.pick(lambda v: v.requires_grad and is_float(v) and not v.is_leaf)
    x = p.pick(lambda v: v.requires_grad and v.is_leaf)
    name = p.name("g")
    p.add(
        f"({name},) = torch.autograd.grad(({y} * made(3, 5, 4, {y}.dtype, *{y}.shape)).sum(), {x}, retain_graph=True, allow_unused=True)"
    )


def view_to_write(p: Program) -> None:
    """A view, and a write through it."""
    x = p.pick(lambda v: has_dims(v) and not (v.is_leaf and v.requires_grad))
    name = p.name()
    if p.add(f"{name} = {fill(p, p.choice(templates(VIEWS)), x, False)}"):
        value = p.value(name)
        if shows_twice(value):
            return
        p.add(f"{name}.{p.choice(['add_', 'mul_', 'fill_'])}({p.scalar(value)})")


STEPS = [operator] * 14 + [conversion, product, convolution, joined, chosen, loss]
STEPS += [write] * 3 + [view_to_write] * 2 + [gradient] * 2


def generate(seed: int) -> Program:
    """A program of about a dozen lines."""
    p = Program(seed)
    for _ in range(p.number(1, 3)):
        p.create()
    length = p.number(3, 16)
    with contextlib.suppress(SpoiledError):
        for _ in range(length * 2):
            if len(p.lines) >= length:
                break
            with contextlib.suppress(LookupError, KeyError):
                p.choice(STEPS)(p)
            if p.chance(0.12) and p.lines[-1] != "sync()":
                p.lines.append("sync()")
    return p


# --- Comparing


def difference(name: str, actual: Value, eager: Value, wide: Value, scale: float) -> str | None:
    """How the device's value is wrong, or None."""
    if (actual.shape, actual.dtype) != (eager.shape, eager.dtype):
        return f"{name}: {tuple(actual.shape)} of {actual.dtype}, eager's is {tuple(eager.shape)} of {eager.dtype}"
    x, y, z = (as_wide(v) for v in (actual, eager, wide))
    if z.shape != y.shape or same(x, y):
        return None
    if not (eager.is_floating_point() or eager.is_complex()):
        return None if not same(y, z) else f"{name}: {actual} instead of {eager}"
    # Where eager itself depends on its precision nothing is asked.
    regular = y.isfinite() & z.isfinite()
    special = ~regular & ((y == z) | (y.isnan() & z.isnan()))
    wrong = special & ~((x == y) | (x.isnan() & y.isnan()))
    error = (y - z)[regular].abs().max().item() if regular.any() else 0.0
    size = z[regular].abs().max().item() if regular.any() else 0.0
    if error > 0.02 * max(size, 1e-3):
        return f"{name}: {actual} instead of {eager}" if wrong.any() else None
    allowed = 30 * error + EPSILON[eager.dtype] * max(size, scale, 1e-6)
    wrong |= regular & ~((x - z).abs() <= allowed)
    if not wrong.any():
        return None
    return f"{name}: {actual[wrong][:4].tolist()} instead of {eager[wrong][:4].tolist()}, in {z[wrong][:4].tolist()}"


def run_all(lines: list[str]) -> tuple[Run, Run] | None:
    """Eager's two runs; None where eager refuses."""
    eager, wide = Run("cpu"), Run("cpu", wide=True)
    try:
        for line in lines:
            eager.run(line)
            wide.run(line)
    except Exception:
        return None
    return eager, wide


def failure(lines: list[str]) -> str | None:
    """What is wrong on the device, or None."""
    runs = run_all(lines)
    if runs is None:
        return None
    eager, wide = runs
    device = Run("xla")
    try:
        for line in lines:
            device.run(line)
        actual = {name: host(x) for name, x in device.tensors().items()}
    except Exception as error:
        if str(error).startswith(UNSUPPORTED):
            return None
        return f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
    expected, widely = ({k: host(v) for k, v in run.tensors().items()} for run in (eager, wide))
    if expected.keys() != actual.keys():
        return f"variables {actual.keys() ^ expected.keys()}"
    # Sums of what is large cancel: errors are as large as what they come from.
    finite = [as_wide(x)[x.isfinite()].abs() for x in expected.values() if x.numel()]
    scale = max((x.max().item() for x in finite if x.numel()), default=0.0)
    # A narrow type leaves its roundings in what is made of it.
    narrow = max((EPSILON.get(x.dtype, 0.0) for x in expected.values()), default=0.0)
    for name, value in actual.items():
        y = expected[name]
        coarse = narrow / EPSILON.get(y.dtype, narrow) if narrow else 1.0
        found = difference(name, value, y, widely[name], scale * min(coarse, 1e4))
        if found:
            return found
    return None


def shrink(lines: list[str]) -> list[str]:
    """The lines without which it does not fail, found by leaving out as many as possible at a time.

    From the end on, since what nothing uses any more can go only after what used it.
    """
    size = max(len(lines) // 2, 1)
    while True:
        end = len(lines)
        while end > 0:
            begin = max(end - size, 0)
            fewer = lines[:begin] + lines[end:]
            if fewer and failure(fewer):
                lines = fewer
            end = begin
        if size == 1:
            return lines
        size = max(size // 2, 1)


def as_python(lines: list[str]) -> str:
    """A program that prints every variable, runnable as it is; `device = "cpu"` shows eager's."""
    head = 'import torch_xla\ndevice, sync = "xla", torch_xla.sync\n'
    names = sorted(set(re.findall(r"\b[vg]\d+\b", "\n".join(lines))))
    prints = "\n".join(f'print("{name}", {name})' for name in names)
    return f"{head}{PREAMBLE}\n" + "\n".join(lines) + f"\n{prints}\n"
