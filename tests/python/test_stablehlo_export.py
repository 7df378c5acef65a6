"""Models as StableHLO programs: what is in the bundle, that the device and XLA compute from it what torch does, and what a
program says of its author's marks."""

import copy
import io
import json
import re

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import torch_xla
import torch_xla.core.xla_model as xm
from torch_xla._errors import MissingValueError
from torch_xla.experimental import xla_marker, xla_mlir_debuginfo  # noqa: F401  (register operators)
from torch_xla.experimental.mark_pattern_utils import StableHLOCompositeBuilder
from torch_xla.experimental.stablehlo_custom_call import (
    place_to_device,
    place_to_host,
    stablehlo_custom_call,
)
from torch_xla.stablehlo import (
    StableHLOExportOptions,
    StableHLOGraphModule,
    VariableType,
    exported_program_to_stablehlo,
)


class Net(nn.Module):
    """Tied weights, a buffer that is written, one that is not saved, a lifted constant, numbers."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.second = nn.Linear(4, 4)
        self.second.weight = self.first.weight
        self.register_buffer("count", torch.zeros(4))
        self.register_buffer("offset", torch.full((4,), 0.25), persistent=False)

    def forward(self, inputs, *, scale):
        self.count += 1
        y = self.second(torch.relu(self.first(inputs["x"])))
        return {
            "y": y * scale - self.offset,
            "all": (inputs["z"] / torch.tensor(3.0), self.count + 5),
        }


def example():
    return ({"x": torch.randn(2, 4), "z": torch.randn(3)},), {"scale": torch.tensor(2.5)}


def export(model, *args, options=None, **kwargs):
    return exported_program_to_stablehlo(torch.export.export(model, args, kwargs or None), options)


def as_module(function):
    class Module(nn.Module):
        def forward(self, *args):
            return function(*args)

    return Module()


def text_of(function, *args, options=None):
    return export(as_module(function), *args, options=options).get_stablehlo_text()


def test_a_model_is_exported_saved_loaded_and_called(tmp_path):
    model = Net()
    args, kwargs = example()
    module = export(model, *args, **kwargs)
    module.save(str(tmp_path))
    names = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    assert {"data/first.weight", "data/second.bias", "data/count", "data/offset"} <= names
    assert {f"functions/forward.{end}" for end in ("meta", "bytecode", "mlir")} <= names
    meta = json.loads((tmp_path / "functions" / "forward.meta").read_text())
    assert meta["name"] == "forward" and meta["stablehlo_version"] == "0.0.0"
    assert {location["type_"] for location in meta["input_locations"]} == {"parameter", "input_arg"}
    np.testing.assert_array_equal(
        np.load(io.BytesIO((tmp_path / "data" / "first.weight").read_bytes())),
        model.first.weight.detach().numpy(),
    )
    loaded = StableHLOGraphModule.load(str(tmp_path))
    expected = copy.deepcopy(model)(*args, **kwargs)
    for exported in (
        module,
        loaded,
        loaded,
    ):  # nothing is written back, so a second call is the same
        result = exported(*args, **kwargs)
        assert list(result) == ["y", "all"] and result["y"].device.type == "xla"
        torch.testing.assert_close(result["y"].cpu(), expected["y"])
        torch.testing.assert_close(result["all"][0].cpu(), expected["all"][0])
        torch.testing.assert_close(result["all"][1].cpu(), expected["all"][1])


@pytest.mark.slow
def test_xla_computes_the_bytecode():
    import jax
    from jax._src import compiler, xla_bridge
    from jax._src.interpreters import mlir
    from jaxlib import _jax
    from jaxlib.mlir.dialects import stablehlo

    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.Flatten()).eval()
    x = torch.randn(2, 3, 6, 6)
    module = export(model, x)
    meta = module._bundle.stablehlo_funcs[0].meta
    values = [
        x.numpy()
        if location.type_ == VariableType.INPUT_ARG
        else module._bundle.state_dict[location.name]
        for location in meta.input_locations
    ]
    backend = xla_bridge.get_backend("cpu")
    devices = _jax.DeviceList(tuple(backend.local_devices()[:1]))
    with mlir.make_ir_context() as context:
        program = stablehlo.deserialize_portable_artifact(context, module.get_stablehlo_bytecode())
        executable = backend.compile_and_load(
            program, devices, compiler.get_compile_options(1, 1), []
        )
    out = executable.execute_sharded([jax.device_put(value) for value in values])
    (result,) = (a[0] for a in out.disassemble_into_single_device_arrays())
    torch.testing.assert_close(torch.from_numpy(np.array(result)), model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_weights_may_stay_out(tmp_path):
    model, x = nn.Linear(3, 2), torch.randn(1, 3)
    module = export(model, x, options=StableHLOExportOptions(export_weights=False))
    assert module._bundle.state_dict == {}
    with pytest.raises(RuntimeError, match=r"no weight weight|no weight bias"):
        module(x)
    options = StableHLOExportOptions(save_weights=False, include_human_readable_text=False)
    export(model, x).save(str(tmp_path), options)
    assert not (tmp_path / "data").exists()
    loaded = StableHLOGraphModule.load(str(tmp_path))
    assert "stablehlo.dot_general" in loaded.get_stablehlo_text()  # read from the bytecode
    loaded._bundle.state_dict.update(
        {name: value.detach().numpy() for name, value in model.named_parameters()}
    )
    torch.testing.assert_close(loaded(x).cpu(), model(x))


def test_bfloat16_weights_are_kept_by_their_bits(tmp_path):
    torch.manual_seed(0)  # sums that cancel are rounded otherwise
    model, x = nn.Linear(3, 2).bfloat16(), torch.randn(1, 3).bfloat16()
    export(model, x).save(str(tmp_path))
    torch.testing.assert_close(StableHLOGraphModule.load(str(tmp_path))(x).cpu(), model(x))


@pytest.mark.slow
def test_numbers_are_constants_or_parameters():
    def function(x):
        return (x - 5) * 1.0 - 1

    x = torch.randn(3)
    text = text_of(function, x)
    assert "dense<5.000000e+00> : tensor<3xf32>" in text and "tensor<f32>" not in text
    module = export(
        as_module(function), x, options=StableHLOExportOptions(inline_all_constant=False)
    )
    text = module.get_stablehlo_text()
    assert "%arg1: tensor<" in text and "dense<5.0" not in text
    assert [float(constant) for constant in module._bundle.additional_constants] == [5.0]
    torch.testing.assert_close(module(x).cpu(), function(x))


def test_unused_inputs_are_said():
    module = export(as_module(lambda x, y, n: (y.sin(), n)), torch.ones(2), torch.ones(3), 4)
    meta = module._bundle.stablehlo_funcs[0].meta
    assert [
        (location.position, signature.shape, signature.dtype)
        for location, signature in meta.unused_inputs
    ] == [(0, [2], "float32"), (2, [], "int")]
    assert [location.position for location in meta.input_locations] == [1]
    sine, number = module(torch.zeros(2), torch.ones(3), 4)
    torch.testing.assert_close(sine.cpu(), torch.ones(3).sin())
    assert number.item() == 4


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.linalg.inv(x),
        lambda x: torch.linalg.cholesky(x @ x.mT) @ torch.linalg.solve(x, x[..., :1]),
    ],
)
def test_checks_of_values_are_left_out(function):
    x = torch.randn(2, 3, 3) + 3 * torch.eye(3)
    torch.testing.assert_close(export(as_module(function), x)(x).cpu(), function(x))


@pytest.mark.slow
def test_operators_with_effects_keep_their_results():
    with torch.library._scoped_library("effect_test", "FRAGMENT") as library:
        library.define("pair(Tensor x) -> (Tensor, Tensor)")
        library.define("many(Tensor x) -> Tensor[]")
        for key in ("CompositeExplicitAutograd", "Meta"):
            library.impl("pair", lambda x: (x + 1, x * 2), key)
            library.impl("many", lambda x: [x - 1, x * 3], key)
        names = ("pair", "many")
        for name in names:
            torch.library._register_effectful_op(
                f"effect_test::{name}", torch._library.effects.EffectType.ORDERED
            )
        x = torch.randn(3)

        def function(x):
            a, b = torch.ops.effect_test.pair(x)
            return a, b, torch.ops.effect_test.many(x)

        exported = torch.export.export(as_module(function), (x,))
        results = exported_program_to_stablehlo(exported)(x)
        options = StableHLOExportOptions(custom_ops_allowed_in_graph={"effect_test"})
        text = exported_program_to_stablehlo(exported, options).get_stablehlo_text()
    torch.testing.assert_close(
        [y.cpu() for y in (*results[:2], *results[2])], [x + 1, x * 2, x - 1, x * 3]
    )
    assert "@effect_test.pair.default" in text and "@effect_test.many.default" in text


@pytest.mark.slow
def test_bodies_of_branches_are_on_the_device():
    def function(x):
        def first(x):
            return x + torch.arange(3.0)

        return torch.cond(x.sum() > 0, first, lambda x: x * torch.full((3,), 2.0), (x,))

    options = StableHLOExportOptions(export_node_metadata=True)
    module = export(as_module(function), torch.ones(3), options=options)
    for x in (torch.ones(3), -torch.ones(3)):
        torch.testing.assert_close(module(x).cpu(), function(x))


@pytest.mark.slow
def test_flex_attention_is_exported():
    def function(q):
        causal = create_block_mask(lambda b, h, i, j: i >= j, None, None, 128, 128, device="cpu")
        return flex_attention(q, q, q, lambda s, b, h, i, j: s + (i - j), causal)

    q = torch.randn(1, 2, 128, 16)
    torch.testing.assert_close(
        export(as_module(function), q)(q).cpu(), function(q), rtol=1e-4, atol=1e-5
    )


def test_results_that_are_no_tensors(tmp_path):
    def function(x):
        return None, {"largest": x.max(0), "nothing": None, "two": 2}, x.sort(-1)[0], None

    x = torch.randn(3, 4)
    module = export(as_module(function), x)
    module.save(str(tmp_path))
    for each in (module, StableHLOGraphModule.load(str(tmp_path))):
        first, named, ordered, last = each(x)
        assert first is None and named["nothing"] is None and last is None
        values, indices = named["largest"]
        assert (values.cpu().equal(x.max(0)[0]), indices.cpu().equal(x.max(0)[1])) == (True, True)
        assert ordered.cpu().equal(x.sort(-1)[0]) and named["two"].item() == 2
    with pytest.raises(NotImplementedError, match="returns 'name'"):
        export(as_module(lambda x: (x + 1, "name")), x)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function", [lambda x: x.nonzero(), lambda x: x[x > 0], lambda x: x * x.sum().item()]
)
def test_reading_values_is_refused(function):
    with pytest.raises(RuntimeError, match="reads values by aten") as raised:
        export(as_module(function), torch.randn(4))
    assert isinstance(raised.value.__cause__, MissingValueError)


def test_reading_values_in_an_operator_of_ones_own_is_refused():
    with torch.library._scoped_library("reading_test", "FRAGMENT") as library:
        library.define("first(Tensor x, Tensor n) -> Tensor")
        library.impl("first", lambda x, n: x + int(n), "CompositeExplicitAutograd")
        library.impl("first", lambda x, n: torch.empty_like(x), "Meta")
        function = as_module(lambda x, n: torch.ops.reading_test.first(x, n))
        with pytest.raises(RuntimeError, match=r"by reading_test\.first\.default.*custom call"):
            export(function, torch.ones(4), torch.tensor(2))


def test_other_errors_of_an_operator_of_ones_own_are_its_own():
    def refuse(x):
        raise RuntimeError("the table was never made")

    with torch.library._scoped_library("refusing_test", "FRAGMENT") as library:
        library.define("look_up(Tensor x) -> Tensor")
        library.impl("look_up", refuse, "CompositeExplicitAutograd")
        library.impl("look_up", torch.empty_like, "Meta")
        function = as_module(lambda x: torch.ops.refusing_test.look_up(x))
        with pytest.raises(RuntimeError, match=r"^the table was never made"):
            export(function, torch.ones(4))


def test_an_example_with_too_few_arguments():
    exported = torch.export.export(nn.Linear(3, 2), (torch.ones(4, 3),))
    options = StableHLOExportOptions(override_tracing_arguments=())
    with pytest.raises(ValueError, match="has 0 arguments, and the exported program takes more"):
        exported_program_to_stablehlo(exported, options)


def test_what_does_not_fit_is_refused():
    module = export(as_module(lambda x: x + 1), torch.ones(2))
    with pytest.raises(ValueError, match="takes arguments as"):
        module({"x": torch.ones(2)})
    with pytest.raises(RuntimeError, match=r"f32\[2\] as argument 0, not f32\[3\]"):
        module(torch.ones(3))
    with pytest.raises(ValueError, match="no function backward"):
        module.evaluate("backward", (torch.ones(2),))
    with pytest.raises(FileNotFoundError, match="no exported function"):
        StableHLOGraphModule.load("/nonexistent")


def composite_model(x, y):
    builder = StableHLOCompositeBuilder(
        "test.mix",
        {"f": 2.5, "n": 2, "b": True, "s": "hello", "l": [1, 2], "r": [0.5], "m": [True, False]},
    )
    a, b = builder.mark_inputs(x * 2, y)
    total, difference = builder.mark_outputs(a + b + 0.5, a - b)
    return total * difference


def test_marked_operations_are_a_composite():
    x, y = torch.randn(3), torch.randn(3)
    module = export(as_module(composite_model), x, y)
    text = module.get_stablehlo_text()
    assert text.count('stablehlo.composite "test.mix"') == 1
    for attribute in (
        "f = 2.500000e+00 : f32",
        "n = 2 : i64",
        "b = true",
        's = "hello"',
        "l = dense<[1, 2]> : tensor<2xi64>",
        "r = dense<5.000000e-01> : tensor<1xf32>",
        "m = dense<[true, false]> : tensor<2xi1>",
        "decomposition = @test.mix.impl}",
    ):
        assert attribute in text
    assert "func.func private @test.mix.impl" in text and "xla_mark" not in text
    torch.testing.assert_close(module(x, y).cpu(), composite_model(x, y))


def test_composites_are_in_every_program_and_have_gradients():
    x = torch.randn(3, device="xla", requires_grad=True)
    result = composite_model(x, torch.ones(3, device="xla")).sum()
    assert 'stablehlo.composite "test.mix"' in xm.get_stablehlo([result])
    result.backward()
    on_cpu = x.detach().cpu().requires_grad_()
    composite_model(on_cpu, torch.ones(3)).sum().backward()
    torch.testing.assert_close(x.grad.cpu(), on_cpu.grad)


def test_composites_of_one_name_are_told_apart_and_share_inputs():
    def function(x, w):
        for _ in range(2):
            builder = StableHLOCompositeBuilder("test.layer")
            x = builder.mark_outputs(builder.mark_inputs(x) @ w + 1)  # w and 1 are not marked
        return x

    x, w = torch.randn(2, 2), torch.randn(2, 2)
    module = export(as_module(function), x, w)
    text = module.get_stablehlo_text()
    assert "{decomposition = @test.layer.impl}" in text
    assert (
        len(
            re.findall(
                r'composite "test.layer" %\d+, %arg\d|composite "test.layer" %arg\d, %arg\d', text
            )
        )
        == 2
    )
    torch.testing.assert_close(module(x, w).cpu(), function(x, w))


def test_attributes_of_composites_are_checked():
    for attributes, message in (
        ([("a", 1)], "must be a Python dictionary"),
        ({1: 2}, "name must be a Python str"),
        ({"a": None}, "value must be either"),
        ({"a": [1, 2.0]}, "value must be either"),
    ):
        with pytest.raises(ValueError, match=message):
            xla_marker.serialize_composite_attr(attributes)
    with pytest.raises(ValueError, match="input must be a torch tensor"):
        StableHLOCompositeBuilder("test").mark_inputs(1)


def test_custom_calls_are_written():
    x = torch.ones(3, 3, device="xla")
    call = stablehlo_custom_call(
        [x], "vendor.op", [(3,), (2,)], [torch.int8, torch.float32], True, "how", 1
    )
    text = xm.get_stablehlo(call)
    assert "stablehlo.custom_call @vendor.op(" in text and 'backend_config = "how"' in text
    assert "has_side_effect = true" in text
    assert "(tensor<3x3xf32>) -> tuple<tensor<3xi8>, tensor<2xf32>>" in text
    del call  # the CPU engine knows no such call
    placed = place_to_host(x.requires_grad_())
    assert '_xla_buffer_placement = "pinned_host"}}' in xm.get_stablehlo([placed])
    (place_to_device(placed) * 2).sum().backward()  # the CPU engine has one memory
    assert placed.tolist() == [[1.0] * 3] * 3 and x.grad.tolist() == [[2.0] * 3] * 3
    with pytest.raises(ValueError, match="one of each"):
        stablehlo_custom_call([x], "vendor.op", [(3,)], [])


def test_allowed_operators_are_custom_calls():
    with torch.library._scoped_library("export_test", "DEF") as library:
        library.define("pair(Tensor x) -> (Tensor, Tensor)")
        library.impl("pair", lambda x: (torch.empty_like(x), x.new_empty(2)), "Meta")
        function = as_module(lambda x: torch.ops.export_test.pair(x.sin())[1].cos())
        exported = torch.export.export(function, (torch.ones(3),))
        options = StableHLOExportOptions(custom_ops_allowed_in_graph={"export_test"})
        text = exported_program_to_stablehlo(exported, options).get_stablehlo_text()
    assert re.search(
        r"custom_call @export_test.pair.default.* -> tuple<tensor<3xf32>, tensor<2xf32>>", text
    )


@pytest.mark.slow
def test_locations_are_said():
    def function(x):
        return torch.ops.xla.write_mlir_debuginfo(x + x, "MY_ADD") * x

    assert re.search(r'stablehlo.add.+"MY_ADD"', text_of(function, torch.ones(2)))
    options = StableHLOExportOptions(export_node_metadata=True)
    text = text_of(lambda x: x.sin(), torch.ones(2), options=options)
    assert re.search(r"stablehlo.sine.*stack_trace.*nn_module_stack", text)


def test_exports_leave_the_device_alone():
    pending = torch.ones(2, device="xla") + 1
    export(nn.Linear(2, 2), torch.ones(1, 2))
    torch_xla.sync()
    assert pending.tolist() == [2, 2]
