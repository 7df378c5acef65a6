"""What the operations of graphs without a program give: eager's numbers, or the program's."""

import math

import pytest
import torch
import torch.nn.functional as F
from interpreted import interpretation, interpreted_compiled

import torch_xla


@pytest.mark.parametrize("type", [torch.float32, torch.float64, torch.bfloat16, torch.int32])
def test_numbers_promote_as_in_eager(type):
    def run(device):
        x = torch.arange(1, 7, device=device).to(type).reshape(2, 3)
        zero_dim = torch.tensor(2.5, dtype=torch.float64).to(device)
        return [x + 0.1, x * 2, x / 3, 2 - x, x**2, x > 1.5, x + zero_dim, x.clamp(min=2), x % 2]

    expected = run("cpu")
    with interpretation("always"):
        found = []
        assert interpreted_compiled(lambda: found.extend(y.cpu() for y in run("xla")))[1] == 0
    for y, wanted in zip(found, expected, strict=True):
        torch.testing.assert_close(y, wanted)


# Of few numbers, which loops of ours compute.
ARITHMETIC = {
    "sum": lambda x, y: x + y,
    "difference": lambda x, y: x - y,
    "product": lambda x, y: x * y,
    "quotient": lambda x, y: x / y,
    "sum with a number": lambda x, y: x + 0.1,
    "difference from an integer": lambda x, y: 3 - x,
    "product with an integer": lambda x, y: x * (2**24 + 1),
    "quotient of a number": lambda x, y: 0.3 / x,
    "product with one element": lambda x, y: x * y.flatten()[1],
    "product with one element of a wider type": lambda x, y: x * y.flatten()[1].double(),
    "sum with one element of dimensions": lambda x, y: y.flatten()[2:3] + x,
    "sum with one wide element of dimensions": lambda x, y: y.flatten()[2:3].double() / 3 + x,
    "sum with a row": lambda x, y: x + y[0],
    "difference of a column and a row": lambda x, y: x[:, 1:2] - y[-1],
    "quotient of one and an integer": lambda x, y: y.flatten()[1] / 7,
    "sum of an integer of dimensions and one": lambda x, y: (
        torch.ones_like(y[:1, 0]).long() + y[0, 0]
    ),
    "product with one that is stretched": lambda x, y: y.flatten()[1].expand_as(x) * x,
    "quotient of two that are stretched": lambda x, y: y[0, 0].expand_as(x) / x[0, 1].expand_as(x),
    "negative of one that is stretched": lambda x, y: -y.flatten()[1].expand_as(x),
    "negative of a row that is stretched": lambda x, y: -y[:1].expand_as(x),
    "quotient of a column": lambda x, y: x / y[:, 1:2],
    "product of a column that is stretched": lambda x, y: y[:, :1].expand(-1, 3) * x,
    "difference from a column": lambda x, y: x.sum(1, keepdim=True) - y,
    "sum with a column of a wider type": lambda x, y: x + y[:, :1].double(),
    "sum of what lies otherwise": lambda x, y: x.t() + y.t(),
    "sum into a sum": lambda x, y: (x * 1).add_(y).mul_(0.7),
    "sum of one wide number into one": lambda x, y: (y[0, 1] * 1).add_(y.flatten()[2].double() / 3),
    "sum of one wide element into a sum": lambda x, y: (x * 1).add_(y.flatten()[2:3].double() / 3),
    "activation": lambda x, y: torch.relu(x),
    "magnitude": lambda x, y: x.abs(),
    "negative": lambda x, y: -x,
    "larger of a number": lambda x, y: x.clamp_min(0.1),
    "larger of zero": lambda x, y: x.clamp_min(0),
    "larger of NaN": lambda x, y: y.clamp_min(math.nan),
    "larger of a number into a sum": lambda x, y: (x + y).clamp_min_(-0.3),
    "filled where a mask is true": lambda x, y: x.masked_fill(y > 0, 0.1),
    "filled where a column is true": lambda x, y: x.masked_fill(y[:, :1] > 0, -math.inf),
    "filled where a row is true": lambda x, y: x.masked_fill(y[:1] > 0, 3),
    "filled where rows of a row are true": lambda x, y: x[:1].masked_fill(y > 0, math.nan),
    "filled where one is true": lambda x, y: x.flatten()[1].masked_fill(y[0, 1] > 0, 0.1),
    "filled into a sum": lambda x, y: (x + y).masked_fill_(y > 0, 0.1),
    "filled what is read again": lambda x, y: (
        lambda z: torch.cat([z, z.masked_fill(y[:, :1] <= 0, 0.1)])
    )(x * 2),
    "filled what lies otherwise": lambda x, y: x.t().masked_fill((y > 0).t(), 0.1),
    "choice": lambda x, y: torch.where(y > 0, x, y),
    "choice with one": lambda x, y: torch.where(y > 0, x, y[0, 1]),
    "choice of one": lambda x, y: torch.where(y > 0, x[0, 1], y),
    "choice of two": lambda x, y: torch.where(y > 0, x[0, 1], y[0, 1]),
    "choice of one where one is true": lambda x, y: torch.where(y[0, 1] > 0, x[0, 1], y[0, 1]),
    "choice with a row": lambda x, y: torch.where(y > 0, x, y[0]),
    "choice with a number": lambda x, y: torch.where(y > 0, 0.1, x),
    "choice of wide numbers": lambda x, y: torch.where(y > 0, x, y.double()),
    "gradient of an activation": lambda x, y: torch.ops.aten.threshold_backward(y, x, 0),
    "gradient above a number": lambda x, y: torch.ops.aten.threshold_backward(x, y, 0.1),
    "gradient that is stretched": lambda x, y: torch.ops.aten.threshold_backward(
        y[0, 1].expand_as(x), x, 0
    ),
    "sum of all": lambda x, y: y.clamp(-1, 1).sum(),
    "sum of rows": lambda x, y: y.clamp(-1, 1).sum(0, keepdim=True),
    "wide sum of columns": lambda x, y: y.clamp(-1, 1).sum(1, dtype=torch.float64),
    "sum of negatives": lambda x, y: torch._neg_view(y).sum((0, 1)),
    "ones": lambda x, y: torch.ones_like(x) + torch.full_like(y, -2),
}


