"""Programs as JAX sends them, and StableHLO texts for what JAX does not send.

Run as a script it writes the artifacts below tests/hlo/artifacts/, which the fuzz test mutates.
"""

import functools
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import oracle
from jax import lax
from jax._src.interpreters import mlir
from jaxlib import _jax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

rng = np.random.default_rng(0)


def f32(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def s32(*shape, low=0, high=3):
    return rng.integers(low, high, shape).astype(np.int32)


def _scan(x):
    def step(carry, y):
        return carry * 0.9 + y, carry.sum()

    return lax.scan(step, x[0], x)


def _captured_while(x, n):
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x + n), (0, x))[1]


def _mlp_gradient(w1, w2, x, y):
    def loss(w):
        return jnp.mean((jnp.tanh(x @ w[0]) @ w[1] - y) ** 2)

    return jax.value_and_grad(loss)((w1, w2))


def _conv(strides, padding, numbers, groups=1, lhs_dilation=None, rhs_dilation=None):
    return functools.partial(
        lax.conv_general_dilated, window_strides=strides, padding=padding,
        dimension_numbers=numbers, feature_group_count=groups, lhs_dilation=lhs_dilation,
        rhs_dilation=rhs_dilation,
    )  # fmt: skip


def _pool_gradient(x):
    def pooled(v):
        return lax.reduce_window(v, -jnp.inf, lax.max, (1, 2, 2), (1, 2, 2), "VALID").sum()

    return jax.grad(pooled)(x)


