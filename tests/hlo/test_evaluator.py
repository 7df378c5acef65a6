"""The reference evaluator against XLA:CPU, operation by operation."""

import jax
import jax.numpy as jnp
import numpy as np
import oracle
import pytest
from jax import lax
from jax._src.lax import windowed_reductions as windowed

BF16 = jnp.bfloat16
FLOATS = [np.float16, BF16, np.float32, np.float64]
COMPLEXES = [np.complex64, np.complex128]
SIGNED = [np.int8, np.int16, np.int32, np.int64]
UNSIGNED = [np.uint8, np.uint16, np.uint32, np.uint64]
INTEGERS = SIGNED + UNSIGNED
NUMBERS = INTEGERS + FLOATS + COMPLEXES
ALL = [np.bool_, *NUMBERS]

MLIR = {
    np.bool_: "i1", np.int8: "i8", np.int16: "i16", np.int32: "i32", np.int64: "i64",
    np.uint8: "ui8", np.uint16: "ui16", np.uint32: "ui32", np.uint64: "ui64",
    np.float16: "f16", BF16: "bf16", np.float32: "f32", np.float64: "f64",
    np.complex64: "complex<f32>", np.complex128: "complex<f64>",
}  # fmt: skip

rng = np.random.default_rng(0)


@pytest.fixture(autouse=True)
def same_values():
    """Each test draws the same ones, whichever ran before."""
    global rng
    rng = np.random.default_rng(0)


@pytest.fixture(scope="module")
def evaluator():
    path = oracle.find_program("hlo_evaluate")
    if path is None:
        pytest.fail("hlo_evaluate is not built")
    running = oracle.Evaluator(path)
    yield running
    running.close()


def is_complex(dtype):
    return dtype in COMPLEXES


def values(dtype, shape=(4, 6), low=-4, high=4):
    """Arbitrary ones of a moderate size."""
    if dtype is np.bool_:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in INTEGERS:
        return rng.integers(max(low, 0) if dtype in UNSIGNED else low, high + 1, shape).astype(
            dtype
        )
    x = rng.uniform(low, high, shape)
    if is_complex(dtype):
        x = x + 1j * rng.uniform(low, high, shape)
    return x.astype(dtype)


def edges(dtype):
    """Those at which operations differ from the naive."""
    if dtype is np.bool_:
        return np.array([False, True])
    if dtype in INTEGERS:
        info = np.iinfo(dtype)
        bits = info.bits
        some = [0, 1, 2, 3, 7, bits - 1, bits, bits + 1, info.max, info.max - 1]
        if dtype in SIGNED:
            some += [-1, -2, -3, -7, info.min, info.min + 1]
        return np.array(some, dtype)
    if is_complex(dtype):
        parts = [0.0, 0.5, -1.5, 3.0, 1e-3]
        return np.array([complex(a, b) for a in parts for b in parts], dtype)
    info = jnp.finfo(dtype)
    some = [0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.7, -3.7, 1e-3, 100.0, 1e4]
    some += [np.inf, -np.inf, np.nan, float(info.max), -float(info.max), float(info.tiny)]
    return np.array(some).astype(dtype)


def pairs(dtype):
    e = edges(dtype)
    x, y = np.meshgrid(e, e)
    return np.ascontiguousarray(x.ravel()), np.ascontiguousarray(y.ravel())


def tensor(array):
    dims = "".join(f"{d}x" for d in array.shape)
    return f"tensor<{dims}{MLIR[next(k for k in MLIR if np.dtype(k) == array.dtype)]}>"


def program(body, results, *arguments):
    """A module around one statement or several, whose last value is %r (or %r:N)."""
    given = ", ".join(f"%{n}: {tensor(a)}" for n, a in zip("abcdefgh", arguments, strict=False))
    names = ["%r"] if len(results) == 1 else [f"%r#{i}" for i in range(len(results))]
    return f"""module {{ func.func public @main({given}) -> ({", ".join(results)}) {{
      {body}
      return {", ".join(names)} : {", ".join(results)} }} }}"""


QUICK = {np.bool_, np.int32, np.uint32, BF16, np.float32, np.complex64}


def slow_but_for_quick_types(cases):
    """Tuples of parameters of which `make check` takes those whose types are all among `QUICK`."""
    return [
        pytest.param(*case, marks=[] if {*ALL} & {*case} <= QUICK else [pytest.mark.slow])
        for case in cases
    ]


# Element-wise ----------------------------------------------------------------------------------

EXACT_UNARY = ["abs", "ceil", "floor", "negate", "round_nearest_afz", "round_nearest_even", "sign",
               "sqrt", "is_finite", "real", "imag", "not", "popcnt",
               "count_leading_zeros"]  # fmt: skip
