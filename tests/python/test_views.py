"""Views and in-place operators alias exactly as in eager."""

import time

import pytest
import torch
from view_programs import run_programs

import torch_xla
import torch_xla.debug.metrics as met


@pytest.mark.slow
def test_random_programs():
    run_programs(100)


def test_reshape_of_a_transposed_tensor_is_a_copy():
    x = torch.zeros(2, 3, device="xla")
    y = x.t().reshape(-1)
    y.add_(1)
    assert x.cpu().sum() == 0
    assert y.cpu().sum() == 6


def test_contiguous_of_a_transposed_tensor_is_a_copy():
    x = torch.zeros(2, 3, device="xla")
    y = x.t().contiguous()
    y.add_(1)
    assert x.cpu().sum() == 0


def test_view_of_incompatible_strides_is_an_error():
    x = torch.zeros(2, 3, device="xla")
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        x.t().view(-1)


def test_writing_to_an_expanded_tensor_is_an_error():
    x = torch.zeros(1, 3, device="xla")
    with pytest.raises(RuntimeError, match="more than one element"):
        x.expand(4, 3).add_(1)


def test_complex_views():
    for device in ("cpu", "xla"):
        z = torch.complex(torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])).to(device)
        r = torch.view_as_real(z)
        r[0, 1] = 7.0
        z.real.add_(1)
        assert z.cpu().tolist() == [complex(2, 7), complex(3, 4)]
        back = torch.view_as_complex(r)
        back.mul_(2)
        assert z.cpu().tolist() == [complex(4, 14), complex(6, 8)]


def test_view_dtype_shares_memory():
    for device in ("cpu", "xla"):
        x = torch.tensor([1.0, 2.0]).to(device)
        bits = x.view(torch.int32)
        bits[0] = 0
        assert x.cpu().tolist() == [0.0, 2.0]


def test_as_strided_writes():
    for device in ("cpu", "xla"):
        x = torch.arange(12.0).to(device)
        v = x.as_strided((3, 2), (4, 2), 1)
        v.add_(100)
        assert x.cpu().tolist() == [0, 101, 2, 103, 4, 105, 6, 107, 8, 109, 10, 111]


def test_gradient_through_an_in_place_slice():
    grads = []
    for device in ("cpu", "xla"):
        w = torch.arange(6.0).reshape(2, 3).to(device).requires_grad_()
        x = w * 2
        x[0].mul_(3)
        x[:, 1] = 5.0
        (x * x).sum().backward()
        grads.append(w.grad.cpu())
    assert torch.equal(grads[0], grads[1])


def numbers(*shape: int) -> torch.Tensor:
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape)


# Of `b`, a 3x3 matrix with a gradient: views, changes of shape in place, and writes.
CHANGES_OF_SHAPE = {
    "a base is transposed": "v = b[0]; b.t_()",
    "and a view of it written": "v = b[0]; b.t_(); v.mul_(2)",
    "and written itself": "v = b[0]; b.transpose_(0, 1); b.mul_(2)",
    "a base gets a dimension": "v = b[0]; b.unsqueeze_(0); v.mul_(2)",
    "and loses it": "v = b[0]; b.unsqueeze_(1); b.squeeze_(); v.mul_(n(3))",
    "views of several shapes of a base": "v = b[0]; b.t_(); u = b[0]; b.unsqueeze_(0); v.mul_(2); u.mul_(3)",
    "changes without end": "v = b[0]\nfor _ in range(5): b.t_(); v.mul_(2)",
    "a view gets a dimension": "v = b[0]; v.unsqueeze_(0); v.mul_(2)",
    "and another": "v = b[0, 0]; v.unsqueeze_(0); v.unsqueeze_(0); v.mul_(3)",
    "a view is transposed": "v = b[:2]; v.t_(); v.mul_(2)",
    "and its base written": "v = b[:]; v.t_(); b.mul_(n(3, 3))",
    "beside an older view": "v = b[:, :2]; u = v[0]; v.t_(); v.mul_(n(2, 3))",
    "and a newer one": "v = b[1:, :2]; v.t_(); u = v[0]; v.mul_(n(2, 2))",
    "view and base": "v = b[1:]; b.t_(); v.t_(); u = v[0]; v.mul_(n(3, 2)); b.add_(u.sum())",
    "a view of an older view": "v = b[1:]; b.t_(); u = v[0]; u.mul_(2)",
    "a diagonal": "v = b.diagonal(); b.transpose_(0, 1); v.mul_(n(3))",
    "a flat view": "v = b.view(-1); b.t_(); v.mul_(n(9)); u = v[2:]",
    "two operators": "v = b.view(-1)[1:7].view(2, 3); b.t_(); v.mul_(n(2, 3))",
    "a gradient that comes by a write": "b = b.detach().clone(); v = b[0]; b.t_(); v.mul_(a[1])",
    "a newer view by strides": "b.t_(); v = b.as_strided((3,), (1,)); v.mul_(2)",
    "a newer flat view": "b.t_(); v = b.t().view(-1)[2:7]; v.mul_(n(5))",
    "a column that is transposed": "v = b[:, 0:1]; v.t_(); b.t_(); v.mul_(2)",
    "a row that is a column": "v = b[0]; v.unsqueeze_(0); v.t_(); b.t_(); v.mul_(2)",
    "a row that turned": "v = b[0:1]; v.squeeze_(0); v.unsqueeze_(1); v.mul_(n(3, 1)); b.t_(); v.mul_(2)",
    "a part of a flat view": "v = b.view(9)[1:4]; b.unsqueeze_(1); b.transpose_(0, 2); v.mul_(2)",
    "strides that transpose": "v = b[0]; b.as_strided_((3, 3), (1, 3)); v.mul_(2)",
}


