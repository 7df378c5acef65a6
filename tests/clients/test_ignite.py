"""pytorch-ignite, unmodified."""

import pytest
from conftest import device_environment

SCRIPT = "train_ignite.py"


def test_one_device(program, on_cpu):
    run = program.run(SCRIPT, "--backend", "xla-tpu", variables=device_environment(1))
    expected = on_cpu(SCRIPT)
    run.check_equal(expected)
    run.check_on_device()
    assert run.report["accuracy"] == pytest.approx(expected.report["accuracy"], abs=0.003)
    assert run.report["evaluated_loss"] == pytest.approx(
        expected.report["evaluated_loss"], rel=1e-3
    )
    assert run.report["total"] == 1
    assert run.report["name"] == "rank 0"


def test_two_processes(program, on_cpu):
    run = program.run(
        SCRIPT, "--backend", "xla-tpu", "--processes", "2", variables=device_environment(2)
    )
    expected = on_cpu(SCRIPT)
    run.check_equal(expected)
    run.check_on_device(2)
    assert run.report["accuracy"] == pytest.approx(expected.report["accuracy"], abs=0.003)
    assert run.report["evaluated_loss"] == pytest.approx(
        expected.report["evaluated_loss"], rel=1e-3
    )
    assert run.report["total"] == 3
    assert run.report["name"] == "rank 0"
