"""Running a program as `python script.py arguments…` does."""

import os
import runpy
import sys
import traceback
from collections.abc import Sequence
from types import TracebackType
from typing import NamedTuple


class StopProgram(BaseException):
    """Ends the program from within, so that its `finally` clauses run; it counts as a success."""


class Ended(NamedTuple):
    """How a program ended: the status that its process would have had, and a sentence."""

    status: int
    how: str


FINISHED = Ended(0, "finished")


def run(target: str, arguments: Sequence[str], is_module: bool = False) -> Ended:
    """Runs a script, or a module, as `__main__`. An exception is printed as the interpreter prints it."""
    before_argv, before_path = sys.argv, list(sys.path)
    sys.argv = [target, *arguments]
    # `python -m torch_xla.doctor` has put the current folder there, as a script has its own folder.
    sys.path[0] = os.getcwd() if is_module else os.path.dirname(os.path.abspath(target))
    try:
        if is_module:
            runpy.run_module(target, run_name="__main__", alter_sys=True)
        else:
            # Whole, as the interpreter has it, so that its lines are found after a change of the folder.
            runpy.run_path(os.path.abspath(target), run_name="__main__")
        return FINISHED
    except BaseException as error:
        _show(error)
        return ended_by(error)
    finally:
        sys.argv, sys.path[:] = before_argv, before_path


def ended_by(error: BaseException) -> Ended:
    """How a program ends that raises this."""
    match error:
        case StopProgram():
            return Ended(0, str(error))
        case SystemExit(code=None | 0):
            return FINISHED
        case SystemExit(code=int(status)):
            return Ended(status, f"ended with status {status}")
        case SystemExit():
            return Ended(1, f"ended: {error.code}")
        case KeyboardInterrupt():
            return Ended(130, "was interrupted")
        case _:
            return Ended(1, f"raised {type(error).__name__}: {error}")


def _show(error: BaseException) -> None:
    """As the interpreter does."""
    sys.stdout.flush()
    match error:
        case StopProgram() | SystemExit(code=None | int()):
            pass
        case SystemExit():
            print(error.code, file=sys.stderr)
        case _:
            traceback.print_exception(type(error), error, _of_program(error.__traceback__))


def _of_program(frames: TracebackType | None) -> TracebackType | None:
    """Without the frames of this module and of runpy, unless there are no others."""
    first = frames
    while first is not None:
        file = first.tb_frame.f_code.co_filename
        if file != __file__ and not file.startswith("<frozen runpy"):
            return first
        first = first.tb_next
    return frames
