"""Watches a program: makes a `ProgramRun` of what the observers of `torch_xla.debug` are told."""

import collections
import functools
import math
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from torch.utils.data import dataloader

from torch_xla import _XLAC
from torch_xla.debug import memory, observers, user_frame, what_changed
from torch_xla.debug._reports import ProgramBytes, cause_text, snapshot
from torch_xla.debug.what_changed import Location
from torch_xla.doctor.device_profile import Collector
from torch_xla.doctor.host_samples import Sampler
from torch_xla.doctor.program_run import (
    Compilation,
    Execution,
    Interval,
    Loader,
    MemorySample,
    ProgramRun,
    Site,
    StepEnd,
    WideOperator,
)
from torch_xla.doctor.script import StopProgram

# Ends no step: what it runs belongs to none of the steps of the function that is called.
_BEFORE_A_STEP = "torch_xla.compile clear the pending graph prior calling the target function"
# So many samples of the memory are taken at least, and at most twice as many are kept.
_MEMORY_SAMPLES = 256


class Observation:
    """Watches from `start` to `stop`.

    Args:
      most_steps: after so many steps the program is ended by `StopProgram`; None: never.
    """

    def __init__(self, most_steps: int | None = None) -> None:
        self.run = ProgramRun(main_thread=threading.get_ident())
        self._most_steps = most_steps
        self._history = what_changed.History()
        self._program_bytes = ProgramBytes()
        self._compiling: tuple[float, what_changed.Change | None, Site | None] | None = None
        self._memory_stride = 1
        self._memory_turn = 0
        self._collector = Collector()
        self._sampler = Sampler()
        self._loader_next = dataloader._BaseDataLoaderIter.__next__

    def start(self) -> None:
        """Observes from now on."""
        _XLAC._keep_locations(True)
        _XLAC._put_locations_into_programs(True)
        self._collector.start()
        observers.add(self._on_graph, self._on_wait, self._on_step, self._on_section)
        dataloader._BaseDataLoaderIter.__next__ = self._timed_loader_next()
        self._sampler.start()
        self.run.start = time.perf_counter()

    def stop(self) -> None:
        """Observes no more."""
        self.run.end = time.perf_counter()
        self._sampler.stop()
        self.run.host_samples = self._sampler.samples
        dataloader._BaseDataLoaderIter.__next__ = self._loader_next
        observers.remove(self._on_graph, self._on_wait, self._on_step, self._on_section)
        self._collector.stop()
        self.run.device = self._collector.profile
        _XLAC._keep_locations(False)
        _XLAC._put_locations_into_programs(False)
        self.run.intervals.sort(key=lambda interval: interval.start)

    # --- Graphs ---

    def _on_graph(self, event: Any) -> None:
        start = time.perf_counter()
        if event.stage == "compile":
            change = self._history.add(snapshot(event))
            self._note_lines(event)
            self._compiling = (0.0, change, _site())
        elif event.stage == "compiled":
            self._note_compilation(event, start)
        elif event.stage == "execute":
            self._note_execution(event)
        else:
            return
        end = time.perf_counter()
        self._add("doctor", start, end)
        self._note_noting(end)
        if event.stage == "compile" and self._compiling is not None:
            self._compiling = (end, *self._compiling[1:])

    def _note_compilation(self, event: Any, end: float) -> None:
        self._program_bytes.note(event)
        if self._compiling is None:
            return
        (start, change, site), self._compiling = self._compiling, None
        self._add("compile", start, end, event.name or "compile", site)
        compilation = Compilation(
            start,
            end,
            change,
            cause_text(event),
            site,
            event.name,
            event.operators,
            event.reason[0] == "caller",
        )
        self.run.compilations.append(compilation)

    def _note_execution(self, event: Any) -> None:
        now = time.perf_counter()
        self.run.executions.append(
            Execution(now, event.hash, event.operators, threading.get_ident())
        )
        self._memory_turn += 1
        if self._memory_turn % self._memory_stride:
            return
        needed = self._program_bytes.of(event.hash)
        self.run.memory.append(MemorySample(now, tuple(memory.live_tensors()), needed))
        if len(self.run.memory) >= 2 * _MEMORY_SAMPLES:
            # Every second one is dropped, and from now on not taken.
            del self.run.memory[::2]
            self._memory_stride *= 2

    def _note_lines(self, event: Any) -> None:
        wide = []
        recorded: collections.Counter[Location] = collections.Counter()
        for kind, _, shapes, _, location, *_ in event.nodes():
            if kind in what_changed.LEAVES:
                continue
            place = Location(*location) if location is not None else None
            if place is not None:
                self.run.recorded_lines.add((place.file, place.line))
                recorded[place._replace(is_backward=False)] += 1
            for shape in shapes:
                if shape.startswith("f64["):
                    wide.append(WideOperator(kind.partition("::")[2], place, _elements(shape)))
        self.run.wide_operators[event.hash] = wide
        self.run.recording_lines[event.hash] = recorded.most_common(5)

    # --- Waits, steps, input ---

    def _on_wait(self, kind: str, operator: str, seconds: float) -> None:
        end = time.perf_counter()
        site = _site()
        name = operator if kind == "fallback" else user_frame.reader(operator) or operator
        self._add(kind, end - seconds, end, name, site)
        self._add("doctor", end, time.perf_counter())
        self._note_noting(end)

    def _on_step(self, end: observers.StepEnd) -> None:
        self._add("sync", end.start, end.end, end.cause)
        if end.cause == _BEFORE_A_STEP or threading.get_ident() != self.run.main_thread:
            return
        start = time.perf_counter()
        self.run.step_ends.append(StepEnd(end.start, end.end, end.cause, end.waits, _site()))
        self._collector.step_ended()
        self._add("doctor", start, time.perf_counter())
        self._note_noting(end.end)
        if self._most_steps is not None and len(self.run.steps()) >= self._most_steps:
            self._most_steps = None
            raise StopProgram(f"was ended after {len(self.run.steps())} steps")

    def _on_section(self, name: str, start: float, end: float) -> None:
        self._add(name, start, end, name, _site() if name == "input" else None)

    def _timed_loader_next(self) -> Callable[[Any], Any]:
        """Of torch's `DataLoader`, which tells nobody how long its batches take."""
        original = self._loader_next
        seen: set[int] = set()

        @functools.wraps(original)
        def timed_next(iterator: Any) -> Any:
            start = time.perf_counter()
            try:
                return original(iterator)
            finally:
                end = time.perf_counter()
                is_main = threading.get_ident() == self.run.main_thread
                # In another thread it is the work of a parallel loader, which has a section of its own.
                if is_main:
                    self._add("input", start, end, "input", _site())
                if id(iterator._dataset) not in seen:
                    seen.add(id(iterator._dataset))
                    self.run.loaders.append(_describe(iterator))

        return timed_next

    # --- Notes ---

    def _add(
        self, kind: str, start: float, end: float, name: str = "", site: Site | None = None
    ) -> None:
        self.run.intervals.append(Interval(kind, start, end, threading.get_ident(), name, site))

    def _note_noting(self, now: float) -> None:
        self.run.noting.append((now, _XLAC._location_seconds()))


def _elements(shape: str) -> int:
    """Of `f32[2,3]`."""
    sizes = shape.partition("[")[2].partition("]")[0].split(",")
    return math.prod(int(size) for size in sizes if size.isdigit())


def _describe(iterator: Any) -> Loader:
    dataset = iterator._dataset
    kind = type(dataset)
    for name in ("__getitems__", "__getitem__", "__iter__"):
        function = getattr(kind, name, None)
        code = getattr(function, "__code__", None)
        if code is not None and not user_frame.is_in_torch(code.co_filename):
            where = Location(code.co_filename, code.co_firstlineno, code.co_qualname)
            return Loader(kind.__name__, iterator._num_workers, where)
    return Loader(kind.__name__, iterator._num_workers, None)


def _site() -> Site | None:
    frame = user_frame.innermost()
    if frame is None:
        return None
    own = user_frame.innermost_of_program()
    called_from = user_frame.location(own) if own is not None and own is not frame else None
    return Site(user_frame.location(frame), _expression(frame), called_from)


def _expression(frame: FrameType) -> str:
    text = user_frame.expression(frame)
    return text if len(text) <= 100 else text[:97] + "..."
