"""Programs that call functions of Python's back while they run."""

import contextlib
import ctypes
import io
import os
import subprocess
import tempfile
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import io_callback
from jax_programs import check

from torch_xla.experimental import jax_plugin

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def shape_of(x, dtype=None):
    return jax.ShapeDtypeStruct(x.shape, dtype or x.dtype)


def expect_equal(got, expected):
    got = jax.tree.map(np.asarray, got)
    jax.tree.map(np.testing.assert_array_equal, got, expected)


@check
def pure_callbacks(devices):
    """Operands, results and a part that is compiled, in several types."""

    def host(x, y):
        return np.asarray(x) * 2, (np.asarray(y) > 1, np.asarray(x).sum(dtype=x.dtype))

    def f(x, y):
        results = (shape_of(x), (shape_of(y, bool), jax.ShapeDtypeStruct((), x.dtype)))
        doubled, (large, total) = jax.pure_callback(host, results, x + 1, y)
        return doubled + 1, large, total

    for dtype in "float32", "float64", "bfloat16", "complex64", "int8", "uint64":
        x, y = X.astype(jnp.dtype(dtype)), np.arange(3, dtype=np.int16)
        one = np.ones((), x.dtype)
        expect_equal(jax.jit(f)(x, y), ((x + one) * 2 + one, y > 1, (x + one).sum(dtype=x.dtype)))


@check
def callbacks_with_other_layouts(devices):
    """Results that do not lie row by row, and ones without elements."""
    f = jax.jit(lambda x: jax.pure_callback(lambda a: np.asarray(a).T, shape_of(x.T), x))
    expect_equal(f(X), X.T)
    empty = np.zeros((0, 3), np.float32)
    expect_equal(f(empty), empty.T)


@check
def callbacks_keep_what_they_get(devices):
    kept = []
    f = jax.jit(lambda x: jax.debug.callback(kept.append, x * 2))
    for i in range(3):
        f(X + i)
    jax.effects_barrier()
    expect_equal(sorted(kept, key=np.sum), [(X + i) * 2 for i in range(3)])


@check
def ordered_callbacks(devices):
    """One after the other, within a program and between programs."""
    seen = []

    def note(x):
        seen.append(float(x))
        return np.asarray(x) + 1

    def f(x):
        for _ in range(4):
            x = io_callback(note, shape_of(x), x, ordered=True)
        return x

    f = jax.jit(f)
    x = np.float32(0)
    for _ in range(5):
        x = f(x)
    expect_equal(x, np.float32(20))
    assert seen == [float(i) for i in range(20)], seen


@check
def callbacks_in_loops_and_branches(devices):
    seen = []

    def body(i, x):
        jax.debug.callback(lambda i: seen.append(int(i)), i, ordered=True)
        return jax.lax.cond(
            i % 2 == 0,
            lambda x: jax.pure_callback(lambda a: np.asarray(a) * 2, shape_of(x), x),
            lambda x: x + 1,
            x,
        )

    expect_equal(jax.jit(lambda x: jax.lax.fori_loop(0, 4, body, x))(X), ((X * 2) + 1) * 2 + 1)
    jax.effects_barrier()
    assert seen == [0, 1, 2, 3], seen
    double = lambda x: jax.pure_callback(  # noqa: E731
        lambda a: np.asarray(a) * 2, shape_of(x), x, vmap_method="sequential"
    )
    expect_equal(jax.jit(jax.vmap(double))(X), X * 2)


@check
def printing(devices):
    lines = io.StringIO()
    with contextlib.redirect_stdout(lines):
        jax.jit(lambda x: jax.debug.print("sum {}, row {}", x.sum(), x[1]))(X)
        jax.effects_barrier()
    assert lines.getvalue() == "sum 15.0, row [3. 4. 5.]\n", lines.getvalue()


@check
def errors_of_callbacks(devices):
    def fail(x):
        raise ValueError("no such number")

    f = jax.jit(lambda x: jax.pure_callback(fail, shape_of(x), x))
    wrong = jax.jit(lambda x: jax.pure_callback(lambda a: np.asarray(a)[:1], shape_of(x), x))
    for function, words in (f, "no such number"), (wrong, "shape"):
        try:
            np.asarray(function(X))
            raise AssertionError("nothing was raised")
        except jax.errors.JaxRuntimeError as error:
            assert words in str(error), error
    expect_equal(jax.jit(lambda x: x + 1)(X), X + 1)


@check
def errors_that_no_text_can_hold(devices):
    def fail(x):
        raise ValueError("bad \udcff")

    try:
        np.asarray(jax.jit(lambda x: jax.pure_callback(fail, shape_of(x), x))(X))
        raise AssertionError("nothing was raised")
    except jax.errors.JaxRuntimeError as error:
        assert "bad ?" in str(error), error


