"""Operators that torch leaves to kernels, as compositions: the numbers of eager, and nothing on the CPU."""

import pytest
import torch
import torch.nn.functional as F

import torch_xla.debug.metrics as metrics

SMALL = torch.tensor([3, 1, 1, 2, 3, 3, 0])
NAN = torch.tensor([1.0, float("nan"), 1.0, float("nan"), -0.0, 0.0])
ROWS = torch.tensor([[1, 2, 2], [0, 5, 5], [1, 2, 2], [1, 2, 2]])


def on_device(f, *arguments):
    """What `f` gives on the device, having run no operator on the CPU."""
    metrics.clear_all()
    result = f(*(x.to("xla") if isinstance(x, torch.Tensor) else x for x in arguments))
    assert [
        name
        for name in metrics.counter_names()
        if name.startswith("aten::") and name != "aten::_local_scalar_dense"
    ] == []
    return torch.utils._pytree.tree_map(lambda x: x.cpu(), result)


def check(f, *arguments, **tolerance):
    result, expected = on_device(f, *arguments), f(*arguments)
    torch.testing.assert_close(result, expected, equal_nan=True, **tolerance)


@pytest.mark.parametrize(
    "x", [SMALL, NAN, SMALL > 1, ROWS.to(torch.uint8), SMALL[:1], torch.tensor(2.5)]
)
@pytest.mark.parametrize("inverse", [True, False])
def test_unique(x, inverse):
    check(lambda x: torch.unique(x, return_inverse=inverse, return_counts=True), x)
    check(lambda x: torch.unique(x, return_inverse=True), x)
    check(lambda x: torch.unique_consecutive(x, return_inverse=inverse, return_counts=True), x)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_along_a_dimension(dim):
    for f in (torch.unique, torch.unique_consecutive):
        check(lambda x, f=f: f(x, dim=dim, return_inverse=True, return_counts=True), ROWS)
        check(lambda x, f=f: f(x, dim=dim), ROWS.unsqueeze(2).expand(4, 3, 2))


def test_unique_of_nothing(device):
    empty = torch.empty(0, device=device)
    assert [x.shape for x in torch.unique(empty, return_counts=True)] == [(0,), (0,)]
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        torch.unique(torch.empty(2, 0, device=device), dim=0)


@pytest.mark.parametrize("weight", [None, torch.float32, torch.float64, torch.float16, torch.int32])
def test_bincount(weight):
    weights = None if weight is None else torch.arange(7).to(weight)
    for minimum in (0, 9):
        check(lambda x, w, m=minimum: torch.bincount(x, w, m), SMALL, weights)
    check(lambda x: torch.bincount(x), SMALL.to(torch.uint8))


def test_bincount_refuses_what_eager_does(device):
    for x in (torch.tensor([-1, 2]), torch.ones(2), torch.ones(2, 2, dtype=torch.int64)):
        with pytest.raises(RuntimeError):
            torch.bincount(x.to(device))


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8])
def test_histograms_of_integers(dtype):
    """CUDA has them, and the CPU has not: mixtures of experts count their tokens so."""
    x = torch.tensor([0, 1, 1, 3, 7, 7]).to(dtype)
    for bins, low, high in ((8, 0, 7), (3, 0, 7), (4, 1, 3), (5, 0, 0)):
        result = on_device(lambda x, *a: torch.histc(x, *a), x, bins, low, high)
        assert result.dtype == dtype
        assert torch.equal(result, torch.histc(x.double(), bins, low, high).to(dtype))


# --- Products of groups


