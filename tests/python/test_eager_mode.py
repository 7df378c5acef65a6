"""Operations that run as they are called: torch_xla.experimental.eager_mode."""

import threading

import pytest
import torch
from torch import nn

import torch_xla
from torch_xla.debug import metrics
from torch_xla.experimental import eager_mode, eager_mode_context, is_eager_mode


@pytest.fixture(params=[False, True], ids=["started", "awaited"])
def eager(request):
    with eager_mode_context(True, wait=request.param):
        metrics.clear_all()
        yield


def runs():
    data = metrics.metric_data("EagerOpExecuteTime")
    return data[0] if data else 0


def test_the_switch_has_three_ways_and_comes_back():
    assert not is_eager_mode()
    with eager_mode_context(True) as on:
        assert on and is_eager_mode()
        with eager_mode_context(False) as inner:
            assert not inner
        assert is_eager_mode()
        with pytest.raises(ZeroDivisionError), eager_mode_context(True, wait=True):
            1 / 0  # noqa: B018
        assert torch_xla._XLAC._get_execution() == "eager"
    assert not is_eager_mode()
    eager_mode(True)
    assert is_eager_mode()
    eager_mode(False)
    assert not is_eager_mode()
    with pytest.raises(RuntimeError, match="sometimes"):
        torch_xla._XLAC._set_execution("sometimes")


@pytest.mark.usefixtures("eager")
def test_each_operation_runs():
    x = torch.tensor([1.0, -2.0], device="xla")
    before = runs()
    y = x * 3
    assert runs() == before + 1
    y += 1
    assert runs() == before + 2
    assert metrics.metric_data("ExecuteTime") is None
    torch_xla.sync()  # nothing is left
    assert metrics.counter_value("SyncTensorsToData") is None
    assert y.tolist() == [4.0, -5.0]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("draw", [torch.rand, torch.randn])
def test_draws_are_an_empty_tensor_that_is_filled(draw):
    """PyTorch/XLA's programs count both."""
    before = runs()
    draw(5, 5, device="xla")
    assert runs() == before + 2


@pytest.mark.usefixtures("eager")
def test_all_results_come_from_one_run():
    x = torch.randn(5, 3).to("xla")
    before = runs()
    values, indices = x.sort(0)
    assert runs() == before + 1
    assert torch.equal(values.cpu(), x.cpu().gather(0, indices.cpu()))


def test_what_is_recorded_runs_before():
    y = torch.ones(3, device="xla") + 1
    with eager_mode_context(True):
        z = y * 2
        assert runs() > 0
        assert z.tolist() == [4.0] * 3


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("size", [4, 600])  # by kernels and by programs
def test_views_and_writes_in_place(size):
    def act(x):
        y = x.clone()
        y[1:3] = 7
        y.t()[0].mul_(2)
        row = y[2]
        row.add_(x[0])
        y.view(-1)[::3].sub_(1)
        z = y.expand(2, *y.shape)[1].contiguous()
        z[:, 1].zero_()
        torch.add(x, y, out=z[:])
        return y, z, row, y.diagonal()

    x = torch.randn(size, size)
    for got, want in zip(act(x.to("xla")), act(x), strict=True):
        torch.testing.assert_close(got.cpu(), want)


def network():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 5)
    )


def train(device, steps=3):
    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    generator = torch.Generator().manual_seed(2)
    losses = []
    for _ in range(steps):
        x = torch.randn(4, 3, 8, 8, generator=generator).to(device)
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), torch.arange(4, device=device))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        torch_xla.sync()
        losses.append(loss.detach().cpu())
    return torch.stack(losses), model[0].weight.detach().cpu()


@pytest.mark.usefixtures("eager")
def test_training_is_as_on_the_cpu():
    for got, want in zip(train("xla"), train("cpu"), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-5)


