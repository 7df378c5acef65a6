"""Products of the rows of a matrix, in runs, with a matrix for each run: layers of experts."""

import torch

from torch_xla._grouped_products import columns_times_rows, rows_of_groups, rows_times_matrices


def gmm(
    lhs: torch.Tensor,
    rhs: torch.Tensor,
    group_sizes: torch.Tensor,
    tiling: tuple[int, int, int] = (512, 512, 512),
    group_offset: torch.Tensor | None = None,
    transpose_rhs: bool = False,
) -> torch.Tensor:
    """Each row of `lhs` times the matrix of its group; rows of no group give zeros. With gradients.

    Args:
      lhs: [m, k], the groups' rows one behind the other.
      rhs: [groups, k, n], or [groups, n, k] with `transpose_rhs`.
      group_sizes: integers, how many rows each group has.
      tiling: how a kernel would cut the work; the result is the same.
      group_offset: the group of `group_sizes` that is the first of `rhs`.
    """
    matrices = rhs.transpose(1, 2) if transpose_rhs else rhs
    is_of = _rows_of_groups(group_sizes, lhs.shape[0], rhs.shape[0], group_offset)
    return rows_times_matrices(is_of, lhs, matrices)


def tgmm(
    lhs: torch.Tensor,
    rhs: torch.Tensor,
    group_sizes: torch.Tensor,
    tiling: tuple[int, int, int] = (512, 512, 512),
    group_offset: torch.Tensor | None = None,
    num_actual_groups: int | None = None,
) -> torch.Tensor:
    """[groups, k, n]: for each group its columns of `lhs` times its rows of `rhs`. With gradients.

    Args:
      lhs: [k, m].
      rhs: [m, n].
      group_sizes: integers, how many columns and rows each group has.
      tiling: how a kernel would cut the work; the result is the same.
      group_offset: the group of `group_sizes` that the result begins with.
      num_actual_groups: how many groups the result has; as many as `group_sizes` by default.
    """
    groups = group_sizes.shape[0] if num_actual_groups is None else num_actual_groups
    is_of = _rows_of_groups(group_sizes, rhs.shape[0], groups, group_offset)
    return columns_times_rows(is_of, lhs, rhs)


def gmm_backward(
    grad: torch.Tensor,
    lhs: torch.Tensor,
    rhs: torch.Tensor,
    group_sizes: torch.Tensor,
    tiling: tuple[int, int, int] = (512, 512, 512),
) -> tuple[torch.Tensor, torch.Tensor]:
    """The gradients of both operands of `gmm`, from that of its result."""
    return gmm(grad, rhs, group_sizes, tiling, transpose_rhs=True), tgmm(
        lhs.T, grad, group_sizes, tiling, num_actual_groups=rhs.shape[0]
    )


def _rows_of_groups(
    group_sizes: torch.Tensor, m: int, groups: int, offset: torch.Tensor | None
) -> torch.Tensor:
    first = 0 if offset is None else offset.reshape(())
    return rows_of_groups(group_sizes.long().cumsum(0), m, groups, first)