UNARY = {
    "abs": SIGNED + FLOATS + COMPLEXES,
    "cbrt": FLOATS,
    "ceil": FLOATS,
    "cosine": FLOATS + COMPLEXES,
    "count_leading_zeros": INTEGERS,
    "exponential": FLOATS + COMPLEXES,
    "exponential_minus_one": FLOATS + COMPLEXES,
    "floor": FLOATS,
    "imag": [np.float32, np.float64, *COMPLEXES],
    "is_finite": FLOATS,
    "log": FLOATS + COMPLEXES,
    "log_plus_one": FLOATS + COMPLEXES,
    "logistic": FLOATS + COMPLEXES,
    "negate": INTEGERS + FLOATS + COMPLEXES,
    "not": [np.bool_, *INTEGERS],
    "popcnt": INTEGERS,
    "real": [np.float32, np.float64, *COMPLEXES],
    "round_nearest_afz": FLOATS,
    "round_nearest_even": FLOATS,
    "rsqrt": FLOATS + COMPLEXES,
    "sign": SIGNED + FLOATS + COMPLEXES,
    "sine": FLOATS + COMPLEXES,
    "sqrt": FLOATS + COMPLEXES,
    "tan": FLOATS + COMPLEXES,
    "tanh": FLOATS + COMPLEXES,
}
PART = {np.complex64: np.float32, np.complex128: np.float64}


def unary_result(op, dtype):
    if op == "is_finite":
        return np.bool_
    return PART.get(dtype, dtype) if op in ("abs", "real", "imag") else dtype


@pytest.mark.parametrize(
    "op,dtype", slow_but_for_quick_types((op, d) for op, ds in UNARY.items() for d in ds),
    ids=lambda v: v if isinstance(v, str) else np.dtype(v).name,
)  # fmt: skip
def test_unary(evaluator, op, dtype):
    x = edges(dtype)
    if dtype in FLOATS and op in ("cosine", "sine", "tan"):
        # XLA's float versions lose the largest arguments.
        x = x[~(np.abs(x.astype(np.float64)) > 1e5)]
    if is_complex(dtype):
        x = x[x != 0] if op in ("rsqrt", "log", "sign") else x
    result = f"tensor<{x.size}x{MLIR[unary_result(op, dtype)]}>"
    text = program(f"%r = stablehlo.{op} %a : ({tensor(x)}) -> {result}", [result], x)
    exact = (op in EXACT_UNARY and not is_complex(dtype)) or op in ("real", "imag")
    oracle.compare(evaluator, text, [x], exact)


BINARY = {
    "add": ALL,
    "and": [np.bool_, *INTEGERS],
    "atan2": [*FLOATS, *COMPLEXES],
    "divide": NUMBERS,
    "maximum": [np.bool_, *INTEGERS, *FLOATS],
    "minimum": [np.bool_, *INTEGERS, *FLOATS],
    "multiply": ALL,
    "or": [np.bool_, *INTEGERS],
    "power": NUMBERS,
    "remainder": INTEGERS + FLOATS,
    "shift_left": INTEGERS,
    "shift_right_arithmetic": INTEGERS,
    "shift_right_logical": INTEGERS,
    "subtract": NUMBERS,
    "xor": [np.bool_, *INTEGERS],
}


@pytest.mark.parametrize(
    "op,dtype", slow_but_for_quick_types((op, d) for op, ds in BINARY.items() for d in ds),
    ids=lambda v: v if isinstance(v, str) else np.dtype(v).name,
)  # fmt: skip
def test_binary(evaluator, op, dtype):
    x, y = pairs(dtype)
    if op == "power" and dtype in INTEGERS:
        # XLA:CPU loses the upper bits of large exponents.
        keep = y.astype(np.float64) < 64
        x, y = x[keep], y[keep]
    if op == "atan2" and is_complex(dtype):
        # Its formula is ill-conditioned, and on the branch cut the sign of a zero decides.
        x, y = values(dtype, (50,), 1, 2), values(dtype, (50,), 3, 4)
    elif is_complex(dtype) and op in ("divide", "power"):
        keep = (x != 0) & (y != 0)
        x, y = x[keep], y[keep]
    text = program(f"%r = stablehlo.{op} %a, %b : {tensor(x)}", [tensor(x)], x, y)
    exact = dtype in FLOATS and op not in ("atan2", "power", "remainder")
    oracle.compare(evaluator, text, [x, y], exact)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_complex(evaluator, dtype):
    x, y = values(dtype), values(dtype)
    result = f"tensor<4x6xcomplex<{MLIR[dtype]}>>"
    text = program(
        f"%r = stablehlo.complex %a, %b : ({tensor(x)}, {tensor(y)}) -> {result}", [result], x, y
    )
    oracle.compare(evaluator, text, [x, y], exact=True)


