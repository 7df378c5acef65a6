"""Random numbers at the sizes where rare events happen: their extremes, and what they are distributed like.

--draws N   how many of each distribution and type; 2·10^6 unless told. `make test-draws` takes 10^8.

Seeded, so that a right distribution never fails: a p-value below 1e-5 is what one seed of a hundred thousand would show.
2·10^6 numbers show a distribution function that is wrong by 0.0016, 10^8 one that is wrong by 0.0002, and how many there are of
what should be one in millions.
"""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from conftest import engine_environment
from scipy import stats

pytestmark = pytest.mark.slow

P_VALUE = 1e-5
AT_ONCE = 10**7
# Where an event of 2^-24 happens sixteen times.
MANY = 2**28

FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
UNSIGNED = [torch.uint16, torch.uint32, torch.uint64]


@pytest.fixture(scope="module")
def draws(request):
    return request.config.getoption("--draws")


def empty(count, dtype):
    return torch.empty(count, device="xla", dtype=dtype)


def chunks(draw, count, dtype):
    """The numbers, some at a time, on the CPU."""
    torch.manual_seed(0)
    for begin in range(0, count, AT_ONCE):
        yield draw(min(AT_ONCE, count - begin), dtype).cpu()


def normal(x, mean=0.0, deviation=1.0):
    return torch.special.ndtr((x - mean) / deviation)


# How numbers are drawn, and the distribution function, of f64 values.
CONTINUOUS = {
    "rand": (lambda n, t: torch.rand(n, device="xla", dtype=t), lambda x: x.clamp(0, 1)),
    "uniform_": (lambda n, t: empty(n, t).uniform_(-2, 5), lambda x: ((x + 2) / 7).clamp(0, 1)),
    "randn": (lambda n, t: torch.randn(n, device="xla", dtype=t), normal),
    "normal_": (lambda n, t: empty(n, t).normal_(3, 0.5), lambda x: normal(x, 3, 0.5)),
    "exponential_": (
        lambda n, t: empty(n, t).exponential_(2.5),
        lambda x: -torch.expm1(-2.5 * x.clamp(min=0)),
    ),
    "log_normal_": (
        lambda n, t: empty(n, t).log_normal_(0.3, 0.7),
        lambda x: normal(x.clamp(min=0).log(), 0.3, 0.7),
    ),
    "cauchy_": (
        lambda n, t: empty(n, t).cauchy_(1, 2),
        # Far out on the left by what is left of it there.
        lambda x: torch.atan2(torch.ones(()).double(), (1 - x) / 2) / math.pi,
    ),
}
BINS = 2**14


def chi_square(counts, probabilities):
    """The p-value of counts, those expected less than ten times taken together."""
    counts, expected = np.asarray(counts, float), np.asarray(probabilities, float)
    expected = expected / expected.sum() * counts.sum()
    often = expected >= 10
    rest = counts[~often].sum(), expected[~often].sum()
    counts, expected = counts[often], expected[often]
    if rest[1] >= 1:
        counts, expected = np.append(counts, rest[0]), np.append(expected, rest[1])
    else:
        assert rest[0] <= 12
        counts[-1] += rest[0]
        expected[-1] += rest[1]
    return stats.chisquare(counts, expected).pvalue


def kolmogorov_smirnov(counts, count):
    """The p-value of how many numbers lie in each of equally probable parts."""
    distance = np.abs(np.cumsum(counts) / count - np.arange(1, len(counts) + 1) / len(counts)).max()
    return stats.kstwobign.sf(distance * math.sqrt(count))


