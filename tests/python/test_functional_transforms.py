"""`torch.func` on the device, as on the CPU: batching, derivatives, modules as functions."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    stack_module_state,
    vjp,
    vmap,
)
from torch.utils import _pytree as pytree

import torch_xla
import torch_xla.debug.metrics as metrics


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def classifier(device, layers):
    torch.manual_seed(0)
    return nn.Sequential(*layers()).to(device)


def per_sample_gradients(x, labels):
    model = classifier(
        x.device,
        lambda: (
            nn.Conv2d(1, 4, 3),
            nn.GroupNorm(2, 4),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(144, 5),
        ),
    )

    def loss(parameters, x, label):
        return F.cross_entropy(functional_call(model, parameters, (x[None],)), label[None])

    return vmap(grad(loss), in_dims=(None, 0, 0))(dict(model.named_parameters()), x, labels)


def ensemble(x):
    models = [classifier(x.device, lambda: (nn.Linear(4, 8), nn.Tanh())) for _ in range(3)]
    parameters, buffers = stack_module_state(models)

    def call(parameters, buffers, x):
        return functional_call(models[0], (parameters, buffers), (x,))

    return vmap(call, in_dims=(0, 0, None))(parameters, buffers, x)


def attention_gradients(x):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True).to(x.device)

    def loss(parameters, x):
        return functional_call(layer, parameters, (x,)).square().mean()

    return grad_and_value(loss)(dict(layer.named_parameters()), x)


def in_place(x):
    y = x.clone()
    y.add_(1)
    y[0] = 0
    return y


def of_pullback(x):
    result, pull = vjp(torch.tanh, x)
    return result, pull(torch.ones_like(x))


SQUARE = random(3, 4, 4) @ random(3, 4, 4).mT + 4 * torch.eye(4)


def write_real_parts(x):
    numbers = torch.zeros(x.shape, dtype=torch.complex64, device=x.device)
    torch.view_as_real(numbers)[..., 0].copy_(x)
    return numbers * numbers


def jvp_of_write(x, v):
    def write(y):
        z = torch.zeros_like(y)
        z[1:].copy_(y[1:] * 2)
        return z.t() * y.t()

    return jvp(write, (x,), (v,))


def linearized(x, v):
    result, derivative = linearize(lambda y: y.tanh().t() @ y, x)
    return result, derivative(v)


PARTS = random(5).sigmoid()


def directions(function):
    """Of a function of one: along several directions at once, whose slopes are one's."""

    def of(x):
        _, pull = vjp(function, x)
        return vmap(pull)(torch.ones(3, *x.shape, device=x.device)), jacrev(function)(x)

    return of


