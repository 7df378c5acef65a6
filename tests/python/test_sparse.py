"""Sparse tensors on the device: what eager's CPU gives, by operators of the device's own."""

import copy
import io

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import torch_xla
from torch_xla.debug import metrics

pytestmark = pytest.mark.filterwarnings("ignore:Sparse")

DEVICES = [torch.device("cpu"), torch.device("xla")]


def random_coo(size=(5, 6), count=8, dense=(), is_coalesced=False):
    indices = torch.stack([torch.randint(n, (count,)) for n in size])
    matrix = torch.sparse_coo_tensor(indices, torch.randn(count, *dense), (*size, *dense))
    return matrix.coalesce() if is_coalesced else matrix


def parts(result):
    """A result as dense tensors on the CPU, with what says how it is stored."""
    if isinstance(result, torch.Tensor) and result.layout == torch.sparse_coo:
        result = result.cpu()
        coalesced = result.coalesce()
        return [
            coalesced.indices(),
            coalesced.values(),
            torch.tensor([*result.shape, result.is_coalesced(), result.sparse_dim()]),
        ]
    if isinstance(result, torch.Tensor) and result.layout != torch.strided:
        result = result.cpu()
        return [*torch_parts(result), torch.tensor(result.shape)]
    if isinstance(result, torch.Tensor):
        return [result.detach().cpu()]
    if isinstance(result, (list, tuple)):
        return [part for element in result for part in parts(element)]
    return [torch.tensor(result)]


def torch_parts(compressed):
    rows = compressed.layout in (torch.sparse_csr, torch.sparse_bsr)
    return [
        compressed.crow_indices() if rows else compressed.ccol_indices(),
        compressed.col_indices() if rows else compressed.row_indices(),
        compressed.values(),
    ]


def fallbacks():
    return {
        name: metrics.counter_value(name)
        for name in metrics.counter_names()
        if name.startswith("aten::") and name != "aten::_local_scalar_dense"
    }


CASES = {}


def case(f):
    CASES[f.__name__] = f
    return f


def on(device, *tensors):
    return [tensor.to(device) for tensor in tensors]


@case
def made_of_indices_and_values(device):
    indices, values = on(device, torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.randn(3))
    matrix = torch.sparse_coo_tensor(indices, values, (2, 3), device=device)
    assert matrix.is_sparse and matrix.device.type == device.type
    listed = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], device=device)
    empty = torch.sparse_coo_tensor((2, 3), device=device)
    return matrix, listed, empty, matrix._nnz(), matrix._indices(), matrix._values()


@case
def coalesced(device):
    (matrix,) = on(device, random_coo(count=20))
    (blocks,) = on(device, random_coo(count=20, dense=(2, 3)))
    bools = torch.sparse_coo_tensor([[1, 1, 0]], [True, False, False], (3,), device=device)
    with pytest.raises(RuntimeError, match="uncoalesced"):
        matrix.indices()
    return [
        part
        for x in (matrix, blocks, bools)
        for part in (x.coalesce(), x.coalesce().indices(), x.coalesce().values(), x.to_dense())
    ]


@case
def from_dense_and_back(device):
    (x,) = on(device, F.dropout(torch.randn(4, 5, 3), 0.7))
    matrix = x[:, :, 0]
    return [
        x.to_sparse(),
        x.to_sparse(2),
        x.to_sparse().to_dense(),
        matrix.to_sparse_csr(),
        matrix.to_sparse_csc(),
        matrix.to_sparse_csr().to_dense(),
        matrix.to_sparse_csc().to_dense(),
        matrix.to_sparse_csr().to_sparse(),
        matrix.to_sparse_csc().to_sparse(),
        matrix.to_sparse().to_sparse_csr(),
        matrix.to_sparse_csr().to_sparse_csc(),
        torch.zeros(2, 3, device=device).to_sparse(),
    ]


