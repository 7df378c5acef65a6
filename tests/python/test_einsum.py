"""torch.einsum of two tensors: one recorded operation where it is a plain contraction, composed by torch elsewhere; as eager."""

import pytest
import torch
import torch.autograd.forward_ad as forward_ad

import torch_xla

SIZES = {"a": 2, "b": 3, "c": 4, "d": 5, "e": 1, "f": 1, "A": 4, "C": 2}

CONTRACTIONS = (
    "ab,bc->ac",
    "ab,bc->ca",
    "ab, cb -> ac",
    "ba,bc->ac",
    "ab,ab->",
    "ab,b->a",
    "a,acb->bc",
    "abc,cba->ca",  # a sum for each row
    "abc,cd->abd",
    "abc,abd->dca",  # the second operand's first in the result: its rows are the product's
    "abc,adb->dac",
    "dbac,bdc->abd",
    "abcd,dc->ba",
    "aeb,ebc->ace",  # of size 1
    "efb,bf->e",
    "Ab,bC->CA",
)
# What torch composes.
COMPOSED = (
    "aa,ab->b",
    "ab,ab->ab",
    "ab,c->bc",
    "ab,bc",
    "...b,bc->...c",
    "ea,ec->ac",  # nothing is summed but what has one element
)


def _operands(equation, device, dtype=torch.float64):
    generator = torch.Generator().manual_seed(0)
    operands = []
    for labels in equation.replace("...", "d").replace(" ", "").partition("->")[0].split(","):
        sizes = [SIZES[label] for label in labels]
        operands.append(torch.randn(sizes, dtype=dtype, generator=generator).to(device))
    return [x.requires_grad_() for x in operands]


def _strides(x):
    """Those that mean something."""
    return [stride for size, stride in zip(x.shape, x.stride(), strict=True) if size > 1]


def _recorded(x):
    return torch_xla._XLAC._get_xla_tensors_text([x])


@pytest.mark.parametrize("interpretation", ["never", "always"])
@pytest.mark.parametrize("equation", [*CONTRACTIONS, *COMPOSED])
def test_values_derivatives_and_strides_are_eagers(equation, interpretation):
    def results(device):
        x, y = _operands(equation, device)
        result = torch.einsum(equation, x, y)
        first = torch.autograd.grad(result.pow(2).sum(), (x, y), create_graph=True)
        second = torch.autograd.grad(sum(g.pow(2).sum() for g in first), (x, y))
        with torch.no_grad():
            without = torch.einsum(equation, x, y)
        return [result, without, *first, *second]

    before = torch_xla._XLAC._xla_get_interpretation()
    torch_xla._XLAC._xla_set_interpretation(interpretation)
    try:
        found, expected = results("xla"), results("cpu")
        torch.testing.assert_close([value.detach().cpu() for value in found], expected)
    finally:
        torch_xla._XLAC._xla_set_interpretation(before)
    # The result's, and those of the first derivatives.
    assert [_strides(value) for value in found[:4]] == [_strides(value) for value in expected[:4]]


@pytest.mark.parametrize("equation", CONTRACTIONS)
def test_a_contraction_is_one_operation(equation):
    x, y = _operands(equation, "xla")
    with torch.no_grad():
        text = _recorded(torch.einsum(equation, x, y))
    assert "einsum" in text and "bmm" not in text


@pytest.mark.parametrize("dtype", [torch.complex64, torch.bfloat16])
def test_types(dtype):
    def results(device):
        x, y = _operands("abc,adb->dac", device, dtype)
        result = torch.einsum("abc,adb->dac", x, y)
        return [result, *torch.autograd.grad(result.abs().sum(), (x, y))]

    found = [value.detach().cpu() for value in results("xla")]
    torch.testing.assert_close(found, results("cpu"))


def test_nan_and_infinity_are_eagers():
    x = torch.tensor([[1.0, torch.inf], [torch.nan, 0.0]])
    y = torch.tensor([[0.0, torch.inf], [1.0, -torch.inf]])
    expected = torch.einsum("ab,bc->ca", x, y)
    found = torch.einsum("ab,bc->ca", x.to("xla"), y.to("xla")).cpu()
    torch.testing.assert_close(found, expected, equal_nan=True)


def test_only_what_is_asked_for_has_a_gradient():
    x, y = _operands("ab,bc->ac", "xla")
    result = torch.einsum("ab,bc->ac", x, y.detach())
    result.sum().backward()
    expected = y.detach().sum(1).expand(2, 3)
    torch.testing.assert_close(x.grad.cpu(), expected.cpu())
    assert y.grad is None


def test_a_written_operand_is_noticed():
    x, y = _operands("ab,bc->ac", "xla")
    kept = y.detach().clone()
    result = torch.einsum("ab,bc->ac", x, kept).sum()
    kept.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        result.backward()


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_transforms():
    def results(device):
        x, y = (value.detach() for value in _operands("ab,bc->ac", device))

        def loss(x, y):
            return torch.einsum("ab,bc->ac", x, y).pow(2).sum()

        mapped = torch.func.vmap(torch.func.grad(loss), in_dims=(0, None))(x.expand(3, 2, 3), y)
        hessian = torch.func.hessian(loss)(x, y)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, x + 1)
            tangent = forward_ad.unpack_dual(torch.einsum("ab,bc->ac", dual, y)).tangent
        return [value.cpu() for value in (mapped, hessian, tangent)]

    torch.testing.assert_close(results("xla"), results("cpu"))


def test_autocast_multiplies_in_its_type():
    x, y = _operands("ab,bc->ac", "xla", torch.float32)
    with torch.autocast("xla", torch.bfloat16):
        assert torch.einsum("ab,bc->ac", x, y).dtype == torch.bfloat16


@pytest.mark.parametrize(
    "equation, sizes",
    [
        ("ab,bc->ac", ((2, 3), (4, 5))),
        ("ab,bc->ac", ((2, 3, 4), (3, 5))),
        ("a1,b->a", ((2,), (3,))),
    ],
)
def test_errors_are_eagers(equation, sizes):
    def words(device):
        with pytest.raises(RuntimeError) as error:
            torch.einsum(equation, *(torch.ones(size, device=device) for size in sizes))
        return str(error.value)

    assert words("xla") == words("cpu")


def test_gradients_of_many_at_a_time():
    x, weight = (torch.arange(float(n)).reshape(-1, 3).to("xla") for n in (6, 12))
    found = torch.autograd.functional.jacobian(
        lambda x: torch.einsum("ab,cb->ac", x, weight), x, vectorize=True
    )
    expected = torch.autograd.functional.jacobian(lambda x: x @ weight.t(), x)
    torch.testing.assert_close(found.cpu(), expected.cpu())