COMPARISONS = [
    (dtype, direction)
    for dtype in ALL
    # Complex numbers have no order.
    for direction in ["EQ", "NE"] + ([] if is_complex(dtype) else ["GE", "GT", "LE", "LT"])
]


@pytest.mark.parametrize(
    ("dtype", "direction"),
    slow_but_for_quick_types(COMPARISONS),
    ids=lambda v: v if isinstance(v, str) else np.dtype(v).name,
)
def test_compare(evaluator, dtype, direction):
    x, y = pairs(dtype)
    kinds = (
        ["FLOAT", "TOTALORDER"]
        if dtype in FLOATS
        else ["SIGNED" if dtype in SIGNED else "UNSIGNED"]
    )
    kinds = ["FLOAT"] if is_complex(dtype) else kinds
    for kind in kinds:
        result = f"tensor<{x.size}xi1>"
        text = program(
            f"%r = stablehlo.compare {direction}, %a, %b, {kind} :"
            f" ({tensor(x)}, {tensor(y)}) -> {result}", [result], x, y,
        )  # fmt: skip
        oracle.compare(evaluator, text, [x, y])


# Of a complex number's truth XLA looks at the real part alone.
CONVERSIONS = [(a, b) for a in ALL for b in ALL if not (is_complex(a) and b is np.bool_)]


@pytest.mark.parametrize(
    ("dtype", "to"), slow_but_for_quick_types(CONVERSIONS), ids=lambda d: np.dtype(d).name
)
def test_convert(evaluator, dtype, to):
    x = edges(dtype)
    if dtype is np.bool_ or dtype in INTEGERS or dtype in FLOATS:
        result = f"tensor<{x.size}x{MLIR[to]}>"
        text = program(f"%r = stablehlo.convert %a : ({tensor(x)}) -> {result}", [result], x)
        oracle.compare(evaluator, text, [x], exact=True)


@pytest.mark.parametrize("exponent,mantissa", [(5, 10), (8, 7), (4, 3), (5, 2), (2, 0), (8, 23)])
@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
def test_reduce_precision(evaluator, dtype, exponent, mantissa):
    ties = [0.375, 0.75, -0.75, 1.5, -3.0, 6.0, 1.0625, 1.1875]  # of no and of three bits
    drawn = [values(dtype, (50,), -300, 300), values(dtype, (50,), -1, 1)]
    x = np.concatenate([edges(dtype), ties, *drawn]).astype(dtype)
    oracle.compare(
        evaluator,
        oracle.text_of(lambda v: lax.reduce_precision(v, exponent, mantissa), [x]),
        [x],
        exact=True,
    )


BITCASTS = [
    (np.float32, np.int32, (3, 4)), (np.int32, np.float32, (3, 4)), (np.float64, np.int32, (3,)),
    (np.uint8, np.uint32, (5, 4)), (np.uint16, BF16, (7,)), (np.int16, np.float64, (2, 4)),
]  # fmt: skip


# Everything that JAX writes as one operation --------------------------------------------------

F32 = np.float32


def conv(lhs, rhs, **options):
    return lambda a, b: lax.conv_general_dilated(a, b, **options)


def gather(dims, sizes):
    return lambda a, i: lax.gather(a, i, dims, sizes, mode="promise_in_bounds")


def gather_dims(offset, collapsed, index_map, batch=(), index_batch=()):
    return lax.GatherDimensionNumbers(offset, collapsed, index_map, batch, index_batch)


def scatter(function, dims):
    return lambda a, i, u: function(a, i, u, dims, mode="promise_in_bounds")


def scatter_dims(window, inserted, index_map, batch=(), index_batch=()):
    return lax.ScatterDimensionNumbers(window, inserted, index_map, batch, index_batch)


def window(function, init, sizes, strides, padding, base=None, dilation=None):
    return lambda x: lax.reduce_window(
        x, np.asarray(init, x.dtype), function, sizes, strides, padding, base, dilation
    )


def int_values(*shape, low=-9, high=9, dtype=np.int32):
    return rng.integers(low, high, shape).astype(dtype)


def spd(n, dtype, batch=()):
    a = values(dtype, (*batch, n, n))
    return (a @ np.conj(np.swapaxes(a, -1, -2)) + 9 * np.eye(n)).astype(dtype)