@pytest.mark.parametrize("name", ARITHMETIC)
@pytest.mark.parametrize("count", [1, 3, 70, 3000])
def test_few_numbers_are_computed_to_the_last_bit_as_in_eager(name, count):
    torch.manual_seed(count)
    x, y = torch.randn(count, 3), torch.randn(count, 3)
    x[0] = torch.tensor([math.nan, math.inf, -0.0])
    y[-1] = torch.tensor([0.0, -math.inf, 1e-40])
    expected = ARITHMETIC[name](x, y)
    with interpretation("always"):
        found = []
        device = [x.to("xla"), y.to("xla")]
        assert interpreted_compiled(lambda: found.append(ARITHMETIC[name](*device).cpu()))[1] == 0
    assert found[0].dtype == expected.dtype
    assert torch.equal(found[0].isnan(), expected.isnan())
    integer = {4: torch.int32, 8: torch.int64}[expected.element_size()]
    same = found[0].view(integer) == expected.view(integer)
    assert (same | expected.isnan()).all()


COMPARISONS = {
    "equal": torch.eq,
    "unequal": torch.ne,
    "less": torch.lt,
    "less or equal": torch.le,
    "greater": torch.gt,
    "greater or equal": torch.ge,
    "of a number": lambda x, y: 0.1 * y < x,
    "with a number": lambda x, y: x <= 1,
    "with a wide number": lambda x, y: x > 0.1,
    "with one element": lambda x, y: x >= y.flatten()[1],
    "with one wide element": lambda x, y: x < y.flatten()[2:3].double(),
    "with an integer": lambda x, y: x != y.flatten()[1].long(),
    "of one element with one of a wider type": lambda x, y: (
        x[0, 1] > x.new_full((), 0.1, dtype=torch.float64)
    ),
    "of one element with an integer": lambda x, y: x[0, 2] == y[-1, 0].long(),
    "of integers with a row": lambda x, y: y.long() == y[0].long(),
    "of a column and a row of integers": lambda x, y: y.long()[:, None, 0] <= y.long()[None, :, 1],
    "of a column that is stretched": lambda x, y: y.long()[:, :1].expand_as(y) > y.long(),
    "of one element": lambda x, y: y.flatten()[0] > x,
    "with a row": lambda x, y: x < y[0],
    "of integers": lambda x, y: x.nan_to_num().long() <= y.long(),
    "of integers and a number": lambda x, y: y.long() == 1,
    "of integers and half a number": lambda x, y: y.long() > 0.5,
    "of short integers": lambda x, y: y.int() >= y.short(),
    "both": lambda x, y: (x > 0) & (y > 0),
    "either": lambda x, y: (x > 0) | (y > 0),
    "neither": lambda x, y: ~(x > 0) & ~(y > 0),
    "neither of bytes that are not one": lambda x, y: ~(y.to(torch.uint8) * 2).view(torch.bool),
    "neither of integers": lambda x, y: ~y.long(),
    "both of integers": lambda x, y: y.long() & 3,
    "both of bytes that are not one": lambda x, y: (
        (y.to(torch.uint8) * 2).view(torch.bool) & (x > 0)
    ),
}


