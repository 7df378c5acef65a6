"""What functions record, to find out whether one does what another did.

Tracing a function for its gradients takes torch a hundred times as long as the function takes to be recorded. Who has traced
one, and is given another that may be the same, records it, with its gradients, and compares.
"""

import random
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import torch

from torch_xla import _control_flow
from torch_xla._internal import fork_lock

Made = TypeVar("Made")

# Of each kind, and of kinds; the longest unused is forgotten.
_MOST_OF_A_KIND = 8
_MOST_KINDS = 64


class Recording(NamedTuple):
    """A function's results and gradients, as a body of a loop has them, and what is no tensor of them."""

    body: Any
    facts: tuple[Any, ...]

    def does_the_same(self, other: "Recording") -> bool:
        """Whether both give the same for any arguments."""
        return self.facts == other.facts and self.body.does_the_same(other.body)


def record(
    function: Callable[..., tuple[Sequence[torch.Tensor], Any]],
    device: torch.device,
    like: Sequence[torch.Tensor],
    needs_grad: Sequence[bool],
) -> Recording | None:
    """Calls `function` once, of tensors like these; None where that raises, or cannot be recorded.

    Args:
      function: gives tensors, and what else it says of them, which is compared too.
      device, like: see `torch_xla._control_flow.capture`.
      needs_grad: of each of `like`.
    """
    facts: list[Any] = []

    def run(*leaves: torch.Tensor) -> list[torch.Tensor]:
        for leaf, needs in zip(leaves, needs_grad, strict=True):
            leaf.requires_grad_(needs)
        results, said = function(*leaves)
        wanted = [leaf for leaf, needs in zip(leaves, needs_grad, strict=True) if needs]
        continuous = [result for result in results if result.requires_grad]
        # Others for each result, so that it matters where each goes.
        tangents = [torch.full_like(result, i + 2) for i, result in enumerate(continuous)]
        gradients: Sequence[Any] = []
        if wanted and continuous:
            gradients = torch.autograd.grad(continuous, wanted, tangents, allow_unused=True)
        facts.extend([said, [r.requires_grad for r in results], [g is not None for g in gradients]])
        return [x.detach() for x in (*results, *gradients) if x is not None]

    try:
        body = _control_flow.capture(device, like, run)
    except Exception:
        return None  # whoever traces it says why
    return Recording(body, tuple(facts))


class _Randomness:
    """The state of the generators by which a function may decide what it does. (Torch's numbers are not known to a trace.)"""

    def __init__(self) -> None:
        self._pythons = random.getstate()
        self._numpy = sys.modules.get("numpy")
        self._numpys = self._numpy.random.get_state() if self._numpy else None

    def restore(self) -> None:
        random.setstate(self._pythons)
        if self._numpy:
            self._numpy.random.set_state(self._numpys)


class Repeatable:
    """A function whose calls all find the host's random numbers as the first one does."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._before: _Randomness | None = None

    def __call__(self, *arguments: Any) -> Any:
        # Not before the first call: other threads may draw numbers, too.
        if self._before is None:
            self._before = _Randomness()
        else:
            self._before.restore()
        return self._function(*arguments)


class Known:
    """What was made for functions, by what these record."""

    def __init__(self) -> None:
        self._lock = fork_lock.Lock()
        self._kinds: OrderedDict[Any, list[tuple[Recording, Any]]] = OrderedDict()

    def get(
        self, kind: Any, record: Callable[[], Recording | None], make: Callable[[], Made]
    ) -> Made:
        """What was made for a function of this kind that does the same, or what `make` makes.

        Both `record` and `make` call the function, which is `Repeatable`. What is made is kept where the function does
        afterwards what it did before: one that decides otherwise in each call was recorded doing one thing, and made doing
        another. Nor is it kept where the function makes tensors of the host's data, which would live as long.
        """
        try:
            hash(kind)
        except TypeError:  # a user's structure, which need not have one
            return make()
        recording = record()
        if recording is None or recording.body.keeps_data:
            return make()
        with self._lock:
            if found := self._find(kind, recording):
                return found[1]
        made = make()
        again = record()
        if again is not None and again.does_the_same(recording):
            with self._lock:
                self._keep(kind, recording, made)
        return made

    def _find(self, kind: Any, recording: Recording) -> tuple[Recording, Any] | None:
        entries = self._kinds.get(kind, [])
        for i, entry in enumerate(entries):
            if entry[0].does_the_same(recording):
                self._kinds.move_to_end(kind)
                entries.append(entries.pop(i))
                return entry
        return None

    def _keep(self, kind: Any, recording: Recording, made: Any) -> None:
        entries = self._kinds.setdefault(kind, [])
        self._kinds.move_to_end(kind)
        entries.append((recording, made))
        del entries[:-_MOST_OF_A_KIND]
        if len(self._kinds) > _MOST_KINDS:
            self._kinds.popitem(last=False)
