"""`examples/cpp`: a program that finds the package with CMake and trains a LibTorch module on the device."""

import os
import shutil
import subprocess
import sysconfig

import conftest
import pytest
import torch

import torch_xla.utils


def run(*command: str, timeout: float = 600) -> str:
    scripts = sysconfig.get_path("scripts")
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout, env=environment
    )
    if result.returncode != 0:
        pytest.fail(f"{command} failed:\n{result.stdout}\n{result.stderr}")
    return result.stdout


@pytest.mark.slow
def test_builds_and_trains(tmp_path):
    prefixes = f"{torch.utils.cmake_prefix_path};{torch_xla.utils.cmake_prefix_path}"
    source = str(conftest.ROOT / "examples" / "cpp")
    run(
        "cmake",
        "-G",
        "Ninja",
        "-S",
        source,
        "-B",
        str(tmp_path),
        f"-DCMAKE_PREFIX_PATH={prefixes}",
        "-DCMAKE_CXX_FLAGS=-O0",
        # Most of the time goes into torch's headers, which seldom change.
        *(["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []),
    )
    run("cmake", "--build", str(tmp_path))
    output = run(str(tmp_path / "train"))
    assert output.splitlines()[-1] == "agree, learned"
