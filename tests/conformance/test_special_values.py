"""Functions at zeros, poles, infinities and NaN, and where a result is a plain number, are those of eager to the last bit.

Asked is where eager agrees with itself: computing one number or many of them, in the type or in float64.
"""

import cmath
import math
from fractions import Fraction

import pytest
import torch
import torch.nn.functional as F

import torch_xla  # noqa: F401 - the device

special = torch.special

NUMBERS = [
    0.0,
    0.25,
    0.5,
    1.0,
    1.5,
    2.0,
    2.5,
    3.0,
    4.0,
    5.0,
    7.0,
    8.0,
    10.0,
    16.0,
    20.0,
    64.0,
    88.0,
]
NUMBERS += [100.0, 1e3, 1e4, 1e5, 1e6, 1e9, 2.0**29, 2.0**-126, 1e-30, 1e-40, 1e38, math.inf]
POINTS = [*NUMBERS, *(-x for x in NUMBERS), math.nan]
FEW_POINTS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    2.5,
    -2.5,
    7.0,
    -7.0,
    1e30,
    1e-30,
    -1e30,
    math.inf,
    -math.inf,
    math.nan,
]
DTYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]

OF_ONE = """
abs acos acosh asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor frac i0 lgamma log log10
log1p log2 logit neg rad2deg reciprocal round rsqrt sigmoid sign signbit sin sinc sinh sqrt square tan tanh trunc
special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1 special.entr special.erfcx special.i0e special.i1 special.i1e
special.log_ndtr special.modified_bessel_i0 special.modified_bessel_i1 special.modified_bessel_k0 special.modified_bessel_k1
special.ndtr special.ndtri special.scaled_modified_bessel_k0 special.scaled_modified_bessel_k1 special.spherical_bessel_j0
F.celu F.elu F.gelu F.hardswish F.logsigmoid F.mish F.selu F.silu F.softplus F.softsign F.tanhshrink
"""
OF_TWO = """
atan2 copysign floor_divide fmod heaviside hypot ldexp logaddexp logaddexp2 maximum minimum nextafter pow remainder
special.xlog1py xlogy
"""


def function(name):
    of, _, last = name.rpartition(".")
    return getattr({"F": F, "special": special}.get(of, torch), last)


def alike(x, y):
    """Where two tensors have the same numbers, zeros with their signs."""
    return ((x == y) & (x.signbit() == y.signbit())) | (x.isnan() & y.isnan())


def is_plain(x):
    return ~x.isfinite() | ((x * 64 == (x * 64).round()) & (x.abs() <= 1e4))


def check(f, *arguments):
    """Of 1-dimensional arguments of one type; returns how many numbers were compared."""
    eager = f(*arguments)
    alone = torch.stack([f(*numbers) for numbers in zip(*arguments, strict=True)])
    wide = f(*(x.double() for x in arguments)).double()
    actual = f(*(x.to("xla") for x in arguments)).cpu()
    asked = alike(eager, alone) & alike(eager, wide.to(eager.dtype)) & is_plain(wide)
    wrong = asked & ~alike(eager, actual)
    shown = [x[wrong][:8].tolist() for x in (*arguments, actual, eager)]
    assert not wrong.any(), f"{eager.dtype}, of {shown[:-2]}: {shown[-2]} instead of {shown[-1]}"
    return int(asked.sum())


@pytest.mark.parametrize("name", OF_ONE.split())
def test_of_one(name):
    compared = 0
    for dtype in DTYPES:
        points = torch.tensor(POINTS, dtype=torch.float64).to(dtype)
        try:
            compared += check(function(name), points)
        except NotImplementedError:  # eager's of this type
            assert dtype in (torch.bfloat16, torch.float16)
    assert compared >= 4


@pytest.mark.parametrize("name", OF_TWO.split())
def test_of_two(name):
    for dtype in DTYPES:
        points = torch.tensor(FEW_POINTS, dtype=torch.float64).to(dtype)
        x, y = torch.meshgrid(points, points, indexing="ij")
        assert check(function(name), x.flatten(), y.flatten()) >= 30


COMPLEX_PARTS = [0.0, -0.0, 1.0, -1.0, 2.5, 700.0, -700.0, 1e30, -1e-30]
COMPLEX_PARTS += [math.inf, -math.inf, math.nan]
OF_ONE_COMPLEX = """
abs acos acosh asin asinh atan atanh cos cosh exp exp2 expm1 log log2 log10 reciprocal rsqrt sgn sigmoid sin sinc sinh sqrt square
tan tanh
"""


