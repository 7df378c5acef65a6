"""f16 and bf16: numbers among the operands are rounded where eager rounds them, and sums do not stop at 2048 or 256."""

import pytest
import torch
import torch.nn.functional as F

import torch_xla  # noqa: F401 - the device

DTYPES = [torch.bfloat16, torch.float16]
NUMBERS = [0.3, 0.7, 3.3, 61.7, 1 / 3, 301]


def values(dtype, seed=0):
    return (torch.rand(400, generator=torch.Generator().manual_seed(seed)) * 50 + 0.1).to(dtype)


def assert_same(f, *arguments):
    """What the device gives is what eager gives, to the last bit."""
    on_device = [x.to("xla") if isinstance(x, torch.Tensor) else x for x in arguments]
    actual, expected = f(*on_device).cpu(), f(*arguments)
    assert actual.dtype == expected.dtype
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


# Eager multiplies and divides by a number in f32, and rounds the other operands to 16 bits.
OF_NUMBERS = {
    "mul": torch.mul,
    "div": torch.div,
    "floor": lambda x, y: torch.div(x, y, rounding_mode="floor"),
    "floor_divide": torch.floor_divide,
    "mul_": lambda x, y: x.clone().mul_(y),
    "div_": lambda x, y: x.clone().div_(y),
    "floor_": lambda x, y: x.clone().div_(y, rounding_mode="floor"),
    "trunc_": lambda x, y: x.clone().div_(y, rounding_mode="trunc"),
    "foreach": lambda x, y: torch.stack(torch._foreach_mul([x, x], y)),
    "add": torch.add,
    "sub": torch.sub,
    "rsub": torch.rsub,
    "add_": lambda x, y: x.clone().add_(y),
    "where": lambda x, y: torch.where(x > 1, x, y),
    "eq": torch.eq,
    "ne_": lambda x, y: x.clone().ne_(y),
    "ge": torch.ge,
    "clamp": lambda x, y: x.clamp(y, None),
    "maximum": lambda x, y: torch.maximum(x, torch.as_tensor(y, device=x.device)),
}
OF_NUMBERS_FIRST = {
    "mul": lambda x, y: torch.mul(y, x),
    "div": lambda x, y: torch.div(y, x),
    "sub": lambda x, y: torch.sub(y, x),
    "pow": lambda x, y: torch.pow(y, x.clamp(0, 1)),
}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("of", [None, torch.float32, torch.float64, torch.int64], ids=str)
@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers_behind(name, of, dtype):
    for number in NUMBERS:
        given = number if of is None else torch.tensor(number).to(of)
        assert_same(OF_NUMBERS[name], values(dtype), given)
        if of is None:
            assert_same(OF_NUMBERS[name], torch.tensor(number, dtype=dtype), given)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("of", [None, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", OF_NUMBERS_FIRST)
def test_numbers_in_front(name, of, dtype):
    for number in NUMBERS:
        given = number if of is None else torch.tensor(number).to(of)
        assert_same(OF_NUMBERS_FIRST[name], values(dtype), given)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_products_with_one_element(dtype):
    x = values(dtype)
    for sizes in [(1,), (1, 1)]:
        assert_same(torch.mul, x, torch.full(sizes, 301))
        assert_same(torch.div, x, torch.full(sizes, 301))
        assert_same(torch.mul, torch.full(sizes, 301), x)
    many = torch.full((400,), 301)
    assert_same(torch.mul, x, many)
    assert_same(torch.div, x, many)


# The sums are of zero and a product: eager sums some elements with one rounding, and some with two.
FACTORS = {
    "add": lambda x, f: torch.add(x * 0, x, alpha=f),
    "add_": lambda x, f: (x * 0).add_(x, alpha=f),
    "sub": lambda x, f: torch.sub(x * 0, x, alpha=f),
    "sub_": lambda x, f: (x * 0).sub_(x, alpha=f),
    "rsub": lambda x, f: torch.rsub(x, x * 0, alpha=f),
    "foreach": lambda x, f: torch._foreach_add([x * 0], [x], alpha=f)[0],
    "addcmul": lambda x, f: torch.addcmul(x * 0, x, torch.ones_like(x), value=f),
    "lerp": lambda x, f: torch.lerp(x * 0, x, f),
    "addmm": lambda x, f: torch.addmm(
        x[:20], torch.eye(20, dtype=x.dtype, device=x.device), x.reshape(20, 20), beta=0, alpha=f
    ),
    "addmm of the bias": lambda x, f: torch.addmm(
        x.reshape(20, 20), x[:20, None] * 0, x[None, :20], beta=f
    ),
    "baddbmm": lambda x, f: torch.baddbmm(
        x[:20], torch.eye(20, dtype=x.dtype, device=x.device)[None], x.reshape(1, 20, 20), beta=0, alpha=f
    ),
}  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FACTORS)
def test_factors(name, dtype):
    for factor in NUMBERS:
        assert_same(lambda x, factor=factor: FACTORS[name](x, factor), values(dtype))


@pytest.mark.parametrize("beta", [0.3, 3.3])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_loss_is_rounded_once(dtype, beta):
    """In eager, that of some elements of f16 is rounded more often."""
    x, y = values(dtype, 1), values(dtype, 2)
    y[::2] = x[::2] + 0.2

    def loss(x, y):
        return F.smooth_l1_loss(x, y, beta=beta, reduction="none")

    expected = loss(x.float(), y.float()).to(dtype)
    assert torch.equal(loss(x.to("xla"), y.to("xla")).cpu(), expected)
    assert_same(lambda x, y: gradient(loss)(x, y), x, y)


def gradient(f):
    """That of a tensor, of what `f` makes of it and of indices."""

    def function(x, indices):
        x = x.detach().requires_grad_()
        y = f(x, indices)
        y.backward(torch.ones_like(y))
        return x.grad

    return function


def ones(x, indices):
    return torch.ones((indices.numel(), *x.shape[1:]), dtype=x.dtype, device=x.device)


def in_segments(x, indices, reduce):
    """The first has all rows but 257; each element is two, so that what they are added to is none."""
    lengths = torch.tensor([indices.numel() - 257, 257], device=x.device)
    return torch.segment_reduce(2 * ones(x, indices), reduce, lengths=lengths)


def sampled(x, indices, dimensions, mode="bilinear"):
    """An image of `x` alone, read in the middle as often as there are indices."""
    shape = (1,) * dimensions + (indices.numel(), dimensions)
    places = torch.zeros(shape, dtype=x.dtype, device=x.device)
    return F.grid_sample(x[(None,) * dimensions], places, mode, align_corners=False)


def many(x, dimensions):
    """An image of `x` alone, repeated along the last dimension but one, and the last."""
    return x[(None,) * (dimensions - 1)].repeat(*(1,) * (dimensions - 1), 30, 20)


SUMS = {
    "index_add": lambda x, i: x.index_add(0, i, ones(x, i)),
    "index_put": lambda x, i: x.index_put((i,), ones(x, i), accumulate=True),
    "index_reduce": lambda x, i: x.index_reduce(0, i, ones(x, i) * 2, "mean"),
    "put": lambda x, i: x.put(i, ones(x, i)[:, 0], accumulate=True),
    "bincount": lambda x, i: torch.bincount(i, ones(x, i)[:, 0]).to(x.dtype),
    "index_select": gradient(lambda x, i: x.index_select(0, i)),
    "x[i]": gradient(lambda x, i: x[i]),
    "take": gradient(lambda x, i: x.take(i)),
    "embedding": gradient(lambda x, i: F.embedding(i, x)),
    "frequent embedding": gradient(lambda x, i: F.embedding(i, x, scale_grad_by_freq=True)),
    "embedding_bag sum": gradient(lambda x, i: F.embedding_bag(i[:, None], x, mode="sum")),
    "embedding_bag mean": gradient(lambda x, i: F.embedding_bag(i[:, None], x, mode="mean")),
    "embedding_bag max": gradient(lambda x, i: F.embedding_bag(i[:, None], x, mode="max")),
    "some rows": lambda x, i: x[:1].repeat(30000, 1).index_add(0, i, ones(x, i)),
    "some columns": lambda x, i: (
        x[:1].repeat(30000, 1).t().index_add(1, i, ones(x, i).t(), alpha=2)
    ),
    "fold": lambda x, i: F.fold(ones(x, i)[:1, :1].expand(1, 961, 1600), (40, 40), 31, padding=15),
    "windows": gradient(lambda x, i: F.unfold(many(x, 2)[None], 30)),
    "unfold": gradient(lambda x, i: x.expand(2, 3).reshape(-1).repeat(99).unfold(0, 300, 1)),
    "replicate": gradient(lambda x, i: F.pad(x[None], (2000, 2000), mode="replicate")),
    "replicate 2d": gradient(lambda x, i: F.pad(x[None], (60, 60, 60, 60), mode="replicate")),
    "replicate 3d": gradient(lambda x, i: F.pad(x[None, None], (11,) * 6, mode="replicate")),
    "segment_reduce": lambda x, i: in_segments(x, i, "sum"),
    "segment_reduce mean": lambda x, i: in_segments(x, i, "mean"),
    "grid_sample": gradient(lambda x, i: sampled(x, i, 2)),
    "grid_sample nearest": gradient(lambda x, i: sampled(x, i, 2, "nearest")),
    "grid_sample 3d": gradient(lambda x, i: sampled(x, i, 3)),
    "avg_pool2d": gradient(lambda x, i: F.avg_pool2d(many(x, 2), 30, 1, divisor_override=4)),
    "avg_pool3d": gradient(
        lambda x, i: F.avg_pool3d(many(x, 3), (1, 30, 30), 1, divisor_override=4)
    ),
    "adaptive_avg_pool2d": gradient(lambda x, i: F.adaptive_avg_pool2d(x[None], (100, 150))),
    "adaptive_avg_pool3d": gradient(
        lambda x, i: F.adaptive_avg_pool3d(x[None, None], (25, 20, 30))
    ),
}


def of_parameters(f):
    """The gradients of a layer's two parameters."""

    def function(x, indices):
        rows = torch.arange(3, device=x.device).expand(5000, 3)
        parameters = [x[0].detach().clone().requires_grad_() for _ in range(2)]
        y = f(rows.to(x.dtype), *parameters)
        return torch.stack(torch.autograd.grad(y, parameters, torch.ones_like(y)))

    return function


LAYERS = {
    "layer_norm": of_parameters(lambda x, w, b: F.layer_norm(x, (3,), w, b)[:, 1:]),
    "batch_norm": of_parameters(
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True) + w
    ),
}


@pytest.mark.usefixtures("interpretation")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_gradients_of_parameters_do_not_stop(name, dtype):
    """Eager's do for a layer norm, so float64 is what is wanted."""
    x, indices = torch.ones(2, 3, dtype=dtype), torch.zeros(0, dtype=torch.int64)
    expected = LAYERS[name](x.double(), indices).to(dtype)
    actual = LAYERS[name](x.to("xla"), indices.to("xla")).cpu()
    torch.testing.assert_close(actual, expected, rtol=2 * torch.finfo(dtype).eps, atol=0)


@pytest.mark.usefixtures("interpretation")
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", SUMS)
def test_sums_do_not_stop(name, dtype):
    """Those of eager on the CPU do, so float64 is what is wanted."""
    x, indices = torch.ones(2, 3, dtype=dtype), torch.zeros(5000, dtype=torch.int64)
    indices[-257:] = 1
    expected = SUMS[name](x.double(), indices).to(dtype)
    actual = SUMS[name](x.to("xla"), indices.to("xla")).cpu()
    torch.testing.assert_close(actual, expected, rtol=2 * torch.finfo(dtype).eps, atol=0)
