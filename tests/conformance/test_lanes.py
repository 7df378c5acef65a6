"""Functions whose elements take different ways are computed in vectors: each element is as if it were alone."""

import pytest
import torch

import torch_xla  # noqa: F401 - the device

special = torch.special
COUNT = 3001


def spread(low, high, dtype):
    return torch.linspace(low, high, COUNT, dtype=torch.float64).to(dtype)


def degrees(dtype):
    return torch.arange(COUNT, dtype=torch.float64).remainder(9).to(dtype)


OF_TWO = {
    "igamma": (torch.igamma, 0.0, 60.0, (1e-3, 90.0)),
    "igammac": (torch.igammac, 0.0, 60.0, (1e-3, 90.0)),
    "zeta": (special.zeta, 1.5, 12.0, (-7.25, 30.0)),
    "remainder": (torch.remainder, -1e6, 1e6, (-9.0, 13.0)),
    "fmod": (torch.fmod, -1e30, 1e30, (-1e-3, 1e12)),
    "floor_divide": (torch.floor_divide, -1e4, 1e4, (-9.0, 13.0)),
}
OF_ONE = {
    "lgamma": (torch.lgamma, -7.3, 40.0),
    "digamma": (torch.digamma, -7.3, 40.0),
    "mvlgamma": (lambda x: torch.mvlgamma(x, 3), 1.1, 40.0),
    "polygamma_1": (lambda x: torch.polygamma(1, x), -7.3, 40.0),
    "polygamma_3": (lambda x: torch.polygamma(3, x), 0.1, 40.0),
    "polygamma_11": (lambda x: torch.polygamma(11, x), 0.5, 9.0),
    "erfinv": (torch.erfinv, -1.0, 1.0),
    "i0": (torch.i0, -20.0, 20.0),
}
POLYNOMIALS = """
chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w hermite_polynomial_h
hermite_polynomial_he laguerre_polynomial_l legendre_polynomial_p shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_w
"""


def check(function, *arguments, largest=1.0):
    """Close to eager's, and the same in any order, among any neighbours."""
    on_device = [x.to("xla") for x in arguments]
    actual = function(*on_device).cpu()
    expected = function(*(x.double() for x in arguments))
    scale = 2e-6 if arguments[0].dtype == torch.float32 else 1e-10
    torch.testing.assert_close(
        actual.double(), expected, rtol=scale * 8, atol=scale * largest, equal_nan=True
    )
    order = torch.randperm(COUNT, generator=torch.Generator().manual_seed(1))
    mixed = function(*(x[order].to("xla") for x in arguments)).cpu()
    # Sines of a vector with large arguments are reduced otherwise, so that a last bit may differ.
    tight = {"rtol": scale / 8, "atol": scale / 8}
    torch.testing.assert_close(mixed, actual[order], **tight, equal_nan=True)
    for count in (5, 17, 33):  # also the one number behind whole vectors
        some = function(*(x[:count].to("xla") for x in arguments)).cpu()
        torch.testing.assert_close(some, actual[:count], equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", OF_TWO)
def test_of_two(name, dtype):
    function, low, high, (first, last) = OF_TWO[name]
    x, y = spread(low, high, dtype), spread(first, last, dtype)
    check(function, x, y[torch.arange(COUNT).mul(7).remainder(COUNT)])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", OF_ONE)
def test_of_one(name, dtype):
    function, low, high = OF_ONE[name]
    check(function, spread(low, high, dtype))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", POLYNOMIALS.split())
def test_polynomials(name, dtype):
    # Near their zeros sums of large terms are small.
    check(getattr(special, name), spread(-1.25, 1.25, dtype), degrees(dtype), largest=1e3)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 15, 16])
def test_short_rows(size):
    x = torch.randn(1501, size, generator=torch.Generator().manual_seed(size))
    x[5, 0] = float("nan")
    for function in (
        lambda x: x.logsumexp(-1),
        lambda x: x.exp().amax(-1),
        lambda x: x.softmax(-1),
        lambda x: x.bfloat16().sum(-1),
        lambda x: x.abs().add(1).lgamma().sum(-1),
        lambda x: x.prod(-1),
        lambda x: (x > 0).all(-1),
    ):
        torch.testing.assert_close(function(x.to("xla")).cpu(), function(x), equal_nan=True)
