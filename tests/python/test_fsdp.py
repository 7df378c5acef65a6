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


def test_model_larger_than_the_memory_of_one_process(program):
    limit = str(40 * 2**20)
    alone = run(program, "train_a_large_model", 1, TORCH_XLA_MEMORY_LIMIT=limit, check=False)
    assert alone.returncode != 0
    assert f"bytes and the device has {limit}" in alone.stderr
    run(program, "train_a_large_model", 4, TORCH_XLA_MEMORY_LIMIT=limit)
