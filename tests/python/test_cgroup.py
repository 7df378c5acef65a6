"""A cgroup's memory limit is met by an error, before the kernel ends the process."""

import os
import pathlib

import pytest

LIMIT = 2 << 30


def memory_cgroup_of_this_process() -> pathlib.Path:
    for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "memory":
            return pathlib.Path("/sys/fs/cgroup/memory" + path)
        if not controllers and pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists():
            return pathlib.Path("/sys/fs/cgroup" + path)
    raise FileNotFoundError("there is no controller of memory")


@pytest.fixture
def cgroup():
    """The folder of a new cgroup, below this process's, in which there are 2 GiB."""
    folder = None
    try:
        folder = memory_cgroup_of_this_process() / f"torch_xla-test-{os.getpid()}"
        folder.mkdir()
        is_unified = (folder / "cgroup.controllers").exists()
        (folder / ("memory.max" if is_unified else "memory.limit_in_bytes")).write_text(str(LIMIT))
    except OSError as error:
        if folder is not None and folder.exists():
            folder.rmdir()
        pytest.skip(f"no cgroup with a memory limit can be made here: {error}")
    yield folder
    folder.rmdir()


@pytest.mark.parametrize(
    "tensor", ['torch.zeros(3 << 28, device="xla")', 'torch.empty(3 << 28).to("xla")']
)
def test_a_tensor_larger_than_the_cgroup_is_an_error(program, cgroup, tensor):
    output = program.run_code(
        f"""
import os, pathlib
processes = pathlib.Path({str(cgroup)!r}) / "cgroup.procs"
try:
    processes.write_text(str(os.getpid()))
except OSError as error:
    print("refused:", error)
    raise SystemExit
import torch, torch_xla
try:
    tensor = {tensor}
    torch_xla.sync(wait=True)
except RuntimeError as error:
    print(error)
tensor = None
print("alive", (torch.ones(3, device="xla") * 2).sum().item())
""",
        timeout=120,
    )
    if output.stdout.startswith("refused:"):
        pytest.skip(f"this process may not enter the cgroup that it made: {output.stdout}")
    error, *_, alive = output.stdout.splitlines()
    assert "out of memory" in error
    assert str(LIMIT) in error
    assert alive == "alive 6.0"
