"""The processes that the program launches (`torch_xla.launch`, `xmp.spawn`): each is watched, and that of rank 0 tells."""

import contextlib
import json
import os
import pathlib
import tempfile
from collections.abc import Callable, Iterator

from torch_xla.core import xla_env_vars as xenv
from torch_xla.doctor.examination import Examination, Orders, speaks
from torch_xla.doctor.script import FINISHED, StopProgram, ended_by


class Found:
    """What a launched process has found, if there was one."""

    def __init__(self, file: pathlib.Path) -> None:
        self._file = file

    def kinds(self) -> list[str] | None:
        """The kinds of causes; None if no launched process has told."""
        return json.loads(self._file.read_text()) if self._file.exists() else None


@contextlib.contextmanager
def watched(orders: Orders) -> Iterator[Found]:
    """Meanwhile processes that the program launches are watched."""
    with tempfile.TemporaryDirectory(prefix="torch_xla-doctor-") as folder:
        file = pathlib.Path(folder, "found.json")
        os.environ[xenv.TORCH_XLA_DOCTOR] = json.dumps([orders.dumps(), str(file)])
        try:
            yield Found(file)
        finally:
            os.environ.pop(xenv.TORCH_XLA_DOCTOR, None)


def run(function: Callable[[], object]) -> None:
    """Runs what a launched process is for, and tells what was found, also when it raises."""
    # Processes that this one launches are the program's affair.
    orders, file = json.loads(os.environ.pop(xenv.TORCH_XLA_DOCTOR))
    examination = Examination(Orders.loads(orders))
    try:
        with examination.watching():
            function()
        ended = FINISHED
    except BaseException as error:
        ended = ended_by(error)
        if not isinstance(error, StopProgram):
            raise
    finally:
        if speaks():
            kinds = examination.tell(ended)
            pathlib.Path(file).write_text(json.dumps(kinds))
