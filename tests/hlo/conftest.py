"""What the tests of programs share."""

import subprocess

import oracle
import pytest


@pytest.fixture(scope="session")
def tool():
    """Runs `hlo_tool ARGUMENTS`, which reads and writes programs."""
    path = oracle.find_program("hlo_tool")
    if path is None:
        pytest.fail("hlo_tool is not built")

    def run(*arguments):
        done = subprocess.run([path, *arguments], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr

    return run
