"""Sizes of a tensor that exports leave open, and what takes them: the program gives torch's numbers for any that fit."""

import pytest
import torch

import torch_xla.core.xla_model as xm
from torch_xla import _XLAC


def exported(function, arguments, marks):
    """A function of tensors on the CPU: the program of `function` for arguments like these, with the marked sizes open."""
    tensors = [argument.to("xla") for argument in arguments]
    for argument, dimension in marks:
        _XLAC._xla_mark_dynamic(tensors[argument], dimension)
    result = function(*tensors)
    program = xm.get_stablehlo_bytecode([result])
    identities = [_XLAC._xla_get_tensor_id(tensor) for tensor in tensors]
    ids, leaves = _XLAC._get_tensors_xla_device_data_node([result])

    def run(*others):
        inputs = [
            others[identities.index(identity)].to("xla") if identity in identities else leaf
            for identity, leaf in zip(ids, leaves, strict=True)
        ]
        instance = _XLAC._instantiate_program(program, inputs)
        computation = _XLAC._xla_op_computation_from_module_proto("main", instance)
        return _XLAC._xla_user_computation("xla::main", inputs, computation)[0].cpu()

    return run


def gated(x, y):
    return torch.where(x > y, torch.sigmoid(x) * y, x.abs() / (y * y + y.exp()))


# The function, the shapes that it is exported with, the dimensions that are open, and other shapes.
ROWS = {
    "scalar": (torch.mul, [(), (10, 5)], [(1, 1)], [[(), (10, 7)], [(), (10, 1)], [(), (10, 0)]]),
    "known": (torch.add, [(10,), (10,)], [(0, 0)], [[(10,), (10,)], [(1,), (10,)]]),
    "both": (
        torch.sub,
        [(5, 10), (5, 1)],
        [(0, 0), (0, 1), (1, 0)],
        [[(3, 4), (3, 1)], [(1, 4), (6, 1)], [(6, 2), (1, 1)], [(0, 2), (1, 1)]],
    ),
    "ranks": (
        torch.atan2,
        [(10, 5, 4), (1, 4)],
        [(0, 0), (0, 2), (1, 1)],
        [[(2, 5, 3), (1, 3)], [(7, 5, 1), (1, 6)], [(1, 5, 6), (1, 1)]],
    ),
    "of several operations": (
        gated,
        [(4, 3), (4, 3)],
        [(0, 0), (1, 0)],
        [[(5, 3), (5, 3)], [(1, 3), (5, 3)], [(5, 3), (1, 3)]],
    ),
    "layer": (
        lambda x, weight: torch.relu(x @ weight).sum(-1),
        [(4, 3), (3, 6)],
        [(0, 0)],
        [[(9, 3), (3, 6)], [(1, 3), (3, 6)], [(0, 3), (3, 6)]],
    ),
    "ones like it": (torch.ones_like, [(4, 3)], [(0, 0)], [[(9, 3)], [(1, 3)], [(0, 3)]]),
    "truths like it": (
        lambda x: torch.zeros_like(x.exp(), dtype=torch.bool),
        [(4, 3)],
        [(0, 0)],
        [[(9, 3)]],
    ),
    "made of what is like it": (
        lambda x: torch.ones_like(x).exp() * x + torch.zeros_like(x),
        [(4, 3)],
        [(0, 0)],
        [[(9, 3)], [(1, 3)]],
    ),
    "as large in place": (
        lambda x, y: x.exp().fill_(y) + torch.empty_like(x).zero_(),
        [(4, 3), ()],
        [(0, 0)],
        [[(9, 3), ()], [(1, 3), ()]],
    ),
    "zeros in place": (lambda x: x.exp().zero_(), [(4, 3)], [(0, 0)], [[(9, 3)]]),
    "transposed": (
        lambda x, y: x.T + y,
        [(4, 3), (3, 4)],
        [(0, 0), (1, 1)],
        [[(9, 3), (3, 9)], [(1, 3), (3, 2)]],
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_other_sizes_give_torchs_numbers(name):
    function, shapes, marks, others = ROWS[name]
    run = exported(function, [torch.randn(shape) for shape in shapes], marks)
    for other in [shapes, *others]:
        arguments = [torch.randn(shape) for shape in other]
        torch.testing.assert_close(run(*arguments), function(*arguments))


def test_the_text_says_how_sizes_are_found():
    x, y = torch.randn(10, 5).to("xla"), torch.randn(5).to("xla")
    _XLAC._xla_mark_dynamic(x, -2)
    text = xm.get_stablehlo([x * y])
    for words in ("tensor<?x5xf32>", "get_dimension_size", "dynamic_broadcast_in_dim"):
        assert words in text
    assert "?" not in xm.get_stablehlo([y * y])
    assert (x * y).cpu().shape == (10, 5)  # what runs here has the sizes that are there


def test_sizes_that_do_not_fit_are_refused():
    run = exported(torch.mul, [torch.randn(10), torch.randn(10)], [(0, 0)])
    with pytest.raises(RuntimeError, match="broadcast"):
        run(torch.randn(3), torch.randn(10))


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x.mean(0), "reduces a dimension that was marked"),
        (lambda x: x.reshape(15), "may hold a size that was marked"),
        (lambda x: x[1:3], "may hold a size that was marked"),
        (lambda x: x.sort(0).values, "may hold a size that was marked"),
        (lambda x: -x.new_ones(1).expand(5, 3).exp() * x, "a size of the program's own"),
        (lambda x: x + torch.arange(x.shape[0], device="xla")[:, None], "a size of the program's"),
        (lambda x: x * torch.rand_like(x), "a size of the program's own"),
        (torch.rand_like, "a size of the program's own"),
        (lambda x: x.exp().normal_(), "a size of the program's own"),
    ],
)
def test_what_may_hold_a_size_is_refused(function, words):
    x = torch.randn(5, 3).to("xla")
    _XLAC._xla_mark_dynamic(x, 0)
    with pytest.raises(NotImplementedError, match=words):
        xm.get_stablehlo([function(x)])


def test_what_has_no_open_sizes_takes_no_part():
    x, y = torch.randn(5, 3).to("xla"), torch.randn(5, 3).to("xla")
    _XLAC._xla_mark_dynamic(x, 0)
    for make in (torch.zeros_like, lambda y: torch.exp(y).fill_(2)):
        assert "select" not in xm.get_stablehlo([make(y)])
        assert "select" in xm.get_stablehlo([make(x)])


def test_bad_marks():
    x = torch.randn(5, 3).to("xla")
    with pytest.raises(IndexError):
        _XLAC._xla_mark_dynamic(x, 2)
    with pytest.raises(RuntimeError, match="view"):
        _XLAC._xla_mark_dynamic(x[1:], 0)
    with pytest.raises(RuntimeError, match="not an XLA tensor"):
        _XLAC._xla_mark_dynamic(torch.ones(2), 0)


def test_what_is_made_like_it_may_be_on_another_device(program):
    code = """
import torch, torch_xla
from torch_xla import _XLAC
x = torch.ones(3, 2, device="xla:0")
_XLAC._xla_mark_dynamic(x, 0)
for make in (torch.zeros_like, torch.ones_like):
    made = make(x, device="xla:1")
    print(made.device, made.cpu().sum().item())
"""
    lines = program.run_code(code, CPU_NUM_DEVICES="2").stdout.splitlines()
    assert lines == ["xla:1 0.0", "xla:1 6.0"]