def check_complex(f, *arguments, tolerance):
    """Parts are infinite or NaN where eager's are, and else as far from eager's as the number's size allows."""
    expected = torch.view_as_real(f(*arguments).to(arguments[0].dtype))
    actual = torch.view_as_real(f(*(x.to("xla") for x in arguments)).cpu().to(arguments[0].dtype))
    size = expected.nan_to_num(0, 0, 0).abs().amax(-1, keepdim=True)
    near = (actual - expected).abs() <= tolerance * size
    wrong = ~(near | (actual == expected) | (actual.isnan() & expected.isnan())).all(-1)
    shown = [x[wrong][:8].tolist() for x in arguments]
    shown += [torch.view_as_complex(x)[wrong][:8].tolist() for x in (actual, expected)]
    assert not wrong.any(), f"of {shown[:-2]}: {shown[-2]} instead of {shown[-1]}"


def complex_points(dtype):
    part = torch.tensor(COMPLEX_PARTS, dtype=dtype.to_real())
    real, imaginary = torch.meshgrid(part, part, indexing="ij")
    return torch.complex(real.flatten(), imaginary.flatten())


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", OF_ONE_COMPLEX.split())
def test_of_one_complex(name, dtype):
    points = complex_points(dtype)
    if name == "acos":  # next to 1 eager's has few right digits
        points = points[(points.real != 1) | ~(points.imag.abs() < 1e-20)]
    tolerance = 1e-5 if dtype == torch.complex64 else 1e-13
    check_complex(getattr(torch, name), points, tolerance=tolerance)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", ["mul", "div", "pow"])
def test_of_two_complex(name, dtype):
    points = complex_points(dtype)
    x, y = points.repeat_interleave(len(points)), points.repeat(len(points))
    if name == "pow":
        # Eager's tensors of exponents know no 0^0, which is 1 for its numbers; the angle of a large
        # power, and the logarithm of a number next to 1, are roundings.
        is_moderate = (y.real.abs() < 3) & (y.imag.abs() < 3)
        is_next_to_one = ((x.abs() - 1).abs() < 0.1) & (x.real != 0) & (x.imag != 0)
        asked = (y != 0) & (is_moderate | ~y.isfinite()) & ~is_next_to_one
        x, y = x[asked], y[asked]
    tolerance = 1e-4 if dtype == torch.complex64 else 1e-12
    check_complex(getattr(torch, name), x, y, tolerance=tolerance)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_results_that_are_almost_too_large(dtype):
    largest = torch.finfo(dtype).max
    exponent = math.log(largest)
    half_pi = math.pi / 2
    smallest = 1e-44 if dtype == torch.complex64 else 2e-323
    given = {
        torch.exp: [complex(exponent + 1, 1.5), complex(exponent + 3, -half_pi)],
        torch.sinh: [complex(exponent + 1, 1.5), complex(-exponent - 1, 1.5)],
        torch.cosh: [complex(exponent + 1, 1.5), complex(exponent + 0.5, 0.1)],
        torch.sin: [complex(0.1, exponent + 1)],
        torch.cos: [complex(1.5, -exponent - 1)],
        torch.sqrt: [complex(0.9 * largest, 0.9 * largest), complex(-0.9 * largest, 1.0)],
        torch.log: [complex(0.9 * largest, 0.9 * largest)],
        torch.acos: [complex(0.9 * largest, 0.9 * largest), complex(0.5, 1e-30)],
        torch.asin: [complex(0.9 * largest, 0.9 * largest), complex(1e-30, 1e-30), 1 + 1e-30j],
        torch.atanh: [
            *(complex(0.9 * largest, y) for y in (0.0, 0.9 * largest)),
            1 + 1e-30j,
            *(1e-30 + 2j, complex(1, smallest)),
        ],
    }
    for f, numbers in given.items():
        x = torch.tensor(numbers, dtype=dtype)
        check_complex(f, x, tolerance=1e-4 if dtype == torch.complex64 else 1e-12)


