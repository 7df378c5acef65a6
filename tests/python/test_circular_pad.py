"""Padding by what lies at the other end: as eager, and no part of it is read again from what was written."""

import pytest
import torch
import torch.nn.functional as F

import torch_xla

CASES = (
    ((2, 3, 5), (2, 1)),
    ((3, 5), (0, 5)),  # without a batch; as much as there is
    ((2, 3, 4, 5), (1, 2, 3, 0)),
    ((1, 2, 3, 4, 2), (1, 1, 0, 2, 3, 1)),
    ((2, 3, 5), (0, 0)),
    ((2, 3, 5), (-1, 2)),
    ((1, 2, 4, 4), (1, -1, -2, 2)),
    ((2, 3, 0, 4), (1, 1, 0, 0)),
)


@pytest.mark.parametrize("size, padding", CASES)
def test_values_and_gradients_are_eagers(size, padding):
    def results(device):
        x = torch.arange(float(torch.Size(size).numel())).reshape(size).to(device).requires_grad_()
        padded = F.pad(x * 1, padding, mode="circular")
        weight = torch.arange(float(padded.numel()), device=device).reshape(padded.shape)
        (gradient,) = torch.autograd.grad((padded * weight).sum(), x)
        return [padded.detach().cpu(), gradient.cpu()]

    torch.testing.assert_close(results("xla"), results("cpu"), rtol=0, atol=0)


def test_nothing_is_padded_in_a_tensor_of_its_own():
    x = torch.ones(2, 3, 5, device="xla")
    F.pad(x, (0, 0), mode="circular").zero_()
    assert x.sum().item() == 30


def test_channels_last_stays_eagers():
    x = torch.arange(120.0).reshape(2, 3, 4, 5).to(memory_format=torch.channels_last)
    expected = F.pad(x, (1, 2, 1, 0), mode="circular")
    padded = F.pad(x.to("xla"), (1, 2, 1, 0), mode="circular")
    assert padded.stride() == expected.stride()
    torch.testing.assert_close(padded.cpu(), expected)


def test_parts_are_joined():
    x = torch.ones(2, 3, 5, device="xla")
    text = torch_xla._XLAC._get_xla_tensors_text([F.pad(x, (2, 1), mode="circular")])
    assert "aten::concatenate" in text and "write" not in text


@pytest.mark.parametrize("padding", [(6, 1), (1, 6), (-3, -3), (1, 1, 1, 1, 1, 1)])
def test_errors_are_eagers(padding):
    def words(device):
        with pytest.raises((RuntimeError, NotImplementedError)) as error:
            F.pad(torch.ones(2, 3, 5, device=device), padding, mode="circular")
        return str(error.value)

    assert words("xla") == words("cpu")


@pytest.mark.slow
def test_compiled_for_sizes_that_vary():
    compiled = torch.compile(lambda x: F.pad(x * 1, (2, 1), mode="circular"), backend="openxla")
    for size in (5, 7, 9):
        x = torch.arange(2.0 * size).reshape(1, 2, size)
        on_device = x.to("xla").requires_grad_()
        result = compiled(on_device)
        torch.testing.assert_close(result.detach().cpu(), F.pad(x, (2, 1), mode="circular"))
        result.sum().backward()
        assert on_device.grad.sum().item() == 2 * (size + 3)
