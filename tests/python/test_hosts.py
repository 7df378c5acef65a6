"""One command on two machines, which are network namespaces: each has its own address, and the network between them."""

import os
import pathlib
import re
import subprocess
import sys

import pytest
import torch
from conftest import ROOT

PROGRAM = str(pathlib.Path(__file__).parent / "worlds" / "hosts.py")
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node=2"]


def environment(**variables: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "CPU_NUM_DEVICES": "2", **variables}


def check_places(output: str) -> None:
    """Four processes, two on each host, have read all of the data between them."""
    pattern = (
        r"rank (\d) of 4, local (\d) of 2, host (\d), index (\d), hosts (\d) of 2, read \[(.*)\]"
    )
    places = sorted(re.findall(pattern, output))
    expected = [(str(rank), str(rank % 2), str(rank // 2)) for rank in range(4)]
    assert [place[:3] for place in places] == expected, output
    assert [place[3:5] for place in places] == [(local, host) for _, local, host in expected]
    assert len({place[5] for place in places}) == 4


def weights(folder: pathlib.Path) -> dict[str, torch.Tensor]:
    """What was saved: by one process only."""
    (file,) = folder.glob("*.pt")
    assert file.name == "weights-of-host-0.pt"
    return torch.load(file)


@pytest.fixture(scope="module")
def of_one_host(tmp_path_factory):
    """The weights of four processes on one machine."""
    folder = tmp_path_factory.mktemp("one")
    subprocess.run(
        [sys.executable, PROGRAM, str(folder)],
        env=environment(CPU_NUM_DEVICES="4"),
        check=True,
        timeout=120,
    )
    return weights(folder)


@pytest.mark.parametrize("launcher", [[], TORCHRUN], ids=["launch", "torchrun"])
def test_one_command_on_each_host(network, of_one_host, tmp_path, launcher):
    passed = ("PYTHONPATH", "CPU_NUM_DEVICES", "TORCH_XLA_LIBRARY_DIR")
    result = subprocess.run(
        [
            *(sys.executable, "-m", "torch_xla.distributed.xla_dist"),
            *(f"--hosts={network.names}", f"--ssh={network.ssh}"),
            *(f"--env={name}" for name in passed if name in environment()),
            *("--", *(launcher or [sys.executable]), PROGRAM, str(tmp_path)),
        ],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    check_places(result.stdout)
    torch.testing.assert_close(weights(tmp_path), of_one_host)


def test_a_host_without_its_rank(program):
    result = program.run(
        PROGRAM,
        "nowhere",
        check=False,
        timeout=60,
        PET_NNODES="2",
        PET_MASTER_ADDR="10.0.0.1",
    )
    assert result.returncode != 0
    assert "PET_NODE_RANK=None is not the rank of one" in result.stderr