@pytest.mark.parametrize("base", [2, 10])
def test_powers_have_whole_logarithms(base):
    for dtype, largest in {
        torch.float32: 38,
        torch.float64: 308,
        torch.bfloat16: 38,
        torch.float16: 4,
    }.items():
        powers = torch.tensor([float(base) ** n for n in range(largest + 1)], dtype=torch.float64)
        x = powers.to(dtype)
        x = x[x == powers]
        log = torch.log2 if base == 2 else torch.log10
        assert len(x) >= 3
        assert torch.equal(log(x.to("xla")).cpu(), log(x))
        assert torch.equal(log(1 / x[:20].to("xla")).cpu().round(), log(1 / x[:20]).round())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_neighbours_in_narrow_types(dtype):
    x = torch.tensor([0.0, 1, -1, 2, 1e-3, math.inf], dtype=dtype)
    towards = torch.tensor([1.0, 2, -2, 0, 5, 0], dtype=dtype)
    actual = torch.nextafter(x.to("xla"), towards.to("xla")).cpu()
    assert torch.equal(actual, torch.nextafter(x, towards))


@pytest.mark.filterwarnings("ignore:Casting complex values")
@pytest.mark.parametrize("source", [*DTYPES, torch.complex64], ids=str)
def test_floats_as_bytes_are_modulo_256(source):
    x = torch.tensor([-1.5, -0.5, -200, 255, 256, 300.7, -3e4, 3.1e4], dtype=torch.float64).to(
        source
    )
    y = x.to("xla")
    expected = x.to(torch.uint8)
    assert expected[0] == 255
    target = torch.zeros_like(y, dtype=torch.uint8)
    assert torch.equal(y.to(torch.uint8).cpu(), expected)
    assert torch.equal(target.copy_(y).cpu(), expected)
    if not source.is_complex:
        assert torch.equal(y.cumsum(0, dtype=torch.uint8).cpu(), x.cumsum(0, dtype=torch.uint8))
        assert torch.equal(y.sum(dtype=torch.uint8).cpu(), x.sum(dtype=torch.uint8))


@pytest.mark.parametrize("size", [3, 100], ids=["few", "many"])
@pytest.mark.parametrize("right", [False, True])
def test_nan_belongs_behind_all_boundaries(size, right):
    boundaries = torch.arange(float(size))
    values = torch.tensor([math.nan, 1.0, -1.0, 1e9, math.nan])
    expected = torch.bucketize(values, boundaries, right=right)
    assert expected[0] == size
    actual = torch.bucketize(values.to("xla"), boundaries.to("xla"), right=right)
    assert torch.equal(actual.cpu(), expected)


@pytest.mark.parametrize(
    "dtype", [torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64], ids=str
)
def test_common_multiples_that_are_too_large(dtype):
    numbers = torch.tensor([0, 7, 96, 100, 125, 127], dtype=dtype)
    if dtype.is_signed:
        numbers = torch.cat([numbers, -numbers])
    x, y = torch.meshgrid(numbers, numbers, indexing="ij")
    assert torch.equal(torch.lcm(x.to("xla"), y.to("xla")).cpu(), torch.lcm(x, y))


@pytest.mark.parametrize("dtype", [*DTYPES, torch.complex64, torch.complex128], ids=str)
def test_infinities_become_the_largest_numbers(dtype):
    x = torch.tensor([math.inf, -math.inf, math.nan, 1.5, -0.0], dtype=dtype)
    if dtype.is_complex:
        x = torch.complex(x.real, x.real.flip(0))
    for replacements in [(), (1.0, 2.0, -3.0), (None, 1e30, None), (0.1, None, -1e39)]:
        expected = x.nan_to_num(*replacements)
        assert torch.equal(x.to("xla").nan_to_num(*replacements).cpu(), expected)
        assert torch.equal(x.to("xla").nan_to_num_(*replacements).cpu(), expected)


NARROW = [torch.bfloat16, torch.float16]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("name", ["fmod", "remainder"])
def test_remainders_of_numbers_that_are_rounded(name, dtype):
    f, in_place = getattr(torch, name), getattr(torch.Tensor, name + "_")
    x = torch.tensor([615, -615, 3.3, 0.1, 1e3, 0.0, math.inf], dtype=dtype)
    y = x.to("xla")
    for divisor in [0.3, -0.7, 3, 3.3, 1e-9, 7e4, math.inf]:
        expected = f(x, divisor)
        assert alike(f(y, divisor).cpu(), expected).all()
        assert alike(in_place(y.clone(), divisor).cpu(), expected).all()
        for of in (torch.float32, torch.float64):
            scalar = torch.tensor(divisor, dtype=of)
            assert alike(f(y, scalar.to("xla")).cpu(), f(x, scalar)).all()
            assert alike(f(y, scalar).cpu(), f(x, scalar)).all()
            assert alike(in_place(y.clone(), scalar.to("xla")).cpu(), expected).all()
            assert alike(f(scalar.to("xla"), y).cpu(), f(scalar, x)).all()
    assert alike(torch.remainder(2.7, y).cpu(), torch.remainder(2.7, x)).all()


