"""JAX programs for the plugin: run by jax_worker.py, compared with JAX's own CPU backend.

PROGRAMS: name -> (function, arguments, tolerance); tolerance 0 means bit for bit.
CHECKS: name -> function that asserts by itself, with the plugin's devices as its argument.
"""

import functools
import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

jax.config.update("jax_enable_x64", True)

rng = np.random.default_rng(0)
F32 = rng.standard_normal((4, 5)).astype(np.float32)
F64 = rng.standard_normal((4, 5))
SQUARE = rng.standard_normal((6, 6))
POSITIVE = SQUARE @ SQUARE.T + 6 * np.eye(6)
TALL = rng.standard_normal((7, 4))
VECTOR = rng.standard_normal(6)
INTS = rng.integers(-100, 100, (4, 5))

PROGRAMS = {}
CHECKS = {}


def program(*args, tolerance=1e-5, name=None):
    def register(f):
        PROGRAMS[name or f.__name__] = (f, args, tolerance)
        return f

    return register


def check(f):
    CHECKS[f.__name__] = f
    return f


# Arithmetic, in every type.
for dtype in ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]:

    def integers(x, y):
        return x + y, x - y, x * y, x // jnp.where(y == 0, 1, y), x & y, x | y, x ^ y, x < y, x == y

    PROGRAMS[f"arithmetic_{dtype}"] = (
        integers,
        (INTS.astype(dtype), INTS.T.reshape(4, 5).astype(dtype)),
        0,
    )
for dtype, tolerance in dict(float16=2e-2, bfloat16=1e-1, float32=1e-5, float64=1e-12).items():

    def floats(x, y):
        return x + y, x * y, x / y, jnp.tanh(x), jnp.exp(x), jnp.sqrt(jnp.abs(y)), x < y

    PROGRAMS[f"arithmetic_{dtype}"] = (
        floats,
        (F64.astype(jnp.dtype(dtype)), F64[::-1].astype(jnp.dtype(dtype))),
        tolerance,
    )
for dtype, tolerance in dict(complex64=1e-4, complex128=1e-10).items():

    def complexes(x, y):
        return x + y, x * y, x / y, jnp.exp(x), jnp.abs(y), x.conj(), x.real, jnp.sqrt(y)

    PROGRAMS[f"arithmetic_{dtype}"] = (
        complexes,
        (np.asarray(F64 + 1j * F64[::-1], dtype), np.asarray(F64[::-1] - 0.5j, dtype)),
        tolerance,
    )


@program(F32)
def unary_functions(x):
    y = jnp.abs(x) + 0.1
    return [
        f(y)
        for f in (
            jnp.sin,
            jnp.cos,
            jnp.tan,
            jnp.log,
            jnp.log1p,
            jnp.expm1,
            jnp.cbrt,
            lax.rsqrt,
            lax.logistic,
            jnp.floor,
            jnp.ceil,
            jnp.round,
            jnp.sign,
            jnp.arctan,
            jnp.sinh,
            jnp.cosh,
        )
    ]


@program(F32)
def reductions(x):
    return (
        x.sum(),
        x.mean(0),
        x.max(1),
        x.min(),
        x.prod(1),
        x.argmax(0),
        x.argmin(1),
        x.std(),
        (x > 0).any(0),
        (x > -9).all(),
    )


SPARSE_NANS = np.random.default_rng(1).integers(-3, 3, (37, 133)).astype(np.float32)
SPARSE_NANS[np.random.default_rng(2).random(SPARSE_NANS.shape) < 0.1] = np.nan


@program(SPARSE_NANS, tolerance=0)
def places_among_nans(x):
    """The first of several: a row's elements are taken in their order."""
    places = []
    for y in (x, x.astype(np.float64), x.astype(np.float16), x.reshape(37, 7, 19)):
        places += [y.argmax(-1), y.argmin(-1), y.argmax(0), y.argmin(0), y.argmax(), y.argmin()]
    return places


@program(F32)
def shapes(x):
    return (
        x.T,
        x.reshape(2, 10),
        x[1:3, ::2],
        jnp.flip(x, 1),
        jnp.concatenate([x, x], 0),
        jnp.pad(x, 1),
        jnp.tile(x, (2, 2)),
        jnp.roll(x, 1, 0),
        jnp.stack([x, -x]),
        x[None].repeat(3, 0),
    )