def triangular(n, dtype, batch=()):
    return (values(dtype, (*batch, n, n)) + 9 * np.eye(n)).astype(dtype)


def variadic(x, y):
    def body(p, q):
        keep = (p[0] > q[0]) | ((p[0] == q[0]) & (p[1] < q[1]))
        return jnp.where(keep, p[0], q[0]), jnp.where(keep, p[1], q[1])

    return lax.reduce((x, y), (np.float32(-np.inf), np.int32(2**31 - 1)), body, (1,))


def loop(x):
    return lax.while_loop(lambda s: s[0] < 7, lambda s: (s[0] + 1, s[1] * 1.5 + x), (0, x))


def cumulative(x):
    return lax.reduce_window(x, np.float32(0), lax.add, (1, 9), (1, 1), ((0, 0), (8, 0)))


DOT = lax.dot_general
FFT = lax.FftType

CASES = {
    # Dots.
    "dot_matrix": (lambda a, b: a @ b, values(F32, (5, 7)), values(F32, (7, 3))),
    "dot_batch": (
        lambda a, b: DOT(a, b, (((0, 3), (2, 0)), ((1,), (1,)))),
        values(F32, (3, 4, 5, 2)), values(F32, (2, 4, 3, 6)),
    ),
    "dot_s8_s32": (
        lambda a, b: DOT(a, b, (((1,), (0,)), ((), ())), preferred_element_type=np.int32),
        int_values(3, 40, low=-128, high=127, dtype=np.int8),
        int_values(40, 2, low=-128, high=127, dtype=np.int8),
    ),
    "dot_bf16_f32": (
        lambda a, b: DOT(a, b, (((1,), (0,)), ((), ())), preferred_element_type=np.float32),
        values(BF16, (3, 8)), values(BF16, (8, 2)),
    ),
    "dot_complex": (lambda a, b: a @ b, values(np.complex64, (3, 4)), values(np.complex64, (4, 2))),
    "dot_outer": (lambda a, b: DOT(a, b, (((), ()), ((), ()))), values(F32, (3,)), values(F32, (2,))),
    "dot_empty": (lambda a, b: a @ b, np.zeros((2, 0), F32), np.zeros((0, 3), F32)),
    # Convolutions.
    "conv_2d": (
        conv(0, 0, window_strides=(2, 1), padding=((1, 2), (0, 1))),
        values(F32, (2, 3, 8, 7)), values(F32, (4, 3, 3, 2)),
    ),
    "conv_dilated": (
        conv(0, 0, window_strides=(1, 1), padding=((2, -1), (3, 1)), lhs_dilation=(2, 3),
             rhs_dilation=(2, 1)),
        values(F32, (2, 3, 5, 4)), values(F32, (4, 3, 2, 3)),
    ),
    "conv_groups": (
        conv(0, 0, window_strides=(1, 1), padding="SAME", feature_group_count=3),
        values(F32, (2, 6, 5, 5)), values(F32, (9, 2, 3, 3)),
    ),
    "conv_batch_groups": (
        conv(0, 0, window_strides=(1,), padding="VALID", batch_group_count=2),
        values(F32, (4, 3, 6)), values(F32, (6, 3, 2)),
    ),
    "conv_channels_last": (
        conv(0, 0, window_strides=(1, 2), padding="SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")),
        values(F32, (2, 6, 5, 3)), values(F32, (3, 2, 3, 4)),
    ),
    "conv_3d": (
        conv(0, 0, window_strides=(1, 1, 1), padding="SAME"),
        values(np.float64, (1, 2, 3, 4, 3)), values(np.float64, (2, 2, 2, 2, 2)),
    ),
    "conv_0d": (conv(0, 0, window_strides=(), padding=()), values(F32, (3, 4)), values(F32, (5, 4))),
    # Reductions.
    "reduce_sum": (lambda x: lax.reduce(x, F32(1.5), lax.add, (0, 2)), values(F32, (3, 4, 5))),
    "reduce_max_nan": (lambda x: lax.reduce(x, F32(-np.inf), lax.max, (0,)), edges(F32)),
    "reduce_all": (lambda x: lax.reduce(x, True, lax.bitwise_and, (1,)), values(np.bool_)),
    "reduce_product": (lambda x: lax.reduce(x, np.int8(1), lax.mul, (0,)), values(np.int8)),
    "reduce_variadic": (variadic, values(F32, (3, 8)), int_values(3, 8)),
    "reduce_general": (
        lambda x: lax.reduce(x, F32(0), lambda a, b: jnp.maximum(a, b) * 1.0, (1,)), values(F32)),
    "reduce_empty": (lambda x: lax.reduce(x, F32(3), lax.add, (0,)), np.zeros((0, 4), F32)),
    # Windows.
    "window_sum": (window(lax.add, 0, (2, 3), (1, 2), ((1, 0), (2, 1))), values(F32)),
    "window_max_dilated": (
        window(lax.max, -np.inf, (2, 2), (1, 1), ((0, 1), (1, 1)), (2, 1), (1, 3)), values(F32)),
    "window_init": (window(lax.max, 1, (2, 3), (1, 2), ((1, 0), (2, 1))), values(F32)),
    "window_sum_init": (
        window(lax.add, 1.5, (2, 3), (1, 2), ((1, 0), (2, 1)), (2, 1)),
        values(F32),
    ),
    "window_crop": (window(lax.add, 0, (2, 2), (1, 1), ((-1, 0), (0, -2))), values(F32)),
    "window_base_crop": (
        window(lax.max, -9, (2, 2), (1, 1), ((-1, 2), (1, -2)), (3, 2)), values(np.int32)),
    "window_cumulative": (cumulative, values(F32, (2, 9))),
    "select_and_scatter_max": (
        lambda x, s: windowed._select_and_scatter(
            x, lax.ge, (1, 3, 2), (1, 2, 1), ((0, 0), (1, 1), (0, 1)), s, F32(0), lax.add),
        values(F32, (2, 5, 4)), values(F32, (2, 3, 4)),
    ),
    "select_and_scatter_ties": (
        lambda x, s: windowed._select_and_scatter(
            x, lax.gt, (3,), (1,), ((1, 1),), s, np.int32(5), lax.add),
        int_values(9, low=0, high=2), int_values(9),
    ),
    # Gather and scatter, with indices out of bounds.
    "gather_rows": (
        gather(gather_dims((1,), (0,), (0,)), (1, 6)), values(F32),
        np.array([[0], [3], [-2], [9], [2]], np.int32)),
    "gather_windows": (
        gather(gather_dims((0, 2), (), (1, 0)), (2, 3)), values(F32),
        np.array([[[0, 1]], [[9, 9]], [[-3, 2]]], np.int64)),
    "gather_batch": (
        gather(gather_dims((2,), (1,), (1,), (0,), (1,)), (1, 1, 5)), values(F32, (3, 4, 5)),
        int_values(2, 3, 1, low=-1, high=5)),
    "gather_scalar_index": (
        gather(gather_dims((0,), (0,), (0,)), (1, 6)), values(F32), np.array([2], np.uint8)),
    "scatter_add": (
        scatter(lax.scatter_add, scatter_dims((1,), (0,), (0,))), values(F32),
        np.array([[0], [3], [-2], [9], [0]], np.int32), values(F32, (5, 6))),
    "scatter_windows": (
        scatter(lax.scatter_add, scatter_dims((1, 2), (), (1, 0))), values(np.int32),
        np.array([[0, 1], [5, 3], [4, 2], [-1, 0]], np.int64), int_values(4, 2, 2)),
    "scatter_batch": (
        scatter(lax.scatter_max, scatter_dims((2,), (1,), (1,), (0,), (1,))),
        values(F32, (3, 4, 5)), int_values(2, 3, 1, low=-1, high=5), values(F32, (2, 3, 5))),
    "scatter_set": (
        scatter(lax.scatter, scatter_dims((), (0,), (0,))), values(F32, (9,)),
        np.array([[4], [1], [8]], np.int32), values(F32, (3,))),
    # Placement.
    "broadcast": (lambda x: lax.broadcast_in_dim(x, (3, 4, 5, 6), (1, 3)), values(F32)),
    "broadcast_stretch": (
        lambda x: lax.broadcast_in_dim(x, (4, 5, 6), (1, 2)), values(F32, (1, 6))),
    "reshape": (lambda x: lax.reshape(x, (3, 8)), values(F32)),
    "transpose": (lambda x: lax.transpose(x, (2, 0, 1)), values(np.int16, (2, 3, 4))),
    "reverse": (lambda x: lax.rev(x, (0, 2)), values(np.complex64, (2, 3, 4))),
    "slice": (lambda x: lax.slice(x, (1, 0), (4, 6), (2, 4)), values(F32)),
    "pad": (lambda x: lax.pad(x, F32(7), ((1, 2, 0), (0, 1, 2))), values(F32)),
    "pad_crop": (lambda x: lax.pad(x, F32(7), ((-1, 2, 1), (3, -4, 2))), values(F32)),
    "concatenate": (
        lambda a, b: lax.concatenate([a, b, a], 1), values(F32, (2, 3)), values(F32, (2, 1))),
    "dynamic_slice": (
        lambda x, i: lax.dynamic_slice(x, (i[0], i[1]), (2, 3)), values(F32),
        np.array([-3, 9], np.int32)),
    "dynamic_update_slice": (
        lambda x, u, i: lax.dynamic_update_slice(x, u, (i[0], i[1])), values(F32),
        values(F32, (2, 3)), np.array([2, 5], np.uint8)),
    "iota_f32": (lambda: lax.broadcasted_iota(F32, (3, 4), 1),),
    "iota_bf16": (lambda: lax.broadcasted_iota(BF16, (300,), 0),),
    "iota_u8": (lambda: lax.broadcasted_iota(np.uint8, (300, 2), 0),),
    "iota_complex": (lambda: lax.broadcasted_iota(np.complex64, (3, 2), 0),),
    "select": (jnp.where, values(np.bool_), values(F32), values(F32)),
    "select_scalar": (lambda p, a, b: lax.select(p, a, b), np.bool_(True), values(F32), values(F32)),
    "clamp": (
        lax.clamp, values(F32, (20,), -3, 0), edges(F32),
        values(F32, (20,), -1, 3)),
    "clamp_scalar": (lambda x: lax.clamp(np.int8(-3), x, np.int8(2)), values(np.int8)),
    # Sorting.
    "sort": (lambda x: lax.sort(x, dimension=0), values(F32, (9, 2))),
    "sort_special": (lambda x: lax.sort(x), edges(np.float64)),
    "sort_keys": (
        lambda a, b, c: lax.sort((a, b, c), dimension=1, num_keys=2), int_values(3, 20, low=0, high=3),
        int_values(3, 20, low=0, high=3), values(F32, (3, 20))),
    "argsort": (lambda x: jnp.argsort(x, stable=True), int_values(40, low=0, high=5)),
    # Fourier transforms.
    "fft": (lambda x: lax.fft(x, FFT.FFT, (6,)), values(np.complex64)),
    "ifft_2d": (lambda x: lax.fft(x, FFT.IFFT, (4, 6)), values(np.complex128)),
    "rfft": (lambda x: lax.fft(x, FFT.RFFT, (7,)), values(F32, (3, 7))),
    "rfft_3d": (lambda x: lax.fft(x, FFT.RFFT, (3, 4, 5)), values(np.float64, (2, 3, 4, 5))),
    "irfft": (lambda x: lax.fft(x, FFT.IRFFT, (7,)), values(np.complex64, (3, 4))),
    "irfft_2d": (lambda x: lax.fft(x, FFT.IRFFT, (4, 6)), values(np.complex128, (4, 4))),
    # Control.
    "while": (loop, values(F32)),
    "cond": (
        lambda p, x: lax.cond(p, lambda v: v + 1, lambda v: v * 2, x), np.bool_(False), values(F32)),
    "switch": (
        lambda i, x: lax.switch(i, [lambda v: v + 1, lambda v: v * 2, lambda v: -v], x),
        np.int32(1), values(F32)),
    "scan": (
        lambda x: lax.scan(lambda c, v: (c + v, c * v), x[0], x), values(F32)),
    "barrier": (lambda a, b: lax.optimization_barrier((a, b)), values(F32), values(np.int8)),
    "map_vmap": (lambda x: lax.map(lambda v: jnp.sum(v) + v, x), values(F32)),
    # Whole models in small.
    "softmax": (lambda x: jax.nn.softmax(x), values(F32)),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), values(F32)),
    "threefry": (lambda k: jax.random.bits(k, (5, 3)), np.array([1, 2], np.uint32)),
    "normal": (lambda k: jax.random.normal(k, (5, 3)), np.array([1, 2], np.uint32)),
    "batch_gradient": (
        jax.grad(lambda w, x: jnp.sum(jnp.tanh(lax.conv(x, w, (1, 1), "SAME")) ** 2)),
        values(F32, (2, 3, 3, 3)), values(F32, (2, 3, 5, 5))),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_case(evaluator, name):
    function, *arguments = CASES[name]
    oracle.compare(evaluator, oracle.text_of(function, arguments), arguments)


