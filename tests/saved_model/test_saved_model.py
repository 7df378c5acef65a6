"""Exported models as saved models of TensorFlow: loaded by TensorFlow, they give torch's numbers."""

import sys

import numpy as np
import pytest
import tensorflow
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import torch_xla  # noqa: F401
from torch_xla import stablehlo
from torch_xla.experimental.mark_pattern_utils import StableHLOCompositeBuilder
from torch_xla.stablehlo import StableHLOExportOptions, exported_program_to_stablehlo
from torch_xla.tf_saved_model_integration import (
    main,
    make_tf_function,
    save_stablehlo_graph_as_tf,
    save_torch_module_as_tf_saved_model,
)
from torch_xla.utils.stablehlo_test_utils import compare_exported_program_and_saved_model_result


def as_module(function):
    class Module(nn.Module):
        def forward(self, *args):
            return function(*args)

    return Module()


class Language(nn.Module):
    """Tokens, a layer of attention, scores by the tokens' own weights, and a scale with an odd name."""

    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(50, 16)
        self.layer = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
        self.scores = nn.Linear(16, 50, bias=False)
        self.scores.weight = self.tokens.weight
        self.register_buffer("_scale", torch.tensor(2.0))

    def forward(self, ids):
        return self.scores(self.layer(self.tokens(ids))) * self._scale


def convolutional():
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 16, 5),
        nn.LogSoftmax(-1),
    )


def perceptron():
    return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 4))


def swish(x):
    builder = StableHLOCompositeBuilder("vendor.swish", {"beta": 1.0})
    x = builder.mark_inputs(x)
    return builder.mark_outputs(x * torch.sigmoid(x))


def attention(q):
    return F.scaled_dot_product_attention(q, q, q, is_causal=True)


def array_of(value):
    """What TensorFlow is given for an argument."""
    if not isinstance(value, torch.Tensor):
        return value
    if value.dtype == torch.bfloat16:
        return tensorflow.cast(value.float().numpy(), tensorflow.bfloat16)
    return value.numpy()


def check(saved, model, args, tolerance=1e-4):
    """The saved model's function gives what torch's module does."""
    results = saved.f(*[array_of(value) for value in args if value is not None])
    with torch.no_grad():
        expected = model(*args)
    expected = expected if isinstance(expected, tuple) else (expected,)
    for result, value in zip(results, expected, strict=True):
        assert result.dtype.name == str(value.dtype).removeprefix("torch.")
        if value.dtype == torch.bfloat16:
            result, value = tensorflow.cast(result, tensorflow.float32), value.float()
        result = torch.from_numpy(np.array(result))
        torch.testing.assert_close(result, value, rtol=tolerance, atol=tolerance)


def save_and_load(model, args, folder, **options):
    save_torch_module_as_tf_saved_model(model.eval(), args, folder, **options)
    return tensorflow.saved_model.load(str(folder))


# Names of models, which are made by calling the second, with arguments.
MODELS = {
    "convolutions": (convolutional, lambda: (torch.randn(2, 3, 8, 8),)),
    "language": (Language, lambda: (torch.randint(50, (2, 7)),)),
    "attention": (lambda: as_module(attention), lambda: (torch.rand(1, 2, 16, 8),)),
    "composite": (lambda: as_module(swish), lambda: (torch.randn(4),)),
    "unused": (
        lambda: as_module(lambda a, b: torch.sin(b)),
        lambda: (torch.randn(4, 3), torch.randn(1, 100)),
    ),
    "results": (
        lambda: as_module(lambda a, b: (a + b, a * b, a, b)),
        lambda: (torch.rand(2, 3), torch.rand(2, 3)),
    ),
    "numbers": (
        lambda: as_module(torch.ops.aten._softmax.default),
        lambda: (torch.rand(2, 3, 4), -1, False),
    ),
    "float": (
        lambda: as_module(torch.ops.aten._cdist_forward),
        lambda: (torch.rand(2, 3, 4), torch.rand(2, 3, 4), 2.4, 1),
    ),
    "none": (
        lambda: as_module(lambda a, mask, b: a - b),
        lambda: (torch.rand(3), None, torch.rand(3)),
    ),
    "without arguments": (lambda: as_module(lambda: torch.arange(5)), lambda: ()),
    "types": (
        lambda: as_module(lambda *values: tuple(value + value for value in values)),
        lambda: tuple(
            torch.arange(3).to(getattr(torch, name))
            for name in "float64 float16 complex64 int8 int16 int32 int64 uint8".split()
        ),
    ),
    "order": (lambda: as_module(lambda a: (*a.sort(), *a.topk(2))), lambda: (torch.rand(4, 9),)),
}


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_torchs(name, tmp_path):
    make, arguments = MODELS[name]
    model, args = make(), arguments()
    saved = save_and_load(model, args, tmp_path)
    check(saved, model, args)
    check(saved, model, arguments())


def test_bfloat16_is_bfloat16(tmp_path):
    model, args = perceptron().bfloat16(), (torch.randn(8, 16).bfloat16(),)
    saved = save_and_load(model, args, tmp_path)
    assert {variable.dtype for variable in saved.weights} == {tensorflow.bfloat16}
    check(saved, model, args, tolerance=2e-2)