def test_draws_are_those_of_recorded_work():
    def draw():
        torch_xla.manual_seed(5)
        x = torch.randn(3, 4, device="xla")
        mask = nn.functional.dropout(torch.ones(20, device="xla"), 0.5)
        return x.cpu(), torch.randint(9, (5,), device="xla").cpu(), mask.cpu()

    recorded = draw()
    with eager_mode_context(True):
        first, second = draw(), torch.randn(3, 4, device="xla").cpu()
    for got, want in zip(first, recorded, strict=True):
        torch.testing.assert_close(got, want)
    assert not torch.equal(second, recorded[0])


@pytest.mark.usefixtures("eager")
def test_compiled_functions_are_recorded():
    x = torch.rand(5, device="xla")

    @torch_xla.compile(full_graph=True)
    def two(v):
        return v.sin().cos()

    metrics.clear_all()
    y = two(x)
    assert is_eager_mode()
    assert runs() == 0
    assert metrics.metric_data("ExecuteTime")[0] == 1
    torch.testing.assert_close(y.cpu(), x.cpu().sin().cos())

    @torch_xla.compile(full_graph=True)
    def reads(v):
        return v * 2 if v.sum() > 0 else v

    with pytest.raises(RuntimeError, match="Unexpected execution happens inside the compiled"):
        reads(x)
    assert is_eager_mode()


def test_a_compiled_function_that_cannot_begin_leaves_the_mode():
    with eager_mode_context(True):
        for wrong in ({"custom_compile_options": {"a": [1]}}, {"name": 5}):
            with pytest.raises(TypeError):
                torch_xla.compile(lambda: None, **wrong)()
            assert is_eager_mode()
    with pytest.raises(TypeError, match="takes a function, and 3 is none"):
        torch_xla.compile(3)


@pytest.mark.usefixtures("eager")
def test_graphs_of_dynamo_run_as_one():
    x = torch.rand(5, device="xla")
    function = torch.compile(lambda v: v.sin().cos() + 1, backend="openxla")
    metrics.clear_all()
    y = function(x)
    assert metrics.counter_value("ExecuteComputation") == 1  # whose time is taken when it ends
    torch.testing.assert_close(y.cpu(), x.cpu().sin().cos() + 1)


def test_tensors_of_both_modes_meet():
    """Small results of kernels are donated to programs, and copied, like any others."""
    with eager_mode_context(True):
        model = nn.Linear(4, 4).to("xla")
        model.weight.data.mul_(0.5)
        want = model.weight.detach().cpu() * 0.9
    for _ in range(2):
        with torch.no_grad():
            model.weight.mul_(0.9)
        torch_xla.sync()
    torch.testing.assert_close(model.weight.detach().cpu(), want * 0.9)
    with eager_mode_context(True):
        model.weight.data.add_(1)
    torch.testing.assert_close(model.weight.detach().cpu(), want * 0.9 + 1)


@pytest.mark.usefixtures("eager")
def test_an_error_leaves_the_tensor():
    x = torch.ones(3, device="xla")
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        x += torch.ones(2, 3, device="xla")
    with pytest.raises(RuntimeError):
        x @ torch.ones(4, 4, device="xla")
    assert x.tolist() == [1.0] * 3


@pytest.mark.usefixtures("eager")
def test_threads():
    results = [None] * 4

    def work(i):
        x = torch.full((8, 8), float(i), device="xla")
        for _ in range(20):
            x = (x @ torch.eye(8, device="xla")).relu_() + 1
        results[i] = x.cpu()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, result in enumerate(results):
        assert torch.equal(result, torch.full((8, 8), i + 20.0))


def test_the_environment_asks_for_it(program):
    result = program.run_code(
        """
import torch, torch_xla
from torch_xla.debug import metrics
from torch_xla.experimental import is_eager_mode
assert is_eager_mode() and torch_xla._XLAC._get_execution() == "eager_wait"
x = torch.ones(2, device="xla") + 1
assert metrics.metric_data("EagerOpExecuteTime")[0] >= 1
print(x.tolist())
""",
        XLA_USE_EAGER_DEBUG_MODE="1",
    )
    assert "[2.0, 2.0]" in result.stdout
