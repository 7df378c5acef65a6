"""Programs to be looked at: `_XLAC.lowering.LoweringContext`."""

import inspect
import json

import pytest
import torch

import torch_xla
from torch_xla import _XLAC
from torch_xla.core import xla_builder as xb
from torch_xla.debug import metrics, profiler


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
    assert [shape["dimensions"] for shape in shapes[:2]] == [["3", "4"], ["2", "3"]]
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


@pytest.fixture
def notes():
    before = _XLAC._get_ir_debug()
    _XLAC._set_ir_debug(True)
    yield
    _XLAC._set_ir_debug(before)


def metadata(context):
    """The programs' metadata by the operation, and the lines, the innermost first, that each names."""
    module = json.loads(context.hlo_json())
    tables = module.get("stackFrameIndex", {})

    def lines(number):
        while number:
            frame = tables["stackFrames"][number - 1]
            location = tables["fileLocations"][frame["fileLocationId"] - 1]
            file = tables["fileNames"][location["fileNameId"] - 1]
            yield file, tables["functionNames"][location["functionNameId"] - 1], location["line"]
            number = frame.get("parentFrameId", 0)

    found = {}
    for computation in module["computations"]:
        for instruction in computation["instructions"]:
            if "metadata" in instruction:
                data = instruction["metadata"]
                found[data["opType"]] = data | {"lines": list(lines(data.get("stackFrameId", 0)))}
    return found


def test_names_that_a_program_gives_to_operations(notes):
    def outer():
        return inner()

    def inner():
        product = x @ x.t()
        assert _XLAC._set_xla_custom_op_name_prefix(product, "Net/Linear[0]/", depth)
        return product

    x = torch.ones(2, 3).to("xla")
    depth = len(inspect.stack()) + 1  # up to `outer`
    product = outer()
    assert not _XLAC._set_xla_custom_op_name_prefix(torch.ones(1), "Net/", 1)
    found = metadata(built(product))
    assert found["aten__mm"]["opName"] == "Net/Linear[0]/aten__mm"
    assert found["aten__mm"]["sourceFile"] == __file__
    (file, function, line), *callers = found["aten__mm"]["lines"]
    assert (file, function, line) == (__file__, "outer", outer.__code__.co_firstlineno + 1)
    assert callers[0][1] == "test_names_that_a_program_gives_to_operations"
    assert len(callers) == depth - 1
    # A view is read by an operation, which is named as torch's.
    assert found["aten__permute"]["opName"] == "aten__permute"


def test_sections_of_the_program(notes):
    with profiler.Trace("outer"), profiler.Trace("inner"):
        held = torch.tensor([2.0, 3.0], device="xla")
        total = held + 1
    product = held * 2
    names = {name: data["opName"] for name, data in metadata(built(total, product)).items()}
    assert names["aten__add"] == "outer.1/inner.1/aten__add"
    assert names["aten__mul"] == "aten__mul"
    text = _XLAC._get_xla_tensors_text([total])
    assert "scope=outer.1/inner.1/aten::add.1" in text
    report = _XLAC._xla_tensors_report(0, "xla:0")
    assert "scope=outer.1/inner.1\n" in report and "scope=outer.1/inner.1/aten::add.1" in report
    assert report.count("Python Frames") >= 3 and __file__ in report
    assert "xla::device_data" not in _XLAC._xla_tensors_report(1, "xla:0").splitlines()[0]
    assert _XLAC._xla_tensors_report(1000, "xla:0") == ""


def test_reports_without_notes():
    held = torch.ones(3).to("xla")
    total = held + 1
    report = _XLAC._xla_tensors_report(1, "xla:0")
    assert "Frames" not in report and "aten::add" in report and "scope" not in report
    assert total.sum().item() == 6
