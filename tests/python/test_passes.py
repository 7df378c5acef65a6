"""The CPU engine's compiler from outside: what it shows of its passes, and which it leaves out."""

import re

import pytest

# What is tested are programs: small graphs would have none at first.
pytestmark = pytest.mark.usefixtures("module_of_programs")

COMPUTES = """
import torch, torch_xla

x = torch.arange(12.0).reshape(3, 4).to("xla")
print((torch.softmax(x * 2 + 1, 1) @ x.T).cpu().sum().item())
"""


def computed(result) -> float:
    return float(result.stdout)


def passes_of(folder) -> dict[str, set[str]]:
    """What each pass of the programs did, by its name."""
    outcomes: dict[str, set[str]] = {}
    for file in folder.glob("*.passes"):
        for line in file.read_text().splitlines():
            row = re.fullmatch(r"\d\d (\w+) +[\d.]+ ms  ([a-z ]+)", line)
            outcomes.setdefault(row[1], set()).add(row[2])
    return outcomes


def test_every_pass_is_shown(program):
    folder = program.folder / "dump"
    result = program.run_code(COMPUTES, TORCH_XLA_DUMP=str(folder), TORCH_XLA_VERIFY="1")
    assert result.stderr == ""
    outcomes = passes_of(folder)
    assert outcomes["fusion"] == {"changed"} and "unchanged" in outcomes["expand_random"]
    for text in folder.glob("*.mlir"):
        number, name = re.fullmatch(r"\d{4}\.(\d\d)-(\w+)", text.stem).groups()
        assert text.read_text().startswith("module"), text
        assert (number, name) == ("00", "input") or "changed" in outcomes[name]
    # A pass that changed nothing leaves no file.
    assert list(folder.glob("*-fusion.mlir")) and not list(folder.glob("*-expand_random.mlir"))
    assert list(folder.glob("0000.00-input.mlir")) and list(folder.glob("0000.program"))


WORLD = """
import torch, torch_xla
from torch_xla.core import xla_model as xm

def work(index):
    value = torch.full((2 + index,), 3.0, device="xla") * 2
    xm.mark_step()
    print(value.sum().item())

if __name__ == "__main__":
    torch_xla.launch(work, start_method="{}")
"""


@pytest.mark.parametrize("start_method", ["spawn", "fork"])
def test_ranks_that_share_a_folder_keep_apart(program, start_method):
    folder = program.folder / "dump"
    path = program.folder / "world.py"
    path.write_text(WORLD.format(start_method))
    program.run(str(path), CPU_NUM_DEVICES="2", TORCH_XLA_DUMP=str(folder))
    for rank in (0, 1):
        inputs = sorted(folder.glob(f"rank{rank}.*.00-input.mlir"))
        assert inputs[0].name == f"rank{rank}.0000.00-input.mlir"
        assert any(f"tensor<{2 + rank}xf32>" in path.read_text() for path in inputs)
        assert not any(f"tensor<{3 - rank}xf32>" in path.read_text() for path in inputs)
    assert all(path.name.startswith("rank") for path in folder.iterdir())


def test_passes_can_be_left_out(program):
    expected = computed(program.run_code(COMPUTES))
    folder = program.folder / "dump"
    result = program.run_code(
        COMPUTES, TORCH_XLA_DISABLE_PASSES="fusion,simplify", TORCH_XLA_DUMP=str(folder)
    )
    assert abs(computed(result) - expected) < 1e-4
    outcomes = passes_of(folder)
    assert outcomes["fusion"] == outcomes["simplify"] == {"disabled"}
    assert not list(folder.glob("*-fusion.mlir"))


def test_names_of_passes_that_cannot_be_left_out_are_errors(program):
    for name, why in (("fussion", "is not there"), ("expand_random", "cannot be left out")):
        result = program.run_code(COMPUTES, check=False, TORCH_XLA_DISABLE_PASSES=name)
        assert result.returncode != 0
        assert "TORCH_XLA_DISABLE_PASSES" in result.stderr and f"'{name}' {why}" in result.stderr
        assert "common_subexpressions, convolution_layout" in result.stderr


def test_the_profile_has_the_passes(program):
    result = program.run_code(COMPUTES, TORCH_XLA_PROFILE="1")
    assert re.search(r"passes of the CPU engine: [\d.]+ ms", result.stderr)
    assert re.search(r"[\d.]+ +\d+  fusion\n", result.stderr)
