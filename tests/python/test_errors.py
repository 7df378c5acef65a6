"""Bad input raises, at its line, what eager raises; the process and its tensors live on."""

import pytest
import torch

import torch_xla

NOT_XLA = r"Input tensor is not an XLA tensor: torch\.FloatTensor"


def alive(device) -> None:
    assert (torch.ones(2, device=device) + 1).tolist() == [2.0, 2.0]


SHAPE_ERRORS = {
    "add": (lambda d: torch.ones(2, 3, device=d) + torch.ones(2, 4, device=d), "3.*4"),
    "mm": (lambda d: torch.ones(2, 3, device=d).mm(torch.ones(4, 5, device=d)), "2x3.*4x5"),
    "matmul": (lambda d: torch.ones(2, 3, device=d) @ torch.ones(4, device=d), "."),
    "view": (lambda d: torch.ones(2, 3, device=d).view(4), "."),
    "cat": (lambda d: torch.cat([torch.ones(2, 3, device=d), torch.ones(2, 4, device=d)]), "."),
    "linear": (
        lambda d: torch.nn.functional.linear(
            torch.ones(2, 3, device=d), torch.ones(5, 4, device=d)
        ),
        ".",
    ),
    "conv2d": (
        lambda d: torch.conv2d(torch.ones(1, 3, 8, 8, device=d), torch.ones(4, 2, 3, 3, device=d)),
        ".",
    ),
    "expand": (lambda d: torch.ones(2, device=d).expand(3), "."),
    "index dimension": (lambda d: torch.ones(2, device=d).sum(3), "."),
    "in place": (lambda d: torch.ones(2, device=d).add_(torch.ones(3, 2, device=d)), "."),
    "dtype": (lambda d: torch.ones(2, 2, device=d).mm(torch.ones(2, 2, device=d).long()), "."),
    "select_scatter": (
        lambda d: torch.select_scatter(
            torch.zeros(4, 5, device=d), torch.ones(5, 1, device=d), 0, 0
        ),
        r"equal to the slice of self. src size = \[5, 1\], slice size = \[5\]",
    ),
    "diagonal_scatter": (
        lambda d: torch.diagonal_scatter(torch.zeros(4, 5, device=d), torch.ones(3, device=d), 1),
        r"equal to the slice of self. src size = \[3\], slice size = \[4\]",
    ),
    "in-place dtype": (lambda d: torch.ones(2, device=d, dtype=torch.int32).add_(0.5), "."),
}


@pytest.mark.parametrize("case", SHAPE_ERRORS)
def test_shape_and_dtype_errors_are_eagers(case, device):
    operation, shapes = SHAPE_ERRORS[case]
    with pytest.raises(Exception, match=r".") as expected:
        operation("cpu")
    with pytest.raises(expected.type, match=f"(?s){shapes}"):
        operation(device)
    alive(device)


@pytest.mark.parametrize(
    "operation",
    [
        lambda x: x + torch.ones(3),
        lambda x: torch.ones(3) + x,
        lambda x: x.add_(torch.ones(3)),
        lambda x: torch.cat([x, torch.ones(3)]),
        lambda x: torch.nn.functional.linear(x, torch.ones(2, 3)),
        lambda x: torch.where(x > 0, x, torch.ones(3)),
    ],
    ids=["add", "reversed add", "add_", "cat", "linear", "where"],
)
def test_mixed_devices_are_an_error(operation, device):
    with pytest.raises(RuntimeError, match=NOT_XLA):
        operation(torch.ones(3, device=device))
    alive(device)


def test_cpu_scalars_mix_with_device_tensors(device):
    assert (torch.ones(3, device=device) * torch.tensor(2.0)).tolist() == [2.0] * 3


def run_out_of_memory(device) -> str:
    """What is said when a tensor does not fit; the tensor does not outlive the call."""
    kept = torch.ones(1 << 42, device=device)
    try:
        torch_xla.sync(wait=True)
    except RuntimeError as error:
        return f"{error}, for a tensor of {kept.numel()}"
    return ""


def test_out_of_memory_is_an_exception(device):
    assert "out of memory" in run_out_of_memory(device)
    alive(device)


def test_tensors_without_storage_say_so(device):
    with pytest.raises(Exception, match=r"."):
        torch.ones(2, device=device).numpy()
    alive(device)


def test_backward_twice_is_eagers_error(device):
    loss = (torch.ones(2, device=device, requires_grad=True) ** 2).sum()
    loss.backward()
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()
    torch_xla.sync()
    alive(device)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_detection_finds_nan(device):
    x = torch.tensor([-1.0, 4.0], device=device, requires_grad=True)
    with torch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="returned nan values"):
        torch.sqrt(x).sum().backward()
    alive(device)
