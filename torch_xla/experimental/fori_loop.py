"""Loops without gradients: `while_loop`, which is also what `torch.while_loop` runs on xla, and `fori_loop`, which counts."""

from collections.abc import Callable
from typing import Any

import torch

from torch_xla._control_flow import while_loop as while_loop


def fori_loop(
    lower: torch.Tensor, upper: torch.Tensor, body_fun: Callable[..., Any], *input_value: Any
) -> Any:
    """Calls `body_fun` upper - lower times, each time with what it gave before, as one loop of the program.

    Args:
      lower, upper: integers on xla, as tensors of one element.
      body_fun: takes and gives as many tensors as there are of `input_value`, of the same shapes and dtypes.
      *input_value: what the first call takes: tensors.

    Returns:
      A tuple of the runs that are left, which is 0 (or upper - lower where that is negative), and of what the last call gave.
    """

    def goes_on(left: torch.Tensor, *_: torch.Tensor) -> torch.Tensor:
        return left > 0

    def run(left: torch.Tensor, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = body_fun(*values)
        return (left - 1, *(results if isinstance(results, tuple | list) else (results,)))

    return while_loop(goes_on, run, (upper - lower, *input_value))
