"""Models exported with symbolic sizes: one program, which gives torch's numbers for any size, here and compiled by XLA."""

import sys
import types

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import torch_xla  # noqa: F401
from torch_xla.stablehlo import StableHLOGraphModule, exported_program_to_stablehlo
from torch_xla.utils.stablehlo_test_utils import compare_exported_program_and_saved_model_result


def as_module(function):
    class Module(nn.Module):
        def forward(self, *args):
            return function(*args)

    return Module()


class Language(nn.Module):
    """Tokens and their positions, a layer of attention, the last token's scores."""

    def __init__(self):
        super().__init__()
        self.tokens, self.places = nn.Embedding(20, 16), nn.Embedding(512, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.scores = nn.Linear(16, 20)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1], device=ids.device))
        mask = torch.ones(ids.shape[1], ids.shape[1], device=ids.device).tril().bool()
        x = self.layer(x, src_mask=~mask)
        return self.scores(x[:, -1]), x.mean(1)


class Convolutional(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)
        )
        self.last = nn.Linear(4, 5)

    def forward(self, x):
        x = self.layers(x)
        return self.last(x.mean((2, 3))), x.view(x.shape[0], x.shape[1], -1)


N, M = Dim("n"), Dim("m")

# Name: the module, arguments for sizes n and m, what varies.
MODELS = {
    "language": (
        Language(),
        lambda n, m: (torch.randint(0, 20, (n, m)),),
        ({0: N, 1: M},),
    ),
    "convolutional": (Convolutional(), lambda n, m: (torch.randn(n, 3, 8, 8),), ({0: N},)),
    "rows": (
        as_module(lambda x, y: (x + y, x * y.sum(0), torch.cat([x, y], 1))),
        lambda n, m: (torch.randn(n, m), torch.randn(n, m)),
        (({0: N, 1: M}, {0: N, 1: M}),),
    ),
    "statistics": (
        as_module(lambda x: (x.mean(0), x.var(1), x.std(), x.softmax(1))),
        lambda n, m: (torch.randn(n, m),),
        (({0: N, 1: M},),),
    ),
    "joined": (
        as_module(
            lambda x: (x.cumsum(2), x.flatten(0, 1), x.transpose(0, 1).reshape(x.shape[1], -1))
        ),
        lambda n, m: (torch.randn(n, m, 3),),
        (({0: N, 1: M},),),
    ),
    "running": (
        as_module(
            lambda x: (
                x.cumsum(1),
                (x > 0).cumsum(0, dtype=torch.int32),
                (x > 0).cumsum(-1) * 2,
                (x / 4 + 1).cumprod(0),
                x.bfloat16().cumsum(1).float(),
                torch.where(x > 1, torch.inf, x).cumsum(0),
                x.logcumsumexp(1),
                torch.where(x > 1, -torch.inf, x).logcumsumexp(0),
                x.bfloat16().logcumsumexp(1).float(),
                *(part.nan_to_num(9) for part in torch.where(x > 1, torch.nan, x).cummax(1)),
                *(x > 0).cummin(0),
                *(x * 2).int().cummax(-1),
            )
        ),
        lambda n, m: (torch.randn(n, m),),
        (({0: N, 1: M},),),
    ),
    "parts": (
        as_module(lambda x: (x[:, 1:], x[:, -1], x[:, :2], x.flip(1), x.roll(1, 1))),
        lambda n, m: (torch.randn(n, m),),
        (({0: N, 1: Dim("m", min=3)},),),
    ),
    "product": (
        as_module(lambda x, y: (x @ y, F.pad(x @ y, (1, 2)))),
        lambda n, m: (torch.randn(n, 4), torch.randn(4, m)),
        (({0: N}, {1: M}),),
    ),
    "expanded": (
        as_module(lambda x, y: (x.expand(y.shape[0], -1), torch.zeros(y.shape[0], 2) + y[:, :1])),
        lambda n, m: (torch.randn(1, 3), torch.randn(n, 2)),
        ((None, {0: N}),),
    ),
    "windows that some sizes fill evenly": (
        torch.nn.Conv2d(2, 3, 4, stride=4),
        lambda n, m: (torch.randn(n, 2, 8, 8 + m),),
        ({0: N, 3: Dim("width", min=8, max=64)},),
    ),
    "twice": (
        as_module(lambda x: x.reshape(2, -1).sum(0)),
        lambda n, m: (torch.randn(2 * n),),
        (({0: 2 * Dim("h")},),),
    ),
}


def exported(name):
    model, arguments, sizes = MODELS[name]
    program = torch.export.export(model.eval(), arguments(6, 7), dynamic_shapes=sizes)
    return exported_program_to_stablehlo(program)


