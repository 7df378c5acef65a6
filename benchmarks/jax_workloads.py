"""The workloads of `workloads.py` written for JAX, as its users would: channels last, donated state, one `jit` a step."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Step = Callable[[], Any]
Tree = Any

_random = np.random.default_rng(0)


def _uniform(*shape: int, fan_in: int) -> jax.Array:
    bound = 1 / math.sqrt(fan_in)
    return jnp.asarray(_random.uniform(-bound, bound, shape).astype(np.float32))


def _normal(*shape: int, scale: float = 1.0) -> jax.Array:
    return jnp.asarray((_random.standard_normal(shape) * scale).astype(np.float32))


def _integers(high: int, *shape: int) -> jax.Array:
    return jnp.asarray(_random.integers(0, high, shape))


def _linear(inputs: int, outputs: int) -> Tree:
    return {"w": _uniform(inputs, outputs, fan_in=inputs), "b": _uniform(outputs, fan_in=inputs)}


def _apply(p: Tree, x: jax.Array) -> jax.Array:
    return x @ p["w"] + p["b"]


def _cross_entropy(logits: jax.Array, labels: jax.Array) -> jax.Array:
    logits = logits.reshape(-1, logits.shape[-1])
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), labels.reshape(-1, 1), axis=1)
    return -jnp.mean(chosen)


def _sgd(rate: float, momentum: float = 0.0) -> tuple[Callable, Callable]:
    def init(parameters: Tree) -> Tree:
        return jax.tree.map(jnp.zeros_like, parameters) if momentum else ()

    def update(parameters: Tree, gradients: Tree, state: Tree) -> tuple[Tree, Tree]:
        if momentum:
            state = jax.tree.map(lambda s, g: momentum * s + g, state, gradients)
            gradients = state
        return jax.tree.map(lambda p, g: p - rate * g, parameters, gradients), state

    return init, update


def _adam(rate: float, decay: float = 0.0) -> tuple[Callable, Callable]:
    def init(parameters: Tree) -> Tree:
        zeros = jax.tree.map(jnp.zeros_like, parameters)
        return zeros, jax.tree.map(jnp.zeros_like, parameters), jnp.zeros((), jnp.float32)

    def update(parameters: Tree, gradients: Tree, state: Tree) -> tuple[Tree, Tree]:
        first, second, step = state
        step = step + 1
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradients)
        second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradients)
        scale, root = rate / (1 - 0.9**step), jnp.sqrt(1 - 0.999**step)
        parameters = jax.tree.map(
            lambda p, m, v: p * (1 - rate * decay) - scale * m / (jnp.sqrt(v) / root + 1e-8),
            parameters,
            first,
            second,
        )
        return parameters, (first, second, step)

    return init, update


def _training(
    parameters: Tree, loss: Callable, optimizer: tuple, *batch: jax.Array, **extra
) -> Step:
    """`extra["state"]` is what the loss returns beside its value; `extra["key"]` feeds dropout."""
    init, update = optimizer
    key = extra.get("key")

    def one_step(parameters: Tree, state: Tree, model_state: Tree, key: Any, batch: Tree) -> Tree:
        if key is not None:
            key, used = jax.random.split(key)
        else:
            used = None
        (value, model_state), gradients = jax.value_and_grad(loss, has_aux=True)(
            parameters, model_state, used, *batch
        )
        parameters, state = update(parameters, gradients, state)
        return parameters, state, model_state, key, value

    jitted = jax.jit(one_step, donate_argnums=(0, 1, 2))
    carried = [parameters, init(parameters), extra.get("state", ()), key]

    def step() -> jax.Array:
        *carried[:], value = jitted(*carried, batch)
        return value

    return step


def mlp() -> Step:
    parameters = [_linear(784, 256), _linear(256, 128), _linear(128, 10)]

    def loss(p: Tree, state: Tree, key: Any, x: jax.Array, y: jax.Array) -> Any:
        x = jax.nn.relu(_apply(p[0], x))
        return _cross_entropy(_apply(p[2], jax.nn.relu(_apply(p[1], x))), y), state

    return _training(parameters, loss, _sgd(0.01), _normal(64, 784), _integers(10, 64))


def _convolution_weights(size: int, inputs: int, outputs: int) -> jax.Array:
    return _uniform(size, size, inputs, outputs, fan_in=size * size * inputs)


def _convolve(x: jax.Array, w: jax.Array, stride: int = 1, padding: int = 0) -> jax.Array:
    return jax.lax.conv_general_dilated(
        x,
        w,
        (stride, stride),
        [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _max_pool(x: jax.Array, size: int, stride: int, padding: int) -> jax.Array:
    pads = [(0, 0), (padding, padding), (padding, padding), (0, 0)]
    window, strides = (1, size, size, 1), (1, stride, stride, 1)
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, pads)


def cnn() -> Step:
    parameters = {
        "conv1": _convolution_weights(3, 1, 32),
        "b1": jnp.zeros(32),
        "conv2": _convolution_weights(3, 32, 64),
        "b2": jnp.zeros(64),
        "fc1": _linear(64 * 12 * 12, 128),
        "fc2": _linear(128, 10),
    }

    def loss(p: Tree, state: Tree, key: Any, x: jax.Array, y: jax.Array) -> Any:
        x = jax.nn.relu(_convolve(x, p["conv1"]) + p["b1"])
        x = jax.nn.relu(_convolve(x, p["conv2"]) + p["b2"])
        x = _max_pool(x, 2, 2, 0).reshape(x.shape[0], -1)
        return _cross_entropy(_apply(p["fc2"], jax.nn.relu(_apply(p["fc1"], x))), y), state

    return _training(parameters, loss, _adam(1e-3), _normal(64, 28, 28, 1), _integers(10, 64))


def _batch_norm_parameters(size: int) -> Tree:
    return {"scale": jnp.ones(size), "shift": jnp.zeros(size)}


def _batch_norm(p: Tree, s: Tree, x: jax.Array, training: bool) -> tuple[jax.Array, Tree]:
    if training:
        mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
        s = {
            "mean": 0.9 * s["mean"] + 0.1 * mean,
            "variance": 0.9 * s["variance"] + 0.1 * variance,
        }
    else:
        mean, variance = s["mean"], s["variance"]
    return (x - mean) * (jax.lax.rsqrt(variance + 1e-5) * p["scale"]) + p["shift"], s


class _ResNet18:
    """Parameters and batch statistics as dictionaries, by layer name."""

    def __init__(self) -> None:
        self.parameters: dict[str, Any] = {}
        self.state: dict[str, Any] = {}
        self._convolution("stem", 7, 3, 64)
        self.blocks: list[tuple[str, int, bool]] = []
        channels = 64
        for stage in range(4):
            for i in range(2):
                outputs, name = 64 * 2**stage, f"{stage}.{i}"
                stride = 2 if stage > 0 and i == 0 else 1
                self._convolution(f"{name}.1", 3, channels, outputs)
                self._convolution(f"{name}.2", 3, outputs, outputs)
                changes = stride != 1 or channels != outputs
                if changes:
                    self._convolution(f"{name}.s", 1, channels, outputs)
                self.blocks.append((name, stride, changes))
                channels = outputs
        self.parameters["fc"] = _linear(512, 1000)

    def _convolution(self, name: str, size: int, inputs: int, outputs: int) -> None:
        weights = _convolution_weights(size, inputs, outputs)
        self.parameters[name] = {"w": weights, **_batch_norm_parameters(outputs)}
        self.state[name] = {"mean": jnp.zeros(outputs), "variance": jnp.ones(outputs)}

    def forward(self, p: Tree, state: Tree, x: jax.Array, training: bool) -> tuple[jax.Array, Tree]:
        new = dict(state)

        def layer(name: str, x: jax.Array, stride: int, padding: int) -> jax.Array:
            x = _convolve(x, p[name]["w"], stride, padding)
            x, new[name] = _batch_norm(p[name], state[name], x, training)
            return x

        x = _max_pool(jax.nn.relu(layer("stem", x, 2, 3)), 3, 2, 1)
        for name, stride, changes in self.blocks:
            y = jax.nn.relu(layer(f"{name}.1", x, stride, 1))
            shortcut = layer(f"{name}.s", x, stride, 0) if changes else x
            x = jax.nn.relu(layer(f"{name}.2", y, 1, 1) + shortcut)
        return _apply(p["fc"], jnp.mean(x, (1, 2))), new


def resnet18() -> Step:
    net = _ResNet18()

    def loss(p: Tree, state: Tree, key: Any, x: jax.Array, y: jax.Array) -> Any:
        logits, state = net.forward(p, state, x, training=True)
        return _cross_entropy(logits, y), state

    batch = _normal(4, 224, 224, 3), _integers(1000, 4)
    return _training(net.parameters, loss, _sgd(0.01, 0.9), *batch, state=net.state)


def resnet18_infer() -> Step:
    net, x = _ResNet18(), _normal(1, 224, 224, 3)
    jitted = jax.jit(lambda p, s, x: net.forward(p, s, x, training=False)[0])
    return lambda: jitted(net.parameters, net.state, x)


def _layer_norm_parameters(size: int) -> Tree:
    return {"scale": jnp.ones(size), "shift": jnp.zeros(size)}


def _layer_norm(p: Tree, x: jax.Array) -> jax.Array:
    mean, variance = jnp.mean(x, -1, keepdims=True), jnp.var(x, -1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * p["scale"] + p["shift"]


def _dropout(x: jax.Array, key: Any, rate: float) -> jax.Array:
    return jnp.where(jax.random.bernoulli(key, 1 - rate, x.shape), x / (1 - rate), 0)


def _transformer_layer(size: int) -> Tree:
    return {
        "qkv": _linear(size, 3 * size),
        "out": _linear(size, size),
        "norm1": _layer_norm_parameters(size),
        "up": _linear(size, 4 * size),
        "down": _linear(4 * size, size),
        "norm2": _layer_norm_parameters(size),
    }


def _attention(p: Tree, x: jax.Array, heads: int, causal: bool, drop: Callable) -> jax.Array:
    n, length, size = x.shape
    qkv = _apply(p["qkv"], x).reshape(n, length, 3, heads, size // heads)
    q, k, v = jnp.moveaxis(qkv, 2, 0)
    scores = jnp.einsum("nqhd,nkhd->nhqk", q, k) / math.sqrt(size // heads)
    if causal:
        scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    weights = drop(jax.nn.softmax(scores))
    mixed = jnp.einsum("nhqk,nkhd->nqhd", weights, v).reshape(n, length, size)
    return _apply(p["out"], mixed)


def bert() -> Step:
    parameters = {
        "tokens": _normal(512, 256),
        "positions": _normal(128, 256, scale=0.02),
        "layers": [_transformer_layer(256) for _ in range(4)],
        "head": _linear(256, 512),
    }

    def loss(p: Tree, state: Tree, key: Any, x: jax.Array, y: jax.Array) -> Any:
        keys = iter(jax.random.split(key, 16))

        def drop(t: jax.Array) -> jax.Array:
            return _dropout(t, next(keys), 0.1)

        h = p["tokens"][x] + p["positions"]
        for layer in p["layers"]:
            h = _layer_norm(layer["norm1"], h + drop(_attention(layer, h, 4, False, drop)))
            wide = drop(jax.nn.gelu(_apply(layer["up"], h), approximate=False))
            h = _layer_norm(layer["norm2"], h + drop(_apply(layer["down"], wide)))
        return _cross_entropy(_apply(p["head"], h), y), state

    batch = _integers(512, 8, 128), _integers(512, 8, 128)
    return _training(parameters, loss, _adam(1e-4, 0.01), *batch, key=jax.random.key(0))


def gpt(
    vocabulary: int, length: int, size: int, heads: int, layers: int
) -> tuple[Tree, Callable[[Tree, jax.Array], jax.Array]]:
    """`models.GPT`'s parameters, and its function of these and of int32 [n, at most `length`]."""
    parameters = {
        "tokens": _normal(vocabulary, size, scale=1 / math.sqrt(size)),
        "positions": _normal(length, size),
        "layers": [_transformer_layer(size) for _ in range(layers)],
        "norm": _layer_norm_parameters(size),
    }

    def forward(p: Tree, x: jax.Array) -> jax.Array:
        h = p["tokens"][x] + p["positions"][: x.shape[1]]
        for layer in p["layers"]:
            h = h + _attention(layer, _layer_norm(layer["norm1"], h), heads, True, lambda t: t)
            wide = jax.nn.gelu(_apply(layer["up"], _layer_norm(layer["norm2"], h)))
            h = h + _apply(layer["down"], wide)
        return _layer_norm(p["norm"], h) @ p["tokens"].T

    return parameters, forward


