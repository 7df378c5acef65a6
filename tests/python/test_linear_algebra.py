"""What torch's database of operators does not try: errors that eager raises, conjugate views, other engines."""

import pytest
import torch
from interpreted import interpretation, interpreted_compiled

import torch_xla
import torch_xla.debug.metrics as metrics

ZEROS = torch.zeros(3, 3)
NAN = float("nan")
NANS = torch.full((3, 3), NAN)
ONES = torch.ones(4, 3)
BATCH = torch.stack([torch.eye(3), ZEROS])

REFUSED = {
    "inv": (torch.linalg.inv, ZEROS),
    "inv of a batch": (torch.linalg.inv, BATCH),
    "inv_ex": (lambda a: torch.linalg.inv_ex(a, check_errors=True), ZEROS),
    "solve": (torch.linalg.solve, ZEROS, ZEROS),
    "cholesky": (torch.linalg.cholesky, -torch.eye(3)),
    "cholesky of a batch": (torch.linalg.cholesky, BATCH),
    "cholesky of NaN": (torch.linalg.cholesky, NANS),
    "cholesky of one NaN": (torch.linalg.cholesky, torch.eye(3) * torch.tensor([1.0, NAN, 1.0])),
    "cholesky_inverse": (torch.cholesky_inverse, torch.diag(torch.tensor([1.0, 0.0, 2.0]))),
    "lu_factor": (torch.linalg.lu_factor, BATCH),
    "lu_factor without pivots": (lambda a: torch.linalg.lu_factor(a, pivot=False), ONES),
    "eig": (torch.linalg.eig, NANS),
    "eigh": (torch.linalg.eigh, NANS),
    "svd": (torch.linalg.svd, NANS),
    "svd's driver": (lambda a: torch.linalg.svd(a, driver="gesvd"), ONES),
    "lstsq": (
        lambda a, b: torch.linalg.lstsq(a, b, driver="gels"),
        torch.eye(4, 3) * torch.tensor([1.0, 0.0, 1.0]),
        ONES,
    ),
    **{
        f"lstsq of {what} by {driver}": (
            lambda a, b, driver=driver: torch.linalg.lstsq(a, b, driver=driver),
            torch.eye(3) * torch.tensor([1.0, float(what), 1.0]),
            torch.ones(3, 2),
        )
        for what, driver in [("nan", "gels"), ("nan", "gelsd"), ("nan", "gelss"), ("inf", "gelsd")]
    },
    "lstsq's driver": (lambda a, b: torch.linalg.lstsq(a, b, driver="none"), ONES, ONES),
    "not square": (torch.linalg.det, ONES),
    "no matrix": (torch.linalg.qr, torch.ones(3)),
    "integers": (torch.linalg.svd, torch.ones(3, 3, dtype=torch.int64)),
}


def refusal(function, *arguments):
    with pytest.raises(Exception) as error:
        function(*arguments)
    # LAPACK's number for a failure to converge depends on how its loops are blocked.
    return type(error.value), str(error.value).partition(" (error code")[0]


@pytest.mark.parametrize("name", REFUSED)
def test_is_refused_as_in_eager(name):
    function, *arguments = REFUSED[name]
    on_device = [x.to("xla") for x in arguments]
    assert refusal(function, *on_device) == refusal(function, *arguments)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("name", ["lu", "qr", "inv", "solve"])
def test_no_nan_is_lost(name, dtype):
    """Factors of single precision became zeros where a pivot or norm was NaN."""
    a, b = torch.full((5, 5), NAN, dtype=dtype), torch.ones(5, 2, dtype=dtype)
    functions = {"solve": lambda a: torch.linalg.solve(a, b.to(a.device))}
    function = functions.get(name, getattr(torch.linalg, name))
    expected, actual = function(a), function(a.to("xla"))
    if isinstance(expected, torch.Tensor):
        expected, actual = (expected,), (actual,)
    for x, y in zip(actual, expected, strict=True):
        assert torch.equal(x.cpu().isnan(), y.isnan())


def test_least_squares_of_nan_are_nan():
    """Eager's, with the default driver, are an internal error of the library that it calls."""
    a, b = torch.eye(3), torch.ones(3, 2)
    for x, y in ((a * NAN, b), (a, b * NAN)):
        assert torch.linalg.lstsq(x.to("xla"), y.to("xla")).solution.cpu().isnan().all()