@pytest.mark.parametrize("name", CHANGES_OF_SHAPE)
def test_gradients_beside_a_shape_that_changes_in_place(name):
    """Also where all are square, so that a wrong place has the right shape."""
    results = []
    for device in ("cpu", "xla"):
        a = (numbers(3, 3) + 1).to(device).requires_grad_()
        values = {"a": a, "b": a * 1, "n": lambda *shape: numbers(*shape).to(device)}  # noqa: B023
        exec(CHANGES_OF_SHAPE[name], values)
        shown = [values[x] for x in "bvu" if x in values]
        sum((x * (numbers(*x.shape).to(device) + 1)).sum() for x in shown).backward()
        results.append([x.detach().cpu() for x in (a.grad, *shown)])
    for expected, actual in zip(*results, strict=True):
        assert torch.equal(expected, actual), (expected, actual)


def test_looking_for_a_view_in_its_base_is_not_seen_by_modes():
    seen = []

    class Mode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            seen.append(function)
            return function(*args, **(kwargs or {}))

    b = (numbers(3, 3) + 1).to("xla").requires_grad_() * 1
    v = b[0]
    b.t_()
    b.mul_(2)
    with Mode():
        function = v.grad_fn
    assert function is not None
    assert len(seen) == len(set(seen)), seen  # torch makes the view itself, once


def test_second_derivatives_beside_a_shape_that_changes_in_place():
    results = []
    for device in ("cpu", "xla"):
        a = (numbers(3, 3) + 1).to(device).requires_grad_()
        b = a * a
        v = b[0]
        b.t_()
        v.mul_(v.detach() + a[1])
        (first,) = torch.autograd.grad((b**2).sum(), a, create_graph=True)
        (first * numbers(3, 3).to(device)).sum().backward()
        results.append(a.grad.cpu())
    assert torch.equal(*results)


def test_the_place_of_a_view_that_is_lost_is_an_error_of_its_gradient_alone():
    a = numbers(3, 3).to("xla").requires_grad_()
    for b, fails in ((a * 1, True), (a.detach().clone(), False)):
        v = b[0]
        b.as_strided_((2, 2), (3, 1), 1)
        if fails:
            with pytest.raises(RuntimeError, match="has changed like this in place"):
                v.mul_(2)
        else:
            v.mul_(2)
            assert (v * a).sum().item() == 2 * (1 + 4 + 7) + 4 * (2 + 5 + 8)


def test_data_swap_and_set():
    x = torch.zeros(2, device="xla")
    y = torch.ones(3, device="xla")
    x.data = y
    assert x.cpu().tolist() == [1, 1, 1]
    y.add_(1)
    assert x.cpu().tolist() == [2, 2, 2]
    z = torch.zeros(1, device="xla")
    z.set_(y)
    assert z.cpu().tolist() == [2, 2, 2]


def test_version_counter_catches_a_modified_saved_tensor():
    w = torch.ones(2, device="xla", requires_grad=True)
    x = w * 1
    y = x * x
    x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_copies_into_cpu_tensors():
    source = torch.arange(3.0, device="xla")
    for target in (torch.zeros(3), torch.zeros(2, 3), torch.zeros(3, dtype=torch.int64)):
        assert target.copy_(source).device.type == "cpu"
        assert torch.equal(target, torch.arange(3.0).to(target.dtype).expand_as(target))
    part = torch.zeros(5)
    part[1:4] = source
    assert part.tolist() == [0, 0, 1, 2, 0]