# name: (function, arguments)
JAX_PROGRAMS = {
    "add": (lambda x, y: x + y, [f32(3), f32(3)]),
    "arithmetic": (lambda x, y: (x - y) * x / y % 2.0, [f32(3), f32(3)]),
    "power": (lambda x: abs(x) ** 1.5 + x**3, [f32(5)]),
    "transcendental": (
        lambda x: jnp.exp(x) + jnp.log1p(abs(x)) + jnp.sin(x) + jnp.cos(x) + jnp.tan(x)
        + jnp.tanh(x) + jnp.sqrt(abs(x)) + lax.rsqrt(abs(x)) + jnp.cbrt(x) + jnp.expm1(x),
        [f32(7)],
    ),
    "rounding": (
        lambda x: (jnp.floor(x), jnp.ceil(x), jnp.round(x), lax.round(x), jnp.sign(x)), [f32(9)],
    ),
    "special": (lambda x: (lax.erf(x), lax.lgamma(abs(x)), lax.erf_inv(x / 9)), [f32(6)]),
    "integer": (lambda x, y: (x // (y + 1), x % (y + 1), x & y, x | y, x ^ y, ~x, x << y, x >> y),
                [s32(6), s32(6)]),
    "bits": (lambda x: (lax.population_count(x), lax.clz(x)), [s32(6)]),
    "compare": (lambda x, y: (x < y, x == y, x >= y, jnp.isnan(x)), [f32(4), f32(4)]),
    "select": (lambda p, x, y: jnp.where(p > 0, x, y), [f32(4), f32(4), f32(4)]),
    "clip": (lambda x: jnp.clip(x, -0.5, 0.5), [f32(8)]),
    "convert": (
        lambda x: [x.astype(t) for t in (jnp.bfloat16, jnp.float16, jnp.int8, jnp.uint8, bool)],
        [f32(8)],
    ),
    "bitcast": (lambda x: lax.bitcast_convert_type(x, jnp.int32), [f32(8)]),
    "complex": (lambda x, y: (abs(lax.complex(x, y)), jnp.conj(lax.complex(x, y)).imag),
                [f32(4), f32(4)]),
    "float64": (lambda x: jnp.sin(x) * 1e-300, [f32(4).astype(np.float64)]),
    "int4": (lambda x: (x.astype(jnp.int4) * jnp.int4(3)).astype(jnp.int32), [s32(5)]),
    "float8": (lambda x: x.astype(jnp.float8_e4m3fn).astype(jnp.float32), [f32(5)]),
    "constants": (
        lambda x: (x + np.arange(3, dtype=np.float32), np.array([True, False, True] * 5),
                   np.full((70,), True), np.arange(100, dtype=np.int64),
                   np.linspace(0, 1, 90).astype(np.complex64), np.array([np.nan, np.inf, -0.0])),
        [f32(3)],
    ),
    "iota": (lambda x: x + lax.broadcasted_iota(jnp.float32, (3, 4), 1), [f32(3, 4)]),
    "reshape": (lambda x: x.reshape(4, 3).T.ravel(), [f32(3, 4)]),
    "broadcast": (lambda x: jnp.broadcast_to(x[:, None], (3, 5)), [f32(3)]),
    "slice": (lambda x: x[1:, ::2], [f32(4, 6)]),
    "reverse": (lambda x: x[::-1], [f32(4, 6)]),
    "pad": (lambda x: lax.pad(x, np.float32(1), [(1, 2, 0), (-1, 1, 2)]), [f32(3, 4)]),
    "concatenate": (lambda x, y: jnp.concatenate([x, y], 1), [f32(3, 4), f32(3, 2)]),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (2, 3)), [f32(4, 6), s32()]),
    "dynamic_update": (lambda x, y, i: lax.dynamic_update_slice(x, y, (i, i)),
                       [f32(4, 6), f32(2, 2), s32()]),
    "gather": (lambda x, i: x[i], [f32(5, 3), s32(4)]),
    "gather_batched": (jax.vmap(lambda x, i: x[i]), [f32(2, 5, 3), s32(2, 4)]),
    "scatter": (lambda x, i, y: x.at[i].set(y), [f32(5, 3), np.array([2, 0], np.int32), f32(2, 3)]),
    "scatter_add": (lambda x, i, y: x.at[i].add(y), [f32(5, 3), s32(4), f32(4, 3)]),
    "scatter_batched": (jax.vmap(lambda x, i: x.at[i].mul(2)), [f32(2, 5), s32(2, 3)]),
    "dot": (lambda x, y: x @ y, [f32(3, 4), f32(4, 5)]),
    "dot_batched": (lambda x, y: jnp.einsum("bij,bkj->bik", x, y), [f32(2, 3, 4), f32(2, 5, 4)]),
    "dot_highest": (lambda x, y: lax.dot(x, y, precision="highest"), [f32(3, 4), f32(4, 5)]),
    "dot_bf16": (
        lambda x, y: lax.dot(x.astype(jnp.bfloat16), y.astype(jnp.bfloat16),
                             preferred_element_type=jnp.float32),
        [f32(3, 4), f32(4, 5)],
    ),
    "convolution": (_conv((2, 1), "SAME", ("NCHW", "OIHW", "NCHW")), [f32(2, 3, 6, 5), f32(4, 3, 3, 2)]),
    "convolution_nhwc": (_conv((1, 1), "VALID", ("NHWC", "HWIO", "NHWC")),
                         [f32(2, 6, 5, 3), f32(3, 2, 3, 4)]),
    "convolution_grouped": (_conv((1,), [(1, 2)], ("NCW", "OIW", "NCW"), 2, (2,), (3,)),
                            [f32(1, 4, 7), f32(6, 2, 2)]),
    "convolution_gradient": (
        jax.grad(lambda x, w: _conv((2, 2), "SAME", ("NCHW", "OIHW", "NCHW"))(x, w).sum(), (0, 1)),
        [f32(1, 2, 6, 6), f32(3, 2, 3, 3)],
    ),
    "reduce": (lambda x: (x.sum(0), x.max(), x.mean(1), x.prod(), x.argmax(1)), [f32(3, 4)]),
    "reduce_logical": (lambda x: ((x > 0).any(0), (x > 0).all()), [f32(3, 4)]),
    "cumsum": (lambda x: jnp.cumsum(x, 1), [f32(3, 4)]),
    "pool": (lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 3), (1, 2), [(0, 0), (1, 1)]), [f32(3, 8)]),
    "pool_gradient": (_pool_gradient, [f32(2, 4, 6)]),
    "sort": (lambda x: jnp.sort(x, 0), [f32(7, 2)]),
    "argsort": (lambda x: jnp.argsort(x), [f32(7)]),
    "top_k": (lambda x: lax.top_k(x, 3), [f32(7)]),
    "softmax": (lambda x: jax.nn.softmax(x), [f32(3, 4)]),
    "gelu": (lambda x: jax.nn.gelu(x), [f32(3, 4)]),
    "layer_norm": (
        lambda x: (x - x.mean(-1, keepdims=True)) * lax.rsqrt(x.var(-1, keepdims=True) + 1e-5), [f32(3, 4)],
    ),
    "fft": (lambda x: (jnp.fft.fft(x).real, jnp.fft.rfft(x).imag), [f32(8)]),
    "triangular_solve": (
        lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True, lower=True, unit_diagonal=True),
        [f32(3, 3), f32(3, 2)],
    ),
    "cholesky": (lambda a: jnp.linalg.cholesky(a @ a.T + 3 * jnp.eye(3)), [f32(3, 3)]),
    "eigh": (jnp.linalg.eigh, [f32(3, 3)]),
    "lu": (lambda a, b: jnp.linalg.solve(a, b), [f32(3, 3), f32(3)]),
    "qr": (jnp.linalg.qr, [f32(4, 3)]),
    "random": (lambda k: jax.random.normal(jax.random.wrap_key_data(k), (5,)),
               [np.array([1, 2], np.uint32)]),
    "random_bits": (lambda k: lax.rng_bit_generator(k, (5,))[1], [np.array([1, 2, 3, 4], np.uint32)]),
    "reduce_precision": (lambda x: lax.reduce_precision(x, 5, 10), [f32(5)]),
    "while": (_captured_while, [f32(3), np.int32(4)]),
    "fori": (lambda x: lax.fori_loop(0, 3, lambda i, c: c + i, x), [f32(3)]),
    "scan": (_scan, [f32(5, 3)]),
    "scan_nested": (lambda x: lax.scan(lambda c, y: (c + _scan(y)[0].sum(), c), 0.0, x), [f32(2, 3, 3)]),
    "cond": (lambda p, x, y: lax.cond(p > 0, lambda: x + y, lambda: x * 2), [np.int32(1), f32(3), f32(3)]),
    "switch": (lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda v: v * x[0]], x), [s32(), f32(3)]),
    "remat": (jax.grad(jax.checkpoint(lambda x: jnp.sin(jnp.sin(x)).sum())), [f32(3)]),
    "barrier": (lambda x, y: lax.optimization_barrier((x, y)), [f32(3), s32(2)]),
    "gradient": (_mlp_gradient, [f32(4, 8), f32(8, 2), f32(5, 4), f32(5, 2)]),
    "associative_scan": (lambda x: lax.associative_scan(jnp.maximum, x), [f32(8)]),
    "map": (lambda x: lax.map(lambda v: v * 2, x), [f32(4, 2)]),
    "many_results": (lambda x: [x + i for i in range(12)], [f32(2)]),
    "no_results": (lambda x: (), [f32(2)]),
    "scalars": (lambda x: x * 2.5 + 1, [np.float32(3)]),
    "empty": (lambda x: x + 1, [f32(0, 3)]),
}  # fmt: skip

