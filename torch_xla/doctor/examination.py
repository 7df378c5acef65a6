"""Watching one process, and saying what was found."""

import contextlib
import dataclasses
import json
import pathlib
import sys
from collections.abc import Iterator

from torch_xla import _XLAC
from torch_xla import runtime as xr
from torch_xla.doctor import causes, page, peaks, summary, text
from torch_xla.doctor.observation import Observation
from torch_xla.doctor.program_run import ProgramRun
from torch_xla.doctor.script import Ended


@dataclasses.dataclass(frozen=True)
class Orders:
    """What the command line asks for, in the types of JSON: other processes of the program get it too.

    Args:
      target: the script, or the module.
      arguments: the program's.
      steps: end the program after so many; None: never.
      report: the file that the report goes to, and `json` the one of what was found; None: nowhere.
    """

    target: str
    arguments: list[str]
    steps: int | None
    report: str | None
    json: str | None

    def dumps(self) -> str:
        """As text."""
        return json.dumps(dataclasses.asdict(self))

    @staticmethod
    def loads(text: str) -> "Orders":
        """Of what `dumps` has given."""
        return Orders(**json.loads(text))


class Examination:
    """Of this process."""

    def __init__(self, orders: Orders) -> None:
        self._orders = orders
        self._observation = Observation(orders.steps)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Meanwhile the process is watched."""
        self._observation.start()
        try:
            yield
        finally:
            self._observation.stop()

    def tell(self, ended: Ended) -> list[str]:
        """Prints what was found and writes the files; the kinds of the causes."""
        run = self._observation.run
        run.peaks = _peaks(run)
        found = causes.find(run)
        content = summary.of(run, found, self._orders.target, self._orders.arguments, ended)
        sys.stdout.flush()
        print(text.of(content), file=sys.stderr)
        if self._orders.json is not None:
            pathlib.Path(self._orders.json).write_text(json.dumps(content, indent=1))
        if self._orders.report is not None:
            pathlib.Path(self._orders.report).write_text(page.of(run, content))
            print(f"Report: {self._orders.report}", file=sys.stderr)
        return [cause.kind for cause in found]


def speaks() -> bool:
    """Whether this process, of those of a world, is the one that tells."""
    return not _XLAC._xla_runtime_is_initialized() or xr.global_ordinal() == 0


def _peaks(run: ProgramRun) -> peaks.Peaks | None:
    """Measured after the program, which they do not disturb there."""
    if run.device is None or not run.device.kernels:
        return None
    try:
        return peaks.measure()
    except RuntimeError as error:
        print(f"The device's peaks could not be measured: {error}", file=sys.stderr)
        return None