@case
def selected(device):
    a, index = on(device, random_coo(), torch.tensor([3, -1, 0, 3]))
    rows = a.to_sparse_csr()
    return [
        a.index_select(0, index),
        a.index_select(1, index),
        a.index_select(0, index[:0]),
        rows[2],
        rows[2, -1],
        rows.select(1, 1),
    ]


@case
def sums_and_products(device):
    a, b = on(device, random_coo(), random_coo(count=12))
    dense, row = on(device, torch.randn(5, 6), torch.randn(6))
    c, d = a.coalesce(), b.coalesce()
    accumulated = a.clone()
    accumulated.add_(b, alpha=2).mul_(3)
    onto = dense.clone()
    onto.add_(a, alpha=-0.5)
    return [
        *(a + b, a - b, c + d, dense + a, torch.add(dense, a, alpha=3), accumulated, onto),
        *(a * 2, 2 * a, a / 2, c * d, c * dense, dense * c, c * row, -a, c.abs(), c.relu(), c**2),
        *(c.sqrt().nan_to_num(), torch.zeros_like(a), a.clone().zero_()),
    ]


@case
def matrices_times_dense(device):
    a = random_coo(count=12)
    x, y, z, v = torch.randn(6, 3), torch.randn(5, 3), torch.randn(3, 5), torch.randn(6)
    a, c, x, y, z, v = on(device, a, a.coalesce().to_sparse_csr(), x, y, z, v)
    return [
        *(torch.sparse.mm(a, x), a @ x, torch.mm(a, x), a.t() @ y, a @ v, torch.mv(a, v)),
        *(torch.addmm(y, a, x), torch.sparse.addmm(y, a, x, beta=2, alpha=3), torch.spmm(a, x)),
        *(c @ x, torch.sparse.mm(c, x), c @ v, torch.addmm(y, c, x, beta=0.5), c.t() @ y),
        *(torch.smm(a, x).to_dense() if device.type == "cpu" else torch.mm(a, x), z @ c),
    ]


@case
def matrices_times_sparse(device):
    a, b = on(device, random_coo(count=12), random_coo((6, 4), 10))
    batch, x = on(device, random_coo((2, 3, 4), 9), torch.randn(2, 4, 5))
    return [torch.sparse.mm(a, b), a @ b, torch.bmm(batch.coalesce(), x)]


@case
def views_and_selections(device):
    (a,) = on(device, random_coo(count=12).coalesce())
    (b,) = on(device, random_coo((3, 4), 6, dense=(2,)))
    index = torch.tensor([2, 0, 2], device=device)
    return [
        *(a.t(), a.transpose(0, 1), b.permute(1, 0, 2), a.unsqueeze(0), torch.cat([a, a])),
        *(a.index_select(0, index), b.index_select(1, index), b.index_select(2, index % 2)),
        *(torch.stack([a, a]), a[1], a.narrow_copy(0, 1, 3), a.sparse_mask(a)),
        b.coalesce().index_select(-1, index % 2),
    ]


@case
def along_dimensions(device):
    a, b = on(device, random_coo(count=12), random_coo((3, 4), 6, dense=(2,)))
    return [
        *(torch.sparse.sum(a), torch.sparse.sum(a, 0), torch.sparse.sum(b, (0, 1)), a.sum()),
        *(torch.sparse.softmax(a, 1), torch.sparse.softmax(a, 0), torch.sparse.softmax(b, 2)),
        *(torch.sparse.log_softmax(a, 1), a.coalesce().norm(), torch.sparse.sum(b, 2)),
    ]


@case
def compressed(device):
    c = random_coo(count=12).coalesce().to_sparse_csr()
    made = torch.sparse_csr_tensor(
        c.crow_indices().to(device), c.col_indices().to(device), c.values().to(device), c.shape
    )
    (moved,) = on(device, c)
    assert made.layout == moved.layout == torch.sparse_csr and moved.device.type == device.type
    listed = torch.sparse_csr_tensor([0, 1, 2], [1, 0], [1.0, 2.0], (2, 2), device=device)
    return [
        *(made, moved, listed, made.clone(), made * 2, made.abs(), -made, made.sum(), made.t()),
        *(made._nnz(), made.to(torch.float64), made.to(device), torch.zeros_like(made)),
        *(
            made.clone().relu_(),
            made.clone().mul_(3),
            copy.copy(made),
            made.to_dense().to_sparse_csr(),
        ),
    ]


