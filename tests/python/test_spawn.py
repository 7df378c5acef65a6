"""Starting the processes of a world, their ranks, and their meetings on the host."""

import pathlib
import re

import pytest

WORLDS = pathlib.Path(__file__).parent / "worlds"
CASES = re.findall(r"^def (\w+)\(\):", (WORLDS / "spawning.py").read_text(), re.MULTILINE)


def test_spawn(program):
    result = program.run(str(WORLDS / "spawning.py"), *CASES, timeout=280)
    assert result.stdout.splitlines()[-1] == "[]", result.stderr


@pytest.mark.parametrize("count", [1, 2])
def test_launch_tells_each_process_its_place(program, count):
    program.run(str(WORLDS / "ranks.py"), str(count), CPU_NUM_DEVICES=str(count), timeout=120)


def test_launch_of_simulated_tpus(program):
    program.run(
        str(WORLDS / "ranks.py"),
        "4",
        PJRT_DEVICE="TPU",
        TORCH_XLA_SIMULATE_TPU="4",
        # What the first TPU virtual machines needed has no effect.
        XRT_TPU_CONFIG="localservice;0;localhost:51011",
        timeout=120,
    )


def test_torchrun_tells_each_process_its_place(program):
    program.run(
        "-m",
        "torch.distributed.run",
        "--nproc_per_node=2",
        "--standalone",
        str(WORLDS / "ranks.py"),
        "2",
        timeout=120,
    )


def test_processes_that_cannot_find_each_other(program):
    result = program.run_code(
        "import torch_xla; torch_xla.device().index; torch_xla.device_count()",
        check=False,
        timeout=60,
        WORLD_SIZE="2",
        RANK="0",
    )
    assert result.returncode != 0
    assert "MASTER_ADDR is not set" in result.stderr