_SUM = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %z = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %z : tensor<f32>
  })"""

_SIGNATURE = (
    "%a: tensor<4xf32>, %m: tensor<4x4xf32>, %s: tensor<2xi64>, %t: !stablehlo.token,"
    " %i: tensor<i32>, %c: tensor<f32>, %d: tensor<?x?xf32>, %p: tensor<i1>"
)

# name: (lines of the body of a function with the parameters above, its results' names, their types)
TEXT_PROGRAMS = {
    "custom_call_dictionary": """%0 = stablehlo.custom_call @target(%a) {api_version = 4 : i32, backend_config = {
        integer = 1 : i64, short = -2 : i8, string = "x\\0A\\22", list = [1 : i32, 2.5 : f32, "y"],
        matrix = dense<[[1, 2], [3, 4]]> : tensor<2x2xi32>, flag = true, nested = {"a b" = false},
        numbers = dense<[1, 2]> : tensor<2xi64>, reals = dense<[0.5, 2.0]> : tensor<2xf64>,
        half = 3.5 : bf16, double = 1.0e-300 : f64}} : (tensor<4xf32>) -> tensor<4xf32>""",
    "custom_call": """%0:2 = stablehlo.custom_call @target(%m, %a) {backend_config = "c\\00d", has_side_effect = true,
        operand_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<0> : tensor<1xindex>],
        result_layouts = [dense<0> : tensor<1xindex>, dense<[1, 0]> : tensor<2xindex>],
        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0],
        operand_index = 1, operand_tuple_indices = []>], called_computations = [@callee]}
        : (tensor<4x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4x4xf32>)""",
    "composite": """%0 = stablehlo.composite "my.composite" %a {composite_attributes = {n = 1 : i64},
        decomposition = @callee, version = 3 : i32} : (tensor<4xf32>) -> tensor<4xf32>""",
    "call": "%0 = func.call @callee(%a) : (tensor<4xf32>) -> tensor<4xf32>",
    "dynamic_broadcast": """%0 = "stablehlo.dynamic_broadcast_in_dim"(%a, %s) {
        broadcast_dimensions = array<i64: 1>, known_expanding_dimensions = array<i64: 0>}
        : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>""",
    "dynamic_shapes": """%0 = stablehlo.dynamic_reshape %a, %s : (tensor<4xf32>, tensor<2xi64>) -> tensor<?x?xf32>
        %1 = stablehlo.dynamic_iota %s, dim = 0 : (tensor<2xi64>) -> tensor<?x?xf32>
        %2 = stablehlo.dynamic_pad %d, %c, %s, %s, %s : (tensor<?x?xf32>, tensor<f32>, tensor<2xi64>,
            tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
        %3 = stablehlo.real_dynamic_slice %d, %s, %s, %s : (tensor<?x?xf32>, tensor<2xi64>, tensor<2xi64>,
            tensor<2xi64>) -> tensor<?x?xf32>
        %4 = stablehlo.get_dimension_size %d, dim = 1 : (tensor<?x?xf32>) -> tensor<i32>
        %5 = stablehlo.set_dimension_size %m, %i, dim = 0 : (tensor<4x4xf32>, tensor<i32>)
            -> tensor<?x4xf32, #stablehlo.bounds<4, ?>>""",
    "all_reduce": f"""%0 = "stablehlo.all_reduce"(%a) {_SUM} {{replica_groups = dense<[[0, 1], [2, -1]]>
        : tensor<2x2xi64>, channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>,
        use_global_device_ids}} : (tensor<4xf32>) -> tensor<4xf32>""",
    "reduce_scatter": f"""%0 = "stablehlo.reduce_scatter"(%m) {_SUM} {{scatter_dimension = 1 : i64,
        replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}} : (tensor<4x4xf32>) -> tensor<4x2xf32>""",
    "collectives": """%0 = "stablehlo.all_gather"(%a) {all_gather_dim = 0 : i64,
            replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>
        %1 = "stablehlo.all_to_all"(%m) {split_dimension = 0 : i64, concat_dimension = 1 : i64,
            split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
            : (tensor<4x4xf32>) -> tensor<2x8xf32>
        %2 = "stablehlo.collective_permute"(%a) {source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}
            : (tensor<4xf32>) -> tensor<4xf32>
        %3 = "stablehlo.collective_broadcast"(%a) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}
            : (tensor<4xf32>) -> tensor<4xf32>
        %4 = stablehlo.partition_id : tensor<ui32>
        %5 = stablehlo.replica_id : tensor<ui32>""",
    "gather_of_several": """%0:2 = "stablehlo.all_gather"(%a, %m) {all_gather_dim = 0 : i64,
            replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>, tensor<4x4xf32>)
            -> (tensor<8xf32>, tensor<8x4xf32>)""",
    "feeds": """%0:2 = "stablehlo.infeed"(%t) {infeed_config = "in"} : (!stablehlo.token)
            -> (tensor<4xf32>, !stablehlo.token)
        %1 = "stablehlo.outfeed"(%a, %t) {outfeed_config = "out"} : (tensor<4xf32>, !stablehlo.token)
            -> !stablehlo.token
        %2 = "stablehlo.send"(%a, %1) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>,
            is_host_transfer = true} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
        %3:2 = "stablehlo.recv"(%2) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>,
            is_host_transfer = true} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
        %4 = stablehlo.create_token : !stablehlo.token
        %5 = stablehlo.after_all %4, %3#1 : !stablehlo.token""",
    "batch_norm": """%0:3 = "stablehlo.batch_norm_training"(%m, %a, %a) {epsilon = 1.0e-5 : f32,
            feature_index = 1 : i64} : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
            -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)
        %1 = "stablehlo.batch_norm_inference"(%m, %a, %a, %0#1, %0#2) {epsilon = 1.0e-3 : f32,
            feature_index = 0 : i64} : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
            tensor<4xf32>) -> tensor<4x4xf32>
        %2:3 = "stablehlo.batch_norm_grad"(%m, %a, %a, %a, %1) {epsilon = 1.0e-5 : f32, feature_index = 1 : i64}
            : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x4xf32>)
            -> (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>)""",
    "legacy": """%0 = stablehlo.dot %m, %a : (tensor<4x4xf32>, tensor<4xf32>) -> tensor<4xf32>
        %1 = "stablehlo.broadcast"(%a) {broadcast_sizes = array<i64: 2, 3>} : (tensor<4xf32>) -> tensor<2x3x4xf32>""",
    "tuples": """%0 = stablehlo.tuple %a, %m : tuple<tensor<4xf32>, tensor<4x4xf32>>
        %1 = stablehlo.tuple %0, %i : tuple<tuple<tensor<4xf32>, tensor<4x4xf32>>, tensor<i32>>
        %2 = stablehlo.get_tuple_element %1[0] : (tuple<tuple<tensor<4xf32>, tensor<4x4xf32>>, tensor<i32>>)
            -> tuple<tensor<4xf32>, tensor<4x4xf32>>
        %3 = stablehlo.get_tuple_element %2[1] : (tuple<tensor<4xf32>, tensor<4x4xf32>>) -> tensor<4x4xf32>""",
    "factors": """%0 = stablehlo.cholesky %m, lower = true : tensor<4x4xf32>
        %1 = stablehlo.cholesky %m : tensor<4x4xf32>
        %2 = "stablehlo.triangular_solve"(%0, %m) <{left_side = true, lower = true,
            transpose_a = #stablehlo<transpose ADJOINT>, unit_diagonal = false}>
            : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>""",
    "defaults": """%k = stablehlo.constant dense<1> : tensor<2x2xi64>
        %0 = stablehlo.reshape %m : (tensor<4x4xf32>) -> tensor<1x4x4x1xf32>
        %1 = stablehlo.convolution(%0, %0) dim_numbers = [b, 0, 1, f]x[i, 0, 1, o]->[b, 0, 1, f],
            window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
            : (tensor<1x4x4x1xf32>, tensor<1x4x4x1xf32>) -> tensor<1x1x1x1xf32>
        %2 = "stablehlo.dynamic_conv"(%0, %0, %k) <{batch_group_count = 1 : i64,
            dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[i, 0, 1, o]->[b, 0, 1, f]>,
            feature_group_count = 1 : i64}>
            : (tensor<1x4x4x1xf32>, tensor<1x4x4x1xf32>, tensor<2x2xi64>) -> tensor<?x?x?x?xf32>""",
    "random": """%0 = stablehlo.rng %c, %c, %s, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>)
            -> tensor<?x?xf32>
        %1 = stablehlo.rng %c, %c, %s, distribution = NORMAL : (tensor<f32>, tensor<f32>, tensor<2xi64>)
            -> tensor<?x?xf32>""",
    "map": """%0 = "stablehlo.map"(%a, %a) ({
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %z = stablehlo.multiply %x, %y : tensor<f32>
            stablehlo.return %z : tensor<f32>
        }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>""",
    "captures": """%k = stablehlo.constant dense<2.0> : tensor<4xf32>
        %0:2 = "stablehlo.if"(%p) ({
            %x = stablehlo.add %a, %k : tensor<4xf32>
            stablehlo.return %x, %m : tensor<4xf32>, tensor<4x4xf32>
          }, {
            stablehlo.return %k, %m : tensor<4xf32>, tensor<4x4xf32>
          }) : (tensor<i1>) -> (tensor<4xf32>, tensor<4x4xf32>)
        %1 = "stablehlo.case"(%i) ({ stablehlo.return %a : tensor<4xf32> }, {
            %y = "stablehlo.if"(%p) ({ stablehlo.return %0#0 : tensor<4xf32> },
              { stablehlo.return %a : tensor<4xf32> }) : (tensor<i1>) -> tensor<4xf32>
            stablehlo.return %y : tensor<4xf32>
          }) : (tensor<i32>) -> tensor<4xf32>
        %2 = stablehlo.while(%v = %1) : tensor<4xf32> cond {
            stablehlo.return %p : tensor<i1>
          } do {
            %w = stablehlo.add %v, %a : tensor<4xf32>
            %u = stablehlo.multiply %w, %k : tensor<4xf32>
            stablehlo.return %u : tensor<4xf32>
          }""",
    "captured_constant": """%k = stablehlo.constant dense<2.0> : tensor<f32>
        %0 = "stablehlo.reduce"(%a, %c) ({
          ^bb0(%x: tensor<f32>, %y: tensor<f32>):
            %z = stablehlo.multiply %x, %k : tensor<f32>
            %w = stablehlo.add %z, %y : tensor<f32>
            stablehlo.return %w : tensor<f32>
        }) {dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>""",
    "types": """%0 = stablehlo.constant dense<[1, -2, 3]> : tensor<3xi4>
        %1 = stablehlo.constant dense<[1, 15]> : tensor<2xui4>
        %2 = stablehlo.constant dense<[1, -2]> : tensor<2xi2>
        %3 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E4M3FN>
        %4 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E5M2>
        %5 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E4M3FNUZ>
        %6 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E5M2FNUZ>
        %7 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E4M3B11FNUZ>
        %8 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E3M4>
        %9 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf8E4M3>
        %10 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf4E2M1FN>
        %11 = stablehlo.constant dense<[1.0, -2.0]> : tensor<2xf6E2M3FN>
        %12 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf8E8M0FNU>
        %13 = stablehlo.constant dense<[1, 18446744073709551615]> : tensor<2xui64>
        %14 = stablehlo.constant dense<[(1.0, -0.0), (0x7FF0000000000000, 2.0)]> : tensor<2xcomplex<f64>>
        %15 = stablehlo.constant dense<[0x7FC0, 0xFF80, 0x3F80]> : tensor<3xbf16>
        %16 = stablehlo.constant dense<true> : tensor<7xi1>
        %17 = stablehlo.constant dense<> : tensor<0x3xf32>""",
}  # fmt: skip