@case
def gradients(device):
    indices = torch.stack([torch.randint(5, (9,)), torch.randint(6, (9,))])
    values, x, y = torch.randn(9), torch.randn(6, 3), torch.randn(5, 6)
    indices, values, x, y = on(device, indices, values, x, y)
    results = []
    for f in (
        lambda a, x: torch.sparse.mm(a, x).square().sum(),
        lambda a, x: (a @ x).square().sum(),
        lambda a, x: (a.coalesce().values() ** 2).sum() + x.sum(),
        lambda a, x: (a.to_dense() ** 2).sum() + x.sum(),
        lambda a, x: (torch.sparse.softmax(a, 1).to_dense() @ x).square().sum(),
        lambda a, x: torch.sparse.sum(a, 1).to_dense().square().sum() + x.sum(),
        lambda a, x: torch.sparse.sum(a) ** 2 + x.sum(),
        lambda a, x: ((a * 2 + a).to_dense() @ x).square().sum(),
        lambda a, x: (torch.sparse.addmm(x[:5], a, x) ** 2).sum(),
    ):
        leaf = values.clone().requires_grad_()
        operand = x.clone().requires_grad_()
        f(torch.sparse_coo_tensor(indices, leaf, (5, 6)), operand).backward()
        results += [leaf.grad, operand.grad]
    csr = torch.sparse_coo_tensor(indices, values, (5, 6)).coalesce().to_sparse_csr()
    csr.requires_grad_()
    operand = x.clone().requires_grad_()
    (csr @ operand).square().sum().backward()
    dense = y.clone().requires_grad_()
    (dense.to_sparse() @ x).square().sum().backward()
    return [*results, operand.grad, csr.grad, dense.grad]


@case
def products_reduced_otherwise(device):
    csr = random_coo(count=12).coalesce().to_sparse_csr()
    (csr, x), results = on(device, csr, torch.randn(6, 3)), []
    for reduce in ("sum", "mean", "amax", "amin", "max", "min"):
        a, b = csr.clone().requires_grad_(), x.clone().requires_grad_()
        product = torch.sparse.mm(a, b, reduce)
        product.square().sum().backward()
        results += [product, a.grad, b.grad]
    return results


@case
def zeros_like_blocks(device):
    dense = torch.arange(24.0).view(4, 6)
    blocks = [dense.to_sparse_bsr((2, 3)), dense.to_sparse_bsc((2, 3))]
    blocks.append(torch.stack([dense, dense]).to_sparse_bsr((2, 3)))
    blocks = on(device, *blocks)
    zeros = [torch.zeros_like(b) for b in blocks] + [torch.zeros_like(blocks[0], dtype=torch.int32)]
    return [*[part for z in zeros for part in torch_parts(z)], *[z.values().shape for z in zeros]]


@case
def factors_written_into_a_dense_tensor(device):
    """Of a whole one: eager's kernel writes beyond a part."""
    dense, sparse = on(device, torch.arange(30.0).view(5, 6), random_coo(count=12))
    return [dense.clone().mul_(sparse), dense.clone().mul_(sparse.coalesce()), dense]


@case
def copies_and_moves(device):
    a = random_coo(count=12)
    (there,) = on(device, a)
    target = torch.zeros_like(there)
    target.copy_(there)
    back = there.cpu()
    assert back.device.type == "cpu" and there.is_sparse
    return [
        there,
        target,
        back,
        there.to(torch.float64),
        there.clone(),
        there.detach(),
        copy.deepcopy(there),
    ]


