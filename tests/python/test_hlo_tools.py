"""Programs as files from the command line: hlo_opt and hlo_run."""

import os
import subprocess

import numpy as np
import pytest
from conftest import ROOT

# What is tested are programs: small graphs would have none at first.
pytestmark = pytest.mark.usefixtures("module_of_programs")

COMPUTES = """
import torch, torch_xla

torch.manual_seed(0)
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.BatchNorm2d(4), torch.nn.MaxPool2d(2), torch.nn.Flatten(),
    torch.nn.Linear(64, 5),
).to("xla")
loss = torch.nn.functional.cross_entropy(
    model(torch.randn(2, 3, 8, 8, device="xla")), torch.tensor([1, 3], device="xla")
)
loss.backward()
torch_xla.sync()
"""

PROGRAM = """\
func.func @main(%a: tensor<2x3xf32>, %b: tensor<2xi32>) -> (tensor<3x2xf32>, tensor<2xi32>) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = stablehlo.negate %0 : tensor<3x2xf32>
  %2 = stablehlo.negate %1 : tensor<3x2xf32>
  return %2, %b : tensor<3x2xf32>, tensor<2xi32>
}
"""
PROGRAM_OF_MANY_ELEMENTS = """\
func.func @main(%a: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = stablehlo.tanh %a : tensor<1000xf32>
  return %0 : tensor<1000xf32>
}
"""
PLUGIN = f"--plugin={ROOT / 'torch_xla' / 'lib' / 'libpjrt_cpu.so'}"


@pytest.fixture(scope="module")
def tool():
    named = os.environ.get("TORCH_XLA_BUILD")
    builds = [ROOT / named] if named else list(ROOT.glob("build*"))
    built = [build / "tools" for build in builds if (build / "tools" / "hlo_run").exists()]
    if not built:
        pytest.fail("hlo_run is not built")
    folder = max(built, key=lambda path: (path / "hlo_run").stat().st_mtime)

    def run(name, *arguments, status=0, text=None):
        done = subprocess.run(
            [folder / name, *map(str, arguments)],
            input=text,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout if status == 0 else done.stdout + done.stderr

    return run


def test_every_dump_can_be_replayed(program, tool):
    folder = program.folder / "dump"
    program.run_code(COMPUTES, TORCH_XLA_DUMP=str(folder))
    largest = max(folder.glob("*-input.mlir"), key=lambda path: path.stat().st_size)
    dumps = sorted(folder.glob(f"{largest.name[:4]}.*.mlir"))
    assert len(dumps) > 5
    for dump in dumps:
        output = tool("hlo_run", "--evaluator", PLUGIN, "--tolerance=1e-3", dump)
        assert "result 0: the" in output
        again = tool("hlo_opt", dump)
        assert again == dump.read_text() or "loc(" in dump.read_text()


def test_hlo_opt_runs_passes(tool, tmp_path):
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    assert tool("hlo_opt", path).count("stablehlo.negate") == 2
    simplified = tool("hlo_opt", "--pass=simplify,dead_code", path)
    assert "negate" not in simplified and "stablehlo.transpose" in simplified
    assert tool("hlo_opt", "--pass=simplify", "-", text=PROGRAM) == simplified
    assert "there is no pass smplify" in tool("hlo_opt", "--pass=smplify", path, status=1)
    assert "usage:" in tool("hlo_opt", "--help") and "usage:" in tool("hlo_opt", status=2)


def test_hlo_run_takes_arrays_of_numpy(tool, tmp_path):
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    given, numbers, wrong = (tmp_path / f"{n}.npy" for n in ("given", "numbers", "wrong"))
    np.save(given, np.arange(6, dtype=np.float32).reshape(2, 3))
    np.save(numbers, np.array([7, 8], dtype=np.int32))
    np.save(wrong, np.zeros((3, 2), dtype=np.float32))
    for where in ("--evaluator", PLUGIN):
        output = tool("hlo_run", where, f"--input={given}", f"--input={numbers}", path)
        assert output == "result 0: f32[3,2] {0, 3, 1, 4, 2, 5}\nresult 1: s32[2] {7, 8}\n"
    both = ["--evaluator", PLUGIN, "--seed=3", path]
    assert tool("hlo_run", *both).splitlines() == [f"result {i}: the same bits" for i in (0, 1)]
    # Rounding of the last bit is a difference to who asks for none.
    tanh = PROGRAM_OF_MANY_ELEMENTS
    output = tool("hlo_run", "--evaluator", PLUGIN, "--tolerance=0", "-", text=tanh, status=1)
    assert "of 1000 elements differ" in output
    for index, dtype in enumerate((np.int32, ">f4", "V4")):
        np.save(wrong_type := tmp_path / f"type{index}.npy", np.zeros((2, 3), dtype=dtype))
        output = tool("hlo_run", f"--input={wrong_type}", path, status=2)
        assert "the parameter's f32 are '<f4'" in output
    np.save(fortran := tmp_path / "fortran.npy", np.zeros((2, 3), dtype=np.float32, order="F"))
    assert "not in C order" in tool("hlo_run", f"--input={fortran}", path, status=2)
    assert "the parameter's (2, 3)" in tool("hlo_run", f"--input={wrong}", path, status=2)
    assert "cannot be read" in tool("hlo_run", "--input=/nowhere.npy", path, status=2)
    assert "line 1, column" in tool("hlo_run", "-", text="func.func @main( {", status=2)
    assert "usage:" in tool("hlo_run", "--help")


@pytest.mark.parametrize(
    ("name", "right", "wrong"), [("bf16", "V2", "f2"), ("f8E5M2", "V1", "i1"), ("i1", "?", "u1")]
)
def test_hlo_run_takes_types_that_numpy_lacks(tool, tmp_path, name, right, wrong):
    path = tmp_path / "program.mlir"
    path.write_text(
        f"func.func @main(%a: tensor<2x{name}>) -> tensor<2x{name}> {{\nreturn %a : tensor<2x{name}>\n}}\n"
    )
    for dtype in (right, wrong):
        np.save(tmp_path / f"{dtype}.npy", np.zeros(2, dtype=dtype))
    assert tool("hlo_run", "--evaluator", f"--input={tmp_path / right}.npy", path).startswith(
        "result 0:"
    )
    output = tool("hlo_run", f"--input={tmp_path / wrong}.npy", path, status=2)
    assert f"the array's elements are '{np.dtype(wrong).str}', the parameter's {name} are" in output
    # As ml_dtypes states them.
    if right.startswith("V"):
        bytes_ = (tmp_path / f"{right}.npy").read_bytes().replace(b"'|V", b"'<V")
        (tmp_path / "little.npy").write_bytes(bytes_)
        tool("hlo_run", "--evaluator", f"--input={tmp_path / 'little.npy'}", path)
