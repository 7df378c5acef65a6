"""What stands for a tensor of ours without being one, in functions that want one: an error in words, never the process's end."""

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor

from torch_xla import _XLAC

SUM = ("sum", 1.0)
# Functions of the binding that read a tensor's value or its place, by what they are given.
FUNCTIONS = {
    "_xla_get_tensor_id": lambda f, t: f(t),
    "_xla_data_ptr": lambda f, t: f(t),
    "_xla_can_set_data": lambda f, t: f(t, t),
    "_xla_get_cpu_tensors": lambda f, t: f([t]),
    "_xla_optimization_barrier_": lambda f, t: f([t]),
    "_replace_xla_tensor": lambda f, t: f(t, torch.ones(3, 4, device="xla")),
    "_get_xla_tensors_text": lambda f, t: f([t]),
    "_get_xla_tensors_dot": lambda f, t: f([t]),
    "_get_xla_tensors_hlo": lambda f, t: f([t]),
    "_get_stablehlo": lambda f, t: f([t], "xla:0", [], False),
    "_lowered_tensors": lambda f, t: f([t], "name"),
    "_set_xla_custom_op_name_prefix": lambda f, t: f(t, "name", 1),
    "_get_xla_tensor_debug_info": lambda f, t: f(t),
    "_get_graph_hash": lambda f, t: f([t]),
    "_xla_warm_up_cache": lambda f, t: f([t], []),
    "_xla_mark_dynamic": lambda f, t: f(t, 0),
    "_is_placecholder": lambda f, t: f(t),
    "_get_tensors_handle": lambda f, t: f([t]),
    "_unsafe_buffer_pointer": lambda f, t: f(t),
    "_check_tensor_need_materialization": lambda f, t: f([t]),
    "_set_buffer_donation": lambda f, t: f(t, True),
    "_get_buffer_donation": lambda f, t: f(t),
    "_get_tensors_xla_device_data_node": lambda f, t: f([t]),
    "_on_ready_callback": lambda f, t: f(t, lambda *_: None),
    "_xla_dot_general": lambda f, t: f(t, t, (((1,), (1,)), ((), ()))),
    "_xla_op_tensor_shape": lambda f, t: f(t, "xla:0"),
    "_xla_all_reduce": lambda f, t: f([t], *SUM, []),
    "_xla_all_reduce_": lambda f, t: f([t], *SUM, []),
    "_xla_all_gather": lambda f, t: f([t], 0, []),
    "_xla_reduce_scatter": lambda f, t: f(t, *SUM, 0, []),
    "_xla_collective_permute": lambda f, t: f(t, []),
    "_xla_collective_broadcast": lambda f, t: f(t, []),
    "_xla_mark_tensor": lambda f, t: f(t, "name", 0, "id", True, {}),
    "_xla_mark_location": lambda f, t: f(t, "name"),
}


def x():
    return torch.ones(3, 4, device="xla")


def within(transform):
    """Calls the function inside of the transform, whose result is another."""

    def call(function):
        def body(t):
            function(t)
            return t.sum()

        transform(body)

    return call


def fake(function):
    with FakeTensorMode() as mode:
        stand_in = mode.from_tensor(torch.ones(3, 4)).to("xla")
        function(stand_in)


WRAPPERS = {
    "vmap": within(lambda f: torch.func.vmap(f)(torch.ones(2, 3, 4, device="xla"))),
    "grad": within(lambda f: torch.func.grad(f)(x())),
    "functionalize": within(lambda f: torch.func.functionalize(f)(x())),
    "grad of vmap": within(
        lambda f: torch.func.grad(lambda t: torch.func.vmap(f)(t[None].expand(2, 3, 4)).sum())(x())
    ),
    "fake": fake,
    "two": lambda function: function(TwoTensor(x(), x())),
    "sparse": lambda function: function(x().to_sparse()),
    "compressed": lambda function: function(x().to_sparse_csr()),
    "meta": lambda function: function(torch.empty(3, 4, device="meta")),
    "cpu": lambda function: function(torch.ones(3, 4)),
    "none": lambda function: function(None),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.filterwarnings("ignore:Sparse CSR")
def test_there_is_an_answer_or_an_error(name, wrapper, device):
    try:
        WRAPPERS[wrapper](lambda t: FUNCTIONS[name](getattr(_XLAC, name), t))
    except (RuntimeError, TypeError, NotImplementedError, ValueError) as error:
        assert "INTERNAL" not in str(error)
    assert (x() + 1).sum().item() == 24


READERS = ("_get_xla_tensors_text", "_replace_xla_tensor", "_get_tensors_handle")


@pytest.mark.parametrize("wrapper", ["vmap", "grad", "functionalize", "grad of vmap", "two"])
@pytest.mark.parametrize("name", READERS)
def test_the_error_says_that_it_is_wrapped(name, wrapper, device):
    with pytest.raises(RuntimeError, match="transform or a trace stands in for"):
        WRAPPERS[wrapper](lambda t: FUNCTIONS[name](getattr(_XLAC, name), t))


def test_what_has_left_its_transform_is_none_of_ours(device):
    escaped = []
    torch.func.vmap(lambda t: (escaped.append(t), t)[1])(torch.ones(2, 3, device=device))
    with pytest.raises(RuntimeError, match="transform or a trace stands in for"):
        _XLAC._get_xla_tensors_text(escaped)


# Operators as a class of Python's tensors calls them below its own dispatch, where torch shows them a tensor without
# memory.
BELOW_PYTHON = {
    "view": lambda t: t.view(12),
    "transpose": lambda t: t.mT,
    "expand": lambda t: t.expand(2, 3, 4),
    "select": lambda t: t[0],
    "slice": lambda t: t[1:],
    "unbind": lambda t: t.unbind(),
    "as_strided": lambda t: t.as_strided((2,), (1,)),
    "other type": lambda t: t.view(torch.int32),
    "diagonal": lambda t: t.diagonal(),
    "unfold": lambda t: t.unfold(0, 2, 1),
    "alias": lambda t: torch.ops.aten.alias(t),
    "squeeze in place": lambda t: t.unsqueeze_(0),
    "resize": lambda t: t.resize_(2, 2),
    "set to it": lambda t: x().set_(t),
    "set it": lambda t: t.set_(x()),
    "fill": lambda t: t.fill_(1),
    "copy": lambda t: t.copy_(x()),
    "copied": lambda t: x().copy_(t),
    "clone": lambda t: t.clone(),
    "item": lambda t: t.sum().item(),
    "to cpu": lambda t: t.cpu(),
    "add": lambda t: t + x(),
    "in place": lambda t: t.add_(1),
    "index": lambda t: t[torch.tensor([0, 1], device="xla")],
    "put": lambda t: t.index_put_((torch.tensor([0], device="xla"),), x()[0]),
    "random": lambda t: t.normal_(),
    "out": lambda t: torch.add(x(), x(), out=t),
    "list": lambda t: torch._foreach_add_([t], 1),
    "cat": lambda t: torch.cat([t, x()]),
    "product": lambda t: t @ t.mT,
}


class Shown(torch.Tensor):
    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        raise NotImplementedError


@pytest.mark.parametrize("name", BELOW_PYTHON)
def test_tensors_without_memory_are_refused(name, device):
    shown = torch.Tensor._make_wrapper_subclass(Shown, (3, 4), dtype=torch.float32, device=device)
    with torch.utils._mode_utils.no_dispatch(), pytest.raises(RuntimeError) as refusal:
        BELOW_PYTHON[name](shown)
    assert "INTERNAL" not in str(refusal.value)
    assert (x() + 1).sum().item() == 24
