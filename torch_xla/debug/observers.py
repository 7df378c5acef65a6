"""Who is told what the program does. Several may want to know: the debug reports, the doctor.

Nothing is told, and nothing paid, while nobody observes.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from torch_xla import _XLAC


class StepEnd(NamedTuple):
    """A sync that ends a step. Times are `time.perf_counter()`'s.

    `cause`: who ended it, as the debug reports say; `waits`: it returns only when the execution has ended.
    """

    cause: str
    waits: bool
    start: float
    end: float


GraphObserver = Callable[[Any], None]
"""Is called with each `_XLAC.GraphEvent`, under the lock of the graphs."""
WaitObserver = Callable[[str, str, float], None]
"""Is called after each wait for values, and each upload: its kind ("read", "fallback", "upload"), the operator, the seconds."""
StepObserver = Callable[[StepEnd], None]
"""Is called after each sync that ends a step. What it raises is raised by the sync."""
SectionObserver = Callable[[str, float, float], None]
"""Is called after each named section of the package's own work: name, start, end."""

_graph: list[GraphObserver] = []
_wait: list[WaitObserver] = []
_step: list[StepObserver] = []
_section: list[SectionObserver] = []


def add(
    graph: GraphObserver | None = None,
    wait: WaitObserver | None = None,
    step: StepObserver | None = None,
    section: SectionObserver | None = None,
) -> None:
    """Tells these from now on."""
    if graph is not None:
        _graph.append(graph)
    if wait is not None:
        _wait.append(wait)
    if step is not None:
        _step.append(step)
    if section is not None:
        _section.append(section)
    _tell_core()


def remove(*observers: Any) -> None:
    """Tells these no more."""
    for group in (_graph, _wait, _step, _section):
        group[:] = [observer for observer in group if observer not in observers]
    _tell_core()


def are_set() -> bool:
    """Whether anybody observes."""
    return bool(_graph or _wait or _step or _section)


def _tell_core() -> None:
    _XLAC._set_graph_observer(_on_graph if _graph else None)
    _XLAC._set_wait_observer(_on_wait if _wait else None)


def _on_graph(event: Any) -> None:
    for observer in list(_graph):
        observer(event)


def _on_wait(kind: str, operator: str, seconds: float) -> None:
    for observer in list(_wait):
        observer(kind, operator, seconds)


def tell_step(end: StepEnd) -> None:
    """Tells the observers of steps."""
    for observer in list(_step):
        observer(end)


class section:  # noqa: N801, used as a function is
    """A context around work of the package that takes the program's time, such as "input": waiting for a batch."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        self._start = time.perf_counter() if _section else 0.0

    def __exit__(self, *_: object) -> None:
        if not self._start:
            return
        end = time.perf_counter()
        for observer in list(_section):
            observer(self._name, self._start, end)