@pytest.mark.parametrize("source,to,shape", BITCASTS)
def test_bitcast_convert(evaluator, source, to, shape):
    x = values(source, shape, 1, 100)
    text = oracle.text_of(lambda v: lax.bitcast_convert_type(v, to), [x])
    oracle.compare(evaluator, text, [x], exact=True)


TRIANGULAR = [
    (left, lower, unit, transpose)
    for left in (True, False) for lower in (True, False) for unit in (True, False)
    for transpose in ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
@pytest.mark.parametrize("left,lower,unit,transpose", TRIANGULAR)
def test_triangular_solve(evaluator, left, lower, unit, transpose, dtype):
    a = triangular(4, dtype, (2,)) if not unit else (values(dtype, (2, 4, 4)) / 8).astype(dtype)
    b = values(dtype, (2, 4, 3) if left else (2, 3, 4))
    text = program(
        f"""%r = "stablehlo.triangular_solve"(%a, %b) {{left_side = {str(left).lower()},
        lower = {str(lower).lower()}, unit_diagonal = {str(unit).lower()},
        transpose_a = #stablehlo<transpose {transpose}>}}
        : ({tensor(a)}, {tensor(b)}) -> {tensor(b)}""", [tensor(b)], a, b,
    )  # fmt: skip
    oracle.compare(evaluator, text, [a, b])


@pytest.mark.slow
@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64])
def test_cholesky(evaluator, dtype, lower):
    a = spd(5, dtype, (2,))
    # The triangle that is not read holds garbage.
    keep = np.tril if lower else np.triu
    a = (keep(a) + 77 * (1 - keep(np.ones_like(a)))).astype(dtype)
    text = program(
        f"%r = stablehlo.cholesky %a, lower = {str(lower).lower()} : {tensor(a)}\n", [tensor(a)], a
    )
    expected = oracle.run_on_xla(text, [a])
    (actual,) = evaluator.run(oracle.serialize(text), [a], expected)
    oracle.assert_close(keep(actual), keep(expected[0]))


