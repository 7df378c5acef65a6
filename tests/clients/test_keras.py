"""Keras 3 with its backend torch, unmodified."""

import pytest

SCRIPT = "train_keras.py"


def test_one_device(program, on_cpu):
    run = program.run(SCRIPT, "--device", "xla", variables={"PJRT_DEVICE": "CPU"})
    expected = on_cpu(SCRIPT)
    run.check_equal(expected)
    run.check_on_device()
    for name, value in expected.report["evaluated"].items():
        assert run.report["evaluated"][name] == pytest.approx(value, rel=1e-2), name
    assert run.report["loaded_differs"] == 0
