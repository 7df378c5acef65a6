"""The passes of `torch_xla.experimental.unbounded_dynamism_export` over exports with symbolic sizes."""

import pytest
import torch
from torch.export import Dim, export

import torch_xla.experimental.unbounded_dynamism_export as passes

ATEN = torch.ops.aten
VARIES = {0: Dim("n")}


class Calls(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function):
        super().__init__()
        self.forward = function


def exported(function, arguments, dynamic):
    return export(Calls(function), arguments, dynamic_shapes=dynamic)


# The passes; the function; its arguments, twice; which of their sizes vary; what the graph has afterwards, and has not.
ROWS = {
    "select": (
        ["decompose_dynamic_shape_select"],
        lambda x: ATEN.select.int(x, 1, -1),
        lambda n: (torch.rand(n, 3, 5),),
        (VARIES,),
        "aten.slice",
        "aten.select",
    ),
    "select, as a dynamic view": (
        ["decompose_dynamic_shape_select", "replace_dynamic_view_with_xla_op"],
        lambda x: ATEN.select.int(x, -1, 2),
        lambda n: (torch.rand(n, 3, 5),),
        (VARIES,),
        "xla.dynamic_view",
        "aten.view",
    ),
    "split": (
        ["decompose_split_with_sizes"],
        lambda x: ATEN.split_with_sizes.default(x, [1, 2, 3], -1)[1],
        lambda n: (torch.rand(n, 6),),
        (VARIES,),
        "aten.slice",
        "getitem",
    ),
    "embedding": (
        ["flatten_embedding_indices_tensor", "replace_dynamic_view_with_xla_op"],
        lambda table, indices: ATEN.embedding.default(table, indices),
        lambda n: (torch.rand(20, 8), torch.arange(3 * n).view(n, 3) % 20),
        (None, VARIES),
        "xla.dynamic_view",
        "aten.reshape",
    ),
    "slice of all": (
        ["remove_no_op_slice"],
        lambda x: ATEN.slice.Tensor(x * 2, 1, 0, torch.iinfo(torch.int64).max),
        lambda n: (torch.rand(n, 4),),
        (VARIES,),
        "aten.mul",
        "aten.slice",
    ),
    "slice of a part": (
        ["remove_no_op_slice"],
        lambda x: ATEN.slice.Tensor(x * 2, 1, 1),
        lambda n: (torch.rand(n, 4),),
        (VARIES,),
        "aten.slice",
        "aten.view",
    ),
    "view by a multiple": (
        ["replace_dynamic_view_with_xla_op"],
        lambda x: x.view(x.shape[0] * x.shape[1], -1),
        lambda n: (torch.rand(n, 3, 4, 2),),
        (VARIES,),
        "xla.dynamic_view",
        "aten.view",
    ),
    "expand": (
        ["replace_dynamic_expand_with_xla_op"],
        lambda x, y: x.expand([y.shape[0], -1, -1]),
        lambda n: (torch.rand(1, 2, 5), torch.rand(n, 4)),
        (None, VARIES),
        "xla.dynamic_expand",
        "aten.expand",
    ),
    "unsqueeze": (
        ["dynamic_unsqueeze_to_view"],
        lambda x: ATEN.unsqueeze.default(x, -1),
        lambda n: (torch.rand(n, 4),),
        (VARIES,),
        "aten.view",
        "aten.unsqueeze",
    ),
    "layer norm": (
        ["decompose_dynamic_native_layer_norm"],
        lambda x, w, b: ATEN.native_layer_norm.default(x, [3, 4], w, b, 1e-5)[0],
        lambda n: (torch.rand(n, 3, 4), torch.rand(3, 4), torch.rand(3, 4)),
        (VARIES, None, None),
        "aten.rsqrt",
        "aten.native_layer_norm",
    ),
    "group norm": (
        ["decompose_dynamic_native_group_norm"],
        lambda x, w: ATEN.native_group_norm.default(x, w, None, x.shape[0], 6, 5, 2, 1e-5)[0],
        lambda n: (torch.rand(n, 6, 5), torch.rand(6)),
        (VARIES, None),
        "aten.rsqrt",
        "aten.native_group_norm",
    ),
    "norm of each channel": (
        ["decompose_dynamic_native_group_norm"],
        lambda x, w: ATEN.native_group_norm.default(x, w, w, x.shape[0], 6, 5, 6, 1e-5)[0],
        lambda n: (torch.rand(n, 6, 5), torch.rand(6)),
        (VARIES, None),
        "aten.rsqrt",
        "aten.native_group_norm",
    ),
}


@pytest.mark.parametrize(
    "names, function, arguments, dynamic, there, gone", ROWS.values(), ids=ROWS
)
def test_a_pass_keeps_what_is_computed(names, function, arguments, dynamic, there, gone):
    program = exported(function, arguments(4), dynamic)
    for name in names:
        getattr(passes, name)(program.graph_module)
    program.graph_module.recompile()
    assert there in program.graph_module.code
    assert gone not in program.graph_module.code
    for n in (4, 7):
        inputs = arguments(n)
        torch.testing.assert_close(program.module()(*inputs), function(*inputs))


def test_results_that_are_used_stay():
    """A norm whose mean is used, too, is left alone."""

    def function(x, w):
        result, mean, _ = ATEN.native_layer_norm.default(x, [4], w, None, 1e-5)
        return result + mean

    program = exported(function, (torch.rand(3, 4), torch.rand(4)), (VARIES, None))
    passes.decompose_dynamic_native_layer_norm(program.graph_module)
    program.graph_module.recompile()
    assert "aten.native_layer_norm" in program.graph_module.code


def test_a_program_with_all_passes_runs_on_the_device():
    def function(table, indices):
        return torch.nn.functional.layer_norm(table[indices].flatten(0, 1), [8])[:, None]

    def arguments(n):
        return torch.rand(20, 8), torch.arange(3 * n).view(n, 3) % 20

    program = exported(function, arguments(4), (None, VARIES))
    assert passes.exported_program_has_symbolic_input_shape(program)
    passes.process_exported_program_with_symbolic_input(program)
    inputs = arguments(5)
    got = program.module()(*(x.to("xla") for x in inputs))
    torch.testing.assert_close(got.cpu(), function(*inputs))


def test_sizes_that_do_not_vary():
    program = exported(lambda x: x + 1, (torch.rand(3),), (None,))
    assert not passes.exported_program_has_symbolic_input_shape(program)