# All together these make large files; a few are enough to mutate.
FUZZ_SEEDS = [
    "add", "gather_batched", "scatter_add", "convolution_gradient", "sort", "top_k", "scan_nested",
    "switch", "gradient", "qr", "random", "constants",
]  # fmt: skip
TEXT_FUZZ_SEEDS = [
    "custom_call_dictionary", "custom_call", "composite", "dynamic_shapes", "all_reduce", "collectives",
    "feeds", "batch_norm", "tuples", "captures", "types",
]  # fmt: skip


def jax_text(name):
    function, arguments = JAX_PROGRAMS[name]
    return jax.jit(function).lower(*arguments).as_text()


def text_program(name):
    return f"""
    func.func private @callee(%x: tensor<4xf32>) -> tensor<4xf32> {{
      %y = stablehlo.negate %x : tensor<4xf32>
      func.return %y : tensor<4xf32>
    }}
    func.func @main({_SIGNATURE}) {{
        {TEXT_PROGRAMS[name]}
        func.return
    }}"""


def _expanded(name):
    """The program as JAX would send it, as a module of the context that is entered."""
    function, arguments = JAX_PROGRAMS[name]
    lowered = jax.jit(function).lower(*arguments).as_text(debug_info=True)
    # Artifacts are kept: their locations are relative to the repository.
    lowered = lowered.replace(str(pathlib.Path(__file__).parents[2]) + "/", "")
    # Serialization works in place; what JAX keeps must stay as it is.
    module = ir.Module.parse(lowered)
    expand = "builtin.module(func.func(chlo-legalize-to-stablehlo))"
    oracle.passmanager.PassManager.parse(expand).run(module.operation)
    return module