@pytest.mark.parametrize("dtype", FLOATS[:2], ids=str)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous(name, dtype, draws, device):
    draw, distribution = CONTINUOUS[name]
    counts = torch.zeros(BINS, dtype=torch.int64)
    low, high = math.inf, -math.inf
    for numbers in chunks(draw, draws, dtype):
        assert numbers.dtype == dtype
        low, high = min(low, numbers.min().item()), max(high, numbers.max().item())
        places = (distribution(numbers.double()) * BINS).long().clamp_(max=BINS - 1)
        counts += torch.bincount(places, minlength=BINS)
    assert math.isfinite(low) and math.isfinite(high)
    assert kolmogorov_smirnov(counts.numpy(), draws) > P_VALUE
    assert chi_square(counts.numpy(), np.ones(BINS)) > P_VALUE
    # The least and the largest number, too, lie where those of so many do.
    if name not in ("rand", "uniform_"):
        below = distribution(torch.tensor([low], dtype=torch.float64)).item() * draws
        assert 1e-5 < below < 12
    # As 1 - F rounds, of a symmetric distribution by the other end.
    if name in ("randn", "cauchy_"):
        center = 1.0 if name == "cauchy_" else 0.0
        mirrored = torch.tensor([2 * center - high], dtype=torch.float64)
        assert 1e-5 < distribution(mirrored).item() * draws < 12


def narrow_values(dtype):
    """Each finite value of a type of 16 bits, in order, and where numbers begin to be rounded to it."""
    values = torch.arange(-(2**15), 2**15, dtype=torch.int32).to(torch.int16).view(dtype).double()
    values = values[values.isfinite()].unique()
    return values, torch.cat([values[:1] - 1, (values[1:] + values[:-1]) / 2])


@pytest.mark.parametrize("dtype", FLOATS[2:], ids=str)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_narrow(name, dtype, draws, device):
    """Numbers of 16 bits are the f32 ones rounded; uniform ones have as many steps as the type has digits."""
    draw, distribution = CONTINUOUS[name]
    values, begins = narrow_values(dtype)
    if name in ("rand", "uniform_"):
        steps = 2**11 if dtype == torch.float16 else 2**8
        grid = torch.arange(steps) / steps
        if name == "uniform_":
            grid = grid * 7 - 2
        places = torch.searchsorted(values, grid.to(dtype).double())
        probabilities = torch.bincount(places, minlength=len(values)).double() / steps
    else:
        below = distribution(begins)
        probabilities = torch.diff(below, append=torch.ones(1, dtype=torch.float64))
        # What is beyond the finite numbers is the last of them.
        probabilities[0] += below[0]
    counts = torch.zeros(len(values), dtype=torch.int64)
    for numbers in chunks(draw, draws, dtype):
        assert numbers.dtype == dtype
        found, times = numbers.view(torch.int16).unique(return_counts=True)
        found = found.view(dtype).double()
        assert found.isfinite().all()
        counts.index_add_(0, torch.searchsorted(values, found), times)
    assert not counts[probabilities == 0].any()
    assert chi_square(counts.numpy(), probabilities.numpy()) > P_VALUE


DISCRETE = {
    "geometric_": (lambda n, t: empty(n, t).geometric_(0.2), stats.geom(0.2), [*FLOATS, torch.int64, torch.uint8]),
    "bernoulli_": (
        lambda n, t: empty(n, t).bernoulli_(0.3),
        stats.bernoulli(0.3),
        [*FLOATS, torch.int64, torch.bool],
    ),
    "bernoulli": (
        lambda n, t: torch.bernoulli(torch.full((n,), 0.25, device="xla", dtype=t)),
        stats.bernoulli(0.25),
        FLOATS,
    ),
    "dropout": (
        lambda n, t: F.dropout(torch.ones(n, device="xla", dtype=t), 0.35) == 0,
        stats.bernoulli(0.35),
        FLOATS,
    ),
    "random_": (lambda n, t: empty(n, t).random_(), stats.randint(0, 128), [torch.int8]),
    "random_ of a range": (lambda n, t: empty(n, t).random_(-3, 97), stats.randint(-3, 97), [torch.int64, torch.int8, *FLOATS]),
    "randint": (lambda n, t: torch.randint(100, (n,), device="xla", dtype=t), stats.randint(0, 100), [*INTEGERS, torch.uint16]),
    "multinomial": (
        lambda n, t: torch.multinomial(torch.tensor([1, 0, 2, 5, 0], device="xla", dtype=t), n, True),
        stats.rv_discrete(values=([0, 2, 3], [1 / 8, 2 / 8, 5 / 8])),
        FLOATS[:3],
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, t) for name in DISCRETE for t in DISCRETE[name][2]], ids=str
)
def test_discrete(name, dtype, draws, device):
    draw, distribution, _ = DISCRETE[name]
    low, high = -128, 256
    counts = torch.zeros(high - low, dtype=torch.int64)
    for numbers in chunks(draw, draws, dtype):
        places = numbers.long() - low
        assert places.min() >= 0 and places.max() < high - low
        counts += torch.bincount(places, minlength=high - low)
    probabilities = distribution.pmf(np.arange(low, high))
    assert not counts[probabilities == 0].any()
    assert chi_square(counts.numpy(), probabilities) > P_VALUE