@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("count", [1, 3, 70, 2000])
def test_few_numbers_are_compared_as_in_eager(name, count):
    torch.manual_seed(count)
    x, y = (torch.randint(-3, 4, (count, 3)) / 2 for _ in range(2))
    x[0] = torch.tensor([math.nan, 0.1, -0.0])
    y[-1] = torch.tensor([0.0, 3.0, 0.1])
    expected = COMPARISONS[name](x, y)
    with interpretation("always"):
        found = COMPARISONS[name](x.to("xla"), y.to("xla")).cpu()
    assert found.dtype == expected.dtype
    assert torch.equal(found, expected)


# Of matrices of 1, 2 and more rows, which are multiplied as torch's kernels do it.
PRODUCTS = {
    "product": lambda x, y, bias: x @ y.t(),
    "product of columns": lambda x, y, bias: x.t() @ x,
    "product of every second row": lambda x, y, bias: x[::2] @ y.t(),
    "product of every second column": lambda x, y, bias: x[:, ::2] @ y[:, ::2].t(),
    "product of a row that is stretched": lambda x, y, bias: x[:1].expand_as(x) @ y.t(),
    "product of parts": lambda x, y, bias: x[:, 1:] @ y[1:, 1:].t(),
    "product with a column": lambda x, y, bias: x @ y[:1].t(),
    "product of no terms": lambda x, y, bias: x[:, :0] @ y[:, :0].t(),
    "product of one term": lambda x, y, bias: x[:, :1] @ y.t()[:1],
    "product of nothing": lambda x, y, bias: x[:0] @ y.t(),
    "product of wide numbers": lambda x, y, bias: (x.double() @ y.double().t()).float(),
    "product of negatives": lambda x, y, bias: x.neg() @ torch._neg_view(y).t(),
    "sum with a product": lambda x, y, bias: torch.addmm(bias, x, y.t()),
    "scaled sum with a product": lambda x, y, bias: torch.addmm(bias, x, y.t(), beta=0.5, alpha=2),
    "sum with a matrix": lambda x, y, bias: torch.addmm(x @ y.t(), x, y.t()),
    "sum with one number": lambda x, y, bias: torch.addmm(bias[:1], x, y.t()),
    "layer": F.linear,
    "layer without a bias": lambda x, y, bias: F.linear(x, y),
    "layer of sequences": lambda x, y, bias: F.linear(x.expand(3, -1, -1).clone(), y, bias),
    "layer of sequences that lie otherwise": lambda x, y, bias: F.linear(
        x.expand(3, -1, -1).transpose(0, 1), y, bias
    ),
    "layer of a vector": lambda x, y, bias: F.linear(x[0], y, bias),
    "layer of parts": lambda x, y, bias: F.linear(x[:, 1:], y[:, 1:], bias[::1]),
    "gradients": lambda x, y, bias: torch.cat(
        [
            g.flatten()
            for g in torch.autograd.grad(
                F.linear(x.requires_grad_(), y.requires_grad_(), bias).square().sum(), (x, y)
            )
        ]
    ),
}


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("sizes", [(1, 4, 3), (5, 2, 2), (16, 9, 33), (64, 128, 64)])
def test_small_products_are_computed_to_the_last_bit_as_in_eager(name, sizes):
    rows, columns, terms = sizes
    torch.manual_seed(rows)
    x, y, bias = torch.randn(rows, terms), torch.randn(columns, terms), torch.randn(columns)
    device = [tensor.to("xla") for tensor in (x, y, bias)]
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        expected = PRODUCTS[name](x, y, bias)
        with interpretation("always"):
            found = []
            work = interpreted_compiled(lambda: found.append(PRODUCTS[name](*device).cpu()))
    finally:
        torch.set_num_threads(threads)
    assert work[1] == 0
    assert torch.equal(found[0], expected)


