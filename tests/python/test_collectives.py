"""Collective operations between 1, 2 and 4 processes; worlds/collectives.py holds the checks."""

import pathlib

import pytest

WORLDS = pathlib.Path(__file__).parent / "worlds"


@pytest.mark.parametrize(("count", "start_method"), [(1, "spawn"), (2, "spawn"), (4, "fork")])
def test_collectives(program, count, start_method):
    result = program.run(
        str(WORLDS / "collectives.py"), start_method, CPU_NUM_DEVICES=str(count), timeout=240
    )
    assert result.stdout.splitlines()[-1] == "passed"


def test_recorded_operation_is_stablehlo(program):
    output = program.run_code(
        """
import torch, torch_xla
from torch_xla import _XLAC
from torch_xla.core import xla_model as xm
a = torch.zeros(3, device="xla")
b = torch.zeros(2, 2, device="xla")
results = _XLAC._xla_all_reduce([a, b, a.double()], "sum", 0.5, [[0]])
text = xm.get_stablehlo(results)
assert text.count('"stablehlo.all_reduce"') == 2, text
assert "replica_groups = dense<[[0]]> : tensor<1x1xi64>" in text, text
print([r.dtype for r in results], xm.get_stablehlo([_XLAC._xla_all_gather(a, 0, [[0]])]).count('"stablehlo.all_gather"'))
"""
    ).stdout
    assert output.strip() == "[torch.float32, torch.float32, torch.float64] 1"
