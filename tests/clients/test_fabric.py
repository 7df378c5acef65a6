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


def test_two_devices(program, on_cpu):
    run = program.run(
        SCRIPT, "--accelerator", "tpu", "--devices", "2", variables=device_environment(2)
    )
    run.check_equal(on_cpu(SCRIPT, "--batch-size", "128"))
    run.check_on_device(2)
    assert run.report["strategy"] == "XLAStrategy"
    assert run.report["loaded_equal"]
    # 1 + 2, and the name that rank 0 has sent.
    assert run.report["total"] == 3
    assert run.report["name"] == "rank 0"
