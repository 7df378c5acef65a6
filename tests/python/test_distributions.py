"""Distributions whose numbers take several draws: on the device, with the moments that they should have."""

import pytest
import torch

import torch_xla.debug.metrics as metrics


def on_device(draw, *parameters):
    """What `draw` gives on the device, having run no operator on the CPU."""
    metrics.clear_all()
    drawn = draw(*(p.to("xla") for p in parameters))
    assert not any(name.startswith("aten::") for name in metrics.counter_names())
    return drawn.cpu()


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


def check_is_normal(draws, mean, variance):
    """As counts of large means are: moments two, three and four within five of their errors."""
    z = (draws - mean) / variance**0.5
    for power, moment, spread in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((z**power).mean().item() - moment) < 5 * (spread / len(z)) ** 0.5, power


@pytest.mark.parametrize("mean", [1e9, 1e14, 1e15, 1e16, 1e24])
def test_poisson_of_large_means(mean):
    """Up to what the type holds: logarithms of factorials of such numbers are known to some units only."""
    draws = on_device(torch.poisson, torch.full((8 * COUNT,), mean, dtype=torch.float64))
    check_is_normal(draws, mean, mean)


@pytest.mark.parametrize(("count", "p"), [(1e10, 0.3), (4e15, 0.25), (4e15, 0.75), (1e24, 0.5)])
def test_binomial_of_large_means(count, p):
    parameters = (torch.full((8 * COUNT,), x, dtype=torch.float64) for x in (count, p))
    draws = on_device(torch.binomial, *parameters)
    check_is_normal(draws, count * p, count * p * (1 - p))


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


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_types_and_shapes(dtype):
    parameter = torch.tensor([[0.5, 3.0], [12.0, 30.0]], dtype=dtype).t()
    for draw in (torch.poisson, torch._standard_gamma, torch._sample_dirichlet):
        drawn = on_device(draw, parameter)
        assert drawn.dtype == dtype and drawn.shape == parameter.shape
        assert (drawn >= 0).all() and drawn.isfinite().all()
    drawn = on_device(torch.binomial, parameter.floor(), torch.tensor([0.1, 0.7], dtype=dtype))
    assert drawn.dtype == dtype and (drawn <= parameter).all()


@pytest.mark.parametrize("shape", [(0,), (3, 0), ()])
def test_nothing_and_scalars(shape):
    parameter = torch.full(shape, 20.0)
    for draw in (
        torch.poisson,
        torch._standard_gamma,
        torch._sample_dirichlet,
        lambda x: torch.binomial(x, x / 50),
    ):
        assert on_device(draw, parameter).shape == shape


def test_parameters_of_both_kinds_side_by_side():
    """A search serves some elements and rejection others: neither touches the other's."""
    mean = torch.tensor([0.2, 40.0, 0.0, 200.0]).repeat(COUNT, 1)
    draws = on_device(torch.poisson, mean).double()
    torch.testing.assert_close(draws.mean(0), mean[0].double(), atol=0.3, rtol=0)
    assert (draws[:, 2] == 0).all()


def test_parameters_that_are_none():
    counts = torch.tensor([float("inf"), float("inf"), 3.0])
    drawn = on_device(torch.binomial, counts, torch.tensor([0.5, 0.0, 1.0]))
    assert drawn.tolist() == [float("inf"), 0, 3]
    shapes = torch.tensor([float("nan"), float("inf"), 2.0])
    drawn = on_device(torch._standard_gamma, shapes)
    assert drawn[0].isnan() and drawn[2].isfinite()


def test_binomial_of_two_types_is_refused(device):
    with pytest.raises(RuntimeError, match="Found dtype Double but expected Float"):
        torch.binomial(torch.ones(2, device=device), torch.ones(2, device=device).double())