def check(result, expected):
    leaves, wanted = (torch.utils._pytree.tree_leaves(tree) for tree in (result, expected))
    assert len(leaves) == len(wanted)
    for got, want in zip(leaves, wanted, strict=True):
        torch.testing.assert_close(got.cpu(), want.cpu(), rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_one_program_serves_all_sizes(name, tmp_path):
    model, arguments, _ = MODELS[name]
    module = exported(name)
    assert "?" in module.get_stablehlo_text()
    module.save(str(tmp_path))
    loaded = StableHLOGraphModule.load(str(tmp_path))
    for n, m in ((6, 7), (2, 3), (19, 40)):
        args = arguments(n, m)
        with torch.no_grad():
            check(module(*args), model(*args))
        check(loaded(*args), module(*args))


@pytest.mark.slow
def test_signatures_name_the_dimensions_that_vary():
    meta = exported("language")._bundle.stablehlo_funcs[0].meta
    varying = [s for s in meta.input_signature if s.dynamic_dims]
    assert [(s.shape, s.dynamic_dims) for s in varying] == [([6, 7], [0, 1])]
    scores, mean = meta.output_signature
    assert (scores.shape, scores.dynamic_dims) == ([6, 20], [0])
    assert (mean.shape, mean.dynamic_dims) == ([6, 16], [0])


def test_other_arguments_are_refused():
    module = exported("product")
    with pytest.raises(RuntimeError, match=r"is to be f32\[\?,4\]|is to be f32\[-1,4\]"):
        module(torch.randn(3, 5), torch.randn(4, 2))


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: x * (x.shape[0] ** 0.5), "neither a size nor its reciprocal"),
        (lambda x: x.mode(0)[0], "mode holds sizes that are part of the operation"),
    ],
)
def test_what_depends_on_a_size_by_more_than_a_formula_is_refused(function, why):
    program = torch.export.export(
        as_module(function), (torch.ones(6),), dynamic_shapes=(({0: N},),)
    )
    with pytest.raises(NotImplementedError, match=why):
        exported_program_to_stablehlo(program)


def test_a_number_that_varies_is_refused():
    program = torch.export.export(
        as_module(lambda x, k: x * k), (torch.ones(6), 3), dynamic_shapes=((None, Dim.DYNAMIC),)
    )
    with pytest.raises(NotImplementedError, match="is a number that varies"):
        exported_program_to_stablehlo(program)


def test_a_size_of_few_values_is_exported_for_each():
    few = {0: Dim("few", min=2, max=3)}
    program = torch.export.export(as_module(torch.neg), (torch.ones(3),), dynamic_shapes=((few,),))
    with pytest.raises(NotImplementedError, match=r"only the values \[2, 3\]"):
        exported_program_to_stablehlo(program)


def refined_by_jax(bytecode, arrays):
    """What XLA computes of the program with these arrays' sizes."""
    import jax
    from jax._src import compiler, xla_bridge
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir import ir
    from jaxlib.mlir.dialects import stablehlo

    backend = xla_bridge.get_backend("cpu")
    devices = _jax.DeviceList(tuple(backend.local_devices()[:1]))
    with mlir.make_ir_context() as context, ir.Location.unknown(context):
        program = stablehlo.deserialize_portable_artifact(context, bytecode)
        (main,) = (op for op in program.body.operations if op.sym_name.value == "main")
        types = []
        for argument, array in zip(main.regions[0].blocks[0].arguments, arrays, strict=True):
            element = ir.RankedTensorType(argument.type).element_type
            types.append(ir.RankedTensorType.get(array.shape, element))
            argument.set_type(types[-1])
        main.attributes["function_type"] = ir.TypeAttr.get(
            ir.FunctionType.get(types, ir.FunctionType(main.type).results)
        )
        refined = _jax.mlir.refine_polymorphic_shapes(mlir.module_to_bytecode(program), True, True)
        program = ir.Module.parse(refined)
        executable = backend.compile_and_load(
            program, devices, compiler.get_compile_options(1, 1), []
        )
    out = executable.execute_sharded([jax.device_put(array) for array in arrays])
    return [torch.from_numpy(np.array(a[0])) for a in out.disassemble_into_single_device_arrays()]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["rows", "statistics", "joined", "running", "parts", "product", "expanded"]
)
def test_xla_computes_the_same(name):
    model, arguments, _ = MODELS[name]
    module = exported(name)
    meta = module._bundle.stablehlo_funcs[0].meta
    args = arguments(5, 9)
    arrays = [args[location.position].numpy() for location in meta.input_locations]
    check(refined_by_jax(module.get_stablehlo_bytecode(), arrays), model(*args))


def test_results_are_compared_with_those_of_a_saved_model(monkeypatch):
    class FakeTensor:
        def __init__(self, array):
            self.array = array

        def numpy(self):
            return self.array

    saved = types.SimpleNamespace(f=lambda x: (FakeTensor(x.numpy() + shift),))
    tensorflow = types.SimpleNamespace(
        constant=FakeTensor, saved_model=types.SimpleNamespace(load=lambda path: saved)
    )
    monkeypatch.setitem(sys.modules, "tensorflow", tensorflow)
    args = (torch.ones(3),)
    program = torch.export.export(as_module(lambda x: x + 1), args)
    shift = np.float32(1)
    ours, theirs = compare_exported_program_and_saved_model_result(program, "model", args)
    np.testing.assert_array_equal(ours[0], theirs[0])
    shift = np.float32(2)
    with pytest.raises(AssertionError):
        compare_exported_program_and_saved_model_result(program, "model", args)