def test_dynamic_dimensions_take_any_size(tmp_path):
    batch = Dim("batch")
    model = convolutional()
    saved = save_and_load(
        model, (torch.randn(2, 3, 8, 8),), tmp_path / "images", dynamic_shapes=({0: batch},)
    )
    (spec,) = saved.signatures["serving_default"].structured_input_signature[1].values()
    assert spec.shape.as_list() == [None, 3, 8, 8]
    for size in (1, 5, 17):
        check(saved, model, (torch.randn(size, 3, 8, 8),))
    model = Language()
    saved = save_and_load(
        model,
        (torch.randint(50, (2, 7)),),
        tmp_path / "tokens",
        dynamic_shapes=({0: batch, 1: Dim("length", max=60)},),
    )
    for shape in ((1, 3), (4, 20)):
        check(saved, model, (torch.randint(50, shape),))


def test_weights_are_variables(tmp_path):
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    saved = save_and_load(model, (x,), tmp_path)
    by_shape = {tuple(variable.shape): variable for variable in saved.weights}
    assert by_shape.keys() == {(2, 3), (2,)}
    assert not any(variable.trainable for variable in saved.weights)
    by_shape[(2,)].assign([1.0, 2.0])
    with torch.no_grad():
        model.bias.copy_(torch.tensor([1.0, 2.0]))
    check(saved, model, (x,))


def test_constants_are_variables(tmp_path):
    model, x = as_module(lambda x: (x - 5) * 3), torch.randn(3)
    options = StableHLOExportOptions(inline_all_constant=False)
    program = exported_program_to_stablehlo(torch.export.export(model, (x,)), options)
    save_stablehlo_graph_as_tf(program, tmp_path)
    saved = tensorflow.saved_model.load(str(tmp_path))
    assert sorted(float(variable) for variable in saved.weights) == [3.0, 5.0]
    check(saved, model, (x,))


def test_named_arguments_come_in_their_order(tmp_path):
    class Model(nn.Module):
        def forward(self, a, *, b, c):
            return a - 2 * b + 3 * c["d"]

    a, b, d = torch.rand(3, 4).unbind()
    exported = torch.export.export(Model(), (a,), {"b": b, "c": {"d": d}})
    save_stablehlo_graph_as_tf(exported_program_to_stablehlo(exported), tmp_path)
    (result,) = tensorflow.saved_model.load(str(tmp_path)).f(*map(array_of, (a, b, d)))
    torch.testing.assert_close(torch.from_numpy(np.array(result)), a - 2 * b + 3 * d)


def test_servers_and_converters_find_their_names(tmp_path):
    from tensorflow.python.saved_model import loader_impl

    saved = save_and_load(
        nn.Linear(3, 2), (torch.ones(1, 3),), tmp_path, serving_key="score", function_alias="linear"
    )
    assert set(saved.signatures) == {"score"}
    results = saved.signatures["score"](args_0=np.ones((1, 3), np.float32))
    assert [tuple(result.shape) for result in results.values()] == [(1, 2)]
    (graph,) = loader_impl.parse_saved_model(str(tmp_path)).meta_graphs
    assert set(graph.meta_info_def.function_aliases.values()) == {"linear"}


def test_functions_take_arrays_or_variables():
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    program = exported_program_to_stablehlo(torch.export.export(model, (x,)))
    bundle = program._bundle
    variables = stablehlo.StableHLOModelBundle(
        {name: tensorflow.Variable(2 * array) for name, array in bundle.state_dict.items()},
        [],
        bundle.stablehlo_funcs,
    )
    with torch.no_grad():
        expected = model(x)
    for factor, call in ((1, make_tf_function(program)), (2, make_tf_function(program, variables))):
        (result,) = tensorflow.function(call)(x.numpy())
        torch.testing.assert_close(
            torch.from_numpy(np.array(result)), factor * expected, rtol=1e-4, atol=1e-5
        )


def test_command_takes_a_folder(tmp_path, monkeypatch):
    model, x = perceptron(), torch.randn(8, 16)
    program = exported_program_to_stablehlo(torch.export.export(model, (x,)))
    program.save(str(tmp_path / "exported"))
    arguments = [str(tmp_path / "exported"), str(tmp_path / "saved"), "-k", "score"]
    monkeypatch.setattr(sys, "argv", ["command", *arguments])
    assert main() == 0
    saved = tensorflow.saved_model.load(str(tmp_path / "saved"))
    assert set(saved.signatures) == {"score"}
    check(saved, model, (x,))


def test_results_are_compared_with_those_of_a_saved_model(tmp_path):
    model, args = perceptron().eval(), (torch.randn(8, 16),)
    save_torch_module_as_tf_saved_model(model, args, tmp_path)
    exported = torch.export.export(model, args)
    compare_exported_program_and_saved_model_result(exported, str(tmp_path), args, atol=1e-5)


def test_weights_that_are_not_there_are_refused(tmp_path):
    exported = torch.export.export(nn.Linear(3, 2), (torch.ones(1, 3),))
    program = exported_program_to_stablehlo(exported, StableHLOExportOptions(export_weights=False))
    with pytest.raises(RuntimeError, match=r"no weight (weight|bias): .* without its weights"):
        save_stablehlo_graph_as_tf(program, tmp_path)


def test_types_that_tensorflow_lacks_are_refused(tmp_path):
    exported = torch.export.export(as_module(torch.neg), (torch.ones(3),))
    program = exported_program_to_stablehlo(exported)
    program._bundle.stablehlo_funcs[0].meta.input_signature[0].dtype = "float5"
    with pytest.raises(TypeError, match="float5"):
        save_stablehlo_graph_as_tf(program, tmp_path)
