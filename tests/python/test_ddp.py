"""Training in several processes equals training in one; worlds/training.py holds the programs."""

import pathlib

import pytest

WORLDS = pathlib.Path(__file__).parent / "worlds"


def run(program, *arguments, **variables):
    result = program.run(str(WORLDS / "training.py"), *arguments, timeout=240, **variables)
    assert result.stdout.splitlines()[-1] == "passed"


@pytest.mark.parametrize(
    ("count", "ways"),
    [
        (1, ["by_optimizer_step", "by_own_zero_redundancy"]),
        (
            2,
            [
                "by_optimizer_step",
                "by_ddp",
                "by_ddp_in_full_graphs",
                "by_zero_redundancy",
                "by_own_zero_redundancy",
                "by_zero_redundancy_in_bfloat16",
            ],
        ),
        # test_collectives.py shows four processes.
        pytest.param(4, ["by_optimizer_step", "by_ddp"], marks=pytest.mark.exhaustive),
    ],
)
def test_training(program, count, ways):
    run(program, str(count), *ways)


def test_checkpoint_loads_with_another_number_of_processes(program, tmp_path):
    run(program, "checkpoint", CHECKPOINT=str(tmp_path / "checkpoint"))
