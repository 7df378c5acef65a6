"""Steps that are other programs than those before, and are compiled anew."""

import collections

from torch_xla.debug.what_changed import Location
from torch_xla.doctor.causes.cause import Cause, Measure, line_of
from torch_xla.doctor.program_run import Compilation, ProgramRun

_REMEDIES = {
    "argument": "Pad to one shape, or to a few (powers of two, say), and mask the rest; drop or pad the last batch of an epoch.",
    "constant": "This number decides the program. Numbers in arithmetic are data: compute with it, or pass it as a tensor.",
    "index": "Each of these indices is compiled for once more, and no other value of it. TORCH_XLA_DYNAMIC=exact, and other engines in several processes, compile for each value.",
    "branch": "A branch in Python makes a program of its own for each combination of sides. torch.where is in one program.",
    "loop": "Each number of turns is another program. Run a fixed number and mask, or end the step in each turn.",
    "operator": "What only some steps do (logging, metrics) belongs after the step's end, or in torch_xla.compile(…).",
    "results": "The program keeps a tensor of a step, such as a loss in a list. Keep `loss.detach()` in every step, or in none.",
    "donation": "The program holds a tensor of an earlier step. Let go of it, or hold it in every step.",
    "use": "The same operations take other values: an index or a Python object selects them. Select with a tensor.",
    "options": "Set compile options and precision once; raise XLA_COMPILATION_CACHE_SIZE when programs are dropped.",
    "everything": "Each of these is a program of its own: warm them up once, and keep them with initialize_cache.",
}
# A new part of the program is compiled once. Many of these are one step that never is the same.
_MANY = 3


def find(run: ProgramRun) -> list[Cause]:
    """A cause for each kind of change at each line."""
    measure = Measure(run)
    groups: dict[object, list[Compilation]] = collections.defaultdict(list)
    for compilation in run.compilations:
        if compilation.change is not None and measure.contains(compilation.start):
            change = compilation.change
            groups[change.kind, change.location].append(compilation)
    return [
        _cause(measure, compilations)
        for (kind, _), compilations in groups.items()  # type: ignore[misc]
        if len(compilations) >= _least(kind)
    ]


def _least(kind: str) -> int:
    if kind == "argument":
        return 1
    # The second of two programs that take turns.
    return _MANY if kind == "everything" else 2


def _cause(measure: Measure, compilations: list[Compilation]) -> Cause:
    seconds = sum(compilation.seconds for compilation in compilations) / measure.count
    change = compilations[0].change
    assert change is not None
    last = compilations[-1].change
    assert last is not None
    location: Location | None = change.location or line_of(compilations[0].site)
    times = f"{len(compilations)} times" if len(compilations) > 1 else "once"
    details = [
        f"Compiled {times} in {measure.count} steps, "
        f"{sum(c.seconds for c in compilations) / len(compilations) * 1e3:.1f} ms each.",
    ]
    if last is not change:
        details.append(f"The last time: {last.text}.")
    return Cause(
        "recompile",
        f"compiled anew: {change.text}",
        location,
        seconds,
        measure.share(seconds),
        len(compilations),
        _REMEDIES[change.kind],
        tuple(details),
    )
