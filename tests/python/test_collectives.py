"""Collective operations between 1, 2 and 4 processes; worlds/collectives.py holds the checks."""

import pathlib

import pytest
from conftest import engine_environment

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
gathered = _XLAC._xla_all_gather([a, b, a.double(), a.sum(), a + 1], 0, [[0]])
text = xm.get_stablehlo(gathered)
assert text.count('"stablehlo.all_gather"') == 2, text  # of f32 and of f64
assert "(tensor<3xf32>, tensor<2x2xf32>, tensor<1xf32>, tensor<3xf32>)" in text, text
# Of the second tensor the last dimension is another one, so that it is not gathered with the first.
last = xm.get_stablehlo(_XLAC._xla_all_gather([a, b], -1, [[0]]))
assert last.count('"stablehlo.all_gather"') == 2 and "all_gather_dim = 1 : i64" in last, last
print([r.dtype for r in results], [tuple(g.shape) for g in gathered])
"""
    ).stdout
    assert (
        output.strip()
        == "[torch.float32, torch.float32, torch.float64] [(3,), (2, 2), (3,), (1,), (3,)]"
    )


def test_gathers_of_a_list_in_buckets(program):
    """Those that follow each other up to the bucket's size are one operation, and so are functional coalesced ones."""
    program.run_code(
        """
import torch, torch_xla
from torch_xla.core import xla_model as xm
def gathers(tensors):
    return xm.get_stablehlo(tensors).count('"stablehlo.all_gather"')
megabyte = [torch.full((1 << 18,), float(i), device="xla") for i in range(3)]
assert gathers(xm.all_gather(megabyte)) == 1
bucketized = xm.all_gather_bucketized(megabyte, bucket_cap_mb=2)
assert gathers(bucketized) == 2
output = [torch.zeros(1, device="xla") for _ in range(3)]
assert xm.all_gather_bucketized(megabyte, output=output, bucket_cap_mb=1) is output
assert gathers(output) == 3
assert [[t[0].item(), len(t)] for t in [*bucketized, *output]] == [[i, 1 << 18] for i in (0, 1, 2)] * 2
c10d = torch.ops._c10d_functional
for gathered in (c10d.all_gather_into_tensor_coalesced(megabyte, 1, "default"),):
    assert gathers(gathered) == 1
reduced = c10d.all_reduce_coalesced(megabyte, "sum", "default")
assert xm.get_stablehlo(reduced).count('"stablehlo.all_reduce"') == 1
assert [r[0].item() for r in reduced] == [0, 1, 2] and megabyte[2][0].item() == 2
assert xm.all_gather([]) == [] and xm.all_gather_bucketized([]) == []
""",
        XLA_ALWAYS_ALLREDUCE="1",
    )


def test_gather_of_a_list_on_another_engine(program):
    program.run_code(
        """
import torch, torch_xla
from torch_xla.core import xla_model as xm
tensors = [torch.arange(4.0), torch.arange(6.0).view(2, 3), torch.arange(3), torch.tensor(7.0)]
gathered = xm.all_gather([t.to("xla") for t in tensors])
assert [t.tolist() for t in gathered] == [t.reshape(t.shape or 1).tolist() for t in tensors]
""",
        XLA_ALWAYS_ALLREDUCE="1",
        **engine_environment("xla_cpu"),
    )


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