def rows_of(offsets, size):
    return list(zip([0, *offsets[:-1]], offsets, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("offsets", [[2, 3, 6], [0, 6, 6], [6, 6, 6], [1, 1, 4]])
def test_grouped_products(dtype, offsets):
    torch.manual_seed(0)
    ends = torch.tensor(offsets, dtype=torch.int32)
    x, w = torch.randn(6, 8).to(dtype), torch.randn(3, 8, 16).to(dtype)
    tolerance = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.bfloat16 else {}
    parts = rows_of(offsets, 6)
    product = lambda a, b, o: F.grouped_mm(a, b, offs=o)  # noqa: E731
    rows = on_device(product, x, w, ends)
    for group, (a, b) in enumerate(parts):
        torch.testing.assert_close(rows[a:b], x[a:b] @ w[group], **tolerance)
    inner = on_device(product, x.t(), x, ends)
    columns = on_device(product, w.transpose(1, 2), x.t(), ends)
    for group, (a, b) in enumerate(parts):
        torch.testing.assert_close(inner[group], x[a:b].t() @ x[a:b], **tolerance)
        torch.testing.assert_close(columns[:, a:b], w[group].t() @ x[a:b].t(), **tolerance)


def test_infinities_stay_in_their_group_of_products():
    torch.manual_seed(0)
    ends = torch.tensor([2, 3, 6], dtype=torch.int32)
    x, w = torch.randn(6, 8), torch.randn(3, 8, 4)
    x[2, 1], w[1, 0, 0] = torch.inf, torch.nan
    product = lambda a, b, o: F.grouped_mm(a, b, offs=o)  # noqa: E731
    rows = on_device(product, x, w, ends)
    torch.testing.assert_close(rows[:2], x[:2] @ w[0])
    torch.testing.assert_close(rows[3:], x[3:] @ w[2])
    inner = on_device(product, x.t(), x, ends)
    columns = on_device(product, w.transpose(1, 2), x.t(), ends)
    assert not rows[2].isfinite().all() and not inner[1].isfinite().all()
    for group, (a, b) in enumerate([(0, 2), (3, 6)]):
        torch.testing.assert_close(inner[2 * group], x[a:b].t() @ x[a:b])
        torch.testing.assert_close(columns[:, a:b], w[2 * group].t() @ x[a:b].t())


def test_gradients_of_grouped_products(device):
    torch.manual_seed(0)
    x, w = torch.randn(6, 8), torch.randn(3, 8, 4)
    ends = torch.tensor([2, 3, 6], dtype=torch.int32)

    def gradients(place, product):
        leaves = [t.to(place).detach().requires_grad_() for t in (x, w)]
        product(*leaves).square().sum().backward()
        return [t.grad.cpu() for t in leaves]

    def by_parts(x, w):
        return torch.cat([x[:2] @ w[0], x[2:3] @ w[1], x[3:] @ w[2]])

    result = gradients(device, lambda x, w: F.grouped_mm(x, w, offs=ends.to(device)))
    torch.testing.assert_close(result, gradients("cpu", by_parts))


# --- Draws

COUNT = 50_000


def check_moments(draws, mean, variance, low, high=torch.inf):
    """Mean and variance within five of their errors, for distributions that are not too heavy-tailed."""
    draws = draws.double()
    assert ((draws >= low) & (draws <= high)).all()
    error = (variance / COUNT) ** 0.5
    assert abs(draws.mean().item() - mean) < 5 * error
    fourth = ((draws - mean) ** 4).mean().item()
    assert abs(draws.var().item() - variance) < 5 * (fourth / COUNT) ** 0.5


@pytest.mark.parametrize("shape", [0.05, 0.7, 1.0, 2.5, 300.0])
def test_gamma(shape):
    draws = on_device(torch._standard_gamma, torch.full((COUNT,), shape))
    check_moments(draws, shape, shape, torch.finfo(torch.float32).tiny)


@pytest.mark.parametrize("mean", [0.0, 0.3, 9.9, 10.0, 77.5, 1e6])
def test_poisson(mean):
    draws = on_device(torch.poisson, torch.full((COUNT,), mean))
    assert torch.equal(draws, draws.floor())
    check_moments(draws, mean, mean, 0) if mean > 0 else torch.testing.assert_close(
        draws, 0 * draws
    )


@pytest.mark.parametrize(
    ("count", "p"), [(1, 0.3), (20, 0.3), (20, 0.9), (1000, 0.5), (10**6, 1e-6), (500, 0.98)]
)
def test_binomial(count, p):
    draws = on_device(torch.binomial, torch.full((COUNT,), float(count)), torch.full((COUNT,), p))
    assert torch.equal(draws, draws.floor())
    p = torch.tensor(p).item()
    check_moments(draws, count * p, count * p * (1 - p), 0, count)


def test_binomial_at_its_ends():
    n = torch.tensor([0.0, 5.0, 5.0, 5.0, 1e4])
    p = torch.tensor([0.5, 0.0, 1.0, float("nan"), 1.0])
    expected = torch.tensor([0.0, 0.0, 5.0, float("nan"), 1e4])
    torch.testing.assert_close(on_device(torch.binomial, n, p), expected, equal_nan=True)


def test_distributions_of_small_counts():
    """Each number as often as its probability says, by the chi-squared statistic."""
    p = torch.distributions.Binomial(8, torch.tensor(0.4)).log_prob(torch.arange(9.0)).exp()
    draws = on_device(torch.binomial, torch.full((COUNT,), 8.0), torch.full((COUNT,), 0.4))
    q = torch.distributions.Poisson(torch.tensor(12.0)).log_prob(torch.arange(40.0)).exp()
    counts = on_device(torch.poisson, torch.full((COUNT,), 12.0))
    for drawn, probability in ((draws, p), (counts, q)):
        expected = probability.double() * COUNT
        seen = torch.bincount(drawn.long(), minlength=len(expected))[: len(expected)]
        usual = expected > 10
        chi = ((seen - expected) ** 2 / expected)[usual].sum().item()
        degrees = usual.sum().item()
        assert chi < degrees + 6 * (2 * degrees) ** 0.5


def test_dirichlet():
    shape = torch.tensor([0.5, 2.0, 7.5]).expand(COUNT // 4, 3).contiguous()
    draws = on_device(torch._sample_dirichlet, shape)
    torch.testing.assert_close(draws.sum(1), torch.ones(COUNT // 4))
    torch.testing.assert_close(draws.mean(0), torch.tensor([0.05, 0.2, 0.75]), atol=1e-2, rtol=0)


def test_seeds_repeat_draws(device):
    mean = torch.full((100,), 20.0, device=device)
    for draw in (torch.poisson, torch._standard_gamma, lambda x: torch.binomial(x, x / 100)):
        torch.manual_seed(3)
        first = draw(mean)
        torch.manual_seed(3)
        assert torch.equal(draw(mean), first)
        assert not torch.equal(draw(mean), first)


def test_draws_have_gradients(device):
    shape = torch.full((1000,), 3.0, device=device, requires_grad=True)
    torch.distributions.Gamma(shape, 1.0).rsample().mean().backward()
    assert 0.8 < shape.grad.sum().item() < 1.2


ATEN = torch.ops.aten
MATRIX = torch.arange(24.0).reshape(4, 6)
COMPLEX = torch.view_as_complex(MATRIX.reshape(4, 3, 2))


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (ATEN.copy.default, (MATRIX, MATRIX[0].int())),
        (ATEN.lift_fresh_copy.default, (MATRIX,)),
        (ATEN.detach_copy.default, (MATRIX.t(),)),
        (ATEN.slice_copy.Tensor, (MATRIX, 1, 1, 5, 2)),
        (ATEN.select_copy.int, (MATRIX, 0, 2)),
        (ATEN.split_copy.Tensor, (MATRIX, 3)),
        (ATEN._reshape_alias_copy.default, (MATRIX, [6, 4], [4, 1])),
        (ATEN.view_as_complex_copy.default, (MATRIX.reshape(4, 3, 2),)),
        (ATEN.view_as_real_copy.default, (COMPLEX,)),
        (ATEN._conj_copy.default, (COMPLEX,)),
        (ATEN._neg_view_copy.default, (MATRIX,)),
        (
            ATEN.slow_conv_transpose2d.default,
            (torch.ones(1, 2, 4, 4), torch.ones(2, 3, 3, 3), [3, 3], torch.ones(3), [2, 2], [1, 1]),
        ),
    ],
)
def test_functional_forms(operator, arguments):
    check(operator, *arguments)
    if operator is not ATEN.slow_conv_transpose2d.default:
        held = arguments[0].to("xla")
        parts = operator(
            held, *(x.to("xla") if isinstance(x, torch.Tensor) else x for x in arguments[1:])
        )
        for part in parts if isinstance(parts, list) else [parts]:
            part.zero_()
        torch.testing.assert_close(held.cpu(), arguments[0])  # its memory is its own