INF = float("inf")
INFINITE = {
    "one": torch.tensor([[2.0, 1.0, 0.0], [1.0, INF, 1.0], [0.0, 1.0, 2.0]]),
    "all": torch.full((3, 3), INF),
    "tall": torch.tensor([[1.0, 2.0], [3.0, INF], [2.0, 1.0], [0.5, 4.0]]),
    "column": torch.tensor([[INF, 1.0, 2.0], [INF, 3.0, 5.0], [INF, 2.0, 2.0]]),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", INFINITE)
@pytest.mark.parametrize("function", [torch.linalg.lu_factor_ex, torch.linalg.cholesky_ex])
def test_factors_of_infinities(function, name, dtype):
    """The reciprocal of an infinite pivot was taken for what makes everything zero."""
    x = INFINITE[name].to(dtype)
    if function is torch.linalg.cholesky_ex:
        # Of a number by an infinite pivot some of eager's kernels make NaN.
        x = (
            torch.full((3, 3), INF, dtype=dtype)
            if name == "all"
            else torch.eye(3) * INFINITE["all"]
        )
    for part, expected in zip(function(x.to("xla")), function(x), strict=True):
        torch.testing.assert_close(part.cpu(), expected, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("name", INFINITE)
def test_reflectors_of_infinities(name, dtype):
    """Which numbers are lost, as in eager."""
    x = INFINITE[name].to(dtype)
    for part, expected in zip(torch.geqrf(x.to("xla")), torch.geqrf(x), strict=True):
        assert torch.equal(part.cpu().isfinite(), expected.isfinite())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (4, 3)])
def test_no_inverse_of_infinities_is_zero(shape, dtype):
    """Eager refuses some of them."""
    x = torch.eye(*shape, dtype=dtype)
    x[1, 1] = INF
    assert torch.linalg.pinv(x.to("xla")).isnan().all()


def test_no_factor_of_infinities_is_told_as_one():
    for x in (torch.full((3, 3), INF), INFINITE["column"]):
        assert refusal(torch.linalg.cholesky, x.to("xla")) == refusal(torch.linalg.cholesky, x)


CONJUGATES = {
    "mm": lambda a, b: a.mH @ b,
    "bmm": lambda a, b: a.mH[None] @ b[None],
    "solve_triangular": lambda a, b: torch.linalg.solve_triangular(a.mH, b, upper=True),
    "vdot": lambda a, b: torch.vdot(a[0].conj(), b[0]),
    "negated": lambda a, b: a.conj().imag @ b.real,
}


@pytest.mark.parametrize("name", CONJUGATES)
def test_conjugate_views_reach_lowerings_resolved(name):
    torch.manual_seed(0)
    a, b = torch.randn(2, 3, 3, dtype=torch.complex64)
    a = a + 3 * torch.eye(3)
    result = CONJUGATES[name](a.to("xla"), b.to("xla"))
    torch.testing.assert_close(result.cpu(), CONJUGATES[name](a, b))


def test_a_least_squares_batch_shares_its_matrix():
    torch.manual_seed(0)
    a, b = torch.randn(1, 5, 3), torch.randn(4, 5, 2)
    for driver in ("gels", "gelsy", "gelsd", "gelss"):
        expected = torch.linalg.lstsq(a, b, driver=driver)
        actual = torch.linalg.lstsq(a.to("xla"), b.to("xla"), driver=driver)
        for x, y in zip(actual, expected, strict=True):
            torch.testing.assert_close(x.cpu(), y)


ON_OTHER_ENGINES = """
import torch
import torch_xla
import torch_xla.debug.metrics as metrics

torch.manual_seed(0)
a, b = torch.randn(2, 4, 4), torch.randn(2, 4, 3)
positive = a @ a.mT + torch.eye(4)
for function, arguments in (
    (torch.linalg.solve, (a, b)),
    (torch.linalg.inv, (a,)),
    (torch.linalg.slogdet, (a,)),
    (torch.linalg.qr, (a,)),
    (torch.linalg.svdvals, (a,)),
    (torch.linalg.eigvalsh, (positive,)),
    (torch.linalg.pinv, (b,)),
    (torch.linalg.lu, (a,)),
    (torch.linalg.matrix_exp, (a,)),
    (torch.linalg.cholesky, (positive,)),
    (torch.cholesky_inverse, (positive.tril(),)),
    (torch.cdist, (a, b.mT.new_ones(2, 5, 4))),
    (torch.pdist, (a[0],)),
):
    expected, actual = function(*arguments), function(*(x.to("xla") for x in arguments))
    if isinstance(expected, torch.Tensor):
        expected, actual = (expected,), (actual,)
    for x, y in zip(actual, expected, strict=True):
        torch.testing.assert_close(x.cpu(), y, rtol=1e-3, atol=1e-3, msg=lambda m: f"{function}: {m}")
try:
    torch.linalg.cholesky(-positive.to("xla"))
    raise AssertionError("not refused")
except torch.linalg.LinAlgError:
    pass
print(*sorted(name for name in metrics.counter_names() if name.startswith("aten::") and name != "aten::_local_scalar_dense"))
"""


def test_engines_without_lapack_use_the_cpus(program):
    from conftest import engine_environment

    assert program.run("-c", ON_OTHER_ENGINES).stdout.split() == []
    fallbacks = program.run("-c", ON_OTHER_ENGINES, **engine_environment("xla_cpu")).stdout.split()
    assert fallbacks == [
        "aten::_linalg_eigh",
        "aten::_linalg_svd",
        "aten::geqrf",
        "aten::linalg_householder_product",
        "aten::linalg_lu_factor_ex",
    ]


