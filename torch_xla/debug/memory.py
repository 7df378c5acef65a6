"""Which lines of the program hold the memory of a device.

    import torch_xla.debug.memory as memory

    print(memory.report())

With XLA_IR_DEBUG=1 (or PT_XLA_DEBUG_LEVEL) the lines that made the tensors are known; with PT_XLA_DEBUG_LEVEL `peak_report()` says
what was held when the most was.
"""

from typing import NamedTuple

from torch_xla import _XLAC
from torch_xla.debug import what_changed


class Holding(NamedTuple):
    """Tensors of one shape that one operation made at one line."""

    device: str
    shape: str
    made_by: str
    location: what_changed.Location | None
    count: int
    bytes: int

    def __str__(self) -> str:
        made = f"made by {self.made_by}" if self.made_by else "from the host"
        where = f" at {self.location} ({self.location.function})" if self.location else ""
        return f"{megabytes(self.bytes)}: {self.count} x {self.shape}, {made}{where}"


class Peak(NamedTuple):
    """What was held when the most was, and what the program that ran then needed for itself."""

    holdings: tuple[Holding, ...]
    program_bytes: int

    @property
    def bytes(self) -> int:
        """All of it."""
        return sum(holding.bytes for holding in self.holdings) + self.program_bytes


_peak = Peak((), 0)


def live_tensors() -> list[Holding]:
    """What the program holds now, the largest first."""
    return [
        Holding(
            device,
            shape,
            made_by,
            what_changed.Location(*location) if location is not None else None,
            count,
            size,
        )
        for device, shape, made_by, location, count, size in _XLAC._live_tensors()
    ]


def note_execution(program_bytes: int) -> None:
    """Called before each execution, with the bytes that it needs besides the tensors that are there."""
    global _peak
    now = Peak(tuple(live_tensors()), program_bytes)
    if now.bytes > _peak.bytes:
        _peak = now


def reset_peak() -> None:
    """Forgets the peak."""
    global _peak
    _peak = Peak((), 0)


def report(most: int = 10) -> str:
    """What the program holds now, as text."""
    holdings = live_tensors()
    total = sum(holding.bytes for holding in holdings)
    lines = [f"{sum(h.count for h in holdings)} tensors hold {megabytes(total)}; the largest:"]
    return "\n".join([*lines, *(f"  {holding}" for holding in holdings[:most])])


def peak_report(most: int = 10) -> str:
    """What was held at the peak, as text; empty if nothing has run while reports were on (PT_XLA_DEBUG_LEVEL)."""
    if _peak.bytes == 0:
        return ""
    lines = [
        f"Peak {megabytes(_peak.bytes)}, {megabytes(_peak.program_bytes)} of it results and intermediate values of the "
        "program that ran then; the largest tensors:"
    ]
    return "\n".join([*lines, *(f"  {holding}" for holding in _peak.holdings[:most])])


def megabytes(count: int) -> str:
    """`12.5 MiB`."""
    return f"{count / 2**20:.1f} MiB"