@case
def checked_where_everything_is(device):
    """torch checks by functions that it has for its own devices."""
    indices, values = on(device, torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.randn(3, 1))
    with torch.sparse.check_sparse_tensor_invariants():
        found = torch.sparse_coo_tensor(indices, values, is_coalesced=True)
        matrix = torch.sparse_coo_tensor(indices, values, (2, 3, 1), is_coalesced=True)
        with torch.inference_mode():
            torch.sparse_coo_tensor(indices, values, (2, 3, 1), is_coalesced=True)
        stretched = torch._sparse_broadcast_to(matrix, (2, 3, 4))
        rows = matrix.to_dense().squeeze(2).to_sparse_csr()
        results = [found, matrix, stretched, rows, rows.transpose(0, 1), matrix.coalesce()]
        assert torch.sparse.check_sparse_tensor_invariants.is_enabled()
    assert not torch.sparse.check_sparse_tensor_invariants.is_enabled()
    torch._validate_sparse_coo_tensor_args(indices, values, (2, 3, 1), True)
    for layout in ("csr", "csc", "bsr", "bsc"):
        blocks = [(2, 2)] if layout[0] == "b" else []
        matrix = getattr(torch.eye(4), f"to_sparse_{layout}")(*blocks).to(device)
        given = [*torch_parts(matrix), matrix.shape]
        getattr(torch, f"_validate_sparse_{layout}_tensor_args")(*given)
        torch._validate_sparse_compressed_tensor_args(*given, matrix.layout)
    return results


@case
def compressed_of_other_sizes(device):
    grown, shrunk, alike = csr(device, 3), csr(device, 3), csr(device, 3)
    grown.resize_((5, 3))
    shrunk.resize_((2, 3))
    alike.resize_as_sparse_(csr(device, 4))
    sizes = [torch.tensor(part.shape) for x in (shrunk, alike) for part in torch_parts(x)]
    return [grown, *sizes, shrunk.crow_indices()]


@case
def other_layouts_of_int32_indices(device):
    ends, columns = on(device, torch.tensor([0, 1, 3]).int(), torch.tensor([2, 0, 1]).int())
    rows = torch.sparse_csr_tensor(ends, columns, torch.ones(3, device=device), (2, 3))
    results = [rows.to_sparse_csc(), rows.to_sparse_csc().to_sparse_csr()]
    for matrix in results:
        assert {part.dtype for part in torch_parts(matrix)[:2]} == {torch.int32}
    return results


@case
def transposed_to_itself(device):
    results = []
    for matrix in (csr(device, 3), csr(device, 3).transpose(0, 1)):
        for dims in ((0, 0), (1, -1), (0, 1)):
            twin = matrix.clone()
            twin.transpose(*dims).mul_(2.0)
            results += [matrix.transpose(*dims), twin]
    return results


@case
def unchecked_where_that_is_said(device):
    ends, columns = on(device, torch.tensor([0, 1, 2]), torch.tensor([0, 7]))
    with torch.sparse.check_sparse_tensor_invariants(False):
        return torch.sparse_csr_tensor(ends, columns, torch.ones(2, device=device), (2, 3)).values()


@case
def checked_gradients(device):
    indices, values = on(device, torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.randn(3))
    values.requires_grad_()
    with torch.sparse.check_sparse_tensor_invariants():
        matrix = torch.sparse_coo_tensor(indices, values, (2, 3))
        torch.sparse.mm(matrix, torch.ones(3, 2, device=device)).sum().backward()
    return values.grad


@case
def compressed_without_elements(device):
    results = []
    for layout in (torch.sparse_csr, torch.sparse_csc):
        for size in ((2, 5), (2, 5, 3), (3, 0), (0, 3), (2, 0, 3, 4)):
            results.append(torch.zeros(size, layout=layout, device=device))
            empty = torch.empty(size, layout=layout, device=device, dtype=torch.int16)
            results += [torch.tensor(part.shape) for part in (empty, *torch_parts(empty))]
    return results