def extremes(draw, count):
    """The least and the largest of many numbers, which are never all in memory."""
    torch.manual_seed(1)
    at_once = min(count, MANY // 16)
    parts = [torch.stack(draw(at_once).aminmax()).cpu() for _ in range(0, count, at_once)]
    parts = torch.stack(parts)
    return parts.min().item(), parts.max().item()


def test_normal_numbers_of_rare_bits(device):
    """Of 2^28 numbers the largest is where it is expected, and finite."""
    low, high = extremes(lambda n: torch.randn(n, device="xla"), MANY)
    assert -6.4 < low < -5.2 and 5.2 < high < 6.4


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_rare_bits(dtype, draws, device):
    """Ends that are open stay out. Of --draws 10^8 it takes 2^28 of each."""
    count = MANY if draws >= 10**8 else 2**20
    low, high = extremes(lambda n: torch.randn(n, device="xla", dtype=dtype), count)
    assert -6.5 < low < -4.4 and 4.4 < high < 6.5
    low, high = extremes(lambda n: torch.rand(n, device="xla", dtype=dtype), count)
    assert low >= 0 and high < 1
    low, high = extremes(lambda n: empty(n, dtype).exponential_(), count)
    assert low > 0 and 12 < high < 30
    low, high = extremes(lambda n: empty(n, dtype).log_normal_(), count)
    assert low > 0 and math.isfinite(high)
    low, high = extremes(lambda n: empty(n, dtype).cauchy_(), count)
    assert math.isfinite(low) and math.isfinite(high)
    low, high = extremes(lambda n: empty(n, dtype).geometric_(0.5), count)
    assert low == 1 and 17 < high < 45


# --- Limits


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex(dtype, device):
    torch.manual_seed(0)
    parts = torch.view_as_real(torch.randn(2**19, device=device, dtype=dtype)).cpu()
    assert parts.isfinite().all()
    assert stats.kstest(parts[:100_000, 1].numpy(), stats.norm(scale=0.5**0.5).cdf).pvalue > P_VALUE
    parts = torch.view_as_real(torch.rand(2**19, device=device, dtype=dtype)).cpu()
    assert (parts >= 0).all() and (parts < 1).all()
    mean = torch.full((2**17,), 5 - 3j, device=device, dtype=dtype)
    parts = torch.view_as_real(torch.normal(mean, 2.0)).cpu().double()
    assert (parts.mean(0) - torch.tensor([5.0, -3.0])).abs().max() < 0.03
    assert (parts.std(0) - 2**0.5).abs().max() < 0.02


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(
    "ends", [(0, 1), (100, 101), (-1, 0), (-101, -100), (0.1, 0.7), (3, 3), (-300, 300)], ids=str
)
def test_intervals(ends, dtype, device):
    """Eager itself reaches the upper end of some in a type of few digits."""
    low, high = (torch.tensor(float(end), dtype=dtype) for end in ends)
    torch.manual_seed(0)
    numbers = empty(2**20, dtype).uniform_(*ends).cpu()
    assert numbers.min() >= low
    assert (numbers < high).all() or low == high == numbers.max()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_positive_and_finite(dtype, device):
    """Also where parameters lead beyond what the type has."""
    for rate in (1e-30, 1e-4, 1.0, 1e4, 1e30):
        numbers = empty(2**18, dtype).exponential_(rate).cpu()
        assert (numbers > 0).all() and numbers.isfinite().all()
    assert not empty(4, dtype).exponential_(math.inf).any()
    for mean, deviation in ((0, 1), (5, 5), (-200, 10), (500, 1)):
        numbers = empty(2**18, dtype).log_normal_(mean, deviation).cpu()
        assert (numbers > 0).all() and numbers.isfinite().all()
    assert empty(2**18, dtype).cauchy_(0, 1e4).cpu().isfinite().all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_parameters_beyond_the_type(dtype, device):
    """Of a type that is drawn in f32 they are infinite, and no error."""
    beyond = 1e300
    low, high = empty(64, dtype).cauchy_(0, beyond).cpu().double().aminmax()
    assert -low > 1e4 and high > 1e4 and math.isfinite(high - low)
    most = math.inf if dtype != torch.float64 else torch.finfo(dtype).max
    assert (empty(64, dtype).log_normal_(beyond, 1) == most).all()
    assert (empty(64, dtype).exponential_(beyond) < 1e-7).all()
    for parameters in ((beyond, 1), (-beyond, 1)):
        expected = torch.empty(64, dtype=dtype).normal_(*parameters)
        assert torch.equal(empty(64, dtype).normal_(*parameters).cpu(), expected)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("p", [1e-300, 1e-12, 1e-4, 0.5, 1 - 1e-15])
def test_geometric_numbers_count_trials(p, dtype, device):
    numbers = empty(2**16, dtype).geometric_(p).cpu()
    assert (numbers >= 1).all()
    if dtype.is_floating_point:
        assert numbers.isfinite().all()
    if p == 1 - 1e-15:
        assert (numbers == 1).all()


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int32, torch.bool], ids=str)
def test_certain_coins(dtype, device):
    for p in (0, 1):
        assert (empty(2**20, dtype).bernoulli_(p) == p).all()
        assert (empty(2**20, dtype).bernoulli_(torch.tensor(float(p))) == p).all()
        if dtype.is_floating_point:
            assert (torch.bernoulli(torch.full((2**20,), p, device=device, dtype=dtype)) == p).all()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_dropout_at_its_limits(dtype, device):
    x = torch.full((2**20,), 3.0, device=device, dtype=dtype, requires_grad=True)
    assert torch.equal(F.dropout(x, 0.0), x)
    for p in (1e-18, 1.0):
        x.grad = None
        y = F.dropout(x, p)
        y.sum().backward()
        assert (y == (0 if p == 1 else 3)).all()
        assert (x.grad == (0 if p == 1 else 1)).all()
    # Its scale is more than f16 holds, the product is not.
    small = torch.full((2**20,), 2e-3, device=device, dtype=dtype)
    y = F.dropout(small, 1 - 1e-5)
    kept = y[y != 0].cpu()
    assert len(kept) and torch.allclose(kept.double(), torch.tensor(2e2).double(), rtol=1e-2)


