"""Programs to be looked at: `_XLAC.lowering.LoweringContext`."""

import json

import pytest
import torch

import torch_xla
from torch_xla import _XLAC
from torch_xla.core import xla_builder as xb
from torch_xla.debug import metrics


def built(*tensors, name="Example"):
    context = _XLAC.lowering.LoweringContext(name)
    context.build(list(tensors))
    return context


def test_program_and_what_it_takes():
    x = torch.arange(6.0).reshape(2, 3).to("xla")
    y = torch.ones(3, 4).to("xla")
    torch_xla.sync()
    context = built(x @ y * 2.5)
    module = json.loads(context.hlo_json())
    assert module["name"] == context.get_name_string() == "Example"
    [entry] = [c for c in module["computations"] if c["name"] == module["entryComputationName"]]
    opcodes = [instruction["opcode"] for instruction in entry["instructions"]]
    assert "dot" in opcodes and opcodes[-1] == "tuple"
    assert entry["instructions"][-1]["id"] == entry["rootId"]
    shapes = module["hostProgramShape"]["parameters"]
    assert [shape["dimensions"] for shape in shapes[:2]] == [["2", "3"], ["3", "4"]]
    text = context.hlo_text()
    assert 'name: "Example"' in text and text.count('opcode: "parameter"') == len(shapes)

    metrics.clear_all()
    on_device = context.device_parameter_id_tensor_mapping()
    assert not metrics.metric_data("TransferFromDeviceTime")
    parameters = context.parameter_id_tensor_mapping()
    assert len(parameters) == len(on_device) == len(shapes)
    torch.testing.assert_close(parameters[context.tensor_parameter_id(x)], x.cpu())
    torch.testing.assert_close(parameters[2], torch.tensor([2.5]))  # numbers come last
    assert context.tensor_parameter_id(x + 1) == -1


def test_program_runs_as_a_computation():
    x = torch.randn(4).to("xla")
    y = torch.randn(4).to("xla")
    torch_xla.sync()
    context = built(x - y)
    computation = xb.computation_from_module_proto("again", context.hlo())
    operands = context.device_parameter_id_tensor_mapping()
    [result] = _XLAC._xla_user_computation(
        "xla::again", [operands[i] for i in range(len(operands))], computation
    )
    torch.testing.assert_close(result.cpu(), (x - y).cpu())


def test_nothing_is_built_yet():
    with pytest.raises(RuntimeError, match="call build"):
        _XLAC.lowering.LoweringContext().hlo_text()
