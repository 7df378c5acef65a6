"""Tensors lie as in eager: their strides, what may be a view of them, and what writing to views of them changes.

Each line is a program: statements, and after the last `;;` the result. `D` is the device, and `x` an image in channels_last.
"""

import io

import pytest
import torch
import torch.nn.functional as F
from comparison import Differences

import torch_xla  # noqa: F401 - the device

PROGRAMS = {
    "formats that are asked for": """
        x
        x.contiguous()
        x.contiguous(memory_format=torch.channels_last)
        A(48).view(1,3,4,4).contiguous(memory_format=torch.channels_last)
        torch.empty(1,3,4,4, device=D, memory_format=torch.channels_last).zero_()
        torch.zeros_like(x)
        torch.zeros_like(x, memory_format=torch.contiguous_format)
        torch.ones_like(A(48).view(1,3,4,4), memory_format=torch.channels_last)
        torch.full_like(x, 3.)
        torch.full_like(x[..., 1:], 3.)
        torch.zeros_like(A(6.).view(2,3).t())
        torch.empty_strided((2,3), (1,2), device=D).fill_(1)
        torch.empty_strided((2,3), (6,2), device=D).fill_(1)
        x.new_empty_strided((2,3), (1,2)).zero_()
        x.clone()
        x[:, 1:].clone()
        x.permute(0,2,3,1).clone()
        x.clone(memory_format=torch.contiguous_format)
        x.to(torch.float64)
        x.double().to(torch.float32, memory_format=torch.contiguous_format)
        A(48).view(1,3,4,2,2).to(memory_format=torch.channels_last_3d)
        A(48).view(1,3,4,4)[:, :2].to(torch.int32)
        y=A(48.).view(1,3,4,4).clone();; y.resize_(1,3,4,4, memory_format=torch.channels_last)
        y=x.clone();; y.resize_(2,3,4,2)
        torch.nn.Conv2d(3,2,2).to(D).to(memory_format=torch.channels_last).weight * 0
    """,
    "operations": """
        x + 1
        x * x
        x + A(3).view(3,1,1)
        x * A(4.)
        x + x.contiguous()
        x.contiguous() + x
        -x[:, :, 1:]
        x > 1
        x ** 3
        x.pow(0.5)
        x.square()
        torch.float_power(x, 2)
        torch.slice_scatter(x, A(12.).view(1,3,1,4), 2, 0, 1)
        torch.select_scatter(x, A(12.).view(1,3,4), 2, 0)
        torch.diagonal_scatter(A(6.).view(2,3).t(), A(2.))
        A(6.).view(2,3).t().index_fill(0, A(1), 7.)
        A(6.).view(2,3).t().index_put((A(1),), torch.ones(1, 2, device=D))
        A(6.).view(2,3).t().put(A(1), torch.ones(1, device=D))
        torch.frexp(x)[0]
        torch.frexp(x)[1]
        F.dropout(x, 0.5) * 0
        torch.where(x > 1, x, 0.)
        torch.where(x > 1, x, x.contiguous())
        x.permute(0,2,3,1).exp()
        A(6.).view(2,3).t() * 1
        A(6.).view(2,3).t() + O(3,2)
        O(3,2) + A(6.).view(2,3).t()
        O(3,1).expand(3,2) + A(2)
        x.transpose(1,2) * A(3).view(3,1)
        torch.cat([x, x], 1)
        torch.cat([x, x.contiguous()], 1)
        x.flip(2)
        F.gelu(x)
        F.conv2d(x, O(2,3,2,2))
        F.conv2d(x.contiguous(), O(2,3,2,2).to(memory_format=torch.channels_last))
        F.max_pool2d(x, 2)
        F.avg_pool2d(x, 2)
        F.batch_norm(x, None, None, training=True) * 0
        F.pad(x, (1,1))
        F.interpolate(x, size=(3,5), mode="bilinear", antialias=True)
        F.interpolate(x, size=(3,5), mode="bicubic", antialias=True)
        x.add_(x.contiguous())
        y=x.contiguous();; y.add_(x)
        y=x.clone();; y.requires_grad_();; F.conv2d(y, O(2,3,2,2)).sum().backward();; y.grad
        w=O(2,3,2,2).to(memory_format=torch.channels_last).requires_grad_();; F.conv2d(x, w).sum().backward();; w.grad
        w=O(2,3).t().requires_grad_();; (w * A(6.).view(3,2)).sum().backward();; w.grad
        torch.add(x, 1, out=torch.empty(0, device=D))
        torch.add(x, 1, out=torch.empty(1,3,4,4, device=D))
    """,
    "gradients": """
        G(F.interpolate, x, scale_factor=2, mode="nearest")
        G(F.interpolate, x, scale_factor=2, mode="nearest-exact")
        G(F.interpolate, x, scale_factor=2, mode="bilinear")
        G(F.interpolate, x, scale_factor=2, mode="bicubic")
        G(F.interpolate, x, size=(3,5), mode="bilinear", antialias=True)
        G(F.interpolate, x, size=(3,5), mode="bicubic", antialias=True)
        G(F.interpolate, V(2), scale_factor=2, mode="nearest")
        G(F.interpolate, V(2), scale_factor=2, mode="trilinear")
        G(F.pad, x, (1,1,1,1), mode="replicate")
        G(F.pad, x, (1,1,1,1), mode="reflect")
        G(F.pad, V(2), (1,)*6, mode="replicate")
        G(F.pad, V(2), (1,)*6, mode="reflect")
        G(F.max_pool2d, x, 2)
        G(F.max_pool3d, V(2), 2)
        G(F.max_pool3d, V(1)[0], 2)
        G(F.max_pool3d, V(1)[0].contiguous(), 2)
        G(F.avg_pool3d, V(2), 2)
        F.max_pool3d(V(2), 2)
        F.max_pool3d(V(1)[0], 2)
        F.max_pool3d(V(1)[0].contiguous(), 2)
        F.max_pool3d(V(1)[0], 2, return_indices=True)[1]
        torch.ops.aten.max_pool3d_with_indices_backward(torch.ones(3,2,2,2,device=D), V(1)[0], 2, 2, 0, 1, False, F.max_pool3d(V(1)[0], 2, return_indices=True)[1])
        F.mse_loss(x, x*2, reduction="none")
        F.mse_loss(x, x*2)
        F.smooth_l1_loss(x, x*2, reduction="none")
        F.huber_loss(x, x*2, reduction="none")
        F.binary_cross_entropy_with_logits(x, x/48, reduction="none")
        F.binary_cross_entropy(x/48, x/48, reduction="none")
        F.soft_margin_loss(x, x*2, reduction="none")
        G(F.mse_loss, x, x*2)
        H(torch.relu, x)
        H(torch.relu, x.contiguous(), torch.channels_last)
        H(torch.relu, x.permute(0,3,1,2))
        H(F.leaky_relu, x)
        H(F.threshold, x, 1., 2.)
        H(F.prelu, x, O(3))
        H(F.prelu, x.contiguous(), O(3), torch.channels_last)
        H(F.gelu, x)
        H(F.hardtanh, x)
        H(F.elu, x)
        H(F.silu, x)
        H(F.hardswish, x)
        H(F.max_pool2d, x, 2)
        H(F.avg_pool2d, x, 2)
        H(F.binary_cross_entropy, x/48, x.contiguous()/48, reduction="none")
        F.binary_cross_entropy(x/48, x.contiguous()/48, reduction="none")
        F.binary_cross_entropy_with_logits(x, x.contiguous()/48, reduction="none")
        F.binary_cross_entropy_with_logits(x.contiguous(), x/48, reduction="none")
        torch.addr(A(6.).view(2,3).t(), A(3.), A(2.))
    """,
    "views": """
        x.view(48)
        x.view(1,3,16)
        x.view(1,3,16).add_(1);; x
        x.permute(0,2,3,1).view(48).mul_(2);; x
        (A(9.).view(3,3).t() * 1).view(9)
        (A(9.).view(3,3).t() * 1).t().view(9)
        x.reshape(48)
        x.permute(0,2,3,1).reshape(48).zero_();; x
        x.as_strided((5,), (2,), 3)
        x.as_strided((5,), (2,), 3).zero_();; x
        x[:, 1].as_strided((5,), (2,))
        x.diagonal(0, 2, 3).zero_();; x
        x.unfold(1, 2, 1)
        x[:, 1:, ::2].fill_(7);; x
        x.view(torch.int32)
        x.view(torch.int16)
        x.permute(0,2,3,1).view(torch.int16)
        x.permute(0,2,3,1).view(torch.int16).as_strided((6,), (3,), 1)
        x.view(torch.int32).as_strided((6,), (3,), 1)
        torch.view_as_real(torch.complex(x, x)).as_strided((6,), (3,), 1)
        x[0].t() if False else x[0,0].t().t_().clone()
        y=x.detach();; y.unsqueeze_(0);; y
        y=torch.empty(0, device=D);; y.set_(x.untyped_storage(), 3, (4,), (2,));; y
        y=torch.empty(0, device=D);; y.set_(x);; y
        torch.func.functionalize(lambda x: x.view(4).view(2,2).t().add_(1))(O(2,2))
        y=x.clone().requires_grad_();; z=y*1;; z.permute(0,2,3,1).view(48)[3:7].mul_(5);; z.sum().backward();; y.grad
    """,
}