def logits_or_training(
    forward: Callable[[Tree, jax.Array], jax.Array], is_training: bool, rate: float
) -> Callable[[Tree, jax.Array], tuple[Tree, jax.Array]]:
    """Of parameters and tokens: the parameters after a step of SGD, and its loss; or these, and the logits' mean square."""

    def loss(p: Tree, tokens: jax.Array) -> jax.Array:
        return _cross_entropy(forward(p, tokens), tokens)

    def train(p: Tree, tokens: jax.Array) -> tuple[Tree, jax.Array]:
        value, gradients = jax.value_and_grad(loss)(p, tokens)
        return jax.tree.map(lambda p, g: p - rate * g, p, gradients), value

    mean_square = jax.jit(lambda p, tokens: jnp.mean(jnp.square(forward(p, tokens))))
    if is_training:
        return jax.jit(train, donate_argnums=0)
    return lambda p, tokens: (p, mean_square(p, tokens))


def gpt_infer() -> Step:
    parameters, forward = gpt(2048, 128, 384, 6, 6)
    x = _integers(2048, 1, 128)
    jitted = jax.jit(forward)
    return lambda: jitted(parameters, x)


def lstm() -> Step:
    parameters = {
        "input": _linear(64, 4 * 128),
        "hidden": _linear(128, 4 * 128),
        "head": _linear(128, 10),
    }

    def loss(p: Tree, state: Tree, key: Any, x: jax.Array, y: jax.Array) -> Any:
        h = c = jnp.zeros((x.shape[0], 128))
        for t in range(x.shape[1]):
            gates = _apply(p["input"], x[:, t]) + _apply(p["hidden"], h)
            i, f, g, o = jnp.split(gates, 4, axis=1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return _cross_entropy(_apply(p["head"], h), y), state

    return _training(parameters, loss, _sgd(0.01), _normal(32, 32, 64), _integers(10, 32))


def chain() -> Step:
    x = _normal(4096, 4096)

    def function(x: jax.Array) -> jax.Array:
        y = x
        for _ in range(4):
            y = jnp.tanh(y * 1.1 + 0.1)
            y = y / (1.0 + y * y)
        y = jnp.exp(-jnp.abs(y)) - jnp.sqrt(y * y + 1.0)
        mean, variance = jnp.mean(y, -1, keepdims=True), jnp.var(y, -1, keepdims=True)
        return jax.nn.softmax((y - mean) * jax.lax.rsqrt(variance + 1e-5))

    jitted = jax.jit(function)
    return lambda: jitted(x)


def gemm() -> Step:
    a, b = _normal(1024, 1024), _normal(1024, 1024)
    jitted = jax.jit(jnp.matmul)
    return lambda: jitted(a, b)


def bmm() -> Step:
    a, b = _normal(32, 256, 256), _normal(32, 256, 256)
    jitted = jax.jit(jnp.matmul)
    return lambda: jitted(a, b)


WORKLOADS: dict[str, Callable[[], Step]] = {
    function.__name__: function
    for function in (mlp, cnn, resnet18, resnet18_infer, bert, gpt_infer, lstm, chain, gemm, bmm)
}
