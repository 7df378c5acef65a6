"""Fully sharded training; worlds/fsdp.py holds the checks."""

import pathlib

import pytest

WORLD = pathlib.Path(__file__).parent / "worlds" / "fsdp.py"


def run(program, name, count, **options):
    return program.run(str(WORLD), name, CPU_NUM_DEVICES=str(count), timeout=240, **options)


@pytest.mark.parametrize(
    ("check", "count"),
    [
        ("trains_as_one_process", 1),
        ("trains_as_one_process", 2),
        ("wraps_what_policies_pick", 2),
        ("clips_gradients", 2),
        ("shards_within_groups", 2),
    ],
)
def test_fsdp(program, check, count):
    assert run(program, check, count).stdout.splitlines()[-1] == "passed"


def test_checkpoints(program, tmp_path):
    result = run(
        program, "saves_parts_that_become_a_whole", 2, CHECKPOINT=str(tmp_path / "checkpoint")
    )
    assert result.stdout.splitlines()[-1] == "passed"
