"""With the CPU engine and a process for each device, the device of rank r is `xla:r`; worlds/device_names.py holds the checks."""

import pathlib

import pytest

WORLDS = pathlib.Path(__file__).parent / "worlds"


@pytest.mark.parametrize("start", ["fork", "spawn", "fork after use"])
def test_devices_are_called_by_ranks(program, start):
    result = program.run(str(WORLDS / "device_names.py"), start, CPU_NUM_DEVICES="2", timeout=240)
    assert result.stdout.splitlines()[-1] == "passed"


def test_what_a_process_has_saved_comes_to_the_device_of_another(program):
    """The one that loads has one device, by whatever name the other has called its own."""
    program.run_code(
        """
import torch, torch_xla
def save(rank):
    torch.save(torch.full((2,), float(rank), device="xla"), f"{rank}.pt")
if __name__ == "__main__":
    torch_xla.launch(save, start_method="fork")
""",
        CPU_NUM_DEVICES="2",
    )
    program.run_code(
        """
import torch, torch_xla
for rank in (0, 1):
    loaded = torch.load(f"{rank}.pt")
    assert loaded.device.index == 0 and loaded.tolist() == [rank, rank]
"""
    )
