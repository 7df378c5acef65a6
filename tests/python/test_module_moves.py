"""A module that moves to the device keeps its parameters: the objects, and all that others know of them."""

import copy
import gc
import weakref

import pytest
import torch

import torch_xla


class Marked(torch.nn.Parameter):
    """A parameter of a class of its own, as those that live on a manifold are."""


def train(model, optimizer, device):
    x = torch.arange(6.0, device=device).view(3, 2)
    optimizer.zero_grad()
    model(x).square().sum().backward()
    optimizer.step()


def test_parameters_stay_the_same_objects(device):
    model = torch.nn.Linear(2, 2)
    model.weight = Marked(model.weight.detach())
    weight, bias = model.weight, model.bias
    weight._no_weight_decay = True
    model.to(device)
    assert model.weight is weight and model.bias is bias
    assert type(weight) is Marked and weight._no_weight_decay
    assert weight.device.type == "xla" and weight.is_leaf and weight.requires_grad
    model.to("cpu")
    assert model.weight is weight and weight.device.type == "cpu"
    assert torch.equal(weight, copy.deepcopy(model).to(device).weight.cpu())


def test_hooks_stay(device):
    model = torch.nn.Linear(2, 1)
    seen = []
    model.weight.register_hook(lambda gradient: seen.append(gradient.device.type))
    model.weight.register_post_accumulate_grad_hook(lambda weight: seen.append(weight.grad.shape))
    model.to(device)(torch.ones(1, 2, device=device)).sum().backward()
    assert seen == ["xla", (1, 2)]


@pytest.mark.parametrize("make", [torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad])
def test_an_optimizer_made_before_the_move_trains(make, device):
    expected = torch.nn.Linear(2, 2)
    model = copy.deepcopy(expected)
    optimizers = [make(m.parameters(), lr=0.1) for m in (expected, model)]
    if (
        make is torch.optim.Adagrad
    ):  # whose state is made with the optimizer, and moves with loading
        optimizers[1] = make(model.to(device).parameters(), lr=0.1)
    model.to(device)
    for _ in range(3):
        train(expected, optimizers[0], "cpu")
        train(model, optimizers[1], device)
    torch.testing.assert_close(model.weight.cpu(), expected.weight)


def test_gradients_move_along(device):
    model = torch.nn.Linear(2, 2)
    model(torch.ones(1, 2)).sum().backward()
    gradient = model.weight.grad
    model.to(device)
    assert model.weight.grad is gradient and gradient.device.type == "xla"
    model.cpu()
    assert gradient.tolist() == [[1, 1], [1, 1]]


def test_what_was_made_on_the_device_moves_too(device):
    with torch.device(device):
        model = torch.nn.Linear(2, 2)
    weight = model.weight
    for _ in range(2):
        model.cpu()
        assert model.weight is weight and weight.device.type == "cpu"
        assert weight.detach().numpy().tolist() == weight.tolist()
        assert weight.untyped_storage().nbytes() == weight.clone().untyped_storage().nbytes() == 16
        model.to(device)
        assert model.weight is weight and weight.device.type == "xla"
    train(model, torch.optim.SGD(model.parameters(), lr=0.1), device)


def test_types_change_on_the_device(device):
    model = torch.nn.Linear(2, 2).to(device)
    weight = model.weight
    model.bfloat16()
    assert model.weight is weight and weight.dtype == torch.bfloat16
    assert model(torch.ones(1, 2, device=device, dtype=torch.bfloat16)).dtype == torch.bfloat16


def test_recurrent_and_normalizing_modules(device):
    torch.manual_seed(0)
    expected = torch.nn.LSTM(3, 4, bidirectional=True)
    model = copy.deepcopy(expected).to(device)
    x = torch.randn(5, 2, 3)
    torch.testing.assert_close(model(x.to(device))[0].cpu(), expected(x)[0])
    parts = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(3, 2))
    wanted = parts(x)
    torch.testing.assert_close(parts.to(device)(x.to(device)).cpu(), wanted)


def test_the_memory_of_what_has_moved_is_given_back(device):
    model = torch.nn.Linear(2, 2).to(device)
    moved = weakref.ref(model.weight)
    model.cpu()
    del model
    gc.collect()
    assert moved() is None


def test_moved_parameters_are_donated(device):
    """A step's new weights take the old ones' memory, as where the parameters were made on the device."""
    model = torch.nn.Linear(512, 512).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x = torch.ones(1, 512, device=device)
    module = torch.get_device_module("xla")
    for _ in range(3):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        torch_xla.sync(wait=True)
    used = module.memory_allocated()
    for _ in range(3):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        torch_xla.sync(wait=True)
    assert module.memory_allocated() <= used
