"""`torch.compile(backend="openxla")`: results, aliasing and random numbers as without it, and no graph recorded twice."""

import copy
import threading
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn
from torch._dynamo.utils import counters

import torch_xla
import torch_xla.core.xla_model as xm
import torch_xla.debug.metrics as metrics
from torch_xla.core.dynamo_bridge import extract_compiled_graph


@pytest.fixture(autouse=True)
def forget():
    torch._dynamo.reset()
    counters.clear()
    metrics.clear_all()


def compiled(function):
    return torch.compile(function, backend="openxla")


def network():
    torch.manual_seed(0)
    layers = (nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
    return nn.Sequential(*layers, nn.Flatten(), nn.Linear(8 * 36, 5))


def train(model, where, wrap, sync, steps=6):
    """The losses, and the state with batch norm's running statistics."""
    model = copy.deepcopy(model).to(where)
    forward = wrap(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(4, 3, 8, 8, generator=generator).to(where)
    labels = torch.arange(4).to(where)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(forward(x), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if sync:
            torch_xla.sync()
    return [*losses, *model.state_dict().values()]


@pytest.mark.slow
@pytest.mark.parametrize("sync", [True, False])
def test_training(sync):
    """Forward, backward and the optimizer's step are one program, which also runs step by step where nobody syncs."""
    model = network()
    expected = train(model, "cpu", lambda m: m, False)
    actual = train(model, "xla", compiled, sync)
    if not sync:
        torch_xla.sync()
    assert metrics.counter_value("ExecuteComputation") == 6
    assert metrics.counter_value("ProgramCompile") <= 3
    assert counters["stats"]["unique_graphs"] == 1
    for mine, theirs in zip(actual, expected, strict=True):
        torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-4, atol=1e-5)


def test_inference_records_one_operation_a_call():
    model = network().eval()
    on_device = copy.deepcopy(model).to("xla")
    forward = compiled(on_device)
    with torch.no_grad():
        for seed in range(3):
            x = torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(seed))
            x_on_device = x.to("xla")
            convolutions = metrics.counter_value("xla::convolution_overrideable") or 0
            result = forward(x_on_device)
            if seed > 0:
                assert metrics.counter_value("xla::call_graph") == seed + 1
                assert metrics.counter_value("xla::convolution_overrideable") == convolutions
            torch.testing.assert_close(result.cpu(), model(x), rtol=1e-4, atol=1e-5)
    assert metrics.counter_value("ProgramCompile") == 1


def test_many_calls_without_a_sync_do_not_pile_up():
    step = compiled(lambda x: x.sin() + 1)
    x = torch.ones(3).to("xla")
    results = [step(x) for _ in range(8)]
    assert metrics.counter_value("ExecuteComputation") == 7
    for result in results:
        torch.testing.assert_close(result.cpu(), torch.ones(3).sin() + 1)


def test_who_waits_for_the_device_waits_for_calls():
    """Their program has run then, and a sync finds nothing to do."""

    @compiled
    def step(x):
        return torch.cos(x) * 2

    x = torch.ones(5, 7, device="xla")
    torch_xla.sync()
    for call in range(1, 4):
        metrics.clear_all()
        y = step(x)
        assert metrics.metric_data("RunCachedGraphInputData")[:2] == (1, 1.0)
        assert metrics.metric_data("RunCachedGraphOutputData")[:2] == (1, 1.0)
        assert metrics.metric_data("ExecuteTime") is None
        xm.wait_device_ops()
        assert metrics.metric_data("ExecuteTime")[0] == 1
        assert (metrics.metric_data("CompileTime") is None) == (call > 1)
        torch_xla.sync()
        xm.wait_device_ops()
        assert metrics.metric_data("ExecuteTime")[0] == 1
    torch.testing.assert_close(y.cpu(), torch.cos(torch.ones(5, 7)) * 2)


def test_a_function_of_the_cpu_alone_is_told_of():
    @compiled
    def twice(x, y):
        return x * 2 + y

    with pytest.warns(UserWarning, match=r"Found tensor with shape torch\.Size\(\[\d") as told:
        twice(torch.ones(3, 4), torch.ones(4))
    words = [str(warning.message) for warning in told if "Found tensor" in str(warning.message)]
    assert any("torch.Size([3, 4]) on cpu" in text for text in words), words
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        twice(torch.ones(3, 4, device="xla"), torch.ones(4, device="xla"))


def test_waiting_starts_no_other_work():
    assert (torch.ones(2, device="xla") + 1).tolist() == [2.0] * 2  # with what other tests called
    torch_xla.sync(wait=True)
    x = torch.ones(3, device="xla") + 1
    metrics.clear_all()
    xm.wait_device_ops()
    assert metrics.metric_data("ExecuteTime") is None
    assert x.tolist() == [2.0] * 3


def test_written_arguments_and_views():
    @compiled
    def step(x, total):
        total.add_(x)
        return x.t(), x[1:], (2 * x).t().reshape(-1), total

    x = torch.arange(6.0, device="xla").reshape(2, 3)
    total = torch.zeros(2, 3, device="xla")
    for count in (1, 2):
        transposed, row, doubled, same = step(x, total)
        assert same is total
        torch.testing.assert_close(total.cpu(), count * x.cpu())
    x.add_(10)
    torch.testing.assert_close(transposed.cpu(), x.cpu().t())
    torch.testing.assert_close(row.cpu(), x.cpu()[1:])
    torch.testing.assert_close(doubled.cpu(), 2 * (x.cpu() - 10).t().reshape(-1))


def test_random_numbers_are_drawn_anew():
    drop = compiled(lambda x: F.dropout(x, 0.5) * 2)
    x = torch.ones(40, device="xla")
    xm.set_rng_state(3)
    first, second = drop(x).tolist(), drop(x).tolist()
    assert first != second
    xm.set_rng_state(3)
    assert drop(x).tolist() == first


@pytest.mark.parametrize("rows", [[2, 3, 4, 5], [4, 2, 4, 2]])
def test_shapes_that_change(rows):
    total = compiled(lambda x: x.sin().sum(0))
    for count in rows:
        x = torch.arange(2.0 * count).reshape(count, 2)
        torch.testing.assert_close(total(x.to("xla")).cpu(), x.sin().sum(0))


class Sized(nn.Module):
    """Sizes that become shapes, indices and numbers."""

    def __init__(self):
        super().__init__()
        self.table, self.heads, self.out = nn.Embedding(11, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, tokens):
        rows, length = tokens.shape
        x = self.table(tokens) + torch.arange(length, device=tokens.device).unsqueeze(-1) / length
        x = self.heads(x).view(rows, length, 2, 4).transpose(1, 2)
        x = F.scaled_dot_product_attention(x, x, x).transpose(1, 2).reshape(rows, length, -1)
        padded = F.pad(x, (0, 0, 0, length // 2))[:, length // 3 :]
        return self.out(torch.cat([padded, x.mean(1, keepdim=True)], 1)).flatten(0, 1)


@pytest.mark.slow
def test_sizes_are_symbols_of_one_graph():
    """dynamo makes one graph of all sizes, forward and backward, and after the first few their loops are there."""
    torch.manual_seed(0)
    model = Sized()
    on_device = copy.deepcopy(model).to("xla")
    forward = torch.compile(on_device, backend="openxla", dynamic=True)
    loops = []
    for rows, length in [(5, 37), (6, 41), (9, 53), (7, 61), (6, 41), (12, 43), (10, 59), (13, 47)]:
        tokens = torch.arange(rows * length).reshape(rows, length) % 11
        for net, call, where in ((model, model, "cpu"), (on_device, forward, "xla")):
            net.zero_grad()
            call(tokens.to(where)).square().mean().backward()
        for mine, theirs in zip(on_device.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(mine.grad.cpu(), theirs.grad, rtol=1e-4, atol=1e-5)
        loops.append(metrics.counter_value("LoopCompile"))
    assert counters["stats"]["unique_graphs"] == 1
    assert metrics.counter_value("DynamoExtractCompiledGraph") == 2
    assert 0 < loops[0] < loops[3] == loops[-1], loops


def test_numbers_that_change():
    scale = compiled(lambda x, factor, count: x * factor + count)
    x = torch.ones(2, device="xla")
    for i in range(4):
        assert scale(x, 0.5 * i, i).tolist() == [1.5 * i] * 2


def test_reads_in_between():
    @compiled
    def step(x):
        doubled = x * 2
        return doubled + 1 if doubled.sum().item() > 0 else doubled - 1

    assert step(torch.ones(2, device="xla")).tolist() == [3.0, 3.0]
    assert step(-torch.ones(2, device="xla")).tolist() == [-3.0, -3.0]


def test_shapes_that_depend_on_data():
    """Recorded anew in each call, as the number of results is not known before."""
    find = compiled(lambda x: torch.nonzero(x * 1))
    assert find(torch.tensor([0.0, 1, 2], device="xla")).tolist() == [[1], [2]]
    assert find(torch.tensor([1.0, 1, 2], device="xla")).tolist() == [[0], [1], [2]]


def test_autocast_inside():
    @compiled
    def product(x, y):
        with torch.autocast("xla", dtype=torch.bfloat16):
            return x @ y

    assert product(torch.ones(2, 2, device="xla"), torch.ones(2, 2, device="xla")).dtype == (
        torch.bfloat16
    )


def test_errors_are_eagers():
    with pytest.raises(Exception, match=r"mat1|size|shape"):
        compiled(lambda x, y: x @ y)(torch.ones(2, 3, device="xla"), torch.ones(2, 3, device="xla"))
    assert compiled(lambda x: x + 1)(torch.ones(1, device="xla")).item() == 2


def test_arguments_that_are_views():
    double = compiled(lambda x: x * 2)
    add = compiled(lambda x: x.add_(1))
    base = torch.arange(12.0).reshape(3, 4).to("xla")
    for view in (base.t(), base[1:], base[:, 1]):
        torch.testing.assert_close(double(view).cpu(), view.cpu() * 2)
    add(base[1:])
    assert base[0].tolist() == [0.0, 1.0, 2.0, 3.0] and base[1].tolist() == [5.0, 6.0, 7.0, 8.0]


@pytest.mark.slow
def test_captures_beside_syncs_of_another_thread():
    """What is recorded on placeholders is nobody else's, and the numbers that others draw go on."""
    done, failures, drawn = threading.Event(), [], []

    def sync():
        try:
            total, count = torch.zeros(3, device="xla"), 0
            while not done.is_set():
                total += 1
                count += 1
                numbers = torch.rand(3, device="xla")
                torch_xla.sync()
                drawn.append(tuple(numbers.tolist()))
                assert total.tolist() == [count] * 3
        except BaseException as error:
            failures.append(error)

    def layers(factor):
        def layered(x):
            for i in range(20):
                x = x + torch.zeros_like(x).add_(x[:1]).mul_(factor)
                x.select(0, i % 3).fill_(i + 1)
            return x, F.dropout(x, 0.5)

        return layered

    thread = threading.Thread(target=sync)
    thread.start()
    try:
        for i in range(50):
            function = layers(0.001 * i)
            step = extract_compiled_graph(fx.symbolic_trace(function), ())
            for turn in range(2):
                x = torch.arange(9.0).reshape(3, 3) + turn
                expected, _ = function(x)
                actual, dropped = (result.cpu() for result in step(x.to("xla")))
                torch.testing.assert_close(actual, expected)
                torch.testing.assert_close(dropped, 2 * expected * (dropped != 0))
            assert step._can_be_captured
    finally:
        done.set()
        thread.join()
    assert not failures, failures
    assert len(set(drawn)) == len(drawn)


ARGUMENTS = {
    "one twice": lambda x: (x, x),
    "a view": lambda x: (x, x.view(2, 2)),
    "the view first": lambda x: (x.view(2, 2), x),
    "parts": lambda x: (x[1:], x[:-1]),
    "apart": lambda x: (x, x.clone()),
    "detached": lambda x: (x, x.detach()),
}


def writes(x, y):
    x.add_(1)
    y.mul_(3)
    return x.sum() + y.sum()


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_that_are_written_share_memory(name):
    step = extract_compiled_graph(fx.symbolic_trace(writes), ())
    for arguments in [ARGUMENTS["apart"], ARGUMENTS[name], ARGUMENTS[name]]:
        expected, actual = torch.arange(4.0), torch.arange(4.0, device="xla")
        result = writes(*arguments(expected))
        assert step(*arguments(actual)).item() == result.item()
        assert torch.equal(actual.cpu(), expected)


def test_memory_that_is_only_read_may_be_shared():
    """Such calls run what was captured."""
    step = extract_compiled_graph(fx.symbolic_trace(lambda x, y, z: z.add_(x * y)), ())
    x, z = torch.arange(4.0, device="xla"), torch.ones(4, device="xla")
    for turn in range(1, 4):
        step(x, x.view(4), z)
        assert z.tolist() == [1 + turn * i * i for i in range(4)]
    assert [len(captures) for captures in step._captures.values()] == [1]
    assert not any(c.writes_into_shared((x, x, z)) for [c] in step._captures.values())


def test_a_capture_draws_no_numbers():
    drop = compiled(lambda x: F.dropout(x, 0.5))
    x = torch.ones(40, device="xla")
    xm.set_rng_state(3)
    first = drop(x).tolist()
    xm.set_rng_state(3)
    assert drop(x).tolist() == first


def test_captures_that_are_kept_are_few():
    """A graph that takes numbers is captured for each, as they may be sizes."""
    module = fx.symbolic_trace(lambda x, number: x + number)
    step = extract_compiled_graph(module, ())
    x = torch.ones(2, device="xla")
    for number in range(300):
        assert step(x, number).tolist() == [1.0 + number] * 2
        assert step(x, 0).tolist() == [1.0] * 2
    assert 32 <= len(step._captures) <= 128
    assert (None, (int, "0")) in step._captures  # used all the time


def test_numbers_that_the_cpu_draws_are_drawn_anew():
    """What a graph draws on the CPU would be a constant of its capture."""
    shuffle = compiled(lambda x: x[torch.randperm(8).to(x.device)])
    x = torch.arange(8)
    torch.manual_seed(3)
    expected = [x[torch.randperm(8)].tolist() for _ in range(4)]
    torch.manual_seed(3)
    assert [shuffle(x.to("xla")).tolist() for _ in range(4)] == expected


def test_a_read_of_what_was_drawn_is_drawn_anew():
    module = fx.symbolic_trace(lambda x: x * 0 + torch.rand_like(x).sum().item())
    step = extract_compiled_graph(module, ())
    x = torch.ones(1, device="xla")
    assert len({step(x).item() for _ in range(4)}) == 4


def opaque(function):
    """An operator that dynamo does not look into."""
    name = f"test_compiled_by_dynamo::{function.__name__}"
    operator = torch.library.custom_op(name, function, mutates_args=())
    operator.register_fake(torch.empty_like)
    return operator


@pytest.mark.parametrize("pending", [False, True])
def test_writes_to_a_tensor_that_no_capture_knows(pending):
    count = torch.zeros(3, device="xla")
    torch_xla.sync()
    if pending:
        count += 1

    def counting(x: torch.Tensor) -> torch.Tensor:
        count.add_(x)
        return x + 0

    operator = opaque(counting)
    step = compiled(lambda x: operator(x) * 2)
    x = torch.ones(3, device="xla")
    for _ in range(20):
        assert step(x).tolist() == [2.0] * 3
        count.add_(1)
        torch_xla.sync()
    text = torch_xla._XLAC._get_xla_tensors_text([count])
    assert "aten::add" not in text  # what a sync has computed is not recorded any more
    assert count.tolist() == [40.0 + pending] * 3


def test_a_tensor_that_is_made_in_a_capture_and_kept():
    table = []

    def looking_up(x: torch.Tensor) -> torch.Tensor:
        if not table:
            table.append(torch.arange(3.0, device="xla") * 2)
        return x + table[0]

    operator = opaque(looking_up)
    step = compiled(lambda x: operator(x) * 2)
    x = torch.ones(3, device="xla")
    assert step(x).tolist() == step(x).tolist() == [2.0, 6.0, 10.0]
    for _ in range(5):
        table[0].add_(1)
        torch_xla.sync()
    assert "aten::add" not in torch_xla._XLAC._get_xla_tensors_text([table[0]])
    assert table[0].tolist() == [5.0, 7.0, 9.0]


def test_constants_of_the_cpu_that_change():
    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("constant", torch.ones(3))

        def forward(self, x):
            return x + self.constant.to(x.device)

    module = fx.symbolic_trace(Module())
    step = extract_compiled_graph(module, ())
    x = torch.ones(3, device="xla")
    assert step(x).tolist() == [2.0] * 3
    module.constant.fill_(5)
    assert step(x).tolist() == [6.0] * 3


def test_numbers_that_are_equal_and_differ():
    step = extract_compiled_graph(fx.symbolic_trace(lambda x, number: x + number), ())
    x = torch.arange(3, device="xla")
    assert step(x, 1).dtype == torch.int64
    assert step(x, 1.0).dtype == torch.float32
    for _ in range(3):
        assert step(x, float("nan")).isnan().all()
    assert len(step._captures) == 3


def test_views_of_results_that_lie_otherwise() -> None:
    """Tracing makes views of tensors that only say they are on the device."""

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x.mT * 2).expand(2, 3, 8, 5) * 2

    x = torch.ones(2, 3, 5, 8, device="xla", requires_grad=True)
    result = torch.compile(function, backend="openxla")(x)
    torch.testing.assert_close(result.detach().cpu(), torch.full((2, 3, 8, 5), 4.0))
    result.sum().backward()
    torch.testing.assert_close(x.grad.cpu(), torch.full((2, 3, 5, 8), 4.0))


def test_a_layers_forward_is_recorded_once() -> None:
    """It keeps its weight, transposed, for the gradient: a result that shares an argument's memory."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 4))
    on_device = copy.deepcopy(model).to("xla")
    forward = compiled(on_device)
    x = torch.ones(3, 8)
    for step in range(3):
        for net, call, where in ((model, model, "cpu"), (on_device, forward, "xla")):
            net.zero_grad()
            call(x.to(where)).square().mean().backward()
        torch_xla.sync()
        assert metrics.counter_value("xla::addmm") == 2
        assert metrics.counter_value("xla::call_graph") == 2 * (step + 1)
        for mine, theirs in zip(on_device.parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(mine.grad.cpu(), theirs.grad)
    assert metrics.metric_data("RunCachedGraphInputData")[0] == 6


def test_graphs_of_nothing_are_no_runs() -> None:
    x = torch.ones(2, 3, device="xla")
    same = extract_compiled_graph(fx.symbolic_trace(lambda x: (x, x.mT)), ())
    assert same(x)[0] is x and metrics.metric_data("RunCachedGraphInputData") is None
    extract_compiled_graph(fx.symbolic_trace(lambda x: (x, x + 1)), ())(x)
    assert metrics.metric_data("RunCachedGraphInputData")[:2] == (1, 1.0)
    assert metrics.metric_data("RunCachedGraphOutputData")[:2] == (1, 2.0)


ARGUMENTS_TO_SHOW = {
    "whole": lambda x: x,
    "a part": lambda x: x[1:],
    "transposed": lambda x: x.mT,
    "every second": lambda x: x[:, ::2],
    "permuted in memory": lambda x: x.mT.contiguous().mT,
}


@pytest.mark.parametrize("name", ARGUMENTS_TO_SHOW)
def test_results_that_show_arguments(name: str) -> None:
    """They share the argument's memory and its count of writes, whatever the argument shows itself."""
    view = ARGUMENTS_TO_SHOW[name]

    def show(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.mT, x[1:], x.mT[:, 1].unsqueeze(0), x + 1

    expected_base = torch.arange(24.0).reshape(4, 6)
    base = expected_base.to("xla")
    step = extract_compiled_graph(fx.symbolic_trace(show), ())
    for _ in range(2):
        x, expected_x = view(base), view(expected_base)
        results, expected = step(x), show(expected_x)
        x.add_(100)
        expected_x.add_(100)
        for mine, theirs in zip(results, expected, strict=True):
            torch.testing.assert_close(mine.cpu(), theirs)
            assert (
                mine.stride() == theirs.stride()
                and mine.storage_offset() == theirs.storage_offset()
            )
        assert [result._version for result in results[:3]] == [x._version] * 3
    assert step._can_be_captured


def test_results_that_show_an_arguments_places_in_memory() -> None:
    """Of all of a tensor they are shown; of a part the graph is recorded anew, as its places are others."""

    def show(x: torch.Tensor) -> torch.Tensor:
        return x.as_strided((2, 2), (1, 3), 1)

    base = torch.arange(24.0).reshape(4, 6).to("xla")
    whole = extract_compiled_graph(fx.symbolic_trace(show), ())
    assert whole(base).tolist() == show(base.cpu()).tolist() and whole._can_be_captured
    part = extract_compiled_graph(fx.symbolic_trace(show), ())
    assert part(base[1:]).tolist() == show(base.cpu()[1:]).tolist() and not part._can_be_captured


class Classifier(nn.Module):
    """Whose own function calls its layers: dynamo compiles no function of torch's by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


@pytest.mark.slow
def test_a_whole_step_that_dynamo_cannot_compile_at_once() -> None:
    """Forward, backward and the optimizer are a graph each, and nothing of this package's is one."""
    model = Classifier().to("xla")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-2)
    x, labels = torch.randn(4, 6).to("xla"), torch.arange(4).remainder(3).to("xla")

    @compiled
    def step() -> torch.Tensor:
        optimizer.zero_grad(True)
        predicted = model(x)
        F.cross_entropy(predicted, labels).backward()
        optimizer.step()
        return predicted

    step().cpu()
    metrics.clear_all()
    step().cpu()
    assert metrics.metric_data("RunCachedGraphInputData")[0] == 3


def test_nothing_is_said_of_what_the_core_asks_python_for() -> None:
    """`unique` is composed in Python in the midst of the compiled function, and takes its elements to the CPU."""
    x = torch.tensor([3, 1, 3, 2]).to("xla")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(lambda x: torch.unique(x).sum())(x).item() == 6