def _gradient(function, x: torch.Tensor, *arguments, **keywords) -> torch.Tensor:
    """Of the sum of what a function gives; not accumulated, which takes the leaf's strides."""
    leaf = x.detach().requires_grad_()
    result = function(leaf, *arguments, **keywords)
    return torch.autograd.grad(result, leaf, torch.ones_like(result))[0]


def _gradient_of_another_layout(function, x, *arguments, **keywords) -> torch.Tensor:
    """The gradient that comes in lies row-major, or in the format that stands last."""
    form = torch.contiguous_format
    if arguments and isinstance(arguments[-1], torch.memory_format):
        *arguments, form = arguments
    leaf = x.detach().requires_grad_()
    result = function(leaf, *arguments, **keywords)
    gradient = torch.ones_like(result, memory_format=form)
    return torch.autograd.grad(result, leaf, gradient)[0]


def run(program: str, device: str):
    *statements, last = (part.strip() for part in program.split(";;"))
    image = torch.arange(48.0).view(1, 3, 4, 4).to(memory_format=torch.channels_last)
    scope = {"torch": torch, "F": F, "D": device, "x": image.to(device)}
    scope["A"] = lambda *a: torch.arange(*a, device=device)
    scope["O"] = lambda *a: torch.ones(*a, device=device)
    scope["G"] = _gradient
    scope["H"] = _gradient_of_another_layout
    volume = torch.arange(192.0).view(1, 3, 4, 4, 4)
    scope["V"] = lambda n: (
        torch.cat([volume] * n).to(device).to(memory_format=torch.channels_last_3d)
    )
    try:
        for statement in statements:
            exec(statement, scope)
        return eval(last, scope)
    except Exception as error:
        return error