@pytest.mark.parametrize("number", [3, 2.5, -4])
def test_remainders_promote_as_other_operators(number):
    for dtype in (torch.uint8, torch.int32, torch.float32, torch.float64):
        if dtype == torch.uint8 and number < 0:
            continue
        x = torch.arange(1, 10).to(dtype)
        for f in (torch.fmod, torch.remainder, lambda x, y: torch.remainder(y, x)):
            actual, expected = f(x.to("xla"), number).cpu(), f(x, number)
            assert actual.dtype == expected.dtype
            assert torch.equal(actual, expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_floats_beyond_all_integers_as_bytes(dtype):
    x = torch.tensor(
        [math.inf, -math.inf, math.nan, 1e19, -1e19, 2.0**63, -(2.0**63), 3], dtype=torch.float64
    )
    x = x.to(dtype)
    expected = x.to(torch.uint8)
    assert expected.tolist() == [0] * 7 + [3]
    assert torch.equal(x.to("xla").to(torch.uint8).cpu(), expected)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_digamma_beside_its_poles(dtype):
    near = torch.logspace(-6, -1, 50, dtype=torch.float64)
    poles = -torch.arange(8, dtype=torch.float64)[:, None]
    x = torch.cat([poles - near, poles + near]).to(dtype)
    actual, expected = torch.digamma(x.to("xla")).cpu(), torch.digamma(x.double()).to(dtype)
    # Eager's own loses six digits of f64; it has zeros between the poles.
    eps = max(torch.finfo(dtype).eps, 1e-10)
    torch.testing.assert_close(actual, expected, rtol=16 * eps, atol=100 * eps, equal_nan=True)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_the_error_function_has_limits(dtype):
    x = torch.linspace(-12, 12, 200_001, dtype=torch.float64).to(dtype)
    y = x.to("xla")
    assert torch.erf(y).cpu().abs().max() == 1
    erfc = torch.erfc(y).cpu()
    assert erfc.min() >= 0 and erfc.max() == 2
    assert special.ndtr(y).cpu().min() >= 0 and special.ndtr(y).cpu().max() == 1
    assert F.gelu(y).cpu()[x < 0].max() <= 0


def test_the_error_function_of_doubles_is_right_to_the_last_bits():
    x = torch.cat(
        [
            torch.linspace(-6.5, 6.5, 40001, dtype=torch.float64),
            torch.logspace(-320, 0, 2001, dtype=torch.float64),
        ]
    )
    exact = torch.tensor([math.erf(number) for number in x.tolist()], dtype=torch.float64)
    differences = (x.to("xla").erf().cpu() - exact).abs()
    assert (differences <= 2 * torch.finfo(torch.float64).eps * exact.abs() + 1e-323).all()


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 1e-6), (torch.float64, 1e-14)])
def test_quantiles_of_small_probabilities(dtype, tolerance):
    smallest = -37 if dtype == torch.float32 else -307
    p = torch.logspace(smallest, -0.31, 1000, dtype=torch.float64).to(dtype)
    p = torch.cat([p, 1 - p])
    y = p.to("xla").requires_grad_()
    actual = special.ndtri(y)
    actual.sum().backward()
    x = p.clone().requires_grad_()
    expected = special.ndtri(x)
    expected.sum().backward()
    wide = special.ndtri(p.double())  # of f32: without its rounding
    inner = p < 1
    error = (actual.detach().cpu().double() - wide)[inner].abs()
    assert (error <= tolerance * (wide[inner].abs() + 0.1)).all()
    assert (actual.detach().cpu()[~inner] == math.inf).all()
    torch.testing.assert_close(y.grad.cpu()[inner], x.grad[inner], rtol=2e3 * tolerance, atol=0)