CASES = {
    "directions of logsigmoid": (directions(F.logsigmoid), random(5)),
    "directions of logsigmoid of a number": (directions(F.logsigmoid), torch.tensor(0.5)),
    "jacfwd of logsigmoid of a number": (jacfwd(F.logsigmoid), torch.tensor(0.5)),
    "hessian of logsigmoid of a number": (hessian(F.logsigmoid), torch.tensor(0.5)),
    "vmaps of the slopes of logsigmoid": (vmap(vmap(grad(F.logsigmoid))), random(2, 3)),
    "vmap of hessians of logsigmoid": (vmap(hessian(F.logsigmoid)), random(2, 3)),
    "directions of smooth_l1": (
        directions(lambda x: F.smooth_l1_loss(x, x.detach() * 0.5, reduction="none")),
        random(5),
    ),
    "directions of huber_loss": (
        directions(lambda x: F.huber_loss(x, x.detach() * 0.5, reduction="none", delta=0.3)),
        random(5),
    ),
    "directions of mse_loss": (
        directions(lambda x: F.mse_loss(x, x.detach() * 0.5, reduction="none")),
        random(5),
    ),
    "directions of binary_cross_entropy": (
        directions(lambda x: F.binary_cross_entropy(x, x.detach() * 0.5, reduction="none")),
        PARTS,
    ),
    "hessian of multilabel_soft_margin_loss": (
        hessian(F.multilabel_soft_margin_loss),
        random(4, 5),
        (random(4, 5, seed=1) > 0).float(),
    ),
    "vmap of cdist of one side": (
        vmap(torch.cdist, (0, None)),
        random(3, 30, 4),
        random(28, 4, seed=1),
    ),
    "distances of unequal batches": (
        torch._euclidean_dist,
        random(2, 1, 5, 3),
        random(1, 4, 6, 3, seed=1),
    ),
    "vmap": (vmap(torch.dot), random(3, 4), random(3, 4, seed=1)),
    "vmap along dimensions": (
        vmap(torch.mv, in_dims=(None, 1), out_dims=1),
        random(3, 4),
        random(4, 5),
    ),
    "vmap of vmap": (vmap(vmap(torch.dot)), random(3, 4, 5), random(3, 4, 5, seed=1)),
    "vmap in chunks": (vmap(torch.sin, chunk_size=2), random(5)),
    "vmap in place": (vmap(in_place), random(3, 4)),
    "vmap of an index": (vmap(lambda x, i: x[i]), random(3, 4), torch.tensor([0, 2, 1])),
    "vmap of conv2d": (vmap(F.conv2d), random(3, 2, 4, 6, 6), random(3, 5, 4, 3, 3, seed=1)),
    "vmap of attention": (vmap(F.scaled_dot_product_attention), *[random(3, 2, 4, 8)] * 3),
    "vmap of cholesky": (vmap(torch.linalg.cholesky), SQUARE),
    "vmap of solve": (vmap(torch.linalg.solve), SQUARE, random(3, 4, 2)),
    "grad": (grad(lambda x: x.sin().sum()), random(4)),
    "grad of grad": (vmap(grad(grad(torch.sin))), random(4)),
    "jacrev": (jacrev(lambda x: x.sin() * x.sum()), random(4)),
    "jacfwd": (jacfwd(lambda x: x.sin() * x.sum()), random(4)),
    "jacrev of inv": (jacrev(torch.linalg.inv), SQUARE[0]),
    "hessian": (hessian(lambda x: (x.sin() * x.sum()).sum()), random(4)),
    "hessian of a layer": (
        hessian(lambda x, w: F.gelu(F.linear(x, w)).square().sum()),
        random(4),
        random(4, 4, seed=1),
    ),
    "jvp": (lambda x, v: jvp(torch.tanh, (x,), (v,)), random(4), random(4, seed=1)),
    "jvp of a view": (
        lambda x, v: jvp(lambda y: y.sin() * 2, (x.t(),), (v,)),
        random(3, 4),
        random(4, 3, seed=1),
    ),
    "jvp of parts of complex numbers": (
        lambda x, v: jvp(write_real_parts, (x,), (v,)),
        random(3, 4),
        random(3, 4, seed=1),
    ),
    "jvp of views of parts": (
        lambda x, v: jvp(
            lambda y: torch.stack([y.select(1, i) for i in range(4)]).sin(),
            (torch.stack([x, x]).select(0, 0),),
            (torch.stack([v, v]).select(0, 1),),
        ),
        random(3, 4),
        random(3, 4, seed=1),
    ),
    "jvp of a write": (jvp_of_write, random(3, 4), random(3, 4, seed=1)),
    "linearize": (linearized, random(3, 4), random(3, 4, seed=1)),
    "vmap of jvp of a write": (vmap(jvp_of_write), random(2, 3, 4), random(2, 3, 4, seed=1)),
    "vjp": (of_pullback, random(4)),
    "per-sample gradients": (per_sample_gradients, random(6, 1, 8, 8), torch.arange(6) % 5),
    "ensemble": (ensemble, random(5, 4)),
    "gradients of attention": (attention_gradients, random(2, 3, 8)),
}


@pytest.mark.parametrize("name", CASES)
def test_like_eager(name, device):
    function, *arguments = CASES[name]
    expected = pytree.tree_leaves(function(*arguments))
    on_device = [x.to(device) for x in arguments]
    metrics.clear_all()
    actual = pytree.tree_leaves(function(*on_device))
    torch_xla.sync()
    assert [
        name
        for name in metrics.counter_names()
        if name.startswith("aten::") and name != "aten::_local_scalar_dense"
    ] == []
    for mine, theirs in zip(actual, expected, strict=True):
        assert mine.device == device
        torch.testing.assert_close(mine.detach().cpu(), theirs.detach(), rtol=1e-4, atol=1e-5)


def test_randomness_of_vmap(device):
    def noisy(x):
        return x + torch.rand(3, device=device)

    zeros = torch.zeros(4, 3, device=device)
    same, different = (vmap(noisy, randomness=r)(zeros).cpu() for r in ("same", "different"))
    assert torch.equal(same[0], same[1]) and not torch.equal(different[0], different[1])
    with pytest.raises(RuntimeError, match="random"):
        vmap(noisy)(zeros)