@case
def compressed_of_given_sizes(device):
    results = []
    for layout in (torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc):
        blocks = (2, 2) if layout in (torch.sparse_bsr, torch.sparse_bsc) else ()
        made = torch.ops.aten._sparse_compressed_tensor_with_dims(
            0, 1, (4, 6, 3), blocks, torch.int32, dtype=torch.float64, layout=layout, device=device
        )
        assert (made.device.type, made.layout, made.dtype) == (device.type, layout, torch.float64)
        results += [torch.tensor(part.shape) for part in (made, *torch_parts(made))]
        results.append(torch.empty(0, dtype=torch_parts(made)[0].dtype))
    return results


@pytest.mark.parametrize("run", CASES.values(), ids=CASES.keys())
def test_gives_what_eager_gives(run):
    results = []
    for device in DEVICES:
        torch.manual_seed(0)
        before = fallbacks()
        results.append(parts(run(device)))
    for here, there in zip(*results, strict=True):
        torch.testing.assert_close(there, here, rtol=1e-5, atol=1e-5)
    # Nothing but what is read left the device.
    assert fallbacks() == before


@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_is_printed_and_pickled(layout):
    a = random_coo(is_coalesced=True)
    a = a if layout == "coo" else a.to_sparse_csr()
    there = a.to("xla")
    text = str(there)
    assert "device='xla:0'" in text and "nnz=" in text and f"sparse_{layout}" in text
    file = io.BytesIO()
    torch.save({"a": there}, file)
    file.seek(0)
    again = torch.load(file)["a"]
    assert again.device.type == "xla" and again.layout == there.layout
    for expected, loaded in zip(parts(a), parts(again), strict=True):
        torch.testing.assert_close(loaded, expected)


def trained(device, model, optimizer, inputs, steps=3):
    torch.manual_seed(0)
    model = model().to(device)
    optimizer = optimizer(model.parameters())
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        # Two backwards: the second one's gradient is added to the first one's.
        for part in inputs(step, device):
            (model(*part) - 1).square().sum().backward()
        assert all(p.grad.is_sparse for p in model.parameters())
        losses.append(torch.stack([p.grad.to_dense().sum() for p in model.parameters()]))
        optimizer.step()
    return [*losses, *(p.detach() for p in model.parameters())]