def test_a_factorization_is_one_program():
    """The factors, and what tells whether it succeeded, come from the same run."""
    a = torch.randn(3, 3).to("xla")
    torch_xla.sync()
    metrics.clear_all()
    torch.linalg.eigh(a + a.mT)
    assert metrics.metric_data("ExecuteTime")[0] == 1


def test_norms_have_derivatives_at_zero(device):
    def gradient(on):
        x = torch.zeros(2, 3, device=on, requires_grad=True)
        (x.norm() + x.norm(dim=(0, 1)) + x.norm(dim=1, keepdim=True).sum()).backward()
        return x.grad.cpu()

    assert torch.equal(gradient(device), gradient("cpu"))


# Of a square matrix, a positive definite one and one of few columns.
WITHOUT_PROGRAMS = {
    "cholesky": lambda a, p, x: torch.linalg.cholesky(p),
    "cholesky_inverse": lambda a, p, x: torch.cholesky_inverse(torch.linalg.cholesky(p)),
    "cholesky_solve": lambda a, p, x: torch.cholesky_solve(x, torch.linalg.cholesky(p)),
    "no cholesky": lambda a, p, x: torch.linalg.cholesky_ex(-p).info,
    "lu": lambda a, p, x: torch.linalg.lu(a),
    "lu_solve": lambda a, p, x: torch.linalg.lu_solve(*torch.linalg.lu_factor(a), x, adjoint=True),
    "solve": lambda a, p, x: torch.linalg.solve(a, x),
    "inv": lambda a, p, x: torch.linalg.inv(a),
    "det": lambda a, p, x: torch.linalg.det(a),
    "slogdet": lambda a, p, x: torch.linalg.slogdet(a),
    "ldl": lambda a, p, x: torch.linalg.ldl_factor(p),
    "qr": lambda a, p, x: torch.linalg.qr(x),
    "ormqr": lambda a, p, x: torch.ormqr(*torch.geqrf(a), x),
    "eigvalsh": lambda a, p, x: torch.linalg.eigvalsh(p, UPLO="U"),
    "svdvals": lambda a, p, x: torch.linalg.svdvals(x),
    "matrix_exp": lambda a, p, x: torch.linalg.matrix_exp(a / 4),
    "cross": lambda a, p, x: torch.linalg.cross(a[..., :1, :3], x.mT[..., :3]),
    "one_hot": lambda a, p, x: torch.nn.functional.one_hot(x.real.sign().long() + 1, 3),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.complex64], ids=str)
@pytest.mark.parametrize("batch", [(), (3,), (2, 0)], ids=str)
@pytest.mark.parametrize("name", WITHOUT_PROGRAMS)
def test_new_sizes_need_no_program(name, batch, dtype):
    """As eager, of which it is torch's kernel."""
    torch.manual_seed(0)
    a, x = torch.randn(*batch, 5, 5, dtype=dtype), torch.randn(*batch, 5, 2, dtype=dtype)
    positive = a @ a.mH + 5 * torch.eye(5, dtype=dtype)

    def run(*matrices):
        found = WITHOUT_PROGRAMS[name](*matrices)
        return [found] if isinstance(found, torch.Tensor) else list(found)

    expected, found = run(a, positive, x), []
    on_device = [matrix.to("xla") for matrix in (a, positive, x)]
    with interpretation("always"):
        interpreted, compiled = interpreted_compiled(
            lambda: found.extend(y.cpu() for y in run(*on_device))
        )
    assert interpreted > 0
    assert compiled == 0
    for y, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(y, wanted)


def test_vectors_are_those_of_the_program():
    """Of which the signs depend on whose LAPACK it is."""
    a = torch.randn(5, 5).to("xla")
    vectors = {}
    for when in ("always", "never"):
        with interpretation(when):
            vectors[when] = [torch.linalg.eigh(a + a.T)[1].cpu(), torch.linalg.svd(a)[0].cpu()]
    assert all(map(torch.equal, *vectors.values()))


@pytest.mark.parametrize("type", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("when", ["always", "never"])
def test_exponentials_of_fewer_bits_are_rounded_once(when, type):
    a = torch.randn(3, 5, 5).to(type)
    with interpretation(when):
        found = torch.linalg.matrix_exp(a.to("xla")).cpu()
    torch.testing.assert_close(found, torch.linalg.matrix_exp(a.float()).to(type))


@pytest.mark.parametrize("when", ["always", "never"])
@pytest.mark.parametrize("pivots", [[1, 2, 4], [0, 2, 3], [-7, 2, 3], [1, 2, 2**31 - 1]])
def test_pivots_that_name_no_rows_reach_no_memory(pivots, when):
    """Eager's kernels swap what lies there."""
    ones = torch.eye(3).to("xla")
    pivots = torch.tensor(pivots, dtype=torch.int32).to("xla")
    with interpretation(when):
        lu = -ones  # a graph that no other test has: it is remembered that it wants a program
        for result in (*torch.lu_unpack(lu, pivots), torch.linalg.lu_solve(lu, pivots, lu)):
            assert result.cpu().shape == (3, 3)