SCATTERS = {
    "scatter_add": lambda x, i, ones: x.scatter_add(0, i, ones),
    "scatter_reduce sum": lambda x, i, ones: x.scatter_reduce(0, i, ones, "sum"),
    "scatter_reduce mean": lambda x, i, ones: x.scatter_reduce(0, i, ones, "mean"),
    "scatter_reduce mean of src": lambda x, i, ones: x.scatter_reduce(
        0, i, ones, "mean", include_self=False
    ),
    "scatter_reduce prod": lambda x, i, ones: x.scatter_reduce(0, i, ones * 1.001, "prod"),
    "scatter add": lambda x, i, ones: x.scatter(0, i, ones, reduce="add"),
    "scatter number": lambda x, i, ones: x.scatter(0, i, 1.0, reduce="add"),
}


def gradient_of_gather(x, i, ones):
    x = x.detach().requires_grad_()
    x.gather(0, i).backward(ones)
    return x.grad


SCATTERS["gradient of gather"] = gradient_of_gather


@pytest.mark.filterwarnings("ignore:The reduce argument of torch.scatter with Tensor src")
@pytest.mark.parametrize("dtype", NARROW, ids=str)
@pytest.mark.parametrize("shape", [(5000,), (5000, 2)], ids=str)
@pytest.mark.parametrize("name", SCATTERS)
def test_scattered_sums_do_not_stop(name, shape, dtype):
    x, ones = torch.ones((2, *shape[1:]), dtype=dtype), torch.ones(shape, dtype=dtype)
    index = torch.zeros(shape, dtype=torch.int64)
    index[-257:] = 1  # with x, 258: bf16 has no 257
    expected = SCATTERS[name](x, index, ones)
    actual = SCATTERS[name](x.to("xla"), index.to("xla"), ones.to("xla")).cpu()
    assert torch.equal(actual, expected)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
@pytest.mark.parametrize("name", ["log", "log2", "log10"])
def test_logarithms_of_a_complex_zero(name, dtype):
    x = torch.tensor([0j, complex(-0.0, 0.0), complex(0.0, -0.0), 1 + 0j], dtype=dtype)
    actual, expected = (getattr(torch, name)(z).cpu() for z in (x.to("xla"), x))
    assert alike(actual.real, expected.real).all()
    torch.testing.assert_close(actual.imag, expected.imag)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_logarithms_of_complex_numbers_of_size_one(dtype):
    x = torch.polar(torch.ones(500, dtype=torch.float64), torch.linspace(-3.1, 3.1, 500).double())
    x = torch.cat([x, x * 0.75, x * 1.2, 1 + x * 1e-6]).to(dtype)

    def logarithm(z):  # of the size, by fractions
        square = Fraction(z.real) ** 2 + Fraction(z.imag) ** 2
        return math.log1p(float(square - 1)) / 2

    expected = torch.tensor([logarithm(z) for z in x.tolist()], dtype=torch.float64)
    actual = x.to("xla").log().cpu().real.double()
    rtol = 1e-6 if dtype == torch.complex64 else 1e-14
    atol = 4 * torch.finfo(dtype).eps ** 2
    torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_small_parts_of_complex_tangents(dtype):
    sizes = [0.5, 5.0, 9.0, 18.0, 20.0, 40.0] + ([71.0, 300.0] if dtype == torch.complex128 else [])
    points = [complex(a * sign, b) for a in sizes for b in (1.0, -2.0, 1.5) for sign in (1, -1)]
    x = torch.tensor(points, dtype=dtype)
    rtol = 1e-5 if dtype == torch.complex64 else 1e-13
    for f, z in ((torch.tanh, x), (torch.tan, x * 1j)):
        actual, expected = f(z.to("xla")).cpu(), f(z.to(torch.complex128)).to(dtype)
        for part in (torch.real, torch.imag):
            torch.testing.assert_close(part(actual), part(expected), rtol=rtol, atol=0.0)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128], ids=str)
def test_complex_roots_of_subnormal_numbers(dtype):
    smallest = torch.finfo(dtype).smallest_normal
    quantum = smallest * torch.finfo(dtype).eps
    sizes = (quantum, 3 * quantum, smallest / 2, smallest)
    points = [complex(x, y) for x in (*sizes, 0.0, *(-s for s in sizes)) for y in sizes]
    x = torch.tensor(points, dtype=dtype)
    expected = torch.tensor([cmath.sqrt(z) for z in points], dtype=dtype)
    rtol = 1e-6 if dtype == torch.complex64 else 1e-14
    torch.testing.assert_close(x.to("xla").sqrt().cpu(), expected, rtol=rtol, atol=0.0)
    logarithms = torch.tensor([cmath.log(z) for z in points], dtype=dtype)
    torch.testing.assert_close(x.to("xla").log().cpu(), logarithms, rtol=rtol, atol=0.0)
    # Beside 1 the angle is the root of a subnormal number, too.
    acos = torch.complex(torch.ones(4, dtype=x.real.dtype), torch.tensor(sizes).to(x.real.dtype))
    roots = torch.tensor([math.sqrt(s) for s in acos.imag.tolist()], dtype=x.real.dtype)
    actual = acos.to("xla").acos().cpu()
    torch.testing.assert_close(actual, torch.complex(roots, -roots), rtol=rtol, atol=0.0)


