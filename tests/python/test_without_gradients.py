"""Operators that leave torch's kernels for gradients out where nobody asks for a gradient: who asks is heard."""

import pytest
import torch
import torch.autograd.forward_ad as forward_ad

import torch_xla  # noqa: F401

FUNCTIONS = {
    "add": lambda x: x + x.sin(),
    "sub": lambda x: x - 2 * x.cos(),
    "mul": lambda x: x * x.exp(),
    "div": lambda x: x / (x.sigmoid() + 1),
    "pow": lambda x: x**3 + (x.abs() + 1) ** (x.tanh() + 2),
    "root": lambda x: (x.abs() + 1).sqrt() + (x.abs() + 1).rsqrt() + (x.abs() + 1).log(),
    "limits": lambda x: (
        torch.maximum(x, x.flip(0)) + torch.minimum(x, x.neg()) + x.clamp(-0.5, 0.5)
    ),
    "activations": lambda x: x.relu() + torch.nn.functional.gelu(x) + torch.nn.functional.silu(x),
    "choice": lambda x: torch.where(x > 0, x, x * 2).masked_fill(x > 1, 0.25),
    "products": lambda x: torch.addmm(x, x, x) + torch.bmm(x[None], x[None])[0] + torch.mm(x, x),
    "softmax": lambda x: x.softmax(0) + x.log_softmax(1),
    "normal": lambda x: torch.nn.functional.layer_norm(x, (4,)),
    "reductions": lambda x: x.sum(0) + x.mean(1),
    "rows": lambda x: (
        x.index_select(0, torch.tensor([2, 0], device=x.device)).repeat(2, 1)
        + x.gather(0, torch.tensor([[1, 2, 3, 0]] * 4, device=x.device))
    ),
    "in place": lambda x: (
        x.clone().add_(x).mul_(x).sub_(1).div_(2).addcmul_(x, x).addcdiv_(x, x + 9).clamp_(-3, 3)
    ),
    "filled": lambda x: (
        x.clone().masked_fill_(x > 0, 0.5) + x.clone().zero_() + x.clone().fill_(2.0) * x
    ),
}


def _example(device):
    return torch.linspace(-1.3, 1.7, 16, dtype=torch.float64).reshape(4, 4).to(device)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_gradients_and_tangents_are_eagers(name):
    function = FUNCTIONS[name]

    def results(device):
        x = _example(device).requires_grad_()
        y = function(x)
        (gradient,) = torch.autograd.grad(y.pow(2).sum(), x)
        with forward_ad.dual_level():
            tangent = forward_ad.unpack_dual(
                function(forward_ad.make_dual(_example(device), _example(device)))
            ).tangent
        mapped = torch.func.vmap(torch.func.grad(lambda x: function(x).sum()))(
            _example(device).expand(3, 4, 4)
        )
        return [value.detach().cpu() for value in (y, gradient, tangent, mapped)]

    torch.testing.assert_close(results("xla"), results("cpu"))


def test_operators_without_gradients_record_none():
    x, weight = _example("xla"), _example("xla").requires_grad_()
    assert not (x + x).requires_grad
    with torch.no_grad():
        assert not (weight @ x).requires_grad
    y = x * weight
    assert y.requires_grad and type(y.grad_fn).__name__ == "MulBackward0"
    assert x.add_(weight).requires_grad


def test_writes_are_counted_once():
    x = _example("xla")
    for write in (
        lambda: x.add_(1),
        lambda: x.mul_(x),
        lambda: x.zero_(),
        lambda: x[0].fill_(3.0),
        lambda: x.t().clamp_(0),
    ):
        before = x._version
        write()
        assert x._version == before + 1
    parameter = torch.nn.Parameter(_example("xla"))
    with torch.no_grad():
        parameter.sub_(1)
    assert parameter._version == 1


def test_a_written_value_that_a_gradient_needs_is_noticed():
    weight = _example("xla").requires_grad_()
    kept = _example("xla")
    y = (weight * kept).sum()
    kept.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_leaf_with_gradients_is_not_written():
    weight = _example("xla").requires_grad_()
    for write in (lambda: weight.add_(1), lambda: weight[0].mul_(2), weight.zero_):
        with pytest.raises(RuntimeError, match=r"a (view of a )?leaf Variable that requires grad"):
            write()


def test_inference_tensors_stay_so():
    with torch.inference_mode():
        x = _example("xla")
        y = (x + x).mul_(2)
    assert y.is_inference() and not (_example("xla") + y).is_inference()
    with pytest.raises(
        RuntimeError, match="Inplace update to inference tensor outside InferenceMode"
    ):
        y.add_(1)