def slowly_incremented():
    """X + 1 by a callback that takes long, and the event of its beginning."""
    begun = threading.Event()

    def slow(x):
        begun.set()
        time.sleep(0.3)
        return np.asarray(x) + 1

    return jax.jit(lambda x: jax.pure_callback(slow, shape_of(x), x))(X), begun


@check
def forks_beside_callbacks(devices):
    """The thread that forks holds the interpreter's lock, which the callback wants."""
    y, begun = slowly_incremented()
    begun.wait()
    child = os.fork()
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    expect_equal(y, X + 1)


@check
def addresses_before_the_values(devices):
    """Who asks for an address holds the interpreter's lock, which the callback wants."""
    donated = jnp.asarray(X) + 0
    jax.block_until_ready(donated)
    place = donated.unsafe_buffer_pointer()
    first, begun = slowly_incremented()
    second = jax.jit(lambda x: x * 2)(first)
    third = jax.jit(lambda x: x + 1, donate_argnums=0)(donated)
    begun.wait()
    results = [(x, x.unsafe_buffer_pointer()) for x in (first, second, third)]
    assert not second.is_ready(), "its value was waited for"
    for (x, address), value in zip(results, (X + 1, (X + 1) * 2, X + 1), strict=True):
        expect_equal(x, value)
        assert x.unsafe_buffer_pointer() == address
    assert third.unsafe_buffer_pointer() == place  # in place, nevertheless


@check
def addresses_of_what_fails(devices):
    begun = threading.Event()

    def fail(x):
        begun.set()
        time.sleep(0.1)
        raise ValueError("no such number")

    f = jax.jit(lambda x: jax.pure_callback(fail, shape_of(x), x))
    x = f(X)
    begun.wait()
    assert x.unsafe_buffer_pointer()
    try:
        np.asarray(x)
        raise AssertionError("nothing was raised")
    except jax.errors.JaxRuntimeError as error:
        assert "no such number" in str(error), error


@check
def callbacks_on_several_devices(devices):
    """Each device's program calls on its own thread."""
    f = jax.jit(lambda x: jax.pure_callback(lambda a: np.asarray(a) + 1, shape_of(x), x))
    results = [f(jax.device_put(X + i, device)) for i, device in enumerate(devices)]
    expect_equal(results, [X + i + 1 for i in range(len(devices))])


@check
def foreign_functions_of_buffers(devices):
    """jaxlib's own foreign functions: here the one that gives a function the buffers themselves."""
    from jax.experimental import buffer_callback

    def host(context, out, x):
        np.asarray(out)[...] = np.asarray(x) * 3

    call = buffer_callback.buffer_callback(host, shape_of(X))
    expect_equal(jax.jit(lambda x: call(x) + 1)(X), X * 3 + 1)


SCALE = """
#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

static ffi::Error Scale(float by, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y,
                        ffi::ResultBuffer<ffi::S32> count) {
  if (by == 0) return ffi::Error::InvalidArgument("not by zero");
  for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = by * x.typed_data()[i];
  count->typed_data()[0] = static_cast<int>(x.element_count());
  return ffi::Error::Success();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(scale, Scale,
                              ffi::Ffi::Bind()
                                  .Attr<float>("by")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::S32>>());
"""


@check
def foreign_functions_in_cpp(devices):
    """Compiled with XLA's own header, and given to JAX."""
    with tempfile.TemporaryDirectory() as folder:
        library = os.path.join(folder, "scale.so")
        options = [
            "-std=c++17",
            "-shared",
            "-fPIC",
            f"-I{jax.ffi.include_dir()}",
        ]
        command = ["c++", *options, "-x", "c++", "-", "-o", library]
        subprocess.run(command, input=SCALE, text=True, check=True)
        handler = jax.ffi.pycapsule(ctypes.CDLL(library).scale)
    jax.ffi.register_ffi_target("scale", handler, platform="cpu")
    jax_plugin.share_foreign_functions(os.environ["PLUGIN"])
    call = jax.ffi.ffi_call("scale", (shape_of(X), jax.ShapeDtypeStruct((), np.int32)))
    f = jax.jit(lambda x, by: call(x + 1, by=np.float32(by)), static_argnums=1)
    expect_equal(f(X, 3), ((X + 1) * 3, np.int32(6)))
    try:
        np.asarray(f(X, 0)[0])
        raise AssertionError("nothing was raised")
    except jax.errors.JaxRuntimeError as error:
        assert "not by zero" in str(error), error