def test_products_of_fewer_bits_where_they_are_allowed():
    precision = torch.backends.mkldnn.matmul.fp32_precision
    x, y = torch.randn(32, 32), torch.randn(32, 32)
    torch.backends.mkldnn.matmul.fp32_precision = "bf16"
    try:
        expected = x @ y
        with interpretation("always"):
            found = (x.to("xla") @ y.to("xla")).cpu()
    finally:
        torch.backends.mkldnn.matmul.fp32_precision = precision
    assert torch.equal(found, expected)


# Of rows and elements, which are read and added to by positions.
ROWS = {
    "rows": lambda x, rows, mask: x[rows],
    "rows from the end": lambda x, rows, mask: x[-1 - rows],
    "elements": lambda x, rows, mask: x.flatten()[rows],
    "rows of rows": lambda x, rows, mask: x.view(-1, 2, 3)[rows % 4],
    "rows of what lies otherwise": lambda x, rows, mask: x.t()[rows % 6],
    "no rows": lambda x, rows, mask: x[rows[:0]],
    "positions of dimensions": lambda x, rows, mask: x[rows.view(-1, 1)],
    "rows added": lambda x, rows, mask: x.index_add(0, rows, x[rows + 1]),
    "wide rows added": lambda x, rows, mask: x.repeat(1, 13).index_add(
        0, rows, x.repeat(1, 13)[rows + 1]
    ),
    "rows added in place": lambda x, rows, mask: (x * 1).index_add_(0, rows, x[: len(rows)]),
    "rows added to what is read again": lambda x, rows, mask: (
        lambda y: torch.cat([y, y.index_add(0, rows, x[rows])])
    )(x * 2),
    "rows scaled and added": lambda x, rows, mask: x.index_add(0, rows, x[rows], alpha=0.3),
    "rows put and added": lambda x, rows, mask: x.index_put(
        (rows,), x[: len(rows)], accumulate=True
    ),
    "rows from the end put and added": lambda x, rows, mask: x.index_put(
        (-1 - rows,), x[: len(rows)], accumulate=True
    ),
    "one row put and added": lambda x, rows, mask: x.index_put((rows,), x[0], accumulate=True),
    "the gradient of rows that repeat": lambda x, rows, mask: torch.autograd.grad(
        (lambda z: (z[rows] * z[rows + 1]).nan_to_num().sum())(x.requires_grad_()), x
    )[0],
    "columns added": lambda x, rows, mask: x.index_add(1, rows % 6, x[:, rows % 6]),
    "where a mask is true": lambda x, rows, mask: x[mask],
    "the gradient there": lambda x, rows, mask: torch.autograd.grad(
        (lambda z: z[mask].square().sum() + z[~mask].sum())(x.requires_grad_()), x
    )[0],
    "the gradient of rows": lambda x, rows, mask: torch.autograd.grad(
        (lambda z: (z[mask[:, 0]] * -0.5).sum())(x.requires_grad_()), x
    )[0],
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_read_and_added_to_the_last_bit_as_in_eager(name):
    torch.manual_seed(3)
    x, rows = torch.randn(8, 6), torch.tensor([3, 1, 1, 0, 6, 3])
    mask = torch.rand(8, 6) < 0.4
    x[3] = torch.tensor([math.nan, math.inf, -0.0, 0.0, 1e-40, -math.inf])
    expected = ROWS[name](x.clone(), rows, mask)
    with interpretation("always"):
        found = ROWS[name](x.to("xla"), rows.to("xla"), mask.to("xla")).cpu()
    assert found.shape == expected.shape
    assert torch.equal(found.isnan(), expected.isnan())
    same = found.view(torch.int32) == expected.view(torch.int32)
    assert (same | expected.isnan()).all()


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 1])
@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 1001])
def test_elements_where_a_mask_is_true_are_read_and_added_to_as_in_eager(size, share):
    torch.manual_seed(size)
    mask, x = torch.rand(size) < share, torch.randn(size)
    x[0] = -0.0

    def run(x, mask):
        z = x.detach().clone().requires_grad_()
        chosen = z[mask]
        (slope,) = torch.autograd.grad((chosen * x[mask]).sum(), z)
        return [chosen.detach(), slope, torch.nonzero(mask), torch.nonzero(mask.view(-1, size))]

    expected = run(x, mask)
    with interpretation("always"):
        found = [y.cpu() for y in run(x.to("xla"), mask.to("xla"))]
    for y, wanted in zip(found, expected, strict=True):
        assert y.dtype == wanted.dtype
        assert torch.equal(y, wanted)