@pytest.mark.parametrize("name", ["gammainc", "gammaincc"])
def test_incomplete_gamma_functions_of_large_arguments(name):
    f = getattr(special, name)
    shift = torch.tensor([-4.0, -1.0, -0.1, -1e-3, 0.0, 1e-3, 0.1, 1.0, 4.0], dtype=torch.float64)
    for size in [9e4, 1.1e5, 1e6, 1e10, 1e16, 1e30]:
        a = torch.full_like(shift, size)
        x = a + shift * a.sqrt()
        actual = f(a.to("xla"), x.to("xla")).cpu()
        if size < 1e12:
            torch.testing.assert_close(actual, f(a, x), rtol=1e-9, atol=1e-12)
        else:  # where eager's x / a has lost its digits, it is a normal distribution's
            sign = -1 if name == "gammainc" else 1
            normal = torch.erfc(sign * (x - a) / (2 * a).sqrt()) / 2
            torch.testing.assert_close(actual, normal, rtol=1e-6, atol=1e-9)
    # Far from `a` one is 0 and the other 1.
    far = torch.tensor([1e-300, 1.0, 1e3, 1e9, 1e300, math.inf], dtype=torch.float64)
    a = torch.full_like(far, 1e6)
    is_above = (far > a).double()
    actual = getattr(special, name)(a.to("xla"), far.to("xla")).cpu()
    assert torch.equal(actual, is_above if name == "gammainc" else 1 - is_above)


def test_zeta_of_large_exponents():
    s = torch.tensor([1e18, 1e20, 1e300, math.inf], dtype=torch.float64).repeat_interleave(4)
    q = torch.tensor([0.5, 1.0, -2.5, -2.0], dtype=torch.float64).repeat(4)
    for dtype in (torch.float32, torch.float64):
        x, y = s.to(dtype), q.to(dtype)
        expected = special.zeta(x, y)
        assert torch.equal(special.zeta(x.to("xla"), y.to("xla")).cpu(), expected)


@pytest.mark.parametrize("dtype", [*DTYPES, torch.int64], ids=str)
def test_factors_are_read_in_the_type_of_the_result(dtype):
    x = torch.tensor([1, 2, 3], dtype=dtype)
    y, z = torch.tensor([[1.1, 2.3, 3.7], [1e-3, 2.0, 3.3]], dtype=torch.float64)
    for f in [torch.addcmul, torch.addcdiv]:
        actual = f(*(t.to("xla") for t in (x, y, z)), value=0.1).cpu()
        torch.testing.assert_close(actual, f(x, y, z, value=0.1), rtol=1e-15, atol=1e-15)
    for f in [torch.add, torch.sub, torch.rsub]:
        for first, second in ((x, y), (y, x)):
            actual = f(first.to("xla"), second.to("xla"), alpha=0.1).cpu()
            expected = f(first, second, alpha=0.1)
            torch.testing.assert_close(actual, expected, rtol=1e-15, atol=1e-15)


def test_quotients_of_integers_are_not_added():
    x, n = torch.ones(3), torch.tensor([1, 2, 3])
    for device in ("cpu", "xla"):
        with pytest.raises(RuntimeError, match="Integer division with addcdiv"):
            torch.addcdiv(x.to(device), n.to(device), n.to(device))


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.float32], ids=str)
def test_complex_numbers_do_not_fill_what_is_real(dtype):
    for device in ("cpu", "xla"):
        x, index = torch.ones(3, dtype=dtype, device=device), torch.tensor([0], device=device)
        for value in (1j, torch.tensor(1j, device=device)):
            with pytest.raises(RuntimeError):
                x.index_fill(0, index, value)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8, *DTYPES], ids=str)
