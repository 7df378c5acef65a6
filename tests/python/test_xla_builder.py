"""Programs built by hand: each operation against torch's, on the CPU and on the device."""

import math

import pytest
import torch
import torch.nn.functional as F

import torch_xla.core.xla_builder as xb
import torch_xla.core.xla_model as xm
import torch_xla.core.xla_op_registry as registry
from torch_xla import _XLAC

X = torch.tensor([[0.5, -0.25, 0.75], [0.125, -0.5, 0.9]])
Y = torch.tensor([[2.0, 0.5, -1.0], [3.0, 0.25, 0.5]])
I = torch.tensor([[6, 5, -9], [4, 12, 3]], dtype=torch.int32)  # noqa: E741
J = torch.tensor([[1, 3, 2], [2, 5, 1]], dtype=torch.int32)
IMAGE = torch.arange(2 * 3 * 5 * 5, dtype=torch.float32).reshape(2, 3, 5, 5) / 50
KERNEL = torch.arange(4 * 3 * 3 * 3, dtype=torch.float32).reshape(4, 3, 3, 3) / 100 - 0.5


def scalar_of(x, value):
    return xb.Op.scalar(x.builder(), value, dtype=x.shape().dtype)


def run(build, *tensors):
    """The results of a computation of tensors, on the device."""
    op = registry.register("test", build)
    results = op(*(tensor.to("xla") for tensor in tensors))
    return [result.cpu() for result in results] if isinstance(results, list) else results.cpu()


