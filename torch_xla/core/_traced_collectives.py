"""The collectives of `xla_model` as operators, which dynamo takes into its graphs.

Each takes the tensor, the operation's own numbers and words, and the groups of ranks: their members, one after the other, and
how many each has (nothing: all processes).
"""

from collections.abc import Callable
from typing import Any

import torch

_LIBRARY = torch.library.Library("xla", "FRAGMENT")

Groups = list[list[int]] | None


def flat(groups: Any) -> tuple[list[int], list[int]]:
    """Groups of ranks as an operator takes them."""
    if not groups:
        return [], []
    if isinstance(groups[0], int):
        groups = [groups]
    return [member for group in groups for member in group], [len(group) for group in groups]


def _nested(members: list[int], sizes: list[int]) -> Groups:
    groups, first = [], 0
    for size in sizes:
        groups.append(list(members[first : first + size]))
        first += size
    return groups or None


def define(arguments: str, recorded: Callable[..., torch.Tensor], shape: Callable[..., Any]) -> Any:
    """The operator that records what `recorded(tensor, …, groups)` does; `shape(tensor, …, groups)` are its result's sizes."""
    name = f"traced{recorded.__name__}"
    _LIBRARY.define(f"{name}(Tensor x, {arguments}int[] members, int[] sizes) -> Tensor")

    def run(x: torch.Tensor, *rest: Any) -> torch.Tensor:
        *own, members, sizes = rest
        return recorded(x, *own, _nested(members, sizes))

    def meta(x: torch.Tensor, *rest: Any) -> torch.Tensor:
        *own, members, sizes = rest
        return x.new_empty(shape(x, *own, _nested(members, sizes)))

    _LIBRARY.impl(name, run, "XLA")
    _LIBRARY.impl(name, meta, "Meta")
    return getattr(torch.ops.xla, name)
