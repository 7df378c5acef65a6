"""The program of docs/case-study: each remedy leaves the results as they are, and the doctor names each cause."""

import json

import pytest
from conftest import ROOT, Program

SCRIPT = str(ROOT / "examples" / "unit" / "train.py")
STEPS = ("--steps", "12")


def loss(output: str) -> str:
    return output.partition("loss ")[2].partition(",")[0]


@pytest.fixture
def examined(program: Program):
    """The loss, and the first cause that the doctor finds."""

    def examine(*arguments: str):
        doctor = ("-m", "torch_xla.doctor", "--json", "found.json", "--report", "report.html")
        output = program.run(*doctor, SCRIPT, *STEPS, *arguments).stdout
        found = json.loads((program.folder / "found.json").read_text())
        return loss(output), found["causes"][0] if found["causes"] else None

    return examine


def test_each_part_names_its_cause(examined):
    as_found, comparison = examined()
    assert comparison["kind"] == "read"
    assert comparison["file"].endswith("attention.py")
    repaired, logging = examined("--same", "identity")
    assert repaired == as_found
    assert logging["kind"] == "read"
    assert logging["file"].endswith("train.py")


@pytest.mark.exhaustive
def test_the_last_remedy_leaves_the_loss(examined):
    as_found, _ = examined("--same", "identity")
    quiet, _ = examined("--same", "identity", "--log-every", "50")
    assert quiet == as_found


def test_the_second_task(program):
    output = program.run(SCRIPT, *STEPS, "--same", "identity", "--digits").stdout
    assert "12 steps" in output
