"""Several processes save and load together."""

import pathlib
import re

import pytest

WORLDS = pathlib.Path(__file__).parent / "worlds"
CASES = re.findall(r"^def (\w+)\(folder\):", (WORLDS / "saving.py").read_text(), re.MULTILINE)


@pytest.mark.parametrize("case", CASES)
def test_two_processes(program, tmp_path, case):
    folder = tmp_path / "saved"
    folder.mkdir()
    result = program.run(
        str(WORLDS / "saving.py"), case, str(folder), CPU_NUM_DEVICES="2", timeout=120
    )
    assert result.stdout.splitlines()[-1] == "passed"


def test_four_processes(program, tmp_path):
    result = program.run(
        *(str(WORLDS / "saving.py"), "only_the_master_writes", str(tmp_path)),
        CPU_NUM_DEVICES="4",
        timeout=120,
    )
    assert result.stdout.splitlines()[-1] == "passed"
