"""Recording that takes longer than running: the device waits for the program."""

from torch_xla.doctor.causes.cause import Cause
from torch_xla.doctor.program_run import ProgramRun


def find(run: ProgramRun) -> list[Cause]:
    """A cause, if it is known how long the device works."""
    return []
