"""Pure functions that are traced once."""

import copy
import gc
import math
import threading

import pytest
import torch

import torch_xla
import torch_xla.experimental.assume_pure as pure


def test_calls_run_no_python():
    traces = []

    def inner(tensors, scale=2):
        traces.append(scale)
        return {"sine": torch.sin(tensors["a"] @ tensors["b"]) * scale, "kind": "sine"}

    traced = pure.assume_pure_torch(inner, use_cache=True)

    def one_more(tensors):
        return traced(tensors)["sine"] + 1

    outer = pure.assume_pure_torch(one_more, use_cache=True)
    for value in (0.5, 0.25):
        a = torch.full((3, 3), value, device="xla")
        expected = torch.sin(a.cpu() @ a.cpu()) * 2
        result = traced({"a": a, "b": a})
        assert result["kind"] == "sine"
        torch.testing.assert_close(result["sine"].cpu(), expected)
        torch.testing.assert_close(outer({"a": a, "b": a}).cpu(), expected + 1)
    assert traces == [2]
    traced({"a": a, "b": a}, scale=2.0)  # another argument: a number, but not that one
    traced({"a": a[:2], "b": a})
    assert len(traces) == 3


def test_functions_are_forgotten_with_what_was_traced():
    pure.assume_pure_torch(lambda x: x + 1, use_cache=True)(torch.ones(2, device="xla"))
    gc.collect()
    assert not pure._XLA_COMPUTATION_CACHE


def test_without_the_cache_each_call_is_traced():
    traces = []
    traced = pure.assume_pure_torch(lambda x: traces.append(1) or x + 1)
    assert traced(torch.ones(2, device="xla")).tolist() == [2, 2]
    assert traced(torch.ones(2)).tolist() == [2, 2]
    assert len(traces) == 2


def test_gradients_are_refused():
    x = torch.ones(2, device="xla", requires_grad=True)
    with pytest.raises(NotImplementedError, match="no gradients"):
        pure.assume_pure_torch(torch.sin)(x)
    with torch.no_grad():
        assert not pure.assume_pure_torch(torch.sin)(x).requires_grad


def test_gradients_run_no_python_either():
    traces = []

    @pure.assume_pure
    def inner(parameters, x, *, power):
        traces.append(power)
        y = torch.sin(x @ parameters["w"]) ** power + parameters["bias"]
        return {"y": y, "power": power, "none": None}

    for value in (0.5, 0.25):
        results = []
        for device, function in (("xla", inner), ("cpu", inner.__wrapped__)):
            generator = torch.Generator().manual_seed(1)
            parameters = {
                "w": torch.rand(3, 3, generator=generator).to(device).requires_grad_(),
                "bias": torch.ones(3, device=device),
            }
            x = torch.full((2, 3), value, device=device, requires_grad=True)
            made = function(parameters, x, power=2)
            assert (made["power"], made["none"]) == (2, None)
            made["y"].sum().backward()
            assert parameters["bias"].grad is None
            results.append([made["y"].detach().cpu(), x.grad.cpu(), parameters["w"].grad.cpu()])
        torch.testing.assert_close(results[0], results[1])
        if value == 0.5:
            traced = len(traces)
    assert len(traces) == traced + 1  # of the CPU's
    with torch.no_grad():
        made = inner(parameters={"w": x.new_ones(3, 3), "bias": x[0]}, x=x, power=2)["y"]
    assert not made.requires_grad


def test_one_tensor_as_two_arguments():
    function = pure.assume_pure(lambda a, b: a * b)
    for second_is_first in (True, False):
        a = torch.tensor([2.0, 3.0], device="xla", requires_grad=True)
        b = a if second_is_first else torch.tensor([5.0, 7.0], device="xla", requires_grad=True)
        function(a, b).sum().backward()
        assert a.grad.tolist() == ([4, 6] if second_is_first else [5, 7])


