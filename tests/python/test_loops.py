"""Loops and branches of the device: one operation in the program, the numbers and gradients of a loop in Python."""

import gc
import itertools
import random as python_random
import weakref
from concurrent import futures

import numpy
import pytest
import torch
import torch.nn.functional as F
from functorch.compile import min_cut_rematerialization_partition
from torch import nn
from torch.utils._pytree import tree_flatten, tree_map

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as met
import torch_xla.experimental.scan as scan_module
from torch_xla import _XLAC
from torch_xla.experimental.fori_loop import fori_loop, while_loop
from torch_xla.experimental.gradient_accumulation import gradient_accumulation
from torch_xla.experimental.gru import GRU
from torch_xla.experimental.scan import scan
from torch_xla.experimental.scan_layers import scan_layers
from torch_xla.utils.checkpoint import checkpoint

DEVICE = torch.device("xla")


def to_device(tree):
    return tree_map(
        lambda x: None if x is None else x.detach().to(DEVICE).requires_grad_(x.requires_grad), tree
    )


def scan_of_python(fn, init, xs):
    carry, ys = init, []
    for i in range(len(tree_flatten(xs)[0][0])):
        carry, y = fn(carry, tree_map(lambda x, i=i: x[i], xs))
        ys.append(y)
    return carry, tree_map(lambda *y: None if y[0] is None else torch.stack(y), *ys)


def leaves(tree):
    return [x for x in tree_flatten(tree)[0] if x is not None]


def assert_like_python(fn, init, xs, **options):
    """Results and gradients of a scan on the device, next to those of a loop on the CPU."""
    expected = leaves(scan_of_python(fn, init, xs))
    on_device = to_device(init), to_device(xs)
    results = leaves(scan(fn, *on_device, **options))
    torch.testing.assert_close([r.cpu() for r in results], expected)
    roots = [r.sum() for r in results if r.requires_grad]
    if roots:
        sum(roots).backward()
        sum(r.sum() for r in expected if r.requires_grad).backward()
        for ours, wanted in zip(leaves(on_device), leaves((init, xs)), strict=True):
            assert (ours.grad is None) == (wanted.grad is None)
            if wanted.grad is not None:
                torch.testing.assert_close(ours.grad.cpu(), wanted.grad)


@pytest.fixture(autouse=True)
def seed():
    """Some of these recurrences multiply differences: the numbers are the same whatever ran before."""
    torch.manual_seed(0)


def random(*sizes, **options):
    return torch.randn(*sizes, requires_grad=True, **options)


def mixed(carry, x):
    hidden, count = carry["hidden"], carry["count"]
    hidden = torch.tanh(hidden @ x[0] + x[1] * count)
    return {"hidden": hidden, "count": count + 1, "none": None}, (hidden.sum(0), count, None)


@pytest.mark.slow
@pytest.mark.parametrize("partition", ["default", "min_cut"])
@pytest.mark.parametrize("pure", [False, True])
def test_scan_is_a_loop_of_python(partition, pure):
    init = {"hidden": random(2, 3), "count": torch.tensor(1), "none": None}
    options = (
        {"partition_fn": min_cut_rematerialization_partition} if partition == "min_cut" else {}
    )
    for _ in range(2):
        init["hidden"].grad = None
        assert_like_python(mixed, init, (random(4, 3, 3), random(4, 3)), is_fn_pure=pure, **options)


def test_scan_without_gradients():
    init, xs = torch.randn(3), torch.randn(4, 3)
    assert_like_python(lambda c, x: (c + x, c * x), init, xs)
    with torch.no_grad():
        carry, _ = scan(lambda c, x: (c + x, None), to_device(init.requires_grad_()), xs.to(DEVICE))
    assert not carry.requires_grad


@pytest.mark.slow
def test_threads_trace_at_once():
    """torch.fx patches functions of torch while it traces, for all threads."""

    def train(number):
        for power in range(2, 8):
            init = torch.ones(3, device="xla", requires_grad=True)
            xs = torch.ones(4, 3, device="xla", requires_grad=True)
            last, _ = scan(lambda carry, x, n=power: ((carry * number + x) / n, x**n), init, xs)
            last.sum().backward()
            expected = torch.full((3,), (number / power) ** 4)
            torch.testing.assert_close(init.grad.cpu(), expected)
        return True

    with futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(train, range(1, 5)))