def test_rows_out_of_range_are_refused_as_in_eager():
    x, rows = torch.ones(3, 2), torch.tensor([0, 3])
    for take in (lambda x, rows: x[rows], lambda x, rows: x.index_add(0, rows, x[:2])):
        with pytest.raises((IndexError, RuntimeError)) as expected:
            take(x, rows)
        with interpretation("always"), pytest.raises(type(expected.value)):
            take(x.to("xla"), rows.to("xla")).cpu()


def test_few_numbers_are_refused_as_in_eager():
    x, y = torch.ones(3), torch.ones(2)
    with pytest.raises(RuntimeError) as expected:
        x * y
    with interpretation("always"), pytest.raises(RuntimeError) as raised:
        x.to("xla") * y.to("xla")
    assert str(expected.value).splitlines()[0] in str(raised.value)


def interpreted_and_compiled(function):
    """What the function makes of interpreted graphs, none of which is refused, and of programs."""
    results = []
    for when in ("always", "never"):
        with interpretation(when):
            torch_xla.manual_seed(7)
            found = []
            ran = interpreted_compiled(lambda f=found: f.extend(x.cpu() for x in function()))
            assert when == "never" or ran[1] == 0, ran
        results.append(found)
    return results


def draw(shape=(3, 50), type=torch.float32):
    return torch.empty(shape, device="xla", dtype=type)


PROBABILITIES = torch.tensor([0.1, 0.0, 0.4, 0.2, 0.3])


EXACT_DRAWS = {
    "rand": lambda: torch.rand(3, 50, device="xla"),
    "rand f64": lambda: torch.rand(51, device="xla", dtype=torch.float64),
    "rand bf16": lambda: torch.rand(50, device="xla", dtype=torch.bfloat16),
    "randint": lambda: torch.randint(-5, 100, (7, 9), device="xla"),
    "random_": lambda: draw(type=torch.int32).random_(),
    "randperm": lambda: torch.randperm(101, device="xla"),
    "bernoulli": lambda: torch.bernoulli(torch.full((5, 7), 0.3).to("xla")),
    "bernoulli_": lambda: draw().bernoulli_(0.7),
    "multinomial": lambda: torch.multinomial(PROBABILITIES.to("xla"), 4),
    "multinomial rows": lambda: torch.multinomial(PROBABILITIES.expand(6, 5).to("xla"), 1),
    "multinomial again": lambda: torch.multinomial(PROBABILITIES.to("xla"), 60, replacement=True),
    "dropout": lambda: F.dropout(torch.ones(7, 9).to("xla"), 0.4),
}


ROUNDED_DRAWS = {
    "uniform": lambda: draw().uniform_(-3, 5),
    "randn": lambda: torch.randn(5, 11, device="xla"),
    "randn f64": lambda: torch.randn(55, device="xla", dtype=torch.float64),
    "randn bf16": lambda: torch.randn(55, device="xla", dtype=torch.bfloat16),
    "normal": lambda: torch.normal(torch.zeros(9).to("xla"), torch.arange(9.0).to("xla")),
    "log_normal": lambda: draw().log_normal_(0.5, 0.3),
    "exponential": lambda: draw().exponential_(2.0),
    "cauchy": lambda: draw().cauchy_(1.0, 2.0),
    "geometric": lambda: draw().geometric_(0.2),
    "rrelu": lambda: F.rrelu(-torch.ones(40).to("xla"), training=True),
}


@pytest.mark.parametrize("name", EXACT_DRAWS | ROUNDED_DRAWS)
def test_draws_are_those_of_the_program(name):
    function = (EXACT_DRAWS | ROUNDED_DRAWS)[name]
    interpreted, compiled = interpreted_and_compiled(lambda: [function(), function()])
    for x, y in zip(interpreted, compiled, strict=True):
        if name in EXACT_DRAWS:
            assert torch.equal(x, y)
        else:
            torch.testing.assert_close(x, y)