@pytest.mark.parametrize("groups, channels", [(1, 2), (2, 2), (2, 4)])
def test_an_operator_without_views_gives_a_tensor_of_its_own(groups, channels):
    """Also where torch's decomposition of it finds nothing to do and hands on its argument."""
    x = torch.arange(channels * 3.0, device="xla").reshape(1, channels, 3)
    before = x.cpu()
    torch.nn.functional.channel_shuffle(x, groups).zero_()
    assert torch.equal(x.cpu(), before)


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.unfold(0, 2, 1),
        lambda x: x.diagonal(),
        lambda x: x.as_strided((2, 2), (5, 2), 1),
        lambda x: x[1:].diagonal(1),
    ],
)
@pytest.mark.parametrize("flag", [torch.conj, torch._neg_view])
def test_parts_of_conjugated_and_negated_views(view, flag):
    x = torch.randn(3, 5, dtype=torch.complex64)
    part, expected = view(flag(x.to("xla"))), view(flag(x))
    assert (part.is_conj(), part.is_neg()) == (expected.is_conj(), expected.is_neg())
    assert torch.equal(part.cpu(), expected)
    part.mul_(2)
    assert torch.equal(part.cpu(), expected * 2)


@pytest.mark.parametrize("elements", [100, 1_000_000])
def test_a_part_is_read_alone(elements):
    """Reading an element copied all of its tensor, or compiled a program that takes it out of a large one."""
    x = torch.arange(elements, device="xla")
    rows = x.view(-1, 10)
    torch_xla.sync(wait=True)
    met.clear_all()
    assert x[7].item() == 7
    assert rows[3].tolist() == list(range(30, 40))
    assert rows[2:4].cpu().tolist() == [list(range(20, 30)), list(range(30, 40))]
    copies, nbytes, _ = met.metric_data("InboundData")
    assert (copies, nbytes) == (3, 8 * (1 + 10 + 20))
    assert met.metric_data("CompileTime") is None and met.metric_data("ExecuteTime") is None


def test_parts_of_other_types_and_orders_are_read():
    x = torch.arange(48.0).view(1, 3, 4, 4)
    for form in (torch.contiguous_format, torch.channels_last):
        host = x.to(memory_format=form)
        device = host.to("xla")
        for part in (
            lambda t: t[:, 1],
            lambda t: t[0, :, 2, 3],
            lambda t: t[:, 1:2, 2],
            lambda t: t.permute(0, 2, 3, 1)[0, 1],
            lambda t: t.contiguous()[0, 0, 0].view(torch.int16),
            lambda t: t.permute(0, 2, 3, 1)[0, 1, 1].contiguous().view(torch.int32)[1:],
            lambda t: t[0, 1:, 3, 3:],
            lambda t: t[0, 0, 0, 0].expand(3),
            lambda t: torch.complex(t, t + 1).conj()[0, 1, 2].imag,
            lambda t: t[:, :0],
        ):
            torch.testing.assert_close(part(device).cpu(), part(host))


def rows_of_columns(x):
    return x[1:].t()


def every_second(x):
    return x[..., ::2] if x.shape[-1] > 8 else x[..., 1:]


def unsqueezed_and_squeezed(x):
    return x.unsqueeze(0).transpose(0, 1).squeeze(1)


def other_type(x):
    if x.requires_grad or not x.is_contiguous():
        return x.t()
    return x.view(torch.int32).view(torch.float32).t()


CHAINS = [torch.t, rows_of_columns, every_second, unsqueezed_and_squeezed, other_type]


@pytest.mark.parametrize("step", CHAINS)
@pytest.mark.parametrize("depth", [3, 15, 16, 17, 33, 70])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_views_of_views_of_views(step, depth, requires_grad):
    """What a deep view reads, writes into its base, and gives as its gradient."""

    def run(device):
        torch.manual_seed(0)
        x = torch.randn(90, 90).to(device).requires_grad_(requires_grad)
        base = x * 2
        y = base
        for _ in range(depth):
            y = step(y)
        y.mul_(3)
        again = step(y)
        again[..., :1].add_(y.sum())
        results = [base, y, again]
        if requires_grad:
            (base.square().sum() + y.sum() + again.sum()).backward()
            results.append(x.grad)
        return [(r.detach().cpu(), r.shape, r.stride(), r.storage_offset()) for r in results]

    for ours, wanted in zip(run("xla"), run("cpu"), strict=True):
        torch.testing.assert_close(ours[0], wanted[0], rtol=1e-4, atol=1e-4)
        assert ours[1:] == wanted[1:]


@pytest.mark.slow
@pytest.mark.parametrize("requires_grad", [False, True])
def test_hundred_thousand_views_of_views(requires_grad):
    """Each costs what the first one does, and the last one goes without a deep recursion."""

    def seconds(count):
        x = torch.arange(6.0).reshape(2, 3).to("xla").requires_grad_(requires_grad)
        base = x * 1
        y = base
        start = time.process_time()
        for _ in range(count):
            y = y.t()
        taken = time.process_time() - start
        y.add_(1)
        assert base.cpu().tolist() == [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
        return taken

    seconds(100)
    assert seconds(100_000) < 4 * 10 * seconds(10_000)
