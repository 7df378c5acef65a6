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
        return Ended(0, "finished")
    except StopProgram as stop:
        return Ended(0, str(stop))
    except SystemExit as error:
        return _exit(error)
    except KeyboardInterrupt as error:
        _show(error)
        return Ended(130, "was interrupted")
    except BaseException as error:
        _show(error)
        return Ended(1, f"raised {type(error).__name__}: {error}")
    finally:
        sys.argv, sys.path[:] = before_argv, before_path


def _exit(error: SystemExit) -> Ended:
    code = error.code
    if code is None or isinstance(code, int):
        status = int(code or 0)
        return Ended(status, "finished" if status == 0 else f"ended with status {status}")
    print(code, file=sys.stderr)
    return Ended(1, f"ended: {code}")


def _show(error: BaseException) -> None:
    frames = error.__traceback__
    sys.stdout.flush()
    traceback.print_exception(type(error), error, _of_program(frames))


def _of_program(frames: TracebackType | None) -> TracebackType | None:
    """Without the frames of this module and of runpy, unless there are no others."""
    first = frames
    while first is not None:
        file = first.tb_frame.f_code.co_filename
        if file != __file__ and not file.startswith("<frozen runpy"):
            return first
        first = first.tb_next
    return frames