def artifact(name, version=oracle.STABLEHLO_VERSION):
    """The program as JAX would send it, locations included."""
    with mlir.make_ir_context():
        module = _expanded(name)
        # With operations of other dialects allowed, as JAX sends programs to a plugin.
        text = module.operation.get_asm(enable_debug_info=True)
        return _jax.mlir.serialize_portable_artifact(text.encode(), version, True)


def text_artifact(name, version=oracle.STABLEHLO_VERSION):
    with mlir.make_ir_context(), ir.Location.unknown():
        module = ir.Module.parse(text_program(name))
        return stablehlo.serialize_portable_artifact(module, version)


def forms(artifact):
    """The ways in which MLIR prints a program."""
    with mlir.make_ir_context() as context:
        assembly = stablehlo.deserialize_portable_artifact(context, artifact).operation.get_asm
        return {
            "short": assembly(),
            "short with locations": assembly(enable_debug_info=True),
            "generic": assembly(print_generic_op_form=True),
            "generic with locations": assembly(print_generic_op_form=True, enable_debug_info=True),
            "without aliases": assembly(use_local_scope=True, enable_debug_info=True),
        }


def jax_forms(name):
    """What JAX prints, with what it would replace before a plugin sees it replaced."""
    with mlir.make_ir_context():
        assembly = _expanded(name).operation.get_asm
        return [assembly(), assembly(enable_debug_info=True)]


def main():
    folder = pathlib.Path(__file__).parent / "artifacts"
    folder.mkdir(exist_ok=True)
    for name in FUZZ_SEEDS:
        (folder / f"{name}.mlirbc").write_bytes(artifact(name))
    for name in TEXT_FUZZ_SEEDS:
        (folder / f"text_{name}.mlirbc").write_bytes(text_artifact(name))
    (folder / "old_gather.mlirbc").write_bytes(artifact("gather", "0.9.0"))


if __name__ == "__main__":
    main()