@program(F32, np.array([2, 0, 3]))
def gather_and_scatter(x, i):
    return (
        x[i],
        x[:, i],
        x.at[i].set(1.0),
        x.at[i].add(2.0),
        jnp.take_along_axis(x, jnp.argsort(x, 1), 1),
    )


@program(F32, F32.T.copy())
def matrix_products(x, y):
    return x @ y, jnp.einsum("ij,jk->ki", x, y), jnp.dot(x[0], y[:, 0]), jnp.vdot(x, y.T)


@program(
    rng.standard_normal((2, 3, 8, 8)).astype(np.float32),
    rng.standard_normal((4, 3, 3, 3)).astype(np.float32),
    tolerance=1e-4,
)
def convolution(x, w):
    y = lax.conv_general_dilated(x, w, (1, 1), "SAME")
    return (
        y,
        lax.conv_general_dilated(x, w, (2, 2), "VALID"),
        lax.reduce_window(y, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID"),
    )


@program(F32[0])
def scan(xs):
    return lax.scan(lambda carry, x: (carry * 0.9 + x, carry - x), jnp.float32(1), xs)


@program(np.float32(1.5))
def while_loop(x):
    return lax.while_loop(lambda s: s[0] < 100, lambda s: (s[0] * 2, s[1] + 1), (x, 0))


@program(np.float32(3), np.float32(-2))
def cond_and_switch(x, y):
    def choose(z):
        return lax.cond(z > 0, lambda v: v * 2, lambda v: v - 1, z)

    return (
        choose(x),
        choose(y),
        lax.switch(2, [jnp.sin, jnp.cos, jnp.tanh], x),
        lax.fori_loop(0, 5, lambda i, s: s + i * x, y),
    )


@program(F32, INTS, tolerance=0)
def sort(x, i):
    return (
        lax.sort(x),
        lax.sort(i, dimension=0),
        jnp.argsort(x, axis=0),
        lax.sort((i[0], x[0]), num_keys=1),
        jnp.unique(i, size=20),
        jnp.searchsorted(jnp.sort(x[0]), x[1]),
    )


@program(np.array([1.0, -0.0, 0.0, np.nan, -np.inf, np.inf, -1.0], np.float32), tolerance=0)
def sort_special_values(x):
    return lax.sort(x), lax.sort(-x), jnp.argsort(x)


@program(F32, tolerance=0)
def cumulative(x):
    return jnp.cumsum(x > 0, 1), lax.cummax(x, 0), lax.cummin(x, 1), jnp.cumsum(x * 0 + 1, 0)


# Random numbers, bit for bit.
for implementation in ("threefry2x32", "rbg", "unsafe_rbg"):

    def draw(seed, implementation=implementation):
        key = jax.random.key(seed, impl=implementation)
        k1, k2 = jax.random.split(key)
        return (
            jax.random.bits(k1, (5,)),
            jax.random.bits(k2, (3, 3), "uint8"),
            jax.random.uniform(k2, (7,)),
            jax.random.randint(k1, (4,), 0, 1000),
            jax.random.bernoulli(k2, 0.3, (8,)),
            jax.random.key_data(jax.random.fold_in(key, 7)),
        )

    PROGRAMS[f"random_{implementation}"] = (draw, (np.uint32(42),), 0)


@program(np.uint32(3), tolerance=1e-6)
def random_distributions(seed):
    key = jax.random.key(seed)
    return (
        jax.random.normal(key, (9,)),
        jax.random.permutation(key, 10),
        jax.random.exponential(key, (4,)),
        jax.random.gamma(key, 2.0, (4,)),
        jax.random.categorical(key, jnp.log(jnp.array([0.2, 0.3, 0.5])), shape=(6,)),
        jax.random.truncated_normal(key, -1, 1, (4,)),
    )


# Linear algebra. Decompositions are unique up to signs, so what is compared is what they make together.
LINALG_TYPES = dict(float32=2e-4, float64=1e-10, complex64=2e-4, complex128=1e-10)


def as_type(x, dtype):
    return (x + 0.5j * x[::-1]).astype(dtype) if dtype.startswith("complex") else x.astype(dtype)


def linalg(function):
    for dtype, tolerance in LINALG_TYPES.items():
        f, args = function(dtype)
        PROGRAMS[f"{function.__name__}_{dtype}"] = (f, args, tolerance)


@linalg
def qr(dtype):
    def f(x):
        q, r = jnp.linalg.qr(x)
        return q @ r, jnp.abs(r), q.conj().T @ q

    return f, (as_type(TALL, dtype),)


@linalg
def cholesky(dtype):
    a = as_type(SQUARE, dtype)
    return jnp.linalg.cholesky, (a @ a.conj().T + 6 * np.eye(6, dtype=dtype),)


@linalg
def eigh(dtype):
    def f(x):
        w, v = jnp.linalg.eigh(x)
        return w, (v * w) @ v.conj().T

    a = as_type(SQUARE, dtype)
    return f, (a + a.conj().T,)


@linalg
def eig(dtype):
    def f(x):
        w, v = jnp.linalg.eig(x)
        return jnp.sort_complex(w), (v * w) @ jnp.linalg.inv(v)

    return f, (as_type(SQUARE, dtype),)


@linalg
def svd(dtype):
    def f(x):
        u, s, vh = jnp.linalg.svd(x, full_matrices=False)
        return s, (u * s) @ vh, jnp.linalg.svd(x, compute_uv=False)

    return f, (as_type(TALL, dtype),)


@linalg
def schur(dtype):
    def f(x):
        t, z = jax.scipy.linalg.schur(x, output="complex")
        return z @ t @ z.conj().T, jnp.tril(t, -1)

    return f, (as_type(SQUARE, dtype),)


@linalg
def lu(dtype):
    def f(x):
        p, low, u = jax.scipy.linalg.lu(x)
        return p @ low @ u, low, u, jnp.linalg.det(x), jnp.linalg.inv(x)

    return f, (as_type(SQUARE, dtype),)


@linalg
def solve(dtype):
    def f(a, b):
        return (
            jnp.linalg.solve(a, b),
            jax.scipy.linalg.solve_triangular(a, b, lower=True),
            jnp.linalg.lstsq(a, b)[0],
        )

    return f, (as_type(SQUARE, dtype), as_type(TALL[:6], dtype))


@program(np.stack([POSITIVE, POSITIVE * 2]), tolerance=1e-9)
def batched_linear_algebra(x):
    w, _v = jnp.linalg.eigh(x)
    return (
        jnp.linalg.cholesky(x),
        w,
        jnp.linalg.solve(x, x),
        jnp.linalg.slogdet(x),
        jnp.linalg.qr(x)[1] ** 2,
    )


# Numbers of four bits and of a byte. (XLA's own CPU backend has too few kernels for two bits.)
for dtype, low in dict(int4=-8, uint4=0).items():

    def small_integers(x, y):
        shifts = (
            lax.shift_left(x, y),
            lax.shift_right_logical(x, y),
            lax.shift_right_arithmetic(x, y),
        )
        kept = jnp.where(y == 0, jnp.ones_like(y), y)
        return (
            (x + y, x - y, x * y, lax.div(x, kept), lax.rem(x, kept)),
            (x & y, x | y, x ^ y, ~x, -x, *shifts),
            (x < y, x == y, jnp.maximum(x, y), jnp.minimum(x, y)),
            (x.T, x[1:3], jnp.concatenate([x, y]), x[jnp.array([1, 0])], jnp.pad(x, 1)),
            (x.max(), x.min(0), jnp.sort(x, 1)),
            (x.astype(jnp.float32), x.astype(jnp.int32) @ y.astype(jnp.int32).T),
        )

    PROGRAMS[f"arithmetic_{dtype}"] = (
        small_integers,
        tuple(rng.integers(low, low + 16, (2, 4, 5)).astype(jnp.dtype(dtype))),
        0,
    )

    def to_small_integers(x, y, dtype=dtype):
        return x.astype(dtype), y.astype(dtype), (x * 2).astype(dtype) + y.astype(dtype)

    PROGRAMS[f"conversions_to_{dtype}"] = (
        to_small_integers,
        (np.arange(-40, 40), np.linspace(-7, 15, 80, dtype=np.float32)),
        0,
    )
for dtype in ["e4m3fn", "e5m2", "e4m3b11fnuz", "e4m3fnuz", "e5m2fnuz", "e4m3", "e3m4"]:

    def bytes_with_a_point(x, y):
        def product(type):
            dimensions = (((1,), (1,)), ((), ()))
            return lax.dot_general(x, y, dimensions, preferred_element_type=type)

        return (
            (x + y, x * y, x / y, -x, jnp.abs(x), jnp.sqrt(jnp.abs(x))),
            (x < y, x == y, jnp.maximum(x, y), jnp.sort(x, 1), jnp.isfinite(x * y)),
            (x.T, x[1:3], jnp.concatenate([x, y]), x.astype(jnp.float32), x.astype(jnp.int8)),
            product(jnp.float32),
        )

    PROGRAMS[f"arithmetic_float8_{dtype}"] = (
        bytes_with_a_point,
        tuple((rng.standard_normal((2, 4, 5)) * 3).astype(np.float32).astype(f"float8_{dtype}")),
        1e-6,
    )

    def to_bytes(x, dtype=dtype):
        narrow = x.astype(f"float8_{dtype}")
        return narrow.astype(jnp.float32), lax.bitcast_convert_type(narrow, jnp.uint8)

    # Every exponent of the type, its ties, and what is beyond its range.
    PROGRAMS[f"conversions_to_float8_{dtype}"] = (
        to_bytes,
        (np.outer(2.0 ** np.arange(-20, 20), np.arange(-33, 34) / 16).astype(np.float32),),
        0,
    )

    def from_bytes(x, dtype=dtype):
        return lax.bitcast_convert_type(x, f"float8_{dtype}").astype(jnp.float32)

    PROGRAMS[f"conversions_from_float8_{dtype}"] = (
        from_bytes,
        (np.arange(256, dtype=np.uint8),),
        0,
    )


@program(
    F32.astype(jnp.float8_e4m3fn),
    F32.astype(jnp.float8_e5m2),
    F32.astype(jnp.bfloat16),
    tolerance=1e-2,
)
def mixed_products(x, y, z):
    dimensions = (((1,), (1,)), ((), ()))
    f32 = dict(preferred_element_type=jnp.float32)
    return lax.dot_general(x, y, dimensions, **f32), lax.dot_general(x, z, dimensions, **f32)


@program(
    np.array([1.79e308, 9e307, 1e300, 1e-300, -0.5, -1, np.inf, np.nan, -0.0]), tolerance=1e-15
)
def logarithms_next_to_the_largest_number(x):
    return jnp.log1p(x)


@program(np.array([0, 1, 1j, 0.5, np.nan, complex(0, np.nan)], np.complex64), tolerance=0)
def truth_of_complex_numbers(x):
    return x.astype(bool), x.astype(jnp.complex128).astype(bool)


for dtype in ["float16", "bfloat16"]:
    PROGRAMS[f"triangular_solve_{dtype}"] = (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
        ((np.tril(SQUARE) + 3 * np.eye(6)).astype(dtype), TALL[:6].astype(dtype)),
        2e-2,
    )


@program(F32[0], F64, tolerance=1e-4)
def fft(x, y):
    return (
        jnp.fft.fft(x),
        jnp.fft.ifft(x + 1j),
        jnp.fft.rfft(x),
        jnp.fft.irfft(jnp.fft.rfft(y), n=5),
        jnp.fft.fft2(y),
    )


# These arrive as composites, or expanded by JAX.
@program(np.linspace(-0.9, 0.9, 7).astype(np.float32), tolerance=1e-5)
def composites(x):
    return [
        f(x)
        for f in (
            jnp.arccos,
            jnp.arcsin,
            lambda v: jnp.arccosh(v + 2),
            jnp.arcsinh,
            jnp.arctanh,
            lax.erf,
            lax.erfc,
            lax.erf_inv,
            lambda v: lax.lgamma(v + 2),
            lambda v: lax.digamma(v + 2),
            jnp.sinh,
            jnp.square,
        )
    ]


@program(F32, tolerance=0)
def top_k(x):
    return lax.top_k(x, 3)


@program(F32, tolerance=1e-5)
def neural_network_functions(x):
    return (
        jax.nn.softmax(x),
        jax.nn.gelu(x),
        jax.nn.silu(x),
        jax.nn.logsumexp(x, 1),
        jax.nn.one_hot(jnp.array([0, 2]), 4),
        jax.nn.relu(x),
        jax.nn.softplus(x),
        jax.nn.log_softmax(x, 0),
    )


@program(F32, tolerance=1e-5)
def gradients(x):
    def f(v):
        return jnp.sum(jnp.tanh(v) ** 2 / (1 + jnp.exp(v))) + jnp.prod(v[:2, :2])

    return jax.grad(f)(x), jax.hessian(f)(x[:2, :2]), jax.jvp(f, (x,), (x,))[1]


@program(F32, tolerance=1e-5)
def vmapped(x):
    return jax.vmap(lambda r: jnp.outer(r, r).sum(0))(x), jax.vmap(jnp.convolve, (0, None))(
        x, x[0, :3]
    )


@program(np.uint32(5), tolerance=2e-4)
def trained_mlp(seed):
    """A network of two layers, 20 steps of Adam."""
    keys = jax.random.split(jax.random.key(seed), 3)
    x = jax.random.normal(keys[0], (32, 8))
    y = jnp.sin(x.sum(1, keepdims=True))
    parameters = {
        "w1": jax.random.normal(keys[1], (8, 16)) * 0.3,
        "b1": jnp.zeros(16),
        "w2": jax.random.normal(keys[2], (16, 1)) * 0.3,
        "b2": jnp.zeros(1),
    }

    def loss(p):
        return jnp.mean((jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"] - y) ** 2)

    def step(state, i):
        p, m, v = state
        value, g = jax.value_and_grad(loss)(p)
        m = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, m, g)
        v = jax.tree.map(lambda a, b: 0.99 * a + 0.01 * b * b, v, g)
        p = jax.tree.map(lambda a, b, c: a - 0.02 * b / (jnp.sqrt(c) + 1e-6), p, m, v)
        return (p, m, v), value

    zeros = jax.tree.map(jnp.zeros_like, parameters)
    return lax.scan(step, (parameters, zeros, zeros), jnp.arange(20))[1]


@check
def platform(devices):
    assert len(devices) == 2 and devices[0].platform == "cpu", devices
    assert devices[0].memory_stats()["bytes_in_use"] >= 0


@check
def trained_step_by_step(devices):
    @functools.partial(jax.jit, donate_argnums=0)
    def step(w, x, y):
        loss, gradient = jax.value_and_grad(lambda w: jnp.mean((x @ w - y) ** 2))(w)
        return w - 0.1 * gradient, loss

    x = rng.standard_normal((64, 4))
    y = x @ np.arange(4.0)
    w = jnp.zeros(4)
    for _ in range(200):
        w, _loss = step(w, x, y)
    np.testing.assert_allclose(w, np.arange(4.0), atol=1e-3)


@check
def donation(devices):
    x = jnp.arange(1000.0) + 0
    pointer = x.unsafe_buffer_pointer()
    y = jax.jit(lambda v: v + 1, donate_argnums=0)(x)
    assert x.is_deleted()
    assert y.unsafe_buffer_pointer() == pointer  # in place
    np.testing.assert_array_equal(y, np.arange(1000.0) + 1)
    try:
        print(x + 1)
        raise AssertionError("a donated array can be read")
    except (RuntimeError, ValueError) as error:
        assert "deleted" in str(error), error


@check
def subnormals(devices):
    """Kept, as IEEE 754 has it; JAX's own CPU backend takes some for zero."""
    x = np.array([1e-40, -3e-42, 1.4e-45, 1.5e-38], np.float32)
    for f in (lambda v: v * np.float32(0.5), lambda v: v + v, lambda v: v - v * np.float32(0.25)):
        np.testing.assert_array_equal(jax.jit(f)(x), f(x))
    assert jax.jit(lambda v: lax.exp2(v))(np.float32(-140)) == np.float32(2.0**-140)


@check
def donated_with_a_view(devices):
    x = jnp.arange(100.0) + 0
    view = np.asarray(x)
    before = view.copy()
    jax.jit(lambda v: v * 0, donate_argnums=0)(x).block_until_ready()
    np.testing.assert_array_equal(view, before)


@check
def numpy_views(devices):
    x = jnp.arange(1000.0) + 1
    view = np.asarray(x)
    assert view.ctypes.data == x.unsafe_buffer_pointer()
    assert not view.flags.writeable
    del x
    np.testing.assert_array_equal(view, np.arange(1000.0) + 1)


@check
def transfers_between_devices(devices):
    x = jax.device_put(jnp.arange(6.0), devices[1])
    assert x.devices() == {devices[1]}
    y = jax.jit(lambda v: v * 2)(x)
    assert y.devices() == {devices[1]}
    z = jax.device_put(y, devices[0])
    np.testing.assert_array_equal(z, np.arange(6.0) * 2)
    w = jax.device_put(np.arange(4), jax.devices("cpu")[0])  # JAX's own
    np.testing.assert_array_equal(jax.device_put(w, devices[0]) + 1, np.arange(4) + 1)


@check
def deleted_arrays(devices):
    x = jax.jit(lambda v: v + 1)(jnp.ones(3))
    x.delete()
    for use in (np.asarray, jax.block_until_ready, lambda v: v + 1):
        try:
            use(x)
            raise AssertionError("a deleted array can be read")
        except (RuntimeError, ValueError) as error:
            assert "deleted" in str(error), error


@check
def out_of_memory(devices):
    try:
        jax.jit(lambda v: jnp.broadcast_to(v, (1 << 20, 1 << 20)) * 2.0)(
            jnp.float64(1)
        ).block_until_ready()
        raise AssertionError("16 TiB were allocated")
    except jax.errors.JaxRuntimeError as error:
        assert "RESOURCE_EXHAUSTED" in str(error), error
    np.testing.assert_array_equal(jnp.arange(3) + 1, [1, 2, 3])


@check
def errors_of_asynchronous_work(devices):
    """A failure while running appears where a result is used, also in what was computed from it."""
    too_large = jax.jit(lambda v: jnp.cumsum(jnp.broadcast_to(v, (1 << 22, 1 << 20)), 1))
    try:
        x = too_large(jnp.float64(1))
        y = jax.jit(lambda v: v[:3, :3] * 2)(x)
        np.asarray(y)
        raise AssertionError("32 TiB were allocated")
    except jax.errors.JaxRuntimeError as error:
        assert "RESOURCE_EXHAUSTED" in str(error), error
    np.testing.assert_array_equal(jnp.arange(3) + 1, [1, 2, 3])


@check
def compiled_introspection(devices):
    compiled = jax.jit(lambda x: jnp.sin(x) @ x.T).lower(jnp.ones((3, 4))).compile()
    assert "dot" in compiled.as_text()
    memory = compiled.memory_analysis()
    assert memory.argument_size_in_bytes == 96 and memory.output_size_in_bytes == 72
    np.testing.assert_allclose(compiled(jnp.ones((3, 4))), 4 * np.sin(1) * np.ones((3, 3)))


@check
def many_arrays_at_once(devices):
    f = jax.jit(lambda *xs: [x + i for i, x in enumerate(xs)])
    xs = [jnp.full((i % 5, 3), float(i)) for i in range(60)]
    for i, y in enumerate(f(*xs)):
        np.testing.assert_array_equal(y, np.full((i % 5, 3), 2.0 * i))


@check
def long_queue(devices):
    x = jnp.zeros(10)
    f = jax.jit(lambda v: v + 1)
    for _ in range(1000):
        x = f(x)
    np.testing.assert_array_equal(x, np.full(10, 1000.0))


@check
def dlpack(devices):
    x = jnp.arange(64.0) + 0
    y = np.from_dlpack(x)
    np.testing.assert_array_equal(y, np.arange(64.0))
    z = jnp.from_dlpack(np.arange(64.0))
    np.testing.assert_array_equal(z + 1, np.arange(64.0) + 1)


@check
def profiles(devices):
    """JAX's own profiler asks the plugin's, and writes what it answers."""
    double = jax.jit(lambda x: jnp.tanh(x @ x))
    x = jax.device_put(np.ones((32, 32), np.float32), devices[0])
    double(x).block_until_ready()
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            double(x).block_until_ready()
        (path,) = pathlib.Path(folder).rglob("*.xplane.pb")
        profile = path.read_bytes()
    for text in [b"/device:TPU:0", b"XLA Modules", b"XLA Ops", b"hlo_category", b"dot-general."]:
        assert text in profile, text


@check
def persistent_compilation_cache(devices):
    script = textwrap.dedent(
        """
        import jax, jax.numpy as jnp
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        hits = []
        jax.monitoring.register_event_listener(
            lambda event, **kw: hits.append(event) if "cache_hits" in event else None)
        print(jax.jit(lambda x: jnp.tanh(x) * 3)(jnp.arange(4.0)), len(hits))
        """
    )
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": folder}
        runs = [
            subprocess.run(
                [sys.executable, "-c", script], env=environment, capture_output=True, text=True
            )
            for _ in range(2)
        ]
        outputs = [run.stdout.split("]") for run in runs]
        assert runs[0].returncode == 0, runs[0].stderr
        assert outputs[0][0] == outputs[1][0]
        assert int(outputs[1][1]) > int(outputs[0][1]), (outputs, runs[1].stderr)
        assert os.listdir(folder)