def of_equal_elements():
    """Of several equal elements, and of several writes to one place, operators choose one."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randint(3, (4, 100), generator=generator).float()
    x[1, ::7] = float("nan")
    x = x.to("xla")
    index = torch.randint(10, (4, 100), generator=generator).to("xla")
    row, target = index[0], torch.zeros(4, 10).to("xla")
    flat = torch.arange(100.0).to("xla")
    picture = x.nan_to_num().reshape(1, 4, 10, 10)
    yield from (*x.sort(), *x.sort(stable=True), *x.sort(descending=True), x.argsort(0))
    yield from (*x.topk(30), *x.topk(30, largest=False), *x.kthvalue(40))
    yield from (x.argmax(1), x.argmin(1), *x.max(1), *x.min(1), *x.cummax(1), *x.cummin(1))
    yield from (x.median(), x.nanmedian())
    yield from F.max_pool2d(picture, 3, 2, return_indices=True)
    yield from F.adaptive_max_pool2d(picture, 3, return_indices=True)
    yield target.scatter(1, index, x)
    yield target.index_put((torch.arange(4).to("xla")[:, None], index), x)
    yield target.t().contiguous().t().index_put((torch.arange(4).to("xla")[:, None], index), x)
    yield target[0].index_put((row,), flat)
    yield target[0].index_copy(0, row, flat)
    yield target[0].clone().put_(row, flat)


def test_equal_elements_are_chosen_as_by_the_program():
    interpreted, compiled = interpreted_and_compiled(lambda: list(of_equal_elements()))
    for i, (x, y) in enumerate(zip(interpreted, compiled, strict=True)):
        assert torch.equal(x.nan_to_num(-1), y.nan_to_num(-1)), i


SHARED_LOWERINGS = {
    "nll_loss": lambda x: F.cross_entropy(x[0, 0], torch.arange(4).to("xla")),
    "nll_loss2d": lambda x: F.cross_entropy(x, torch.zeros(2, 4, 5).long().to("xla")),
    "reflection_pad1d": lambda x: F.pad(x[0], (1, 2), mode="reflect"),
    "reflection_pad2d": lambda x: F.pad(x, (1, 2, 1, 0), mode="reflect"),
    "reflection_pad3d": lambda x: F.pad(x[None], (1, 2, 1, 0, 1, 1), mode="reflect"),
    "replication_pad1d": lambda x: F.pad(x[0], (1, 2), mode="replicate"),
    "replication_pad2d": lambda x: F.pad(x, (1, 2, 1, 0), mode="replicate"),
    "replication_pad3d": lambda x: F.pad(x[None], (1, 2, 1, 0, 1, 1), mode="replicate"),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, 2),
    "adaptive_avg_pool3d": lambda x: F.adaptive_avg_pool3d(x[None], 2),
    "log_sigmoid": F.logsigmoid,
}


@pytest.mark.parametrize("name", SHARED_LOWERINGS)
def test_operators_of_one_lowering(name):
    def run():
        x = torch.linspace(-2, 2, 2 * 3 * 4 * 5).reshape(2, 3, 4, 5).to("xla").requires_grad_()
        y = SHARED_LOWERINGS[name](x)
        y.sum().backward()
        return y.detach(), x.grad

    interpreted, compiled = interpreted_and_compiled(run)
    torch.testing.assert_close(interpreted, compiled)


@pytest.mark.parametrize("type", [torch.bfloat16, torch.float16])
def test_a_narrow_default_type(type):
    before = torch.get_default_dtype()
    torch.set_default_dtype(type)
    try:
        interpreted, compiled = interpreted_and_compiled(
            lambda: [
                torch.ones(3, device="xla") * 0.3,
                torch.rand(9, device="xla"),
                torch.full((2,), 0.7, device="xla") / 3,
            ]
        )
    finally:
        torch.set_default_dtype(before)
    torch.testing.assert_close(interpreted, compiled)
    assert all(x.dtype == type for x in interpreted)


@pytest.mark.parametrize("counts_of", [[6], [2, 0, 3]])
def test_repeats(counts_of):
    repeats = torch.tensor(counts_of)
    with interpretation("always"):
        found = []
        ran = interpreted_compiled(
            lambda: found.append(torch.repeat_interleave(repeats.to("xla")).cpu())
        )
    assert ran[1] == 0
    expected = torch.repeat_interleave(repeats)
    assert torch.equal(found[0], expected)


def test_integers_that_floats_overflow():
    """Interpreted or compiled, the same: torch's kernels wrap."""
    x = torch.tensor([3e9, -3e9, float("nan"), 300.0, -1.5])
    for type in (torch.int8, torch.int32, torch.int64):
        with interpretation("always"):
            interpreted = (x.to("xla") * 1).to(type).cpu()
        with interpretation("never"):
            compiled = (x.to("xla") * 1).to(type).cpu()
        assert torch.equal(interpreted, compiled), type


