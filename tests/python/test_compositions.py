"""Operators that torch leaves to kernels, as compositions: the numbers of eager, and nothing on the CPU."""

import pytest
import torch
import torch.nn.functional as F

import torch_xla.debug.metrics as metrics
from torch_xla import _compositions

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


@pytest.fixture(params=[True, False], ids=["host", "device"])
def few(request, monkeypatch):
    """Few elements are taken by torch's kernel, and many by compositions."""
    if not request.param:
        monkeypatch.setattr(_compositions, "_FEW", -1)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "x", [SMALL, NAN, SMALL > 1, ROWS.to(torch.uint8), SMALL[:1], torch.tensor(2.5)]
)
@pytest.mark.parametrize("inverse", [True, False])
def test_unique(x, inverse):
    check(lambda x: torch.unique(x, return_inverse=inverse, return_counts=True), x)
    check(lambda x: torch.unique(x, return_inverse=True), x)
    check(lambda x: torch.unique_consecutive(x, return_inverse=inverse, return_counts=True), x)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unique_along_a_dimension(dim):
    for f in (torch.unique, torch.unique_consecutive):
        check(lambda x, f=f: f(x, dim=dim, return_inverse=True, return_counts=True), ROWS)
        check(lambda x, f=f: f(x, dim=dim), ROWS.unsqueeze(2).expand(4, 3, 2))


@pytest.mark.usefixtures("few")
def test_unique_of_nothing(device):
    empty = torch.empty(0, device=device)
    assert [x.shape for x in torch.unique(empty, return_counts=True)] == [(0,), (0,)]
    with pytest.raises(RuntimeError, match="0 sized dimensions"):
        torch.unique(torch.empty(2, 0, device=device), dim=0)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("weight", [None, torch.float32, torch.float64, torch.float16, torch.int32])
def test_bincount(weight):
    weights = None if weight is None else torch.arange(7).to(weight)
    for minimum in (0, 9):
        check(lambda x, w, m=minimum: torch.bincount(x, w, m), SMALL, weights)
    check(lambda x: torch.bincount(x), SMALL.to(torch.uint8))


@pytest.mark.usefixtures("few")
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
