"""torch's database of modules (ModuleInfo) on the device: each trains a step as eager does, or evaluates."""

import copy

import torch
from comparison import (
    Differences,
    attempt,
    compare,
    draws,
    gradients,
    tensors,
    to_device,
    to_host,
)
from torch.testing._internal.common_device_type import instantiate_device_type_tests
from torch.testing._internal.common_modules import module_db, modules
from torch.testing._internal.common_utils import TestCase

import torch_xla
import torch_xla.debug.metrics as metrics

TOLERANCE = {torch.float32: 1e-4, torch.float64: 1e-7}


def train_a_step(module, arguments, device, training):
    """Outputs, gradients of inputs and parameters, and the parameters and buffers after a step of SGD."""
    moved = copy.deepcopy(module).to(device).train(training)
    args, kwargs = to_device((arguments.args, arguments.kwargs), device)
    outputs = tensors(moved(*args, **kwargs))
    parameters = [x for x in moved.parameters() if x.requires_grad]
    found = gradients(outputs, tensors((args, kwargs)) + parameters)
    if training and parameters:
        for parameter, gradient in zip(parameters, found[-len(parameters) :], strict=False):
            parameter.grad = gradient if gradient.shape == parameter.shape else None
        torch.optim.SGD(parameters, lr=0.1).step()
    return outputs + found + list(moved.state_dict().values())


class TestModule(TestCase):
    @modules(module_db, allowed_dtypes=(torch.float32, torch.float64))
    def test_like_eager(self, device, dtype, module_info, training):
        compared = []
        metrics.clear_counters()
        for given in module_info.module_inputs_func(
            module_info, device="cpu", dtype=dtype, requires_grad=True, training=training
        ):
            if given.forward_input is None:
                continue
            built = given.constructor_input
            module = module_info.module_cls(*built.args, **built.kwargs).to(dtype)
            step = (module, given.forward_input)
            random = draws(train_a_step, *step, "cpu", training)
            expected = attempt(train_a_step, *step, "cpu", training)
            actual = attempt(train_a_step, *step, "xla", training)
            compared.append((given.desc, actual, expected, random))
        torch_xla.sync()
        differences = Differences()
        allowed = max(TOLERANCE[dtype], self.rel_tol, self.precision)
        for name, actual, expected, random in compared:
            with differences.of(name or module_info.name):
                compare(
                    self,
                    to_host(actual),
                    to_host(expected),
                    random,
                    lambda _: {"rtol": allowed, "atol": allowed},
                )
        differences.fail_if_any()


instantiate_device_type_tests(TestModule, globals(), only_for="xla")
