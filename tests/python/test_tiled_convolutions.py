"""Convolutions whose windows tile their input are products, and compute what eager computes."""

import pytest
import torch
import torch.nn.functional as F

import torch_xla

CASES = {
    "patches": (lambda x, w: F.conv2d(x, w, stride=16), (2, 3, 64, 32), (8, 3, 16, 16)),
    "windows of unequal sides": (
        lambda x, w: F.conv2d(x, w, stride=(2, 5)),
        (2, 3, 8, 15),
        (4, 3, 2, 5),
    ),
    "one dimension": (lambda x, w: F.conv1d(x, w, stride=4), (2, 3, 64), (5, 3, 4)),
    "three dimensions": (
        lambda x, w: F.conv3d(x, w, stride=(1, 2, 4)),
        (1, 2, 3, 4, 8),
        (3, 2, 1, 2, 4),
    ),
    "transposed": (lambda x, w: F.conv_transpose2d(x, w, stride=4), (2, 6, 5, 6), (6, 7, 4, 4)),
}
# No tiles: a rest of the input, padding, groups, steps that are not the window's size.
OTHERS = {
    "a rest": (lambda x, w: F.conv1d(x, w, stride=4), (2, 3, 66), (5, 3, 4)),
    "padding": (lambda x, w: F.conv1d(x, w, stride=4, padding=2), (2, 3, 64), (5, 3, 4)),
    "groups": (lambda x, w: F.conv1d(x, w, stride=4, groups=3), (2, 3, 64), (6, 1, 4)),
    "transposed by whole steps": (
        lambda x, w: F.conv_transpose2d(x, w, stride=8, padding=(4, 0)),
        (2, 3, 5, 4),
        (3, 2, 16, 24),
    ),
    "transposed by whole steps and some elements more": (
        lambda x, w: F.conv_transpose2d(x, w, stride=(8, 9), padding=(2, 1), output_padding=(5, 1)),
        (1, 3, 3, 4),
        (3, 2, 8, 18),
    ),
    "transposed, in three dimensions": (
        lambda x, w: F.conv_transpose3d(x, w, stride=8, padding=2),
        (1, 2, 2, 1, 3),
        (2, 3, 8, 16, 16),
    ),
    "overlapping": (lambda x, w: F.conv1d(x, w, stride=2), (2, 3, 64), (5, 3, 4)),
}


@pytest.mark.parametrize("name", [*CASES, *OTHERS])
def test_values_and_gradients(name):
    function, *shapes = (CASES | OTHERS)[name]
    generator = torch.Generator().manual_seed(0)
    on_cpu = [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]
    on_device = [x.detach().to("xla").requires_grad_() for x in on_cpu]
    expected, actual = function(*on_cpu), function(*on_device)
    cotangent = torch.randn(expected.shape, generator=generator)
    of_cpu = torch.autograd.grad(expected, on_cpu, cotangent)
    of_device = torch.autograd.grad(actual, on_device, cotangent.to("xla"))
    text = torch_xla._XLAC._get_xla_tensors_hlo([actual, *of_device])
    assert (" convolution(" in text) == (name in OTHERS)
    for x, y in zip((expected, *of_cpu), (actual, *of_device), strict=True):
        torch.testing.assert_close(y.cpu(), x, rtol=1e-4, atol=1e-4)