def compare(program: str) -> None:
    expected, result = run(program, "cpu"), run(program, "xla")
    if isinstance(expected, Exception):
        assert (type(result), str(result)) == (type(expected), str(expected))
        return
    if isinstance(result, Exception):
        raise result
    assert result.stride() == expected.stride()
    for form in (torch.contiguous_format, torch.channels_last):
        if form == torch.contiguous_format or expected.dim() == 4:
            is_like = [t.is_contiguous(memory_format=form) for t in (result, expected)]
            assert is_like[0] == is_like[1], form
    result = result.detach().cpu()
    torch.testing.assert_close(result, expected.detach())
    if torch._debug_has_internal_overlap(expected) == 0:
        assert result.stride() == expected.detach().to("cpu", copy=True).stride(), "on the CPU"


@pytest.mark.parametrize("kind", PROGRAMS)
def test_tensors_lie_as_eagers(kind):
    differences = Differences()
    for program in PROGRAMS[kind].strip().splitlines():
        with differences.of(program.strip()):
            compare(program.strip())
    differences.fail_if_any()


def test_files_keep_layouts():
    image = torch.arange(48.0).view(1, 3, 4, 4).to(memory_format=torch.channels_last)
    tensors = {"image": image.to("xla"), "part": image.to("xla")[:, 1:]}
    file = io.BytesIO()
    torch.save(tensors, file)
    for place in ("cpu", "xla"):
        file.seek(0)
        for name, loaded in torch.load(file, map_location=place).items():
            assert loaded.stride() == tensors[name].stride()
            torch.testing.assert_close(loaded.cpu(), tensors[name].cpu())


def test_compiled_functions_keep_layouts():
    image = torch.arange(48.0).view(1, 3, 4, 4).to("xla", memory_format=torch.channels_last)

    @torch.compile(backend="openxla")
    def double(x):
        y = x * 2
        return y, y[:, 1:].transpose(2, 3)

    for _ in range(2):
        result, part = double(image)
        assert result.is_contiguous(memory_format=torch.channels_last)
        torch.testing.assert_close(result.cpu(), image.cpu() * 2)
        torch.testing.assert_close(
            part.as_strided((4,), (3,)).cpu(), result.cpu()[:, 1:].as_strided((4,), (3,))
        )
