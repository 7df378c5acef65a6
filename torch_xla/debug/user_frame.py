"""The user's line that runs now, and what of it runs."""

import functools
import linecache
import os
import sys
import sysconfig
from types import CodeType, FrameType

from torch_xla.debug.what_changed import Location

_LIBRARIES = tuple(
    os.path.dirname(os.path.abspath(sys.modules[name].__file__ or "")) + os.sep
    for name in ("torch", "torch_xla")
)
_PACKAGES = tuple({sysconfig.get_path(name) + os.sep for name in ("purelib", "platlib", "stdlib")})
_FOLDER = os.path.dirname(os.path.abspath(__file__))
_LOOKING = (
    *(os.path.join(_FOLDER, name) for name in ("_reports.py", "observers.py", "user_frame.py")),
    os.path.join(os.path.dirname(_FOLDER), "doctor") + os.sep,
)
# What the user wrote, for the operators that need a value on the host.
_READERS = {
    "aten::_local_scalar_dense": ".item(), float(), int() or bool() of a tensor",
    "aten::_to_cpu": ".cpu(), .tolist() or .numpy() of a tensor",
    "aten::equal": "torch.equal",
    "aten::nonzero": "torch.nonzero or an index with a mask, whose result has as many elements as the values say",
}
_PRINT = "print, str() or repr() of a tensor"


def frames() -> list[FrameType]:
    """From the innermost one that is not of those who look."""
    frame: FrameType | None = sys._getframe(1)
    found = []
    while frame is not None:
        if not frame.f_code.co_filename.startswith(_LOOKING):
            found.append(frame)
        frame = frame.f_back
    return found


def innermost() -> FrameType | None:
    """The innermost frame outside of torch and torch_xla."""
    return outside_of_torch(sys._getframe(1))


def innermost_of_program() -> FrameType | None:
    """The innermost frame outside of installed packages too; None if there is none."""
    return outside_of_packages(sys._getframe(1))


def is_in_torch(file: str) -> bool:
    """Whether a file is one of torch's or torch_xla's."""
    return file.startswith(_LIBRARIES)


def outside_of_torch(frame: FrameType | None) -> FrameType | None:
    """The innermost frame outside of torch and torch_xla, from this one on."""
    return _outside(frame, _LIBRARIES)


def outside_of_packages(frame: FrameType | None) -> FrameType | None:
    """The innermost frame outside of torch, installed packages and Python's own, from this one on."""
    return _outside(frame, (*_LIBRARIES, *_PACKAGES))


def _outside(frame: FrameType | None, folders: tuple[str, ...]) -> FrameType | None:
    while frame is not None and frame.f_code.co_filename.startswith((*folders, "<frozen")):
        frame = frame.f_back
    return frame


def location(frame: FrameType) -> Location:
    """Where a frame is."""
    return Location(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)


def line_text(file: str, line: int) -> str:
    """The line, without its indentation; empty if the file cannot be read."""
    return linecache.getline(file, line).strip()


def expression(frame: FrameType) -> str:
    """The part of the program that a frame is in the middle of, as `loss.item()`; empty if that is not known."""
    position = _positions(frame.f_code)[frame.f_lasti // 2]
    first, last, start, end = position
    if first is None or last is None or start is None or end is None:
        return ""
    lines = [
        linecache.getline(frame.f_code.co_filename, line).rstrip("\n").encode()
        for line in range(first, last + 1)
    ]
    if not any(lines):
        return ""
    lines[-1] = lines[-1][:end]
    lines[0] = lines[0][start:]
    return " ".join(line.decode(errors="replace").strip() for line in lines)


@functools.lru_cache(maxsize=256)
def _positions(code: CodeType) -> list[tuple[int | None, int | None, int | None, int | None]]:
    return list(code.co_positions())


def reader(operator: str) -> str:
    """What the user wrote for an operator that needs a value; empty if that is not known."""
    from torch import _tensor_str

    if operator == "aten::_to_cpu" and any(
        frame.f_code.co_filename == _tensor_str.__file__ for frame in frames()
    ):
        return _PRINT
    return _READERS.get(operator, "")