def test_cholesky_of_indefinite(evaluator):
    a = np.diag([1.0, -1.0]).astype(F32)
    text = program(f"%r = stablehlo.cholesky %a, lower = true : {tensor(a)}", [tensor(a)], a)
    oracle.compare(evaluator, text, [a])


RNG_SHAPES = [(), (1,), (7,), (8,), (3, 5), (3, 4), (2, 3, 5), (0, 4)]


@pytest.mark.slow
@pytest.mark.parametrize("shape", RNG_SHAPES, ids=str)
@pytest.mark.parametrize("dtype", [np.uint32, np.uint8, np.uint16, np.uint64])
@pytest.mark.parametrize(
    "algorithm,words", [("THREE_FRY", 2), ("PHILOX", 2), ("PHILOX", 3), ("DEFAULT", 3)]
)
def test_rng_bit_generator(evaluator, algorithm, words, dtype, shape):
    state = np.array([0x0123456789ABCDEF, 0xFFFFFFFFFFFFFFFE, 3][:words], np.uint64)
    result = tensor(np.zeros(shape, dtype))
    text = program(
        f"%r:2 = stablehlo.rng_bit_generator %a, algorithm = {algorithm} :"
        f" ({tensor(state)}) -> ({tensor(state)}, {result})", [tensor(state), result], state,
    )  # fmt: skip
    oracle.compare(evaluator, text, [state], exact=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("index", [1, 2])
def test_batch_norm(evaluator, dtype, index):
    x = values(dtype, (3, 4, 4, 2)[: index + 2])
    n = x.shape[index]
    scale, offset, mean = (values(dtype, (n,)) for _ in range(3))
    variance = values(dtype, (n,), 0.5, 2)
    v = tensor(scale)
    attributes = f"{{epsilon = 0.01 : f32, feature_index = {index} : i64}}"
    rows = [
        ("training", [x, scale, offset], [tensor(x), v, v]),
        ("inference", [x, scale, offset, mean, variance], [tensor(x)]),
        ("grad", [x, scale, mean, variance, values(dtype, x.shape)], [tensor(x), v, v]),
    ]
    for name, arguments, results in rows:
        types = ", ".join(tensor(a) for a in arguments)
        names = ", ".join("%" + c for c in "abcde"[: len(arguments)])
        lhs = "%r:3" if len(results) > 1 else "%r"
        text = program(
            f'{lhs} = "stablehlo.batch_norm_{name}"({names}) {attributes}'
            f" : ({types}) -> ({', '.join(results)})", results, *arguments,
        )  # fmt: skip
        oracle.compare(evaluator, text, arguments, tolerance=oracle.Tolerance(1e-4, 1e-4))


@pytest.mark.parametrize("index", [-5, 0, 1, 2, 3])
def test_case_index_out_of_range(evaluator, index):
    i = np.array(index, np.int32)
    branch = (
        "{ %%c = stablehlo.constant dense<%d> : tensor<i32> stablehlo.return %%c : tensor<i32> }"
    )
    branches = ", ".join(branch % k for k in (10, 20, 30))
    text = program(
        f'%r = "stablehlo.case"(%a) ({branches}) : (tensor<i32>) -> tensor<i32>', ["tensor<i32>"], i
    )
    oracle.compare(evaluator, text, [i])


WORLD_OF_ONE = {
    "all_reduce": '%r = "stablehlo.all_reduce"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):'
    " %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> })"
    " {replica_groups = dense<0> : tensor<1x1xi64>} : (T) -> T",
    "all_gather": '%r = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64,'
    " replica_groups = dense<0> : tensor<1x1xi64>} : (T) -> T",
    "reduce_scatter": '%r = "stablehlo.reduce_scatter"(%a) ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>):'
    " %s = stablehlo.add %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> })"
    " {scatter_dimension = 0 : i64, replica_groups = dense<0> : tensor<1x1xi64>} : (T) -> T",
    "all_to_all": '%r = "stablehlo.all_to_all"(%a) {split_dimension = 0 : i64, concat_dimension = 1'
    " : i64, split_count = 1 : i64, replica_groups = dense<0> : tensor<1x1xi64>} : (T) -> T",
    "collective_permute": '%r = "stablehlo.collective_permute"(%a)'
    " {source_target_pairs = dense<0> : tensor<1x2xi64>} : (T) -> T",
    "collective_permute_nobody": '%r = "stablehlo.collective_permute"(%a)'
    " {source_target_pairs = dense<0> : tensor<0x2xi64>} : (T) -> T",
}


@pytest.mark.parametrize("name", WORLD_OF_ONE)
def test_collective_alone(evaluator, name):
    x = values(F32)
    text = program(WORLD_OF_ONE[name].replace("T)", tensor(x) + ")").replace("-> T", f"-> {tensor(x)}"),
                   [tensor(x)], x)  # fmt: skip
    oracle.compare(evaluator, text, [x], exact=True)


def test_gather_of_several_alone(evaluator):
    x, y, z = values(F32), values(np.int32, (3,)), values(F32, (2, 1))
    kinds = f"({tensor(x)}, {tensor(y)}, {tensor(z)})"
    text = program(
        f"""%r:3 = "stablehlo.all_gather"(%a, %b, %c) {{all_gather_dim = 0 : i64,
        replica_groups = dense<0> : tensor<1x1xi64>}} : {kinds} -> {kinds}""",
        [tensor(x), tensor(y), tensor(z)], x, y, z,
    )  # fmt: skip
    oracle.compare(evaluator, text, [x, y, z], exact=True)


def test_map(evaluator):
    x, y = values(F32), values(F32)
    text = program(
        f"""%r = "stablehlo.map"(%a, %b) ({{ ^bb0(%x: tensor<f32>, %y: tensor<f32>):
        %s = stablehlo.multiply %x, %y : tensor<f32> stablehlo.return %s : tensor<f32> }})
        {{dimensions = array<i64: 0, 1>}} : ({tensor(x)}, {tensor(y)}) -> {tensor(x)}""",
        [tensor(x)], x, y,
    )  # fmt: skip
    oracle.compare(evaluator, text, [x, y], exact=True)


def test_convolution_with_reversed_window(evaluator):
    x, k = values(F32, (1, 2, 5)), values(F32, (3, 2, 2))
    text = program(
        f"""%r = stablehlo.convolution(%a, %b) dim_numbers = [b, f, 0]x[o, i, 0]->[b, f, 0],
        window = {{stride = [1], pad = [[1, 0]], reverse = [true]}}
        {{batch_group_count = 1 : i64, feature_group_count = 1 : i64}}
        : ({tensor(x)}, {tensor(k)}) -> tensor<1x3x5xf32>""", ["tensor<1x3x5xf32>"], x, k,
    )  # fmt: skip
    oracle.compare(evaluator, text, [x, k])


@pytest.mark.parametrize("distribution", ["UNIFORM", "NORMAL"])
def test_rng_distribution(evaluator, distribution):
    a, b = np.array(2.0, F32), np.array(5.0, F32)
    text = program(
        f"""%s = stablehlo.constant dense<[100, 50]> : tensor<2xi64>
        %r = "stablehlo.rng"(%a, %b, %s) {{rng_distribution = #stablehlo<rng_distribution
        {distribution}>}} : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<100x50xf32>""",
        ["tensor<100x50xf32>"], a, b,
    )  # fmt: skip
    (x,) = evaluator.run(oracle.serialize(text), [a, b], [np.zeros((100, 50), F32)])
    if distribution == "UNIFORM":
        assert x.min() >= 2 and x.max() < 5 and abs(x.mean() - 3.5) < 0.05
    else:
        assert abs(x.mean() - 2) < 0.3 and abs(x.std() - 5) < 0.3