def test_scan_of_one_and_of_none():
    assert_like_python(lambda c, x: (c * x, c + x), random(3), random(1, 3))
    init = random(3).to(DEVICE).detach().requires_grad_()
    carry, ys = scan(lambda c, x: (c * x, c[:2]), init, torch.zeros(0, 3, device=DEVICE))
    assert ys.shape == (0, 2)
    carry.sum().backward()
    assert init.grad.tolist() == [1, 1, 1]
    assert torch.equal(carry, init)


def test_a_carry_that_stays_is_not_kept_for_each_run():
    weight = random(3, 3)

    def step(carry, x):
        weight, hidden = carry
        hidden = torch.sin(hidden @ weight + x)
        return (weight, hidden), hidden

    assert_like_python(step, (weight, random(2, 3)), random(5, 2, 3))
    text = hlo_of(scan(step, to_device((weight, random(2, 3))), to_device(random(5, 2, 3)))[1])
    assert "f32[5,3,3]" not in text


def hlo_of(*tensors):
    return _XLAC._get_xla_tensors_hlo(list(tensors))


def test_results_that_are_views():
    assert_like_python(lambda c, x: ((c @ x).t(), (c * 2)[1:]), random(3, 3), random(2, 3, 3))
    with torch.no_grad():
        assert_like_python(lambda c, x: ((c @ x).t(), c[1:]), torch.ones(3, 3), torch.ones(2, 3, 3))


@pytest.mark.slow
def test_scan_of_scan():
    def outer(carry, rows):
        def inner(c, x):
            return torch.cos(c) * x, c

        carry, ys = scan(inner, carry, rows)
        return carry, ys.sum(0)

    def in_python(carry, rows):
        ys = []
        for x in rows:
            ys.append(carry)
            carry = torch.cos(carry) * x
        return carry, torch.stack(ys).sum(0)

    init, xs = random(3), random(2, 4, 3)
    expected, ys = scan_of_python(in_python, init, xs)
    (expected.sum() + ys.sum()).backward()
    for _ in range(2):
        own_init, own_xs = to_device((init, xs))
        carry, own_ys = scan(outer, own_init, own_xs)
        (carry.sum() + own_ys.sum()).backward()
        torch.testing.assert_close([carry.cpu(), own_ys.cpu()], [expected, ys])
        torch.testing.assert_close([own_init.grad.cpu(), own_xs.grad.cpu()], [init.grad, xs.grad])


def test_each_run_draws_numbers_of_its_own_and_backward_has_its_mask():
    x = torch.ones(6, 1000, device=DEVICE, requires_grad=True)
    carry = torch.zeros(1000, device=DEVICE)
    _, ys = scan(lambda c, x: (c, F.dropout(x, 0.5) * 3), carry, x)
    ys.sum().backward()
    assert torch.equal(x.grad, ys)
    again = scan(lambda c, x: (c, F.dropout(x, 0.5) * 3), carry, x)[1]
    rows = [tuple(row) for row in torch.cat([ys, again]).tolist()]
    assert len(set(rows)) == 12
    assert 0.45 < (ys > 0).float().mean().item() < 0.55


def test_nested_runs_draw_different_numbers():
    def outer(c, x):
        return c, scan(lambda c, x: (c, torch.rand_like(x)), c, x)[1]

    zeros = torch.zeros(3, 3, device=DEVICE)
    _, ys = scan(outer, zeros[0, 0], zeros)
    assert len(set(ys.flatten().tolist())) == 9
    torch_xla.manual_seed(3)
    first = scan(outer, zeros[0, 0], zeros)[1].tolist()
    torch_xla.manual_seed(3)
    assert scan(outer, zeros[0, 0], zeros)[1].tolist() == first


