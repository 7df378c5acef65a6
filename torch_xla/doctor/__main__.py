"""`python -m torch_xla.doctor`: see the package."""

import argparse
import os
import pathlib
import sys

from torch_xla.doctor import causes, launched, script
from torch_xla.doctor.examination import Examination, Orders, speaks

FOUND = 3
"""The exit status when a cause of `--fail-on` was found."""
_ANY = "any"


def main(arguments: list[str] | None = None) -> int:
    """Runs what the command line says; the exit status."""
    options = _parse(arguments)
    # Its figures are those of programs, from the first steps on; read at the first graph, and in processes started from here.
    os.environ.setdefault("TORCH_XLA_INTERPRET", "never")
    orders = Orders(
        options.target,
        options.arguments,
        options.steps,
        None if options.no_report else _absolute(options.report),
        _absolute(options.json),
    )
    examination = Examination(orders)
    with launched.watched(orders) as launched_found:
        with examination.watching():
            ended = script.run(options.target, options.arguments, options.module is not None)
        found = launched_found.kinds()
    if found is None and speaks():
        found = examination.tell(ended)
    if ended.status or found is None:
        return ended.status
    return FOUND if _fails(options.fail_on, found) else 0


def _absolute(path: pathlib.Path | None) -> str | None:
    """The program may go to another folder."""
    return None if path is None else str(path.absolute())


def _fails(kinds: list[str], found: list[str]) -> bool:
    return any(_ANY in kinds or kind in kinds for kind in found)


def _parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m torch_xla.doctor",
        usage="%(prog)s [options] (script.py | -m module) [arguments of the program]",
        description="Runs a program unchanged, and says what makes its steps slow. The exit status is the program's own; "
        f"{FOUND} when it succeeds and a cause of --fail-on was found.",
    )
    parser.add_argument(
        "--steps", type=_positive, metavar="N", help="end the program after so many steps"
    )
    parser.add_argument(
        "--json", type=pathlib.Path, metavar="FILE", help="write what was found there too"
    )
    parser.add_argument(
        "--fail-on",
        type=_kinds,
        default=[],
        metavar="KINDS",
        help=f"fail when one of these causes was found, separated by commas: {', '.join([*causes.KINDS, _ANY])}",
    )
    parser.add_argument(
        "--report",
        type=pathlib.Path,
        metavar="FILE.html",
        default=pathlib.Path("doctor.html"),
        help="where the report goes (doctor.html)",
    )
    parser.add_argument("--no-report", action="store_true", help="write no report")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as `python -m`")
    parser.add_argument("program", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.module is None and not options.program:
        parser.error("which program? Give a script, or -m and a module.")
    if options.module is not None:
        options.target, options.arguments = options.module, options.program
    else:
        options.target, *options.arguments = options.program
        if not pathlib.Path(options.target).exists():
            parser.error(f"there is no file {options.target}")
    return options


def _positive(value: str) -> int:
    number = int(value)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{value} is not at least 1")
    return number


def _kinds(value: str) -> list[str]:
    kinds = [kind.strip() for kind in value.split(",") if kind.strip()]
    for kind in kinds:
        if kind not in (*causes.KINDS, _ANY):
            raise argparse.ArgumentTypeError(
                f"{kind} is none of {', '.join([*causes.KINDS, _ANY])}"
            )
    return kinds


if __name__ == "__main__":
    sys.exit(main())
