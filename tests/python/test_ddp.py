"""Training in several processes equals training in one; worlds/training.py holds the programs."""

import pathlib

import pytest

WORLDS = pathlib.Path(__file__).parent / "worlds"


def run(program, way, count, **variables):
    result = program.run(
        str(WORLDS / "training.py"), way, CPU_NUM_DEVICES=str(count), timeout=240, **variables
    )
    assert result.stdout.splitlines()[-1] == "passed"


@pytest.mark.parametrize(
    ("way", "count"),
    [
        ("by_optimizer_step", 1),
        ("by_optimizer_step", 2),
        ("by_optimizer_step", 4),
        ("by_ddp", 2),
        ("by_ddp", 4),
        ("by_zero_redundancy", 2),
        ("by_own_zero_redundancy", 2),
    ],
)
def test_training(program, way, count):
    run(program, way, count)


def test_checkpoint_loads_with_another_number_of_processes(program, tmp_path):
    folder = str(tmp_path / "checkpoint")
    run(program, "save_checkpoint", 4, CHECKPOINT=folder)
    run(program, "load_checkpoint", 2, CHECKPOINT=folder)
