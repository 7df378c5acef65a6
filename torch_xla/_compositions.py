"""Operators for which torch has no decomposition, as compositions of others: their parts stay on the device.

Each takes its operator's arguments; NotImplemented leaves a case to the CPU. Where the data decides on the result's size, one
number is read.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_xla import runtime
from torch_xla._grouped_products import columns_times_rows, rows_of_groups, rows_times_matrices

# So many elements are read, and taken by torch's kernel, in less time than a program for them is recorded.
_FEW = 4096


def _of_few_on_the_host(operator: Any) -> Callable[..., Any]:
    """By torch's kernel where few elements lie in the host's memory, as the size of the result is read from them anyway."""

    def instead_of(composition: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(composition)
        def compute(self: Tensor, *args: Any, **kwargs: Any) -> Any:
            on_host = self.numel() <= _FEW and runtime.device_type() == "CPU"
            if not on_host or any(isinstance(x, Tensor) for x in (*args, *kwargs.values())):
                return composition(self, *args, **kwargs)
            result = operator(self.cpu(), *args, **kwargs)
            if isinstance(result, Tensor):
                return result.to(self.device)
            return tuple(part.to(self.device) for part in result)

        return compute

    return instead_of


# --- Equal elements


def _grouped(starts: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For elements in groups of neighbours, of which the first are marked: where groups start, which is whose, and their sizes."""
    first = torch.nonzero(starts).flatten()
    group = starts.to(torch.int64).cumsum(0) - 1
    end = first.new_full((1,), starts.numel())
    return first, group, torch.diff(first, append=end)


def _starts(rows: Tensor) -> Tensor:
    """Which rows differ from the one before."""
    differ = rows[1:] != rows[:-1]
    differ = differ.reshape(len(differ), math.prod(differ.shape[1:])).any(1)
    return torch.cat([differ.new_ones(1), differ])


def _wanted(value: Tensor, is_wanted: bool) -> Tensor:
    return value if is_wanted else value.new_empty(0)


