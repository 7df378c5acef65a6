"""Recurrent networks on the device: cells, sequences of any kind, their derivatives, as on the CPU and without it."""

import copy
from functools import partial

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jvp
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

import torch_xla
import torch_xla.debug.metrics as metrics

STEPS, BATCH, INPUT, WIDTH = 5, 3, 4, 6
KINDS = {
    "lstm": nn.LSTM,
    "gru": nn.GRU,
    "tanh": nn.RNN,
    "relu": partial(nn.RNN, nonlinearity="relu"),
}
CELLS = {"lstm": nn.LSTMCell, "gru": nn.GRUCell}


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [tensor for part in value for tensor in tensors(part)]


def random(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def on_both(make):
    """The same module on the CPU and on the device."""
    torch.manual_seed(0)
    module = make()
    return module, copy.deepcopy(module).to("xla")


def check(cpu, device, *arguments):
    """Results and gradients, weighted so that each element's counts; nothing runs on the CPU."""
    results = []
    metrics.clear_all()
    for module, where in ((cpu, "cpu"), (device, "xla")):
        moved = [argument.detach().to(where).requires_grad_() for argument in arguments]
        outputs = tensors(module(*regroup(moved)))
        loss = sum(
            (output * random(*output.shape, seed=i).to(where)).sum()
            for i, output in enumerate(outputs)
        )
        loss.backward()
        gradients = [tensor.grad for tensor in (*moved, *module.parameters())]
        results.append([tensor.cpu() for tensor in (*outputs, *gradients)])
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)
    assert not [
        name
        for name in metrics.counter_names()
        if name.startswith("aten::") and name != "aten::_local_scalar_dense"
    ]


def regroup(arguments):
    """An LSTM takes its two states as a pair."""
    return arguments if len(arguments) < 3 else [arguments[0], tuple(arguments[1:])]


