"""Lightning Fabric, unmodified."""

from conftest import device_environment

SCRIPT = "train_fabric.py"


def test_one_device(program, on_cpu):
    run = program.run(SCRIPT, "--accelerator", "tpu", variables=device_environment(1))
    run.check_equal(on_cpu(SCRIPT))
    run.check_on_device()
    assert run.report["loaded_equal"]
    assert run.report["total"] == 1
    assert run.report["name"] == "rank 0"