def test_ranges_between_fractions(dtype):
    bounds = [(0, 3.1), (-0.5, 3.7), (0.5, 5.5, 1.5), (5, 0, -1.5), (10.9, 0.1, -2.7), (2.5, 2.6)]
    for given in [*bounds, (0, 3.0000001), (0, 4, 0.5)]:

        def made(device, given=given):
            try:
                return torch.arange(*given, dtype=dtype, device=device).cpu()
            except ValueError as error:
                return str(error)

        expected, actual = made("cpu"), made("xla")
        if isinstance(expected, str):
            assert actual == expected == "step must be nonzero", given
        else:
            torch.testing.assert_close(actual, expected)
    for given in [(0.5, 5.7, 4), (9.9, 0.1, 7), (1.5, 1.5, 3), (0.9, 7, 1), (0.5, 2.7, 4)]:
        for f in (torch.linspace, torch.logspace):
            if f is torch.logspace and given[0] > 9:
                continue
            actual = f(*given, dtype=dtype, device="xla").cpu()
            expected = f(*given, dtype=dtype)
            narrow = dtype in (torch.bfloat16, torch.float16)
            rtol, atol = (5e-2, 1e-2) if narrow else (1e-5, 1e-5)
            torch.testing.assert_close(actual, expected, rtol=rtol, atol=atol)


def test_bounds_of_a_range_that_nobody_writes():
    for bounds in ((math.nan, 1, 0), (3, math.nan, 1), (1e19, 1, 0)):
        actual = torch.linspace(*bounds, dtype=torch.int32, device="xla").cpu()
        assert actual.tolist() == torch.linspace(*bounds, dtype=torch.int32).tolist()


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.float32], ids=str)
def test_one_number_of_a_logarithmic_space(dtype):
    for start, base in ((2.7, 10), (0.5, 10), (2.7, 2)):
        actual = torch.logspace(start, 5, 1, base, dtype=dtype, device="xla").cpu()
        torch.testing.assert_close(actual, torch.logspace(start, 5, 1, base, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_lgamma_next_to_zero(dtype):
    x = torch.tensor(
        [torch.finfo(dtype).smallest_normal * 2.0**-k for k in (0, 9, 20)] + [1e-30, 1e-12],
        dtype=dtype,
    )
    x = torch.cat([x, torch.nextafter(torch.zeros(1, dtype=dtype), x[:1])])
    for y in (x, -x):
        torch.testing.assert_close(torch.lgamma(y.to("xla")).cpu(), torch.lgamma(y))


def test_remainders_of_huge_quotients():
    """Eager's are NaN for some elements, and right for the others."""
    x = [1e308, -1e308, 1.7e308, 1e308, 5e300, -3.0, 1.0, 5e-324]
    y = [1e-308, 3e-310, 5e-324, 7e-300, -1e-9, 5e-324, 2.0**-1023, 1e308]
    dividends, divisors = (torch.tensor(v, dtype=torch.float64, device="xla") for v in (x, y))
    actual = torch.fmod(dividends, divisors).tolist()
    assert actual == [math.fmod(a, b) for a, b in zip(x, y, strict=True)]
    actual = torch.remainder(dividends, divisors).tolist()
    assert actual == [a % b for a, b in zip(x, y, strict=True)]


def test_trigamma_of_large_numbers():
    """Their squares are no numbers of their type."""
    x = torch.tensor([1e17, 2e19, 1e20, 1e21, 5e21])
    torch.testing.assert_close(
        torch.polygamma(1, x.to("xla")).cpu(), torch.polygamma(1, x), rtol=1e-6, atol=0
    )


MEANINGLESS = {
    torch.complex64: [
        torch.fmod, torch.atan2, torch.xlogy, special.xlog1py, special.zeta, torch.maximum, torch.minimum, torch.fmax,
        torch.fmin, lambda x, y: torch.sign(x), lambda x, y: torch.erf(x), lambda x, y: x.clamp_min(y),
    ],
    torch.int32: [torch.nextafter],
    torch.bool: [torch.lcm, torch.gcd],
    torch.float32: [torch.lcm, torch.gcd],
}  # fmt: skip


@pytest.mark.parametrize("dtype", MEANINGLESS, ids=str)
def test_what_has_no_meaning_is_refused(dtype):
    x = torch.ones(3).to(dtype)
    for f in MEANINGLESS[dtype]:
        for operand in (x, x.to("xla")):
            with pytest.raises(RuntimeError, match=r"not (implemented|supported|intended)|only"):
                f(operand, operand)