# Kernels of torch's that take row-major memory for granted; `expanded` and `gaps` make operands that lie otherwise.
KERNELS_OF_ROW_MAJOR_MEMORY = {
    "group_norm": lambda x, full: F.group_norm(x, 3, full(6, 2.0), full(6, 1.0)),
    "group_norm of a permuted tensor": lambda x, full: F.group_norm(
        x.transpose(0, 2).contiguous().transpose(0, 2), 3, full(6, 2.0)
    ),
    "layer_norm": lambda x, full: F.layer_norm(x, (6, 4), full((6, 4), 2.0), full((6, 4), 1.0)),
    "adaptive_max_pool3d": lambda x, full: F.adaptive_max_pool3d(x.view(1, 2, 2, 3, 4), 2),
}


@pytest.mark.parametrize("name", KERNELS_OF_ROW_MAJOR_MEMORY)
@pytest.mark.parametrize("lie", ["expanded", "gaps"])
def test_operands_need_not_lie_row_major(name, lie):
    """Group norm read beyond the memory of a weight that was filled with one number."""

    def full(sizes, value):
        like = {"device": place, "dtype": torch.float32}
        if lie == "expanded":
            return torch.full(sizes if isinstance(sizes, tuple) else (sizes,), value, **like)
        sizes = sizes if isinstance(sizes, tuple) else (sizes,)
        return torch.stack([torch.full(sizes, value, **like), torch.full(sizes, 9.0, **like)], -1)[
            ..., 0
        ]

    found = {}
    for place in ("cpu", "xla"):
        x = torch.arange(48.0).sin().view(2, 6, 4).to(place).requires_grad_()
        with interpretation("always"):
            y = KERNELS_OF_ROW_MAJOR_MEMORY[name](x, full)
            y.backward(full(tuple(y.shape), 0.5) * y.detach())
            found[place] = [y.detach().cpu(), x.grad.cpu()]
    torch.testing.assert_close(found["xla"], found["cpu"])