def test_scan_under_autocast():
    def step(carry, x):
        return carry + (carry @ x).float(), (carry @ x).dtype == torch.bfloat16 and carry @ x

    init, xs = random(4, 4).to(DEVICE), random(3, 4, 4).to(DEVICE)
    with torch.autocast("xla", dtype=torch.bfloat16):
        _, ys = scan(step, init, xs)
    assert ys.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("fn", "error", "text"),
    [
        (3, ValueError, "fn is to be a function"),
        (lambda c, x: (c[:1], x), ValueError, "leaf 0 of the carry .* of shape"),
        (lambda c, x: (c.double(), x), ValueError, "leaf 0 of the carry is torch.float32"),
        (lambda c, x: ((c, c), x), ValueError, "structure"),
        (lambda c, x: (c, x.sum().item() * x), Exception, None),
    ],
)
def test_refused_functions(fn, error, text):
    init, xs = torch.zeros(3, device=DEVICE), torch.zeros(2, 3, device=DEVICE)
    with pytest.raises(error, match=text):
        scan(fn, init, xs)
    assert torch.equal(init.cpu(), torch.zeros(3))
    if error is not Exception:  # the same where gradients are asked for
        with pytest.raises(error, match=text):
            scan(fn, init.requires_grad_(), xs)


def test_a_function_may_write_into_its_arguments_without_gradients():
    def counted(carry, x):
        carry += x.mul_(2)
        return carry, carry

    init, xs = torch.zeros(1, device=DEVICE), torch.tensor([[1.0], [2.0], [3.0]], device=DEVICE)
    last, all_of_them = scan(counted, init, xs)
    assert last.tolist() == [12] and all_of_them.flatten().tolist() == [2, 6, 12]
    assert init.tolist() == [0] and xs.flatten().tolist() == [1, 2, 3]
    with pytest.raises(RuntimeError, match="in-place operation"):
        scan(counted, init.requires_grad_(), xs)


def test_refused_arguments():
    zeros = torch.zeros(2, 3, device=DEVICE)
    with pytest.raises(ValueError, match="first dimensions"):
        scan(lambda c, x: (c, None), zeros, (zeros, zeros[0]))
    with pytest.raises(ValueError, match="nothing to scan"):
        scan(lambda c, x: (c, None), zeros, None)
    with pytest.raises(ValueError, match="tensors or None"):
        scan(lambda c, x: (c, None), zeros, [1, 2])
    with pytest.raises(AssertionError, match="FakeTensor"):
        scan(lambda c, x: (c + zeros[0], None), zeros[0], zeros)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.linear = nn.LayerNorm(8), nn.Linear(8, 8)
        self.register_buffer("scale", torch.rand(8))

    def forward(self, x):
        return x + torch.relu(self.linear(self.norm(x))) * self.scale


@pytest.mark.parametrize("pure", [False, True])
def test_scan_layers(pure):
    layers = [Block() for _ in range(4)]
    x = random(3, 8)
    expected = x
    for layer in layers:
        expected = layer(expected)
    expected.sum().backward()
    grads = [[p.grad for p in layer.parameters()] for layer in layers]
    for layer in layers:
        layer.zero_grad()
        layer.to(DEVICE)
    own = to_device(x)
    result = scan_layers(layers, own, is_layer_pure=pure)
    assert hlo_of(result).count(" dot(") == 1
    result.sum().backward()
    torch.testing.assert_close(result.cpu(), expected)
    torch.testing.assert_close(own.grad.cpu(), x.grad)
    torch.testing.assert_close(
        [[p.grad.cpu() for p in layer.parameters()] for layer in layers], grads
    )


def test_layers_without_parameters():
    x = torch.rand(3, device=DEVICE)
    torch.testing.assert_close(scan_layers([nn.Tanh()] * 2, x).cpu(), x.cpu().tanh().tanh())


def test_while_loop():
    def goes_on(i, x, step):
        return i < 5

    def run(i, x, step):
        return i + 1, x * 2 + step

    values = torch.tensor(2), torch.ones(3)
    i, x = while_loop(
        goes_on, run, tuple(v.to(DEVICE) for v in values), (torch.ones(3, device=DEVICE),)
    )
    assert "while(" in hlo_of(x)
    assert (i.item(), x.tolist()) == (5, [15.0, 15.0, 15.0])


def test_while_loop_that_does_not_run_and_one_in_another():
    zero = torch.tensor(0, device=DEVICE)
    i, x = while_loop(lambda i, x: i > 0, lambda i, x: (i - 1, x + 1), (zero, zero))
    assert (i.item(), x.item()) == (0, 0)

    def run(i, x):
        _, x = while_loop(lambda j, x: j < i, lambda j, x: (j + 1, x + j), (zero + 0, x))
        return i + 1, x

    i, x = while_loop(lambda i, x: i < 4, run, (zero, zero))
    assert x.item() == sum(j for i in range(4) for j in range(i))


