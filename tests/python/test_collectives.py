"""Collective operations between 1, 2 and 4 processes; worlds/collectives.py holds the checks."""

import pathlib

import pytest

WORLDS = pathlib.Path(__file__).parent / "worlds"


@pytest.mark.parametrize(
    ("count", "start_method"),
    [(1, "spawn"), pytest.param(2, "spawn", marks=pytest.mark.exhaustive), (4, "fork")],
)
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


def test_collectives_in_compiled_functions(program):
    """xm's, and torch's functional ones, in one graph."""
    program.run_code(
        """
import torch, torch_xla
from torch_xla.core import xla_model as xm
def own(x):
    a, b = x * 1.0, x * 2
    assert xm.all_reduce(xm.REDUCE_SUM, [a, b]) is None
    c = xm.reduce_scatter(xm.REDUCE_SUM, b, 0.5, 0, 1) + xm.all_gather(a)
    return c + xm.all_to_all(x, 0, 0, 1) + xm.collective_permute(x, [[0, 0]])
def functional(x):
    c10d = torch.ops._c10d_functional
    y = c10d.wait_tensor(c10d.broadcast(x, 0, "default")) + c10d.all_reduce(x, "avg", "default")
    [gathered] = c10d.all_gather_into_tensor_coalesced([y], 1, "default")
    return c10d.reduce_scatter_tensor(gathered, "max", 1, "default").cos()
x = torch.arange(4.0)
for function, expected in ((own, 4 * x), (functional, (2 * x).cos())):
    compiled = torch.compile(function, backend="openxla", fullgraph=True)
    for f in (function, compiled):
        torch.testing.assert_close(f(x.to("xla")).cpu(), expected)
""",
        XLA_ALWAYS_ALLREDUCE="1",
    )
