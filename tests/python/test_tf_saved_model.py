"""Saved models of TensorFlow where there is no TensorFlow. tests/saved_model has what TensorFlow makes of them."""

import subprocess
import sys

import pytest
import torch
from torch import nn

from torch_xla import tf_saved_model_integration as integration
from torch_xla.stablehlo import InputLocation, exported_program_to_stablehlo

WORDS = "pip install tensorflow-cpu"


@pytest.fixture
def without_tensorflow(monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorflow", None)


@pytest.fixture(scope="module")
def program():
    return exported_program_to_stablehlo(torch.export.export(nn.Linear(3, 2), (torch.ones(1, 3),)))


def test_errors_say_what_to_install(without_tensorflow, program, tmp_path):
    folder = tmp_path / "saved"
    with pytest.raises(ImportError, match=WORDS):
        integration.make_tf_function(program)
    with pytest.raises(ImportError, match=WORDS):
        integration.save_stablehlo_graph_as_tf(program, folder)
    with pytest.raises(ImportError, match=WORDS):
        integration.save_torch_module_as_tf_saved_model(
            nn.Linear(3, 2), (torch.ones(1, 3),), folder
        )
    assert not folder.exists()


def test_command_says_what_to_install(without_tensorflow, program, tmp_path, monkeypatch):
    program.save(str(tmp_path / "exported"))
    monkeypatch.setattr(sys, "argv", ["command", str(tmp_path / "exported"), str(tmp_path / "out")])
    with pytest.raises(ImportError, match=WORDS):
        integration.main()


@pytest.mark.slow
def test_command_says_what_it_takes():
    command = [sys.executable, "-m", "torch_xla.tf_saved_model_integration", "--help"]
    text = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout
    assert "input_dir" in text and "(serving_default)" in text


def test_tensorflow_is_not_imported_before_it_is_needed(without_tensorflow, monkeypatch):
    monkeypatch.delitem(sys.modules, integration.__name__)
    __import__(integration.__name__)


@pytest.mark.parametrize(
    "name, wanted",
    [
        ("0.weight", "0.weight"),
        ("_scale", "k_scale"),
        (".bias", "k.bias"),
        ("größe:0", "gr__e_0"),
        ("", "k"),
    ],
)
def test_names_of_variables_are_tensorflows(name, wanted):
    assert integration._variable_name(InputLocation.parameter(name)) == wanted


def test_parameters_are_the_arguments_in_their_order():
    class Model(nn.Module):
        def forward(self, unused, scale, nothing, x):
            return x * scale

    exported = torch.export.export(
        Model(),
        (torch.ones(2), 2.5, None, torch.ones(4, 3)),
        dynamic_shapes=(None, None, None, {0: torch.export.Dim("rows")}),
    )
    meta = exported_program_to_stablehlo(exported)._bundle.stablehlo_funcs[0].meta
    assert [
        (position, integration._shape(signature), signature.dtype)
        for position, signature in integration._parameters(meta)
    ] == [(0, [2], "float32"), (1, [], "float"), (3, [None, 3], "float32")]