@pytest.mark.parametrize(
    "optimizer",
    [
        lambda p: torch.optim.SGD(p, lr=0.1),
        lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: torch.optim.Adagrad(p, lr=0.1),
        lambda p: torch.optim.SparseAdam(list(p), lr=0.1),
    ],
    ids=["sgd", "momentum", "adagrad", "sparse_adam"],
)
@pytest.mark.parametrize("kind", ["embedding", "bag", "weighted_bag"])
def test_sparse_gradients_train(optimizer, kind):
    if kind == "embedding":
        model = lambda: nn.Embedding(20, 4, sparse=True, padding_idx=3)  # noqa: E731
    else:
        mode = "sum" if kind == "weighted_bag" else "mean"
        model = lambda: nn.EmbeddingBag(20, 4, sparse=True, mode=mode)  # noqa: E731

    def inputs(step, device):
        words = torch.arange(12, device=device) * 7 % 11 + step
        if kind == "embedding":
            return [(words.view(3, 4),), (words[:5],)]
        offsets = torch.tensor([0, 3, 3, 8], device=device)
        if kind == "bag":
            return [(words, offsets), (words.view(4, 3),)]
        weights = torch.linspace(0, 1, 12, device=device)
        return [(words, offsets, weights)]

    here, there = (trained(device, model, optimizer, inputs) for device in DEVICES)
    for expected, result in zip(here, there, strict=True):
        torch.testing.assert_close(result.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_what_has_no_composition_runs_on_the_cpu():
    torch.manual_seed(0)
    blocks, x = torch.randn(4, 4).to_sparse_bsr((2, 2)), torch.randn(4, 3)
    csr = random_coo((4, 4)).coalesce().to_sparse_csr()
    before = fallbacks()
    there = [blocks.to("xla") @ x.to("xla"), csr.to("xla") + csr.to("xla")]
    for expected, result in zip(parts([blocks @ x, csr + csr]), parts(there), strict=True):
        torch.testing.assert_close(result, expected)
    assert fallbacks() != before


def test_a_step_with_sparse_gradients_leaves_nothing_behind():
    model = nn.Embedding(20, 4, sparse=True).to("xla")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    words = torch.tensor([1, 5, 5], device="xla")
    before = fallbacks()
    for _ in range(3):
        optimizer.zero_grad()
        model(words).sum().backward()
        optimizer.step()
        torch_xla.sync()
    assert fallbacks() == before


def csr(device, *size):
    return torch.eye(*size).to_sparse_csr().to(device)


def coo(device, *size):
    return torch.eye(*size).to_sparse().to(device)


def checked_csr(device, rows, columns):
    rows, columns = torch.tensor(rows).to(device), torch.tensor(columns).to(device)
    values = torch.ones(len(columns), device=device)
    return torch.sparse_csr_tensor(rows, columns, values, (2, 3), check_invariants=True)


def ones(device, *size, dtype=torch.float32):
    return torch.ones(*size, device=device, dtype=dtype)


def sampled(d, rows=3, inner=2, other_inner=2, columns=3, **types):
    x, y = ones(d, rows, inner, **types), ones(d, other_inner, columns)
    return torch.sparse.sampled_addmm(csr(d, 3), x, y)


REFUSED = {
    "coordinates by a longer matrix": lambda d: torch.mm(coo(d, 3), ones(d, 4, 3)),
    "coordinates by another type": lambda d: torch.mm(coo(d, 3), ones(d, 3, 3).double()),
    "rows by another type": lambda d: torch.mm(csr(d, 3), ones(d, 3, 3).double()),
    "rows by rows": lambda d: csr(d, 3) @ csr(d, 4, 3),
    "coordinates by coordinates of another type": lambda d: coo(d, 3) @ coo(d, 3).double(),
    "reduced": lambda d: torch.sparse.mm(csr(d, 3), ones(d, 4, 3), "amax"),
    "reduced shorter": lambda d: torch.sparse.mm(csr(d, 3), ones(d, 2, 3), "sum"),
    "sampled inner": lambda d: sampled(d, other_inner=3),
    "sampled rows": lambda d: sampled(d, rows=4),
    "sampled fewer rows": lambda d: sampled(d, rows=2),
    "sampled columns": lambda d: sampled(d, columns=4),
    "sampled type": lambda d: sampled(d, dtype=torch.float64),
    "sampled by rows": lambda d: torch.sparse.sampled_addmm(csr(d, 3), csr(d, 3), ones(d, 3, 3)),
    "index by rows": lambda d: ones(d, 3)[csr(d, 3)],
    "index of rows": lambda d: csr(d, 3)[torch.tensor([0, 1]).to(d)],
    "index of coordinates": lambda d: coo(d, 3)[torch.tensor([0, 1]).to(d)],
    "mask of coordinates": lambda d: coo(d, 3)[torch.tensor([True, False, True]).to(d)],
    "selected rows": lambda d: coo(d, 3).index_select(0, torch.tensor([0, 3, -5]).to(d)),
    "selected columns": lambda d: coo(d, 3).index_select(-1, torch.tensor([-4]).to(d)),
    "selected by a matrix": lambda d: coo(d, 3).index_select(0, torch.tensor([[0]]).to(d)),
    "selected by a number": lambda d: coo(d, 3).index_select(0, torch.tensor(0).to(d)),
    "selected by floats": lambda d: coo(d, 3).index_select(0, torch.tensor([0.0]).to(d)),
    "selected by int32": lambda d: coo(d, 3).index_select(
        0, torch.tensor([0], dtype=torch.int32).to(d)
    ),
    "selected row": lambda d: csr(d, 3)[3],
    "selected element": lambda d: csr(d, 3)[1, -4],
    "rows that do not begin at zero": lambda d: checked_csr(d, [1, 1, 2], [0, 1]),
    "columns out of bounds": lambda d: checked_csr(d, [0, 1, 2], [0, 7]),
    "columns in no order": lambda d: checked_csr(d, [0, 2, 2], [1, 0]),
    "selected dimension": lambda d: coo(d, 3).index_select(2, torch.tensor([0]).to(d)),
    "softmax of rows": lambda d: torch.sparse.softmax(csr(d, 3), 1),
    "reduced by another word": lambda d: torch.sparse.mm(csr(d, 3), ones(d, 3, 3), "add"),
    "reduced by a product": lambda d: torch.sparse.mm(csr(d, 3), ones(d, 3, 3), "prod"),
    "roots of integers, in place": lambda d: csr(d, 3).int().sqrt_(),
    "roots of integers, into others": lambda d: torch.sqrt(csr(d, 3).int(), out=csr(d, 3).int()),
    "coordinates in no order": lambda d: torch.sparse_coo_tensor(
        torch.tensor([[1, 0]]).to(d), ones(d, 2), (2,), is_coalesced=True, check_invariants=True
    ),
    "coordinates out of bounds": lambda d: torch.sparse_coo_tensor(
        torch.tensor([[1, 2]]).to(d), ones(d, 2), (2,), check_invariants=True
    ),
    "checked rows": lambda d: torch._validate_sparse_csr_tensor_args(
        torch.tensor([0, 2, 1]).to(d), torch.tensor([0, 1]).to(d), ones(d, 2), (2, 2)
    ),
    "compressed vector": lambda d: torch.empty((5,), layout=torch.sparse_csr, device=d),
    "compressed below zero": lambda d: torch.empty((-1, 2), layout=torch.sparse_csc, device=d),
    "blocks of no size": lambda d: torch.empty((4, 4), layout=torch.sparse_bsr, device=d),
    "softmax of a dimension": lambda d: torch.sparse.softmax(coo(d, 3), 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_eager_refuses_is_refused(name):
    """Indexing called itself until the stack was full; other sizes gave numbers."""
    errors = []
    for device in DEVICES:
        with pytest.raises(Exception) as caught:
            parts(REFUSED[name](device))
        errors.append((caught.type, str(caught.value).splitlines()[0]))
    assert errors[0] == errors[1]


@pytest.mark.parametrize("place", ["matrix", "factor", "target"])
@pytest.mark.parametrize("name", ["sampled", "product"])
def test_tensors_of_two_devices_are_refused(name, place):
    at = {"matrix": "xla", "factor": "xla", "target": "xla", place: "cpu"}
    matrix, x, y = csr(at["matrix"], 3), ones(at["factor"], 3, 3), ones("xla", 3, 3)
    with pytest.raises(RuntimeError, match="same device"):
        if name == "sampled":
            torch.sparse.sampled_addmm(matrix, x, y, out=csr(at["target"], 3))
        else:
            torch.addmm(y, matrix, x, out=ones(at["target"], 3, 3))


def test_a_target_of_another_layout_is_refused():
    with pytest.raises(RuntimeError, match="layout"):
        torch.sparse.sampled_addmm(csr("xla", 3), *[ones("xla", 3, 3)] * 2, out=ones("xla", 3, 3))


PRODUCTS = {
    "sampled": lambda a, x, y: torch.sparse.sampled_addmm(a, x, y).to_dense(),
    "reduced": lambda a, x, y: torch.sparse.mm(a, x, "sum"),
    "of another type": lambda a, x, y: torch.sparse.mm(a.float(), x.double(), "mean"),
}


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.int32, torch.bool, torch.complex64], ids=str
)
@pytest.mark.parametrize("name", PRODUCTS)
def test_types_of_products_are_eagers(name, dtype):
    outcomes = []
    for device in DEVICES:
        a, x, y = torch.eye(3).to(dtype).to_sparse_csr(), torch.ones(3, 2), torch.ones(2, 3)
        try:
            operands = on(device, a, x.to(dtype), y.to(dtype))
            outcomes.append(PRODUCTS[name](*operands).cpu().tolist())
        except (RuntimeError, NotImplementedError) as error:
            outcomes.append((type(error), str(error)))
    assert outcomes[0] == outcomes[1]
