"""The programs of docs/libraries.md run as they stand."""

import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT, device_environment

PROGRAMS = dict(
    re.findall(
        r"^## (.+?)$.*?```python\n(.*?)```",
        (ROOT / "docs" / "libraries.md").read_text(),
        re.MULTILINE | re.DOTALL,
    )
)
# Lightning 1.9 takes 1 or 8.
DEVICES = {"Lightning 1.9": 8, "accelerate": 1, "transformers": 1}


def test_each_library_has_a_program():
    assert set(PROGRAMS) == {
        "Lightning",
        "Fabric",
        "Lightning 1.9",
        "accelerate",
        "transformers",
        "pytorch-ignite",
        "Keras",
    }


@pytest.mark.parametrize("library", PROGRAMS)
def test_program(library, tmp_path):
    (tmp_path / "train.py").write_text(PROGRAMS[library])
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment |= device_environment(DEVICES.get(library, 2))
    subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, env=environment, check=True, timeout=300
    )