def states(kind, *shape):
    return [random(*shape, seed=i) for i in range(2 if kind == "lstm" else 1)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kind", CELLS)
def test_cell(kind, bias):
    cpu, device = on_both(lambda: CELLS[kind](INPUT, WIDTH, bias=bias))
    check(cpu, device, random(BATCH, INPUT, seed=7), *states(kind, BATCH, WIDTH))
    check(cpu, device, random(INPUT, seed=8))


SEQUENCES = {
    "plain": {},
    "deep": {"num_layers": 3},
    "both ways": {"bidirectional": True, "num_layers": 2},
    "batch first": {"batch_first": True},
    "without bias": {"bias": False, "bidirectional": True},
}


@pytest.mark.parametrize("options", SEQUENCES.values(), ids=SEQUENCES)
@pytest.mark.parametrize("kind", KINDS)
def test_sequence(kind, options, interpretation):
    cpu, device = on_both(lambda: KINDS[kind](INPUT, WIDTH, **options))
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    x = random(STEPS, BATCH, INPUT, seed=7)
    if options.get("batch_first"):
        x = x.transpose(0, 1).contiguous()
    check(cpu, device, x)
    check(cpu, device, x, *states(kind, layers, BATCH, WIDTH))
    check(cpu, device, random(STEPS, INPUT, seed=8))


def test_projections():
    cpu, device = on_both(lambda: nn.LSTM(INPUT, WIDTH, proj_size=2))
    check(cpu, device, random(STEPS, BATCH, INPUT))


class Packed(nn.Module):
    """A recurrent network over sequences of several lengths, in any order."""

    def __init__(self, network, lengths):
        super().__init__()
        self.network, self.lengths = network, lengths

    def forward(self, x, *states):
        packed = pack_padded_sequence(x, torch.tensor(self.lengths), enforce_sorted=False)
        output, last = self.network(packed, *states)
        return pad_packed_sequence(output)[0], last


@pytest.mark.parametrize("options", [{}, {"bidirectional": True, "num_layers": 2}], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_packed_sequences(kind, options, interpretation):
    """Longer ones go on while the others' states stay, in both directions."""
    lengths = [2, STEPS, 3]
    cpu, device = on_both(lambda: Packed(KINDS[kind](INPUT, WIDTH, **options), lengths))
    x = random(STEPS, BATCH, INPUT)
    check(cpu, device, x)
    layers = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    check(cpu, device, x, *states(kind, layers, BATCH, WIDTH))


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_between_layers_is_drawn(kind):
    _, device = on_both(lambda: KINDS[kind](INPUT, WIDTH, num_layers=2, dropout=0.5))
    x = random(STEPS, BATCH, INPUT).to("xla")
    assert not torch.equal(device(x)[0], device(x)[0])
    device.eval()
    assert torch.equal(device(x)[0], device(x)[0])


@pytest.mark.parametrize("kind", CELLS)
def test_second_derivatives(kind):
    """A penalty on the gradient's length."""
    results = []
    for module, where in zip(
        on_both(lambda: CELLS[kind](INPUT, WIDTH)), ("cpu", "xla"), strict=True
    ):
        x = random(BATCH, INPUT).to(where).requires_grad_()
        output = tensors(module(x))[0]
        (gradient,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
        gradient.square().sum().backward()
        results.append([tensor.grad.cpu() for tensor in (x, *module.parameters())])
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_of_sequences(kind):
    """As for cells: the gradient of one operation is composed where it is differentiated."""
    results = []
    for module, where in zip(
        on_both(lambda: KINDS[kind](INPUT, WIDTH).double()), ("cpu", "xla"), strict=True
    ):
        x = random(STEPS, BATCH, INPUT).double().to(where).requires_grad_()
        output = module(x)[0]
        (gradient,) = torch.autograd.grad(output.square().sum(), x, create_graph=True)
        gradient.square().sum().backward()
        results.append([tensor.grad.cpu() for tensor in (x, *module.parameters())])
    torch.testing.assert_close(results[1], results[0])


def twice_with_the_state(module, x):
    output, state = module(x)
    return module(x, state)[0].square().sum() + output.sum()


def of_its_own_output(module, x):
    output = module(x)[0]
    return module(output)[0].square().sum() + output.sum()


def with_states_of_the_input(module, x):
    state = x.mean(0, keepdim=True)
    pair = (state, state.sin()) if isinstance(module, nn.LSTM) else state
    return module(x, pair)[0].square().sum()


def with_one_tensor_for_both_states(module, x):
    state = x[:1]
    pair = (state, state) if isinstance(module, nn.LSTM) else state
    return module(x, pair)[0].square().sum()


def with_tied_weights(module, x):
    """Layers that share their weights; others than the module's kind, of square weights."""
    w, b = next(module.parameters())[:INPUT], module.bias_ih_l0[:INPUT]
    state = torch.zeros_like(x[:1]).repeat(2, 1, 1)
    output = torch.rnn_tanh(x, state, [w, w, b, b] * 2, True, 2, 0.0, False, False, False)[0]
    return output.square().sum()


@pytest.mark.parametrize(
    "loss",
    [
        twice_with_the_state,
        of_its_own_output,
        with_states_of_the_input,
        with_one_tensor_for_both_states,
        with_tied_weights,
    ],
)
@pytest.mark.parametrize("kind", KINDS)
def test_second_derivatives_of_operands_that_depend_on_each_other(kind, loss):
    """First derivatives, of which a graph is made, and second: each path through the layers once."""
    results = []
    for module, where in zip(
        on_both(lambda: KINDS[kind](INPUT, INPUT).double()), ("cpu", "xla"), strict=True
    ):
        x = random(STEPS, BATCH, INPUT).double().to(where).requires_grad_()
        operands = [x, *module.parameters()]
        first = torch.autograd.grad(
            loss(module, x), operands, create_graph=True, materialize_grads=True
        )
        second = torch.autograd.grad(
            sum(gradient.square().sum() for gradient in first), operands, materialize_grads=True
        )
        results.append([tensor.detach().cpu() for tensor in (*first, *second)])
    torch.testing.assert_close(results[1], results[0])


@pytest.mark.parametrize("kind", CELLS)
def test_transforms(kind):
    """Derivatives forwards and backwards."""
    results = []
    modules = on_both(lambda: CELLS[kind](INPUT, WIDTH))
    for module, where in zip(modules, ("cpu", "xla"), strict=True):
        x, direction = (random(BATCH, INPUT, seed=i).to(where) for i in range(2))

        def call(x, module=module):
            return tensors(functional_call(module, dict(module.named_parameters()), (x,)))[0]

        value, derivative = jvp(call, (x,), (direction,))
        gradient = grad(lambda x: call(x).square().sum())(x)
        results.append([tensor.detach().cpu() for tensor in (value, derivative, gradient)])
    torch.testing.assert_close(results[1], results[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_without_gradients(kind):
    cpu, device = on_both(lambda: KINDS[kind](INPUT, WIDTH))
    x = random(STEPS, BATCH, INPUT)
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            torch.testing.assert_close(device(x.to("xla"))[0].cpu(), cpu(x)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_compiled_by_dynamo(kind):
    cpu, device = on_both(lambda: KINDS[kind](INPUT, WIDTH))
    x = random(STEPS, BATCH, INPUT)
    compiled = torch.compile(device, backend="openxla")
    torch.testing.assert_close(compiled(x.to("xla"))[0].cpu(), cpu(x)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_mixed_precision(kind):
    cpu, device = on_both(lambda: KINDS[kind](INPUT, WIDTH))
    x = random(STEPS, BATCH, INPUT)
    with torch.autocast("xla", dtype=torch.bfloat16):
        output = device(x.to("xla"))[0]
    assert output.dtype == torch.bfloat16
    torch.testing.assert_close(output.float().cpu(), cpu(x)[0], rtol=0.05, atol=0.02)
    device.bfloat16()
    output = device(x.to("xla", torch.bfloat16))[0]
    torch.testing.assert_close(output.float().cpu(), cpu(x)[0], rtol=0.05, atol=0.02)


@pytest.mark.parametrize("cell", [nn.LSTMCell, nn.GRUCell])
def test_wrong_sizes_raise_as_on_the_cpu(cell):
    cpu, device = on_both(lambda: cell(INPUT, WIDTH))
    for x in (torch.zeros(BATCH, INPUT + 1), torch.zeros(BATCH, 2, INPUT)):
        with pytest.raises((RuntimeError, ValueError)) as expected:
            cpu(x)
        with pytest.raises(expected.type):
            device(x.to("xla"))


@pytest.mark.parametrize("function", [torch.lstm, torch.gru, torch.rnn_tanh])
def test_a_stack_without_layers_is_refused(function):
    x, state = random(STEPS, BATCH, INPUT).to("xla"), random(0, BATCH, WIDTH).to("xla")
    states = (state, state) if function is torch.lstm else state
    with pytest.raises(RuntimeError):
        function(x, states, [], True, 0, 0.0, False, False, False)


@pytest.mark.parametrize("function", [torch.lstm, torch.gru, torch.rnn_tanh])
def test_packed_sequences_have_batch_sizes(function):
    x, state = random(STEPS, BATCH, INPUT).to("xla"), random(1, BATCH, WIDTH).to("xla")
    gates = {torch.lstm: 4, torch.gru: 3}.get(function, 1)
    weights = [random(gates * WIDTH, size).to("xla") for size in (INPUT, WIDTH)]
    states = (state, state) if function is torch.lstm else state
    for sizes in (torch.zeros(0, dtype=torch.int64), torch.tensor(BATCH)):
        with pytest.raises(RuntimeError, match="one batch size for each step"):
            function(x, sizes, states, weights, False, 1, 0.0, False, False)


def test_gradients_pass_what_is_not_a_number(interpretation):
    """Through relu, as without the device."""
    gradients = []
    modules = on_both(lambda: KINDS["relu"](INPUT, WIDTH))
    for module, where in zip(modules, ("cpu", "xla"), strict=True):
        x = random(STEPS, BATCH, INPUT)
        x[2, 0, 1] = torch.nan
        x = x.to(where).requires_grad_()
        module(x)[0].sum().backward()
        gradients.append(x.grad.cpu())
    assert gradients[0][2, 0].abs().min() > 0
    torch.testing.assert_close(gradients[1], gradients[0], equal_nan=True)


@pytest.mark.parametrize("kind", KINDS)
def test_a_sequence_is_recorded_as_one_operation(kind):
    """However long it is, forward and backward."""
    _, device = on_both(lambda: KINDS[kind](INPUT, WIDTH))
    counts = []
    for steps in (10, 20):
        x = random(steps, BATCH, INPUT).to("xla")
        device.zero_grad()
        torch_xla.sync(wait=True)
        metrics.clear_all()
        device(x)[0].sum().backward()
        torch_xla.sync(wait=True)
        names = [name for name in metrics.counter_names() if name.startswith("xla::")]
        counts.append({name: metrics.counter_value(name) for name in names})
    assert counts[0] == counts[1]
    assert counts[0]["xla::recurrent_layers"] == counts[0]["xla::recurrent_layers_backward"] == 1
