"""Views and in-place operators alias exactly as in eager: random programs run on both devices."""

import random

import pytest
import torch

import torch_xla


def _view(rng: random.Random, x: torch.Tensor):
    """A random view operator that fits x, as a function to apply on both devices."""
    rank = x.dim()
    choices = ["unsqueeze", "detach", "alias", "reshape_flat"]
    if rank >= 1:
        choices += [
            "select",
            "slice",
            "slice_step",
            "squeeze",
            "narrow",
            "unbind",
            "split",
            "unfold",
            "expand",
        ]
    if rank >= 2:
        choices += ["transpose", "permute", "diagonal", "t", "flatten"]
    kind = rng.choice(choices)
    dim = rng.randrange(rank) if rank else 0
    size = x.size(dim) if rank else 1
    if kind == "unsqueeze":
        at = rng.randrange(rank + 1)
        return lambda v: v.unsqueeze(at)
    if kind == "detach":
        return lambda v: v.detach()
    if kind == "alias":
        return lambda v: torch.ops.aten.alias(v)
    if kind == "reshape_flat":
        return lambda v: v.reshape(-1)
    if kind == "flatten":
        return lambda v: v.flatten(0, 1)
    if kind == "select" and size > 0:
        index = rng.randrange(-size, size)
        return lambda v: v.select(dim, index)
    if kind == "slice" and size > 0:
        start, stop = sorted((rng.randrange(size + 1), rng.randrange(size + 1)))
        return lambda v: torch.ops.aten.slice(v, dim, start, stop, 1)
    if kind == "slice_step" and size > 1:
        start = rng.randrange(size)
        step = rng.randrange(1, 4)
        return lambda v: torch.ops.aten.slice(v, dim, start, size, step)
    if kind == "narrow" and size > 0:
        start = rng.randrange(size)
        length = rng.randrange(1, size - start + 1)
        return lambda v: v.narrow(dim, start, length)
    if kind == "squeeze":
        return lambda v: v.squeeze(dim)
    if kind == "unbind" and size > 0:
        which = rng.randrange(size)
        return lambda v: v.unbind(dim)[which]
    if kind == "split" and size > 0:
        part = rng.randrange(1, size + 1)
        return lambda v: v.split(part, dim)[-1]
    if kind == "unfold" and size > 1:
        width = rng.randrange(1, size + 1)
        step = rng.randrange(width, size + 2)  # parts that do not overlap can be written
        return lambda v: v.unfold(dim, width, step)
    if kind == "expand":
        return lambda v: v.unsqueeze(0).expand(2, *v.shape)
    if kind == "transpose":
        other = rng.randrange(rank)
        return lambda v: v.transpose(dim, other)
    if kind == "permute":
        order = rng.sample(range(rank), rank)
        return lambda v: v.permute(order)
    if kind == "diagonal":
        first, second = rng.sample(range(rank), 2)
        offset = rng.randrange(-1, 2)
        return lambda v: v.diagonal(offset, first, second)
    if kind == "t" and rank == 2:
        return lambda v: v.t()
    return lambda v: v.unsqueeze(0)


def _write(rng: random.Random):
    kind = rng.choice(["add_", "mul_", "zero_", "fill_", "copy_"])
    number = rng.randrange(1, 5)
    if kind == "add_":
        return lambda v: v.add_(number)
    if kind == "mul_":
        return lambda v: v.mul_(number)
    if kind == "zero_":
        return lambda v: v.zero_()
    if kind == "fill_":
        return lambda v: v.fill_(number)
    return lambda v: v.copy_(torch.full(v.shape, float(number)))


def _both(function, pair):
    """Applies the function on both devices; errors must agree. Returns the pair of results or None."""
    try:
        expected = function(pair[0])
    except RuntimeError:
        with pytest.raises(RuntimeError):
            function(pair[1])
        return None
    return expected, function(pair[1])


@pytest.mark.parametrize("seed", range(60))
def test_random_views_and_writes(seed):
    rng = random.Random(seed)
    shape = rng.choice([(4, 6), (3, 4, 5), (8,), (2, 3, 2, 4), (1, 5), ()])
    base = torch.arange(max(1, torch.Size(shape).numel()), dtype=torch.float32).reshape(shape)
    tensors = [(base.clone(), base.to("xla"))]
    for _ in range(25):
        pair = rng.choice(tensors)
        if rng.random() < 0.55:
            made = _both(_view(rng, pair[0]), pair)
            if made is not None and made[0].numel() > 0:
                assert made[0].shape == made[1].shape
                tensors.append(made)
        else:
            _both(_write(rng), pair)
        if rng.random() < 0.15:
            torch_xla.sync()
    for expected, actual in tensors:
        assert expected.shape == actual.shape
        assert torch.equal(expected, actual.cpu())


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


def test_tensors_that_share_memory_have_one_storage():
    base, other = torch.arange(6.0, device="xla"), torch.arange(6.0, device="xla")
    part = base.view(2, 3)[1]
    storage = base.untyped_storage()
    assert part.untyped_storage().data_ptr() == storage.data_ptr() != 0
    assert other.untyped_storage().data_ptr() != storage.data_ptr()
    # Of no size: there is nothing to read at that address.
    assert storage.nbytes() == 0 and storage.device == base.device
    assert storage.tolist() == []
    with pytest.raises(RuntimeError):
        base.data_ptr()


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
