"""Lightning 1.9, unmodified, as in its guide: `Trainer(tpu_cores=8)`, `1`, `[5]`, with `precision=16` and its own sampler."""

import pytest
from lightning_runs import (
    WHOLE_BATCH,
    Library,
    check_bfloat16,
    check_divided,
    check_tied,
    trainer,
)

ONE_CORE = trainer(tpu_cores=1)
EIGHT_CORES = ("--batch-size", "16", *trainer(tpu_cores=8))


@pytest.fixture
def lightning(program, on_cpu) -> Library:
    return Library("pytorch_lightning", program, on_cpu)


def test_one_core(lightning):
    run = lightning.check_one_device(ONE_CORE)
    assert run.report["strategy"] == "SingleTPUStrategy"


def test_core_5(lightning):
    run = lightning.train(8, *trainer(tpu_cores=[5]))
    run.check_equal(lightning.reference())
    run.check_on_device()
    assert run.report["device"] == "xla:5"


def test_resumes(lightning):
    lightning.check_resumed(1, ONE_CORE, lightning.reference())


def test_half_precision(lightning):
    run = lightning.train(1, *trainer(tpu_cores=1, precision=16))
    check_bfloat16(run, lightning.reference())


def test_tied_weights(lightning):
    lightning.check_tied_weights(ONE_CORE)


@pytest.mark.parametrize("sampler", [(), ("--sampler",)], ids=["automatic", "own"])
def test_eight_cores(lightning, sampler):
    run = lightning.train(8, *EIGHT_CORES, *sampler)
    check_divided(run, lightning.reference(*WHOLE_BATCH), processes=8)
    assert run.report["strategy"] == "TPUSpawnStrategy"


def test_eight_cores_resume(lightning):
    lightning.check_resumed(8, EIGHT_CORES, lightning.reference(*WHOLE_BATCH))


def test_eight_cores_half_precision(lightning):
    options = trainer(tpu_cores=8, precision=16)
    run = lightning.train(8, "--batch-size", "16", *options)
    check_bfloat16(run, lightning.reference(*WHOLE_BATCH), processes=8)


def test_tied_weights_in_eight_processes(lightning):
    run = lightning.train(8, *EIGHT_CORES, "--tied")
    check_divided(run, lightning.reference("--tied", *WHOLE_BATCH), processes=8, learned=0.98)
    check_tied(run)