UNARY = {
    "acos": torch.acos,
    "asin": torch.asin,
    "atan": torch.atan,
    "ceil": torch.ceil,
    "cos": torch.cos,
    "cosh": torch.cosh,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "erfinf": torch.erfinv,
    "exp": torch.exp,
    "expm1": torch.expm1,
    "floor": torch.floor,
    "log1p": torch.log1p,
    "sin": torch.sin,
    "sinh": torch.sinh,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "conj": torch.conj,
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    torch.testing.assert_close(run(lambda x: getattr(x, name)(), X), UNARY[name](X))


@pytest.mark.parametrize("name", ["log", "sqrt", "rsqrt"])
def test_unary_of_positive_numbers(name):
    x = X.abs()
    torch.testing.assert_close(run(lambda v: getattr(v, name)(), x), getattr(torch, name)(x))


@pytest.mark.parametrize("value", [0.0, 1e-6, -3.0, 88.0, -89.0])
def test_hyperbolic_functions_near_zero_and_near_the_greatest_numbers(value):
    x = torch.tensor([value])
    torch.testing.assert_close(run(lambda v: v.sinh(), x), torch.sinh(x))
    torch.testing.assert_close(run(lambda v: v.cosh(), x), torch.cosh(x))


BINARY = {
    "add": (lambda x, y: x + y, torch.add, (X, Y)),
    "subtract": (lambda x, y: x - y, torch.sub, (X, Y)),
    "multiply": (lambda x, y: x * y, torch.mul, (X, Y)),
    "divide": (lambda x, y: x / y, torch.div, (X, Y)),
    "power": (lambda x, y: x**y, torch.pow, (X.abs(), Y)),
    "remainder": (lambda x, y: x % y, torch.fmod, (X, Y)),
    "atan2": (lambda x, y: x.atan2(y), torch.atan2, (X, Y)),
    "max": (lambda x, y: x.max(y), torch.maximum, (X, Y)),
    "min": (lambda x, y: x.min(y), torch.minimum, (X, Y)),
    "and": (lambda x, y: x & y, torch.bitwise_and, (I, J)),
    "or": (lambda x, y: x | y, torch.bitwise_or, (I, J)),
    "xor": (lambda x, y: x ^ y, torch.bitwise_xor, (I, J)),
    "shift left": (lambda x, y: x << y, torch.bitwise_left_shift, (I, J)),
    "shift right": (lambda x, y: x >> y, torch.bitwise_right_shift, (I, J)),
    "equal": (lambda x, y: x == y, torch.eq, (I, J)),
    "not equal": (lambda x, y: x != y, torch.ne, (I, J)),
    "less": (lambda x, y: x < y, torch.lt, (X, Y)),
    "less or equal": (lambda x, y: x <= y, torch.le, (X, Y)),
    "greater": (lambda x, y: x > y, torch.gt, (X, Y)),
    "greater or equal": (lambda x, y: x >= y, torch.ge, (X, Y)),
    "matrices": (lambda x, y: x @ y, torch.mm, (X, Y.T.contiguous())),
    "vectors": (lambda x, y: x @ y, torch.dot, (X[0], Y[0])),
    "a scalar stretches": (lambda x, y: x - y, torch.sub, (X, torch.tensor(2.0))),
    "a scalar on the left": (lambda x, y: x - y, torch.sub, (torch.tensor(2.0), X)),
    "a row stretches": (lambda x, y: x * y, torch.mul, (X, Y[:1])),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    build, eager, operands = BINARY[name]
    torch.testing.assert_close(run(build, *operands), eager(*operands))


SHAPES = {
    "reshape": (lambda x: x.reshape((3, 2)), X.reshape(3, 2)),
    "reshape by columns": (lambda x: x.reshape((6,), dimensions=(1, 0)), X.T.reshape(6)),
    "broadcast": (lambda x: x.broadcast((4,)), X.expand(4, 2, 3)),
    "broadcast_in_dim": (
        lambda x: x.broadcast_in_dim((2, 5, 3), (0, 2)),
        X[:, None].expand(2, 5, 3),
    ),
    "slice": (lambda x: x.slice((0, 0), (2, 3), (1, 2)), X[:, ::2]),
    "slice without strides": (lambda x: x.slice((1, 1), (2, 3)), X[1:, 1:]),
    "slice_in_dim": (lambda x: x.slice_in_dim(1, 3, 1), X[:, 1:3]),
    "transpose": (lambda x: x.transpose((1, 0)), X.T),
    "rev": (lambda x: x.rev((1,)), X.flip(1)),
    "pad": (
        lambda x: x.pad(scalar_of(x, 7), ((0, 1, 0), (1, 0, 0))),
        F.pad(X, (1, 0, 0, 1), value=7.0),
    ),
    "cast": (lambda x: x.cast(xb.Type.S32), X.to(torch.int32)),
    "bitcast": (lambda x: x.bitcast(xb.Type.S32), X.view(torch.int32)),
    "get_dimension_size": (
        lambda x: x.get_dimension_size(1),
        torch.tensor(3, dtype=torch.int32),
    ),
    "dynamic_slice": (
        lambda x: x.dynamic_slice(
            [xb.Op.scalar(x.builder(), i, dtype=xb.Type.S32) for i in (1, 1)], (1, 2)
        ),
        X[1:, 1:],
    ),
    "dynamic_update_slice": (
        lambda x: x.zeros_like().dynamic_update_slice(
            x, [xb.Op.zero(x.builder(), dtype=xb.Type.S32)] * 2
        ),
        X,
    ),
    "ones_like": (lambda x: x.ones_like(), torch.ones_like(X)),
    "concat_in_dim": (lambda x: xb.Op.concat_in_dim((x, x), 0), torch.cat([X, X])),
    "constant": (lambda x: xb.Op.constant(x.builder(), Y) + x, X + Y),
    "iota": (
        lambda x: xb.Op.iota(x.builder(), xb.mkshape("s64", (2, 3)), 1),
        torch.arange(3).expand(2, 3),
    ),
    "gather of rows": (
        lambda x: x.gather(
            xb.Op.constant(x.builder(), torch.tensor([1, 0, 1])), (1,), (0,), (0,), 1
        ),
        X[[1, 0, 1]],
    ),
    "scatter": (
        lambda x: x.scatter(
            xb.Op.constant(x.builder(), torch.tensor([[1]])),
            xb.Op.constant(x.builder(), Y[:1]),
            lambda old, new: old + new,
            (1,),
            (0,),
            (0,),
            1,
        ),
        X + torch.stack([torch.zeros(3), Y[0]]),
    ),
    "select": (lambda x: (x > x.zeros_like()).select(x, x.zeros_like()), X.relu()),
    "clamp": (lambda x: x.clamp(scalar_of(x, -0.3), scalar_of(x, 0.6)), X.clamp(-0.3, 0.6)),
    "reduce": (lambda x: x.reduce(scalar_of(x, 0), lambda a, b: a + b, (1,)), X.sum(1)),
    "reduce_all": (lambda x: x.reduce_all(scalar_of(x, -9), lambda a, b: a.max(b)), X.max()),
    "map": (lambda x: xb.Op.map((x, x), lambda a, b: a * b, (0, 1)), X * X),
    "call": (lambda x: xb.Op.call(lambda a: a + a, (x,)), X + X),
    "sort": (lambda x: xb.Op.sort((x,), lambda a, b: a < b, 1), X.sort(1).values),
    "the last dimension sorts": (
        lambda x: xb.Op.sort((x,), lambda a, b: a > b),
        X.sort(1, True)[0],
    ),
    "nothing computed": (lambda x: x, X),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes_and_reductions(name):
    build, expected = SHAPES[name]
    torch.testing.assert_close(run(build, X), expected.contiguous())


WINDOWS = {
    "conv": (lambda x, k: x.conv(k, (1, 1)), lambda x, k: F.conv2d(x, k)),
    "conv, same": (
        lambda x, k: x.conv(k, (1, 1), padding="same"),
        lambda x, k: F.conv2d(x, k, padding=1),
    ),
    "conv, padded and with strides": (
        lambda x, k: x.conv_with_general_padding(k, (2, 2), ((1, 1), (1, 1))),
        lambda x, k: F.conv2d(x, k, stride=2, padding=1),
    ),
    "conv, dilated, with the dimensions named": (
        lambda x, k: x.conv_general_dilated(
            k, (1, 1), ((0, 0), (0, 0)), (1, 1), (2, 2), 0, 1, 1, 0, 0, 1, (2, 3), (2, 3), (2, 3)
        ),
        lambda x, k: F.conv2d(x, k, dilation=2),
    ),
    "conv_general": (
        lambda x, k: x.conv_general(
            k, (1, 1), ((1, 1), (0, 0)), 0, 1, 1, 0, 0, 1, (2, 3), (2, 3), (2, 3)
        ),
        lambda x, k: F.conv2d(x, k, padding=(1, 0)),
    ),
    "conv_with_general_dimensions": (
        lambda x, k: x.conv_with_general_dimensions(
            k, (1, 1), 0, 1, 1, 0, 0, 1, (2, 3), (2, 3), (2, 3)
        ),
        lambda x, k: F.conv2d(x, k),
    ),
    "max_pool": (
        lambda x, k: x.max_pool((1, 1, 2, 2), (1, 1, 2, 2), 0, 1, (2, 3)),
        lambda x, k: F.max_pool2d(x, 2),
    ),
    "reduce_window": (
        lambda x, k: x.reduce_window(
            scalar_of(x, 0), lambda a, b: a + b, (1, 1, 2, 2), (1, 1, 1, 1)
        ),
        lambda x, k: F.avg_pool2d(x, 2, 1) * 4,
    ),
}


@pytest.mark.parametrize("name", WINDOWS)
def test_windows(name):
    build, eager = WINDOWS[name]
    torch.testing.assert_close(run(build, IMAGE, KERNEL), eager(IMAGE, KERNEL))


def test_select_and_scatter_is_the_gradient_of_pooling():
    x = IMAGE[:, :, :4, :4].contiguous().requires_grad_()
    y = F.max_pool2d(x, 2)
    y.backward(torch.ones_like(y))
    got = run(
        lambda v, g: v.select_and_scatter(
            g, scalar_of(v, 0), (1, 1, 2, 2), (1, 1, 2, 2), lambda a, b: a >= b, lambda a, b: a + b
        ),
        x.detach(),
        torch.ones_like(y),
    )
    torch.testing.assert_close(got, x.grad)


def test_triangular_solve():
    a = torch.tensor([[2.0, 0.0], [1.0, 3.0]])
    b = torch.tensor([[2.0], [5.0]])
    got = run(lambda m, v: m.triangualr_solve(v, lower=True), a, b)
    torch.testing.assert_close(got, torch.linalg.solve(a, b))
    got = run(lambda m, v: m.triangular_solve(v, True, True, False, True), a, b)
    torch.testing.assert_close(got, torch.linalg.solve(a.T, b))


def test_tuples_sorts_loops_and_branches():
    keys, places = run(
        lambda x: xb.Op.sort(
            (x, xb.Op.iota(x.builder(), xb.mkshape("s64", (2, 3)), 1)),
            lambda a, b, i, j: a < b,
            dimension=1,
            is_stable=True,
        ),
        X,
    )
    torch.testing.assert_close((keys, places), tuple(X.sort(1)))

    def powers(x):
        count = xb.Op.zero(x.builder(), dtype=xb.Type.S32)
        ten = xb.Op.scalar
        loop = xb.Op.mkwhile(
            (count, x),
            lambda i, v: i < ten(i.builder(), 10, dtype=xb.Type.S32),
            lambda i, v: (i + xb.Op.one(i.builder(), dtype=xb.Type.S32), v + v),
        )
        return loop.get_tuple_element(1)

    torch.testing.assert_close(run(powers, X), X * 1024)

    def branches(p, x, y):
        return (p > scalar_of(p, 0)).mkconditional(
            (x, y), lambda a, b: xb.Op.tuple((a + b, a)), lambda a, b: xb.Op.tuple((a - b, b))
        )

    for value, total, other in ((1.0, X + Y, X), (-1.0, X - Y, Y)):
        results = run(branches, torch.tensor(value), X, Y)
        torch.testing.assert_close(results, [total, other])
    # Branches of operands of their own.
    got = run(
        lambda p, x, y: (p > scalar_of(p, 0)).conditional(
            x, y, lambda a: a.reduce_all(scalar_of(a, 0), lambda u, v: u + v), lambda b: b
        ),
        torch.tensor(-1.0),
        X,
        torch.tensor(4.0),
    )
    assert got.item() == 4
    # Of a single value.
    half = run(
        lambda x: x.while_loop(lambda v: v > scalar_of(v, 1), lambda v: v * scalar_of(v, 0.5)),
        torch.tensor(12.0),
    )
    assert half.item() == 0.75


def test_a_computation_is_compiled_once_and_called_like_an_operation():
    shapes = [xb.mkshape(xb.Type.F32, (2, 3))] * 2
    computation = xb.create_computation("sum", lambda a, b: xb.Op.tuple((a + b, a)), shapes)
    call = xb.xla_computation_as_func(computation)
    x = X.to("xla")
    total, same = call([x, x * 2])
    torch.testing.assert_close((total.cpu(), same.cpu()), (X * 3, X))
    text = xb.get_computation_hlo(computation)
    assert "ENTRY" in text and "add(f32[2,3]{1,0}" in text


def test_programs_of_others_are_computations():
    x, y = X.to("xla"), Y.to("xla")
    text = """
module @theirs {
  func.func public @main(%arg0: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
    %0 = stablehlo.add %arg0, %arg0 : tensor<2x3xf32>
    return %0, %arg0 : tensor<2x3xf32>, tensor<2x3xf32>
  }
}
"""
    for given in (text, text.encode()):
        computation = xb.computation_from_module_proto("theirs", given)
        results = xb.xla_computation_as_func(computation)([x])
        torch.testing.assert_close([r.cpu() for r in results], [X + X, X])
    bytecode = xm.get_stablehlo_bytecode([x * x])
    computation = xb.computation_from_module_proto("ours", bytecode)
    [result] = xb.xla_computation_as_func(computation)([y])
    torch.testing.assert_close(result.cpu(), Y * Y)
    with pytest.raises(ValueError, match="StableHLO"):
        xb.computation_from_module_proto("proto", b"\x0a\x03abc")


@pytest.mark.slow
def test_functions_of_jax():
    import jax

    lowered = []

    def function(pair, scale, unused):
        lowered.append(scale)
        return {"y": jax.numpy.sin(pair[0]) * scale + pair[1], "x": pair[0]}

    x, y = X.to("xla"), Y.to("xla")
    before = xb._jax_to_xla_computation_cache_elements()
    for scale in (2, 2, 3):
        results = xb.call_jax(function, ((x, y), scale), {"unused": y})
        torch.testing.assert_close(results["y"].cpu(), X.sin() * scale + Y)
        torch.testing.assert_close(results["x"].cpu(), X)
    assert lowered == [2, 3]
    assert xb._jax_to_xla_computation_cache_elements() == before + 2
    gradient = xb.call_jax(jax.grad(lambda v: (v * v).sum()), (x,))
    torch.testing.assert_close(gradient.cpu(), 2 * X)


def test_functions_of_structures():
    flat = xb.FlattenedInputFunc(lambda d, n: {"sum": d["a"] + n, "n": n})
    tensors = flat.preprocess(({"a": X},), {"n": 3})
    assert len(tensors) == 1
    result = flat.postprocess(flat.flat_call(tensors))
    torch.testing.assert_close(result, {"sum": X + 3, "n": 3})

    built = []

    def function(pair, scale):
        built.append(scale)
        return {"y": pair[0] * scalar_of(pair[0], scale) + pair[1].sin()}

    call = xb.XlaCallable(function)
    x, y = X.to("xla"), Y.to("xla")
    for scale in (2, 2, 3, 2):
        torch.testing.assert_close(call((x, y), scale)["y"].cpu(), X * scale + Y.sin())
    assert built == [2, 3]


def test_shapes_are_seen():
    shape = xb.tensor_shape([X.to("xla"), I.to("xla")])
    assert [(s.dtype, s.sizes, s.rank) for s in shape] == [("f32", (2, 3), 2), ("s32", (2, 3), 2)]
    assert shape[0].as_scalar().sizes == ()
    pair = []

    def build(x):
        pair.append(xb.Op.tuple((x, x)).shape())
        return x

    run(build, X)
    assert pair[0].is_tuple() and pair[0].tuple_size() == 2
    assert pair[0].tuple_shape(1) == {"type": "f32", "sizes": (2, 3)}


def test_what_does_not_fit_is_an_error():
    def build(function):
        return xb.create_computation("c", function, [xb.mkshape(xb.Type.F32, (2, 3))] * 2)

    with pytest.raises(RuntimeError, match="add"):
        build(lambda a, b: a + b.slice_in_dim(0, 2, 1))
    with pytest.raises(NotImplementedError, match="Frobnicate"):
        build(lambda a, b: xb.mkop("Frobnicate", (a.op,)))
    with pytest.raises(ValueError, match="sizes"):
        build(lambda a, b: xb.mkop("Broadcast", (a.op,)))
    with pytest.raises(IndexError):
        build(lambda a, b: xb.Op.tuple((a, b)).get_tuple_element(2))
    with pytest.raises(ValueError, match="tuple"):
        build(lambda a, b: xb.Op.tuple((a, b)) + a)
    pair = build(lambda a, b: a)
    with pytest.raises(ValueError, match="takes one parameter"):
        build(lambda a, b: a.while_loop(pair, pair))
    with pytest.raises(NotImplementedError, match="greatest size"):
        xb.create_computation("c", lambda a: a, [xb.mkshape("f32", (2,), (True,))])
    with pytest.raises(NotImplementedError):
        build(lambda a, b: a.set_dimension_size(b, 0))
    other = xb.mkparam(xb.create_builder("other"), 0, xb.mkshape("f32", (2, 3)))
    with pytest.raises(ValueError, match="another builder"):
        build(lambda a, b: a + other)
    with pytest.raises(ValueError, match="in order"):
        xb.mkparam(xb.create_builder("c"), 1, xb.mkshape("f32", ()))
    with pytest.raises(ValueError, match="element type"):
        xb.mkparam(xb.create_builder("c"), 0, xb.mkshape("f33", ()))
    call = xb.xla_computation_as_func(build(lambda a, b: a + b))
    with pytest.raises(RuntimeError, match="takes 2 tensors"):
        call([X.to("xla")])
    with pytest.raises(RuntimeError, match="argument 1, not s32"):
        call([X.to("xla"), I.to("xla")])
    with pytest.raises(RuntimeError, match="on cpu"):
        call([X, X])


def test_dot_general():
    x, y = X.to("xla"), Y.to("xla")
    torch.testing.assert_close(_XLAC._xla_dot_general(x, y, (([1], [1]), ())).cpu(), X @ Y.T)
    a, b = torch.randn(4, 2, 3), torch.randn(4, 3, 5)
    got = _XLAC._xla_dot_general(a.to("xla"), b.to("xla"), (([2], [1]), ([0], [0])))
    torch.testing.assert_close(got.cpu(), a @ b)
    got = _XLAC._xla_dot_general(a.to("xla"), b.to("xla"), (([-1], [-2]), ([-3], [-3])))
    torch.testing.assert_close(got.cpu(), a @ b)
    with pytest.raises(IndexError, match="expected to be in range of"):
        _XLAC._xla_dot_general(x, y, (([2], [1]), ()))
    with pytest.raises(RuntimeError, match=r"second argument. to be an actual XLA tensor. Got: "):
        _XLAC._xla_dot_general(x, Y, (([1], [1]), ()))
    i = I.to(torch.int8).to("xla")
    got = _XLAC._xla_dot_general(i, i, (([1], [1]), ()), preferred_element_type=torch.int32)
    assert got.dtype == torch.int32 and math.prod(got.shape) == 4
    torch.testing.assert_close(got.cpu(), I @ I.T)


@pytest.mark.parametrize("numbers", [(1, 1.0, True), (0.0, -0.0)], ids=str)
def test_arguments_that_are_equal_but_not_the_same(numbers):
    """They compare as equal, and are other programs."""
    seen = []

    def copied(x, number):
        seen.append(repr(number))
        return x

    call = xb.XlaCallable(copied)
    x = torch.ones(2, device="xla")
    for number in numbers * 2:
        call(x, number)
    assert seen == [repr(number) for number in numbers]
