"""The user guide's program for several devices with 1 to 8 processes, launched by itself and by torchrun."""

import pathlib

import pytest

WORLDS = pathlib.Path(__file__).parent / "worlds"
GUIDE = pathlib.Path(__file__).parent / "guide"


@pytest.mark.parametrize(
    "arguments",
    [
        ["fork", "4", "1"],
        pytest.param(["fork", "8"], marks=pytest.mark.exhaustive),
        pytest.param(["spawn", "2"], marks=pytest.mark.exhaustive),
    ],
    ids=" ".join,
)
def test_guide_equals_one_device_with_the_whole_batch(program, arguments):
    result = program.run(str(WORLDS / "guide.py"), *arguments, timeout=280)
    assert result.stdout.splitlines()[-1] == "passed"


def test_guide_under_torchrun(program):
    result = program.run(
        "-m",
        "torch.distributed.run",
        "--standalone",
        "--nproc_per_node=2",
        str(WORLDS / "guide.py"),
        "spawn",
        timeout=280,
    )
    assert result.stdout.count("passed") == 2


def test_the_guides_text_unmodified(program, tmp_path):
    head = (GUIDE / "mnist_single.py").read_text().partition("\ndevice = ")[0]
    script = tmp_path / "train_mnist_xla.py"
    script.write_text(head + "\n" + (GUIDE / "mnist_launch.py").read_text())
    program.run(str(script), CPU_NUM_DEVICES="2", timeout=280)


def test_results_of_processes(program):
    """What a function gives in each, and what it raises there."""
    output = program.run_code(
        """
import functools
from torch_xla import runtime
from torch_xla._internal import pjrt
from torch_xla.core import xla_model as xm
print(pjrt.run_multiprocess(runtime.global_ordinal))
try:
    pjrt.run_multiprocess(functools.partial(xm.rendezvous, "tag", ""))
except TypeError as error:
    print("raised:", error)
""",
        CPU_NUM_DEVICES="2",
    ).stdout
    assert "{0: 0, 1: 1}" in output and "raised: rendezvous 'tag': the payload is bytes" in output