def test_gradients_of_ones_own():
    class Straight(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.round()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * 3

    x = torch.tensor([0.2, 1.7], device="xla", requires_grad=True)
    pure.assume_pure(Straight.apply)(x).sum().backward()
    assert x.grad.tolist() == [3, 3]


def test_numbers_drawn_depend_on_the_seed_alone():
    noisy = pure.assume_pure(lambda x: x + torch.randn_like(x), add_rng_seed_argument=True)
    x = torch.zeros(8, device="xla")
    torch_xla.manual_seed(3)
    before = torch.rand(2, device="xla")
    torch_xla.manual_seed(3)
    first = noisy(x, rng_seed=1)
    assert torch.equal(torch.rand(2, device="xla"), before)  # the device's own go on as they were
    assert torch.equal(noisy(x, rng_seed=1), first)
    assert not torch.equal(noisy(x, rng_seed=2), first)
    with pytest.raises(AssertionError, match="rng_seed="):
        noisy(x)
    free = pure.assume_pure(lambda x: x + torch.randn_like(x))
    assert not torch.equal(free(x), free(x))


@pytest.mark.parametrize("is_inside", [False, True])
def test_pure_modules_learn_as_others(is_inside):
    def model():
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU(), torch.nn.Linear(8, 2)
        )

    plain, wrapped = model().to("xla"), pure.PureModule(model().to("xla"))
    called = pure.PureModule(wrapped) if is_inside else wrapped
    optimizers = [torch.optim.SGD(m.parameters(), lr=0.1) for m in (plain, wrapped)]
    for step in range(3):
        x = torch.full((6, 4), 0.1 * step).addcmul(torch.arange(24.0).view(6, 4), torch.tensor(0.1))
        for module, optimizer in zip((plain, called), optimizers, strict=True):
            optimizer.zero_grad()
            module(x.to("xla")).square().sum().backward()
            optimizer.step()
        torch_xla.sync()
    for module in (plain, called):
        module.eval()
    torch.testing.assert_close(called(x.to("xla")).cpu(), plain(x.to("xla")).cpu())
    own = {f"_module.{name}": value.cpu() for name, value in plain.state_dict().items()}
    torch.testing.assert_close({k: v.cpu() for k, v in wrapped.state_dict().items()}, own)


def test_tensors_that_are_no_arguments_are_refused():
    hidden = torch.ones(2, device="xla")
    with pytest.raises((RuntimeError, AssertionError), match=r"FakeTensor|FunctionalTensor"):
        pure.assume_pure(lambda x: x + hidden)(torch.ones(2, device="xla"))
    assert pure.assume_pure(lambda x: x + 1)(torch.ones(2)).tolist() == [2, 2]


@pytest.mark.parametrize("is_one_first", [False, True])
def test_arguments_that_are_one_tensor(is_one_first):
    def add(a, b):
        a.add_(1)
        return a + b

    traced = pure.assume_pure(add)
    with torch.no_grad():
        for is_one in (is_one_first, not is_one_first):
            a, b = torch.tensor([2.0, 3.0]), torch.tensor([5.0, 7.0])
            on_device = a.to("xla"), b.to("xla")
            expected = add(a, a if is_one else b)
            result = traced(on_device[0], on_device[0 if is_one else 1])
            assert torch.equal(result.cpu(), expected) and torch.equal(on_device[0].cpu(), a)


def test_numbers_are_of_the_default_type():
    traced = pure.assume_pure(lambda x: torch.full((2,), 0.1, device=x.device) + x)
    x = torch.ones(2, dtype=torch.int64, device="xla")
    assert traced(x).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert traced(x).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_inside_transforms():
    traced = pure.assume_pure(lambda x: torch.sin(x) * x.sum())
    x = torch.tensor([[0.5, 1.0, 2.0], [0.1, 0.2, 0.3]], device="xla")
    traced(x)

    def expected(x):
        return torch.sin(x) * x.sum()

    assert_close = torch.testing.assert_close
    assert_close(torch.func.vmap(traced)(x).cpu(), torch.func.vmap(expected)(x.cpu()))
    of_sum = torch.func.grad(lambda x: traced(x).sum())(x)
    assert_close(of_sum.cpu(), torch.func.grad(lambda x: expected(x).sum())(x.cpu()))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, torch.ones_like(x))
        tangent = torch.autograd.forward_ad.unpack_dual(traced(dual)).tangent
    assert_close(tangent.cpu(), torch.func.jvp(expected, (x.cpu(),), (torch.ones(2, 3),))[1])
    compiled = torch.compile(lambda x: traced(x) * 2, backend="openxla")
    assert_close(compiled(x).cpu(), expected(x.cpu()) * 2)


def test_copies_of_modules_run_what_is_theirs(tmp_path):
    torch.manual_seed(0)
    original = pure.PureModule(torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)))
    x = torch.rand(5, 3, device="xla")
    original.to("xla")(x)
    torch.save(original, tmp_path / "module.pt")
    loaded = torch.load(tmp_path / "module.pt", weights_only=False)
    for other in (copy.deepcopy(original), loaded):
        other.eval()
        torch.testing.assert_close(other(x), other._module(x))
        assert other._module[1].num_batches_tracked == 1
    original.eval()
    assert original._module[1].num_batches_tracked == 1


def test_threads_trace_one_function_once():
    traces = []
    function = pure.assume_pure(lambda x: traces.append(threading.get_ident()) or x.sin() * 2)
    results = {}

    def work(value):
        x = torch.full((3,), value, device="xla", requires_grad=True)
        function(x).sum().backward()
        results[value] = x.grad.cpu()

    threads = [threading.Thread(target=work, args=(float(value),)) for value in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for value in range(4):
        torch.testing.assert_close(
            results[value], torch.full((3,), 2 * math.cos(value)), check_device=False
        )
    assert len(set(traces)) == 1