def test_classes_of_probability_zero_are_never_drawn(device):
    """However the sums of the others round: many classes, most of them impossible."""
    torch.manual_seed(0)
    p = torch.rand(5000).square()
    p[torch.rand(5000) < 0.9] = 0
    drawn = torch.multinomial(p.to(device), 100_000, replacement=True).cpu()
    assert (p[drawn] > 0).all()
    counts = torch.bincount(drawn, minlength=5000).numpy()
    assert chi_square(counts, p.numpy()) > P_VALUE


@pytest.mark.parametrize("scale", [2.0**-149, 1e-40, 1.0, 3e38, 1e-310, 1.5e308])
def test_unnormalized_probabilities(scale, device):
    """Their sum, and their quotients, may be beyond the type, or below its normal numbers."""
    torch.manual_seed(0)
    dtype = torch.float32 if 1e-300 < scale < 1e300 else torch.float64
    p = torch.tensor([0, 1, 0, 1, 1, 0, 0], dtype=dtype)
    weights = (p.double() * scale).to(dtype).to(device)
    counts = torch.bincount(torch.multinomial(weights, 3000, True).cpu(), minlength=7).numpy()
    assert chi_square(counts[[1, 3, 4]], np.ones(3)) > P_VALUE and counts.sum() == 3000
    assert counts[[0, 2, 5, 6]].sum() == 0
    rows = torch.multinomial(weights.expand(3000, 7), 3).cpu()
    assert torch.equal(rows.sort().values, torch.tensor([1, 3, 4]).expand(3000, 3))
    first = torch.bincount(rows[:, 0], minlength=7).numpy()
    assert chi_square(first[[1, 3, 4]], np.ones(3)) > P_VALUE


