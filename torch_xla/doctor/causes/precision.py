"""Computing in float64, which takes at least twice the time and memory of float32, and which accelerators hardly can."""

import collections

from torch_xla.doctor.causes.cause import Cause, Measure
from torch_xla.doctor.program_run import ProgramRun, WideOperator

# Smaller ones are numbers on their way.
_LEAST_ELEMENTS = 1024


def find(run: ProgramRun) -> list[Cause]:
    """A cause for the line where the most is computed in float64."""
    measure = Measure(run)
    hashes = {e.hash for e in run.executions if measure.contains(e.start)}
    elements: collections.Counter = collections.Counter()
    first: dict[object, WideOperator] = {}
    for operators in (run.wide_operators.get(graph, []) for graph in hashes):
        for operator in operators:
            if operator.elements >= _LEAST_ELEMENTS:
                elements[operator.location] += operator.elements
                first.setdefault(operator.location, operator)
    if not elements:
        return []
    (location, most), *others = elements.most_common()
    more = f"{len(others)} other lines compute in float64 too." if others else ""
    # At best the other half of the time remains.
    seconds = measure.kernel_seconds_per_step(lambda kernel: "f64[" in kernel.text) / 2
    return [
        Cause(
            "float64",
            f"`{first[location].operator}` computes in float64",
            location,
            seconds,
            measure.share(seconds),
            len(elements),
            "Convert to float32 where the data comes from: NumPy's arrays and Python's lists of floats are float64 unless they "
            "are made otherwise.",
            tuple(text for text in (f"{most} elements in a program.", more) if text),
        )
    ]