def test_draws_of_a_while_loop():
    def run(i, rows):
        return i + 1, torch.where(
            torch.arange(4, device=DEVICE) == i, torch.rand(4, device=DEVICE), rows
        )

    zero = torch.tensor(0, device=DEVICE)
    _, rows = while_loop(lambda i, x: i < 4, run, (zero, torch.zeros(4, device=DEVICE)))
    assert len({*rows.tolist()}) == 4
    assert rows.min() > 0


def test_fori_loop():
    bounds = torch.tensor(2, device=DEVICE), torch.tensor(7, device=DEVICE)
    left, x = fori_loop(*bounds, lambda x: x * 2, torch.ones(2, device=DEVICE))
    assert (left.item(), x.tolist()) == (0, [32, 32])


def test_refused_loops():
    zero = torch.tensor(0, device=DEVICE)
    with pytest.raises(RuntimeError, match=r"carry 1 .* shape and type may not change"):
        while_loop(lambda i, x: i < 4, lambda i, x: (i, x.float()), (zero, zero))
    with pytest.raises(RuntimeError, match="writes into its argument 1"):
        while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x.add_(1) + 1), (zero, zero))
    with pytest.raises(RuntimeError, match=r"deleted|placeholder|no data|donated"):
        while_loop(lambda i, x: i < 4, lambda i, x: (i + 1, x + i.item()), (zero, zero))


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_cond_and_its_gradient(value):
    x = torch.full((3,), value, device=DEVICE, requires_grad=True)
    y = torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x * 3, (x,))
    y.sum().backward()
    text = hlo_of(y)
    assert "conditional(" in text
    expected = torch.full((3,), value, requires_grad=True)
    wanted = expected.sin() if value > 0 else expected * 3
    wanted.sum().backward()
    torch.testing.assert_close([y.cpu(), x.grad.cpu()], [wanted, expected.grad])


def test_torchs_while_loop_and_scan():
    from torch._higher_order_ops.scan import scan as torch_scan

    i = torch.tensor(0, device=DEVICE)
    weight = torch.eye(2, device=DEVICE) * 2
    _, x = torch.while_loop(
        lambda i, x: i < 3, lambda i, x: (i + 1, x @ weight), (i, torch.ones(1, 2, device=DEVICE))
    )
    assert "while(" in hlo_of(x)
    assert x.tolist() == [[8, 8]]
    xs = torch.arange(4.0, device=DEVICE)
    carry, ys = torch_scan(lambda c, x: (c + x, c * x), torch.tensor(1.0, device=DEVICE), xs)
    assert "while(" in hlo_of(ys)
    assert (carry.item(), ys.tolist()) == (7, [0, 1, 4, 12])


def model_with_buffers():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 2))


def test_gradient_accumulation():
    model, reference = model_with_buffers().to(DEVICE), model_with_buffers()
    inputs, targets = torch.randn(3, 6, 4), torch.randn(3, 6, 2)
    seen = torch.tensor(0)
    for _ in range(2):  # gradients add up
        losses = []
        for x, y in zip(inputs, targets, strict=True):
            loss = F.mse_loss(reference(x), y) / 3
            loss.backward()
            losses.append(loss)

        def step(x, y, seen):
            return F.mse_loss(model(x), y), seen + len(x)

        loss, count = gradient_accumulation(
            step, (inputs.to(DEVICE), targets.to(DEVICE)), model, seen.to(DEVICE)
        )
        assert count.item() == 18
        torch.testing.assert_close(loss.cpu(), sum(losses).detach())
    for ours, wanted in zip(model.parameters(), reference.parameters(), strict=True):
        torch.testing.assert_close(ours.grad.cpu(), wanted.grad, rtol=1e-4, atol=1e-5)
    for ours, wanted in zip(model.buffers(), reference.buffers(), strict=True):
        torch.testing.assert_close(ours.cpu(), wanted)