def test_a_small_probability_comes_before_none(device):
    """Also where it is too small to be compared with the largest."""
    weights = torch.tensor([0, 1e-20, 0, 3e38], device=device).expand(100, 4)
    assert torch.equal(torch.multinomial(weights, 2).cpu(), torch.tensor([3, 1]).expand(100, 2))


# --- Integers

MOST = 2**63 - 1
RANGES = [
    (), (1,), (2,), (100,), (128,), (200,), (256,), (257,), (300,), (40_000,), (2**16,), (2**24 + 2,), (2**31,),
    (2**32,), (2**53 + 2,), (MOST,), (0,), (-1,), (5, None), (-5, None), (0, None), (200, None), (70_000, None),
    (-MOST - 1, None), (-3, 7), (5, 5), (7, 5), (-128, 128), (-129, 5), (0, 65504), (0, 65520),
    (999, 1000), (1000, 1001), (2047, 2050), (-(2**31), 2**31), (-MOST - 1, MOST), (2**40, 2**40 + 3), (-(2**62), 2**62),
]  # fmt: skip


def in_eagers_words(error: Exception) -> str:
    """Without the words of our own, which come first where there are any."""
    return str(error).split("eager's check: ")[-1].partition("\n")[0]


def outcome_of_range(ends, dtype, place):
    """The least and the largest of some numbers, or the error."""
    torch.manual_seed(0)
    try:
        drawn = torch.empty(4096, dtype=dtype, device=place).random_(*ends).cpu()
    except (RuntimeError, TypeError, ValueError) as error:
        return in_eagers_words(error)
    numbers = [int(x) for x in drawn.tolist()]
    return min(numbers), max(numbers)


@pytest.mark.filterwarnings("ignore:.*out of bounds")
@pytest.mark.parametrize(
    "dtype", [*FLOATS, *INTEGERS, *UNSIGNED, torch.bool, torch.complex64], ids=str
)
def test_ranges_of_integers(dtype, device):
    """random_ in all its forms: eager's errors, and its limits."""
    for ends in RANGES:
        expected, actual = (outcome_of_range(ends, dtype, place) for place in ("cpu", device))
        told = f"random_{ends}: {actual}, eager {expected}"
        if isinstance(expected, str):
            # Where it has no kernel, eager names its own function.
            assert actual == expected or ("_kernel_cpu" in expected and isinstance(actual, str)), (
                told
            )
            continue
        # The same numbers could have been drawn: both come as near to the limits.
        assert not isinstance(actual, str), told
        (least, most), (low, high) = expected, actual
        spread = most - least + 1
        assert abs(low - least) <= spread / 100 and abs(high - most) <= spread / 100, told
        if len(ends) == 2 and not dtype.is_floating_point:
            assert low >= ends[0] and (ends[1] is None or high < ends[1]), told


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_ranges_that_begin_beyond_the_type(dtype, device):
    """Eager itself hangs, or wraps around."""
    for begin in (2**62, MOST):
        with pytest.raises(RuntimeError, match="'from' casted to dtype"):
            torch.empty(4, dtype=dtype, device=device).random_(begin, None)


