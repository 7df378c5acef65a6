"""The backend `xla` of torch.distributed; worlds/process_group.py holds the checks."""

import pathlib

import pytest

WORLDS = pathlib.Path(__file__).parent / "worlds"


@pytest.mark.parametrize(("count", "methods"), [(2, ["xla://", "env://"]), (4, ["xla://"])])
def test_process_group(program, count, methods):
    result = program.run(
        str(WORLDS / "process_group.py"), *methods, CPU_NUM_DEVICES=str(count), timeout=240
    )
    assert result.stdout.splitlines()[-1] == "passed"


def test_group_of_more_processes_than_the_world(program):
    output = program.run_code(
        """
import torch.distributed as dist, torch_xla.distributed.xla_backend as backend
try:
    backend.ProcessGroupXla(dist.HashStore(), 0, 2, dist.default_pg_timeout)
except ValueError as error:
    print(error)
"""
    ).stdout
    assert "[0, 1] cannot be made by rank 0 of 1" in output