def test_checkpoints_in_the_body():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4)).to(DEVICE)
    x = torch.rand(2, 3, 4, device=DEVICE)
    gradient_accumulation(lambda x: model(x).sin().sum(), [x], model)
    expected = [p.grad.cpu() for p in model.parameters()]
    model.zero_grad()
    gradient_accumulation(lambda x: checkpoint(model[1], model[0](x)).sin().sum(), [x], model)
    torch.testing.assert_close([p.grad.cpu() for p in model.parameters()], expected)
    # Another mask would give wrong gradients.
    with pytest.raises(RuntimeError, match="draws random numbers"):
        gradient_accumulation(lambda x: checkpoint(F.dropout, model(x)).sum(), [x], model)

    def again(c, x):
        return torch.utils.checkpoint.checkpoint(
            F.dropout, c * x, use_reentrant=False, preserve_rng_state=False
        )

    c, ones = torch.ones(64, device=DEVICE, requires_grad=True), torch.ones(1, 64, device=DEVICE)
    result, _ = scan(lambda c, x: (again(c, x), None), c, ones)
    result.sum().backward()
    assert torch.equal(result, c.grad)


def test_backward_that_draws_is_refused():
    class Noise(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, gradient):
            return gradient * torch.rand_like(gradient)

    c = torch.ones(3, device=DEVICE, requires_grad=True)
    with pytest.raises(RuntimeError, match="backward draws random numbers"):
        scan(lambda c, x: (Noise.apply(c * x), None), c, torch.ones(2, 3, device=DEVICE))


def test_refused_accumulations():
    model, x = nn.Linear(2, 2).to(DEVICE), torch.zeros(3, 2, device=DEVICE)
    for given, text in [
        ([], "cannot be empty"),
        ([1], "Element 0 of iterable_tensors is not a tensor"),
        ([x[:0]], "Element 0 of iterable_tensors is empty"),
        ([x, x[:2]], "Element 1 of iterable_tensors has inconsistent first dimension"),
    ]:
        with pytest.raises(ValueError, match=text):
            gradient_accumulation(lambda *x: x, given, model)
    with pytest.raises(AssertionError, match="writes into its arguments"):
        gradient_accumulation(lambda x: model(x.add_(1)).sum(), [x], model)


def test_gru():
    torch.manual_seed(0)
    reference = nn.GRU(3, 4, num_layers=2, batch_first=True)
    gru = GRU(3, 4, num_layers=2, batch_first=True)
    gru.load_state_dict(reference.state_dict())
    gru.to(DEVICE)
    x, hidden = random(2, 5, 3), random(2, 2, 4)
    own_x, own_hidden = to_device((x, hidden))
    output, last = gru(own_x, own_hidden)
    assert "while(" in hlo_of(output)
    (output.sum() + (last**2).sum()).backward()
    expected, expected_last = reference(x, hidden)
    (expected.sum() + (expected_last**2).sum()).backward()
    ours = [output, last, own_x.grad, own_hidden.grad, *(p.grad for p in gru.parameters())]
    wanted = [
        expected,
        expected_last,
        x.grad,
        hidden.grad,
        *(p.grad for p in reference.parameters()),
    ]
    torch.testing.assert_close([t.cpu() for t in ours], wanted)


def test_loops_of_other_devices():
    """Programs that are written for both call the same functions."""
    for device in ("cpu", DEVICE):
        lower, upper = torch.tensor(0, device=device), torch.tensor(3, device=device)
        left, x = fori_loop(lower, upper, lambda x: x * 2, torch.ones(2, device=device))
        assert (
            left.item() == 0 and x.tolist() == [8, 8] and x.device.type == torch.device(device).type
        )


@pytest.mark.parametrize("arguments", [(2, True, False, 0.0, True), ()])
def test_gru_in_both_directions(arguments):
    """However one says it."""
    torch.manual_seed(0)
    options = {} if arguments else {"num_layers": 2, "bidirectional": True}
    gru = GRU(3, 4, *arguments, **options)
    reference = nn.GRU(3, 4, 2, bidirectional=True)
    reference.load_state_dict(gru.state_dict())
    x = random(5, 2, 3)
    ours = gru.to(DEVICE)(x.to(DEVICE))
    torch.testing.assert_close([t.cpu() for t in ours], list(reference(x)))