@pytest.mark.filterwarnings("ignore:.*out of bounds")
@pytest.mark.parametrize("dtype", [*INTEGERS, torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("ends", [(10,), (0,), (-3, 4), (5, 5), (0, 300), (2**40,)], ids=str)
def test_randint(ends, dtype, device):
    outcomes = []
    for place in ("cpu", device):
        try:
            drawn = torch.randint(*ends, (4096,), dtype=dtype, device=place).cpu()
            outcomes.append((drawn.dtype, drawn.shape))
        except RuntimeError as error:
            outcomes.append(in_eagers_words(error))
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS], ids=str)
@pytest.mark.parametrize("n", [0, 1, 100, 128, 129, 256, 257, 300, 2049, 2050, 40_000])
def test_randperm(n, dtype, device):
    outcomes = []
    for place in ("cpu", device):
        try:
            outcomes.append(torch.randperm(n, dtype=dtype, device=place).cpu().sort().values)
        except RuntimeError as error:
            outcomes.append(str(error).partition("'")[0])
    if isinstance(outcomes[0], str):
        assert outcomes[1] == outcomes[0]
    else:
        assert torch.equal(*outcomes)


ERRORS = {
    "uniform_ of reversed ends": lambda x: x.uniform_(2, 1),
    "uniform_ of a wide range": lambda x: x.uniform_(-1e308, 1e308),
    "uniform_ beyond the type": lambda x: x.uniform_(0, 1e300),
    "normal_": lambda x: x.normal_(0, -1),
    "normal of a number": lambda x: torch.normal(x, -1.0),
    "log_normal_": lambda x: x.log_normal_(0, 0),
    "exponential_": lambda x: x.exponential_(0),
    "exponential_ of less": lambda x: x.exponential_(-0.5),
    "cauchy_": lambda x: x.cauchy_(0, 0),
    "geometric_ of 0": lambda x: x.geometric_(0),
    "geometric_ of 1": lambda x: x.geometric_(1),
    "bernoulli_": lambda x: x.bernoulli_(1.5),
    "bernoulli_ of nan": lambda x: x.bernoulli_(math.nan),
    "dropout": lambda x: F.dropout(x, 1.5),
    "multinomial of none": lambda x: torch.multinomial(x, 0),
    "poisson of integers": lambda x: torch.poisson(x.to(torch.int32)),
    "binomial of integers": lambda x: torch.binomial(x.to(torch.int32), x),
}


@pytest.mark.parametrize("dtype", [*FLOATS, torch.int64], ids=str)
@pytest.mark.parametrize("name", ERRORS)
def test_errors(name, dtype, device):
    messages = []
    for place in ("cpu", device):
        try:
            ERRORS[name](torch.ones(4, dtype=dtype, device=place))
        except (RuntimeError, ValueError) as error:
            messages.append("not implemented" if "not implemented" in str(error) else str(error))
        else:
            messages.append("")
    assert messages[0] == messages[1]


# Whatever the engine: what is drawn follows from the program, of which the engine gives the bits alone.
ON_ANY_ENGINE = """
import torch, torch_xla
for dtype in (torch.float32, torch.float16, torch.bfloat16):
    n = 2**22
    low, high = torch.randn(n, device="xla", dtype=dtype).aminmax()
    assert -6.4 < low < -4.4 and 4.4 < high < 6.4, (low, high)
    low, high = torch.rand(n, device="xla", dtype=dtype).aminmax()
    assert low >= 0 and high < 1, (low, high)
    low, high = torch.empty(n, device="xla", dtype=dtype).uniform_(100, 101).aminmax()
    assert low >= 100 and high < 101, (low, high)
    low, high = torch.empty(n, device="xla", dtype=dtype).exponential_().aminmax()
    assert 0 < low and 12 < high < 23, (low, high)
x = torch.empty(2**16, device="xla", dtype=torch.int64).random_(5, None).cpu()
assert (x >= 5).all()
"""


@pytest.mark.parametrize("engine", ["ours", pytest.param("xla_cpu", marks=pytest.mark.exhaustive)])
def test_on_any_engine(engine, program):
    program.run_code(ON_ANY_ENGINE, **engine_environment(engine))
