"""Products of matrices of which each belongs to a group of rows, composed of operators.

Every row meets every group's matrix, with zeros where it belongs to another one: right for few groups. Operands and results
are both masked, as a factor of 0 would not take another group's infinities away.
"""

import torch
from torch import Tensor


def rows_of_groups(ends: Tensor, m: int, groups: int, first: Tensor | int = 0) -> Tensor:
    """[groups, m]: which of m rows each group has, from group `first` on; a group ends where `ends` says."""
    rows = torch.arange(m, device=ends.device)
    group = torch.searchsorted(ends.long(), rows, right=True) - first
    return group == torch.arange(groups, device=ends.device)[:, None]


def rows_times_matrices(is_of: Tensor, rows: Tensor, matrices: Tensor) -> Tensor:
    """[m, n]: each of `rows`, [m, k], times its group's of `matrices`, [groups, k, n]; zeros for rows of no group."""
    product = _only(is_of, rows) @ matrices
    return _only(is_of, product).sum(0, dtype=product.dtype)


def columns_times_rows(is_of: Tensor, columns: Tensor, rows: Tensor) -> Tensor:
    """[groups, k, n]: for each group its columns of [k, m] times its rows of [m, n]."""
    return _only(is_of, columns.mT).mT @ _only(is_of, rows)


def _only(is_of: Tensor, x: Tensor) -> Tensor:
    """x [m, n] or [groups, m, n] with zeros in rows of other groups."""
    return torch.where(is_of[..., None], x, torch.zeros((), dtype=x.dtype))