# Computed by several of torch's operators, as the lowering is.
COMPOSED = {
    "LSTM": lambda x: torch.nn.LSTM(6, 5).to("xla")(x)[0],
    "LSTM without biases": lambda x: torch.nn.LSTM(6, 5, bias=False).to("xla")(x)[0],
    "GRU": lambda x: torch.nn.GRU(6, 5).to("xla")(x)[0],
    "GRU without biases": lambda x: torch.nn.GRU(6, 5, bias=False).to("xla")(x)[0],
    "histogram": lambda x: torch.histc(x.detach(), 7, -1, 1),
    "histogram of its range": lambda x: torch.histc(x.detach(), 7),
    "histogram of one value": lambda x: torch.histc(torch.ones_like(x), 7),
    "far numbers": lambda x: (x.detach() / 0).long(),
    "far numbers in 32 bits": lambda x: (x.detach() * 1e30).int(),
    "no numbers": lambda x: (x.detach() * torch.nan).to(torch.int8),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_forms_give_the_programs_numbers(name):
    def run():
        torch.manual_seed(0)
        x = torch.randn(4, 3, 6).to("xla").requires_grad_()
        y = COMPOSED[name](x)
        if y.requires_grad:
            (y * torch.arange(1.0, y.numel() + 1).view(y.shape).to("xla")).sum().backward()
        return [z.cpu() for z in (y.detach(), x.grad) if z is not None]

    with interpretation("never"):
        expected = run()
    with interpretation("always"):
        found = []
        assert interpreted_compiled(lambda: found.extend(run()))[1] == 0
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("when", ["never", "always"])
def test_no_samples_have_no_margin_loss(reduction, when):
    """Eager's kernels leave the result as they found the memory."""
    x = torch.ones(0, 3, device="xla", requires_grad=True)
    none = torch.ones(0, dtype=torch.int64, device="xla")
    with interpretation(when):
        for loss in (
            F.multi_margin_loss(x, none, reduction=reduction),
            F.multilabel_margin_loss(x, none.view(0, 1).expand(0, 3), reduction=reduction),
        ):
            loss.backward()
            assert loss.item() == 0
            assert x.grad.shape == (0, 3)


@pytest.mark.parametrize("when", ["never", "always"])
def test_gradients_of_16_bit_tables_are_rounded_once(when):
    """Eager's kernel for the CPU rounds each sum, and stops at 256."""
    weight = torch.zeros(2, 1, dtype=torch.bfloat16, device="xla", requires_grad=True)
    with interpretation(when):
        F.embedding(torch.zeros(1000, dtype=torch.int64, device="xla"), weight).sum().backward()
        assert weight.grad.tolist() == [[1000.0], [0.0]]


@pytest.mark.parametrize("when", ["never", "always"])
def test_windows_in_the_padding_give_no_gradient(when):
    for pool, rank in ((F.max_pool2d, 2), (F.max_pool3d, 3)):
        x = torch.ones(1, 1, *[4] * rank, device="xla", requires_grad=True)
        with interpretation(when):
            values, positions = pool(x, 2, 3, 1, 5, return_indices=True)
            values.sum().backward()
            assert (values.item(), positions.item()) == (-math.inf, -1)
            assert not x.grad.any().item()


@pytest.mark.parametrize("when", ["never", "always"])
def test_windows_in_the_padding_beside_a_row_give_no_gradient(when):
    """torch's kernel names the next row's pixels for them, which are in the image."""
    x = torch.ones(1, 1, 4, 1, device="xla", requires_grad=True)
    with interpretation(when):
        values, positions = F.max_pool2d(x, (1, 2), (2, 1), (0, 1), (1, 2), return_indices=True)
        expected = torch.full((1, 1, 2, 1), -1)
        assert torch.equal(positions.cpu(), expected)
        values.sum().backward()
        assert not x.grad.any().item()


@pytest.mark.parametrize("when", ["never", "always"])
@pytest.mark.parametrize("width", [1, 2, 16])
def test_a_scatter_of_what_it_updates_reads_it_first(when, width):
    order = torch.randperm(50)
    x = torch.randn(50, width)
    on_xla, places = x.to("xla"), order.to("xla")
    torch_xla.sync()
    with interpretation(when):
        twice = on_xla * 2
        put = twice.index_put((places,), twice)
        del twice
        assert torch.equal(put.cpu(), (x * 2).index_put((order,), x * 2))
        sums = on_xla * 3
        added = sums.index_add(0, places, sums)
        del sums
        torch.testing.assert_close(added.cpu(), (x * 3).index_add(0, order, x * 3))


@pytest.mark.parametrize("when", ["never", "always"])
@pytest.mark.parametrize("moments", [torch.var_mean, torch.std_mean])
def test_the_mean_of_infinities_is_infinite(moments, when):
    rows = [[1.0, math.inf, 2.0], [math.inf, -math.inf, 0.0], [math.nan, 1.0, 2.0], [1.0, 2.0, 3.0]]
    with interpretation(when):
        spread, mean = moments(torch.tensor(rows).to("xla"), 1)
        expected = torch.tensor([math.inf, math.nan, math.nan, 2.0])
        torch.testing.assert_close(mean.cpu(), expected, equal_nan=True)
        assert spread.isnan().tolist() == [True, True, True, False]
        assert moments(torch.tensor(rows[0]).to("xla"))[1].item() == math.inf


@pytest.mark.parametrize("when", ["never", "always"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("rank", [2, 3])
def test_images_at_places_that_are_no_numbers(rank, mode, padding, when):
    """In planes none is made of them, if outside is zero; in volumes, they are passed over."""
    if rank == 3 and mode == "bicubic":
        return
    image = torch.arange(1.0, 3**rank + 1).view(1, 1, *[3] * rank)
    places = [[math.nan, 0.0], [0.0, math.nan], [math.inf, 0.0], [-math.inf, math.inf], [0.5, 0.25]]
    grid = torch.tensor([[*place, *[0.0] * (rank - 2)] for place in places])
    grid = grid.view(1, *[1] * (rank - 1), len(places), rank)

    def sample(device):
        given = [image.to(device), grid.to(device).requires_grad_(padding == "zeros")]
        result = F.grid_sample(*given, mode=mode, padding_mode=padding, align_corners=False)
        if padding == "zeros":
            result.sum().backward()
            return result.detach().cpu(), given[1].grad.cpu()
        return result.cpu()

    with interpretation(when):
        torch.testing.assert_close(sample("xla"), sample("cpu"), equal_nan=True)