def _unique_rows(
    rows: Tensor, order: Tensor | None, inverse: bool, counts: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The distinct rows, with equal ones side by side once they are taken in this order."""
    if order is not None:
        rows = rows[order]
    first, group, sizes = _grouped(_starts(rows))
    if order is not None and inverse:
        group = torch.empty_like(group).scatter_(0, order, group)
    return rows[first], _wanted(group, inverse), _wanted(sizes, counts)


@_of_few_on_the_host(torch.ops.aten._unique2.default)
def _unique2(
    self: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    if self.numel() == 0:
        return NotImplemented
    flat = self.reshape(-1)
    order = torch.argsort(flat, stable=True)
    unique, group, counts = _unique_rows(flat, order, return_inverse, return_counts)
    return unique, group.view(self.shape) if return_inverse else group, counts


def _unique(self: Tensor, sorted: bool = True, return_inverse: bool = False) -> Any:
    result = _unique2(self, sorted, return_inverse)
    return result if result is NotImplemented else result[:2]


def _unique_dim(
    self: Tensor,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    rows = self.movedim(dim, 0) if self.dim() > 0 else self
    columns = rows.flatten(1) if rows.dim() > 1 else rows.reshape(-1, 1)
    # One stable sort for each column, the last one first: dear where there are many.
    if self.numel() == 0 or columns.shape[1] > 16:
        return NotImplemented
    order = torch.argsort(columns[:, -1], stable=True)
    for column in reversed(columns.unbind(1)[:-1]):
        order = order[torch.argsort(column[order], stable=True)]
    unique, group, counts = _unique_rows(rows, order, return_inverse, return_counts)
    return unique.movedim(0, dim), group, counts


@_of_few_on_the_host(torch.ops.aten.unique_consecutive.default)
def _elements_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    unique, group, counts = _unique_rows(self.reshape(-1), None, return_inverse, return_counts)
    return unique, group.view(self.shape) if return_inverse else group, counts


def _unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    if self.numel() == 0 or (dim is not None and self.dim() == 0):
        return NotImplemented
    if dim is None:
        return _elements_consecutive(self, return_inverse, return_counts)
    rows = self.movedim(dim, 0)
    unique, group, counts = _unique_rows(rows, None, return_inverse, return_counts)
    return unique.movedim(0, dim), group, counts


@_of_few_on_the_host(torch.ops.aten.bincount.default)
def _bincount(self: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Any:
    if self.dim() != 1 or self.numel() == 0 or minlength < 0 or self.dtype.is_floating_point:
        return NotImplemented
    if self.dtype == torch.bool or (weights is not None and weights.shape != self.shape):
        return NotImplemented
    low, high = torch.stack([self.min(), self.max()]).tolist()
    if low < 0:
        return NotImplemented  # eager has the message
    if weights is None:
        weights = self.new_ones(self.shape, dtype=torch.int64)
    elif weights.dtype != torch.float32:
        weights = weights.to(torch.float64)
    counts = weights.new_zeros(max(high + 1, minlength))
    return counts.scatter_add_(0, self.to(torch.int64), weights)


# --- Products of groups


def _grouped_mm(
    self: Tensor,
    mat2: Tensor,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Any:
    """A product for each group: of batches, or of the rows, columns or inner places up to each offset."""
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if (offs is not None) != (self.dim() == 2 or mat2.dim() == 2):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix")
    if offs is None:
        product = torch.bmm(self, mat2)
    elif self.dim() == 2 and mat2.dim() == 2:
        is_of = rows_of_groups(offs, self.shape[1], offs.shape[0])
        product = columns_times_rows(is_of, self, mat2)
    elif self.dim() == 2:
        is_of = rows_of_groups(offs, self.shape[0], offs.shape[0])
        product = rows_times_matrices(is_of, self, mat2)
    else:
        is_of = rows_of_groups(offs, mat2.shape[1], offs.shape[0])
        product = rows_times_matrices(is_of, mat2.T, self.mT).T
    return product if out_dtype is None else product.to(out_dtype)


# --- Functional forms, which exported programs call


def _copied(view: Callable[..., Any]) -> Callable[..., Any]:
    """What a view shows, in memory of its own."""

    def copy(*args: Any, **kwargs: Any) -> Any:
        shown = view(*args, **kwargs)
        if isinstance(shown, Tensor):
            return shown.clone(memory_format=torch.contiguous_format)
        return [part.clone(memory_format=torch.contiguous_format) for part in shown]

    return copy


def _torchs(operator: Any, *args: Any, **kwargs: Any) -> Any:
    """By torch's own decomposition, which asks less than its kernels do."""
    from torch._decomp import decomposition_table

    return decomposition_table[operator](*args, **kwargs)


def _refuse_integers(name: str, x: Tensor) -> None:
    if not (x.is_floating_point() or x.is_complex() or x.dtype == torch.bool):
        raise NotImplementedError(f"{name}: not implemented for {x.dtype}")


def _im2col(
    self: Tensor,
    kernel_size: list[int],
    dilation: list[int],
    padding: list[int],
    stride: list[int],
) -> Tensor:
    self.size(1)  # eager's first question
    _refuse_integers("im2col", self)
    if min(padding, default=0) < 0:
        raise RuntimeError(f"padding should be non-negative, but got {padding}")
    return _torchs(_aten.im2col.default, self, kernel_size, dilation, padding, stride)


def _isin(operator: Any) -> Callable[..., Any]:
    numbers = {bool: torch.bool, complex: torch.complex128}

    def isin(elements: Any, among: Any, **options: bool) -> Any:
        for x in (elements, among):
            dtype = x.dtype if isinstance(x, Tensor) else numbers.get(type(x), torch.float64)
            if dtype == torch.bool or dtype.is_complex:
                name = torch.empty(0, dtype=dtype).type().split(".")[-1].removesuffix("Tensor")
                raise RuntimeError(f"Unsupported input type encountered for isin(): {name}")
        return _torchs(operator, elements, among, **options)

    return isin


def _copy(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    return self.clone().copy_(src, non_blocking)


def _slow_conv_transpose2d(
    self: Tensor,
    weight: Tensor,
    kernel_size: Sequence[int],
    bias: Tensor | None = None,
    stride: Sequence[int] = (1,),
    padding: Sequence[int] = (0,),
    output_padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
) -> Tensor:
    return torch.ops.aten.convolution(
        self, weight, bias, stride, padding, dilation, True, output_padding, 1
    )


_aten = torch.ops.aten
COMPOSITIONS: dict[str, Callable[..., Any]] = {
    "aten::_unique2": _unique2,
    "aten::_unique": _unique,
    "aten::unique_dim": _unique_dim,
    "aten::unique_consecutive": _unique_consecutive,
    "aten::bincount": _bincount,
    "aten::_grouped_mm": _grouped_mm,
    "aten::im2col": _im2col,
    "aten::isin.Tensor_Tensor": _isin(_aten.isin.Tensor_Tensor),
    "aten::isin.Tensor_Scalar": _isin(_aten.isin.Tensor_Scalar),
    "aten::isin.Scalar_Tensor": _isin(_aten.isin.Scalar_Tensor),
    "aten::copy": _copy,
    "aten::lift_fresh_copy": torch.clone,
    "aten::detach_copy": _copied(_aten.detach),
    "aten::slice_copy.Tensor": _copied(_aten.slice.Tensor),
    "aten::select_copy.int": _copied(_aten.select.int),
    "aten::split_copy.Tensor": _copied(_aten.split.Tensor),
    "aten::view_copy": _copied(torch.reshape),
    "aten::_reshape_alias_copy": _copied(_aten._reshape_alias),
    "aten::view_as_complex_copy": _copied(_aten.view_as_complex),
    "aten::view_as_real_copy": _copied(_aten.view_as_real),
    "aten::_conj_copy": torch.conj_physical,
    "aten::_neg_view_copy": torch.neg,
    "aten::slow_conv_transpose2d": _slow_conv_transpose2d,
}
