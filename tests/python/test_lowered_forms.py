"""Operators whose lowering is of a form that the engine computes quickly: what stands in it, and that the values are eager's."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from torch_xla import _XLAC

pytestmark = pytest.mark.usefixtures("programs_only")


def padded(mode: str, *padding: int) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda x: F.pad(x, padding, mode)


def sampled(mode: str, padding_mode: str = "zeros") -> Callable[[torch.Tensor], torch.Tensor]:
    def sample(x: torch.Tensor) -> torch.Tensor:
        dimensions = x.dim() - 2
        steps = torch.linspace(-1.2, 1.3, 11 * dimensions).to(x)
        grid = steps.view(1, 11, *[1] * (dimensions - 1), dimensions).expand(
            len(x), *[-1] * (dimensions + 1)
        )
        return F.grid_sample(x, grid, mode, padding_mode, align_corners=False)

    return sample


# Function, shape, and how often operations stand in its program.
FORMS = {
    "rows of volumes are copied": (
        padded("replicate", 1, 2, 2, 1, 3, 0),
        (2, 3, 4, 5, 30),
        {"gather": 1, "concatenate": 1},
    ),
    "rows of mirrored volumes": (
        padded("reflect", 0, 0, 3, 2, 1, 1),
        (3, 4, 5, 30),
        {"gather": 1, "concatenate": 0},
    ),
    "some rows are taken away": (
        padded("replicate", -1, 2, 2, -2, -1, -1),
        (2, 4, 5, 30),
        {"gather": 1},
    ),
    "short rows are not": (padded("replicate", 1, 1, 1, 1, 1, 1), (2, 3, 4, 5, 6), {"gather": 0}),
    "a line needs no rows": (padded("reflect", 2, 3), (2, 4, 30), {"gather": 0}),
    **{
        f"{channels} channels are sampled where they lie, {mode}": (
            sampled(mode),
            (2, channels, 6, 7),
            {"transpose": 0},
        )
        for channels in (2, 7)
        for mode in ("bilinear", "nearest", "bicubic")
    },
    "channels of volumes": (sampled("bilinear", "border"), (2, 3, 4, 5, 6), {"transpose": 0}),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMS)
def test_form(name, device):
    function, shape, counts = FORMS[name]
    result = function(torch.ones(shape, device=device))
    text = _XLAC._get_xla_tensors_hlo([result])
    for operation, count in counts.items():
        assert text.count(f" {operation}(") == count, operation


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", FORMS)
def test_values_and_gradients(name, dtype, device):
    function, shape, _ = FORMS[name]

    def outcome(device):
        x = torch.arange(float(torch.Size(shape).numel())).reshape(shape) % 13 - 5
        x = x.to(device, dtype).requires_grad_()
        result = function(x)
        weight = torch.arange(float(result.numel())).reshape(result.shape) % 7 - 3
        return result, torch.autograd.grad((result * weight.to(device, dtype)).sum(), x)[0]

    for result, expected in zip(outcome(device), outcome("cpu"), strict=True):
        torch.testing.assert_close(result.detach().cpu(), expected.detach())


@pytest.mark.parametrize("shape", [(0, 3, 4, 5), (3, 4, 5)], ids=str)
def test_padding_of_nothing(shape, device):
    x = torch.ones(shape)
    expected = F.pad(x, (1, 1, 2, 1), "replicate")
    assert torch.equal(F.pad(x.to(device), (1, 1, 2, 1), "replicate").cpu(), expected)
