"""Fully sharded training; worlds/fsdp.py holds the checks."""

import pathlib

import pytest
from torch import nn

from torch_xla.distributed.fsdp import wrap

WORLD = pathlib.Path(__file__).parent / "worlds" / "fsdp.py"


def run(program, count, *checks, **options):
    return program.run(str(WORLD), *checks, CPU_NUM_DEVICES=str(count), timeout=240, **options)


@pytest.mark.parametrize(
    ("count", "checks"),
    [
        # test_ddp.py shows that one process may be the world.
        pytest.param(1, ["trains_as_one_process"], marks=pytest.mark.exhaustive),
        (
            2,
            [
                "trains_as_one_process",
                "wraps_what_policies_pick",
                "fills_parameters_of_the_meta_device",
                "clips_gradients",
                "shards_within_groups",
                "saves_parts_that_become_a_whole",
            ],
        ),
    ],
)
def test_fsdp(program, tmp_path, count, checks):
    result = run(program, count, *checks, CHECKPOINT=str(tmp_path / "checkpoint"))
    assert result.stdout.splitlines()[-1] == "passed"


def test_policy_of_sizes_takes_the_classes_it_is_given():
    attention, layers = nn.MultiheadAttention(4, 1), nn.ModuleList([nn.Linear(4, 4)])

    def wraps(module, recurse, **classes):
        return wrap.size_based_auto_wrap_policy(module, recurse, 10, min_num_params=10, **classes)

    assert not wraps(attention, True) and wraps(attention, True, force_leaf_modules=set())
    assert not wraps(layers, False) and wraps(layers, False, exclude_wrap_modules=set())
    assert not wraps(layers, True, force_leaf_modules={nn.ModuleList})
    assert not wraps(attention, False, exclude_wrap_modules={nn.MultiheadAttention})


def test_model_larger_than_the_memory_of_one_process(program):
    limit = str(40 * 2**20)
    alone = run(program, 1, "train_a_large_model", TORCH_XLA_MEMORY_LIMIT=limit, check=False)
    assert alone.returncode != 0
    assert f"bytes and the device has {limit}" in alone.stderr
    run(program, 4, "train_a_large_model", TORCH_XLA_MEMORY_LIMIT=limit)