def test_a_step_is_one_program_that_comes_again():
    layers = [Block().to(DEVICE) for _ in range(3)]
    x = torch.rand(2, 8, device=DEVICE)
    torch_xla.sync()
    met.clear_all()
    for _ in range(3):
        scan_layers(layers, x).sum().backward()
        torch_xla.sync()
        for layer in layers:
            layer.zero_grad()
    assert met.counter_value("UncachedCompile") == 1
    assert met.counter_value("CachedCompile") == 2


def test_layers_of_a_vector():
    layers, x = [nn.Linear(3, 3) for _ in range(2)], torch.rand(3)
    expected = layers[1](layers[0](x))
    result = scan_layers([layer.to(DEVICE) for layer in layers], x.to(DEVICE))
    torch.testing.assert_close(result.cpu(), expected)


class Doubled(torch.autograd.Function):
    """Its gradient is a number that may change while the results stay."""

    factor = 2.0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * Doubled.factor


@pytest.fixture
def traces(monkeypatch):
    """Counts how often torch traces a function."""
    count = []
    trace = scan_module.aot_export_joint_simple
    monkeypatch.setattr(
        scan_module, "aot_export_joint_simple", lambda *a, **k: count.append(0) or trace(*a, **k)
    )
    return count


def test_a_function_that_does_what_it_did_is_not_traced_again(traces):
    def gradient(scale, detaches=False):
        init, xs = to_device(torch.ones(3, requires_grad=True)), torch.ones(2, 3, device=DEVICE)

        def fn(carry, x):
            factor = Doubled.apply(carry).detach() if detaches else Doubled.apply(carry)
            return factor * scale + x, None

        carry, _ = scan(fn, init, xs)
        if carry.requires_grad and not detaches:
            carry.sum().backward()
        return carry.tolist()[0], None if init.grad is None else init.grad.tolist()[0]

    # A shape that no other test has.
    assert gradient(1.25) == gradient(1.25) == (9.75, 6.25)
    assert len(traces) == 1
    # Another number, another gradient, no gradient: each is another function.
    assert gradient(1.5) == (13.0, 9.0)
    assert len(traces) == 2
    Doubled.factor = 3.0
    try:
        assert gradient(1.25) == (9.75, 14.0625)
    finally:
        Doubled.factor = 2.0
    assert len(traces) == 3
    assert gradient(1.25, detaches=True) == (9.75, None)
    assert len(traces) == 4
    assert gradient(1.25) == (9.75, 6.25)
    assert len(traces) == 4


@pytest.mark.parametrize("draw", [python_random.random, numpy.random.rand])
def test_a_function_that_decides_by_chance_does_what_it_decided(draw):
    decided = []

    def fn(carry, x):
        decided.append(draw() < 0.5)
        return (carry + x if decided[-1] else carry * x), None

    for _ in range(24):
        carry, _ = scan(fn, torch.ones(4, device=DEVICE), torch.full((3, 4), 2.0, device=DEVICE))
        assert carry[0].item() == (7 if decided[-1] else 8)
    assert len(set(decided)) == 2


def test_a_function_that_decides_by_its_calls_is_traced_each_time(traces):
    calls = itertools.count()

    def fn(carry, x):
        return carry + x * (1 if next(calls) % 2 else 2), None

    for _ in range(3):
        scan(fn, torch.ones(5, device=DEVICE), torch.ones(3, 5, device=DEVICE))
    assert len(traces) == 3


@pytest.mark.slow
def test_tensors_that_a_function_makes_of_data_are_not_kept():
    data = [float(i) for i in range(50_000)]

    def step():
        carry = torch.zeros(len(data), device=DEVICE)
        carry, _ = scan(
            lambda c, x: (c + x * torch.tensor(data, device=DEVICE), None),
            carry,
            torch.ones(2, 1, device=DEVICE),
        )
        assert carry[5].item() == 10
        del carry
        gc.collect()
        torch_xla.sync(wait=True)
        return xm.get_memory_info(DEVICE)["bytes_used"]

    assert step() == step() == step()


def test_what_was_traced_keeps_no_tensors():
    init = torch.rand(7, device=DEVICE)
    gone = weakref.ref(init)
    scan(lambda c, x: (c * x, None), init, torch.rand(2, 7, device=DEVICE))
    del init
    gc.collect()
    assert gone() is None
