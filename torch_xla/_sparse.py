"""Operators of sparse tensors as compositions of dense ones, on their indices and values, where torch's kernels read memory.

Each takes its operator's arguments; NotImplemented leaves a case to the CPU. Where the data decides how many elements there are
(coalescing, products of two sparse matrices), that one number is read.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from torch_xla._compositions import _grouped, _starts

_COMPRESSED = {torch.sparse_csr, torch.sparse_csc}


# --- Of one tensor in coordinates


def _coo(indices: Tensor, values: Tensor, like: Tensor, is_coalesced: bool) -> Tensor:
    return _coo_of_size(indices, values, like.shape, is_coalesced)


def _coo_of_size(indices: Tensor, values: Tensor, size: Any, is_coalesced: bool) -> Tensor:
    return torch.ops.aten._sparse_coo_tensor_unsafe(
        indices, values, size, is_coalesced=is_coalesced
    )


def _places(indices: Tensor, sizes: Any) -> Tensor:
    """Each element's place in a dense tensor of these sizes, row by row; all 0 where there is no dimension."""
    places = indices.new_zeros(indices.shape[1])
    for index, size in zip(indices, sizes, strict=True):
        places = places * size + index
    return places


def _sparse_sizes(self: Tensor) -> torch.Size:
    return self.shape[: self.sparse_dim()]


def _added(places: Tensor, values: Tensor, count: int) -> Tensor:
    """Values [n, …] added up in so many places."""
    of_bools = values.dtype == torch.bool
    summands = values.to(torch.uint8) if of_bools else values
    sums = summands.new_zeros(count, *values.shape[1:]).index_add_(0, places, summands)
    return sums.to(torch.bool) if of_bools else sums


def _coalesce(self: Tensor) -> Any:
    indices, values = self._indices(), self._values()
    if values.shape[0] < 2:
        return _coo(indices.clone(), values.clone(), self, True)
    places, order = torch.sort(_places(indices, _sparse_sizes(self)), stable=True)
    first, group, _ = _grouped(_starts(places))
    return _coo(indices[:, order[first]], _added(group, values[order], len(first)), self, True)


def _to_dense(self: Tensor, dtype: Any = None, masked_grad: bool | None = None) -> Any:
    if dtype is not None:
        return NotImplemented  # eager has the message
    if self.layout in _COMPRESSED:
        coo = _to_sparse(self)
        return coo if coo is NotImplemented else _to_dense(coo)
    if self.layout != torch.sparse_coo:
        return NotImplemented
    sizes = _sparse_sizes(self)
    places = _places(self._indices(), sizes)
    return _added(places, self._values(), math.prod(sizes)).view(self.shape)


# --- Of two


def _values_at(dense: Tensor, mask: Tensor) -> Tensor:
    """A dense tensor's elements in the mask's places; its dimensions stretch to the mask's."""
    return dense.expand(mask.shape)[tuple(mask._indices())]


def _matching(coalesced: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """For each of the wanted places: where a coalesced tensor has it, and whether it does."""
    places = _places(coalesced._indices(), _sparse_sizes(coalesced))
    at = torch.searchsorted(places, wanted).clamp(max=len(places) - 1)
    return at, places[at] == wanted


def _add(self: Tensor, other: Tensor, *, alpha: Any = 1) -> Any:
    if torch.sparse_coo not in (self.layout, other.layout) or other.layout == torch.strided:
        return NotImplemented
    if self.shape != other.shape or other.layout != torch.sparse_coo:
        return NotImplemented
    dtype = torch.result_type(self, other)
    summands = other._values().to(dtype)
    summands = summands if alpha == 1 else summands * alpha
    if self.layout == torch.strided:
        sizes = _sparse_sizes(other)
        flat = self.to(dtype).reshape(math.prod(sizes), *summands.shape[1:])
        places = _places(other._indices(), sizes)
        return flat.index_add(0, places, summands).view(self.shape)
    if self.sparse_dim() != other.sparse_dim():
        return NotImplemented
    indices = torch.cat([self._indices(), other._indices()], 1)
    values = torch.cat([self._values().to(dtype), summands])
    both = _coo(indices, values, self, False)
    return both.coalesce() if self.is_coalesced() and other.is_coalesced() else both


def _sub(self: Tensor, other: Tensor, *, alpha: Any = 1) -> Any:
    return _add(self, other, alpha=-alpha)


def _with_values(self: Tensor, values: Tensor) -> Tensor:
    """A tensor of the same pattern."""
    if self.layout == torch.sparse_coo:
        return _coo(self._indices().clone(), values, self, self.is_coalesced())
    compressed, plain = _compressed_parts(self)
    return torch.ops.aten._sparse_compressed_tensor_unsafe(
        compressed.clone(), plain.clone(), values, self.shape, layout=self.layout
    )


def _mul(self: Tensor, other: Any) -> Any:
    if isinstance(self, Tensor) and not isinstance(other, Tensor):
        return _with_values(self, _values_of(self) * other)  # a Python number
    if not isinstance(self, Tensor):
        return _mul(other, self)
    if self.layout == torch.strided:
        self, other = other, self
    if other.dim() == 0 and other.layout == torch.strided:
        return _with_values(self, _values_of(self) * other)
    if self.layout != torch.sparse_coo:
        return NotImplemented
    if other.layout == torch.strided:
        if torch.broadcast_shapes(self.shape, other.shape) != self.shape:
            return NotImplemented
        return _with_values(self, self._values() * _values_at(other, self))
    both_coo = other.layout == torch.sparse_coo and self.sparse_dim() == other.sparse_dim()
    if not both_coo or self.shape != other.shape:
        return NotImplemented
    self, other = self.coalesce(), other.coalesce()
    if 0 in (self._nnz(), other._nnz()):
        return NotImplemented
    at, is_there = _matching(other, _places(self._indices(), _sparse_sizes(self)))
    common = torch.nonzero(is_there).flatten()
    values = self._values()[common] * other._values()[at[common]]
    return _coo(self._indices()[:, common], values, self, True)


def _sparse_mask(self: Tensor, mask: Tensor) -> Any:
    if self.shape != mask.shape:
        return NotImplemented
    if mask.layout in _COMPRESSED and self.layout == torch.strided and self.dim() == 2:
        return _with_values(mask, self[tuple(_indices(mask))])
    if mask.layout != torch.sparse_coo:
        return NotImplemented
    if self.layout == torch.strided:
        return _with_values(mask, _values_at(self, mask))
    if self.layout != torch.sparse_coo or self.sparse_dim() != mask.sparse_dim():
        return NotImplemented
    self = self.coalesce()
    if self._nnz() == 0:
        return _with_values(mask, torch.zeros_like(mask._values(), dtype=self.dtype))
    at, is_there = _matching(self, _places(mask._indices(), _sparse_sizes(mask)))
    is_there = is_there.view(-1, *[1] * self.dense_dim())
    values = self._values()[at]
    return _with_values(mask, torch.where(is_there, values, torch.zeros_like(values)))


def _wrapped(dim: int, self: Tensor) -> int:
    rank = self.dim()
    if not -rank <= dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})"
        )
    return dim % rank


def _index_select(self: Tensor, dim: int, index: Tensor) -> Any:
    """Of each selected row, its elements: how many there are is read, and with it whether the index is right."""
    dim = _wrapped(dim, self)
    if index.dim() != 1 or index.dtype != torch.int64 or index.layout != torch.strided:
        raise IndexError(
            "index_select() argument index must be 1-D strided (non-sparse) long-tensor."
        )
    if dim >= self.sparse_dim():
        values = self._values().index_select(dim - self.sparse_dim() + 1, index)
        size = [*self.shape[:dim], len(index), *self.shape[dim + 1 :]]
        return _coo_of_size(self._indices(), values, size, False)  # as eager's
    rows, order = torch.sort(self._indices()[dim], stable=True)
    wrapped = torch.where(index < 0, index + self.shape[dim], index)
    first = torch.searchsorted(rows, wrapped)
    counts = torch.searchsorted(rows, wrapped, right=True) - first
    total = _selected(index, self.shape, dim, counts)
    which, element = _ranges(first, counts, total)
    taken = order[element]
    indices = self._indices()[:, taken].index_copy(0, index.new_tensor([dim]), which[None])
    size = [*self.shape[:dim], len(index), *self.shape[dim + 1 :]]
    return _coo_of_size(indices, self._values()[taken], size, total < 2)


def _selected(index: Tensor, size: torch.Size, dim: int, counts: Tensor) -> int:
    """The sum of the counts. Raises eager's error for an index out of range."""
    if len(index) == 0:
        return 0
    is_wrong = (index < -size[dim]) | (index >= size[dim])
    first_wrong = index[is_wrong.to(torch.uint8).argmax()]
    total, wrong, number = torch.stack([counts.sum(), is_wrong.any(), first_wrong]).tolist()
    if wrong:
        raise IndexError(
            f"index_select(): index contains {number} that is out of range for tensor of size {list(size)} at dimension {dim}"
        )
    return total


def _ranges(first: Tensor, counts: Tensor, total: int) -> tuple[Tensor, Tensor]:
    """The numbers of several ranges, so many in all, one after the other, and for each which range it is of."""
    ends = counts.cumsum(0)
    numbers = torch.arange(total, device=first.device)
    which = torch.searchsorted(ends, numbers, right=True)
    return which, numbers - (ends - counts)[which] + first[which]


# --- Compressed rows and columns


def _compressed_parts(self: Tensor) -> tuple[Tensor, Tensor]:
    if self.layout in (torch.sparse_csr, torch.sparse_bsr):
        return self.crow_indices(), self.col_indices()
    return self.ccol_indices(), self.row_indices()


def _values_of(self: Tensor) -> Tensor:
    return self._values() if self.layout == torch.sparse_coo else self.values()


def _expanded(ends: Tensor, count: int) -> Tensor:
    """Which row each of the elements is of, by where rows begin and end."""
    numbers = torch.arange(count, device=ends.device, dtype=ends.dtype)
    return torch.searchsorted(ends[1:].contiguous(), numbers, right=True)


def _ends(rows: Tensor, count: int) -> Tensor:
    """The inverse: for sorted rows, where each begins, and the last one ends."""
    numbers = torch.arange(count + 1, device=rows.device, dtype=rows.dtype)
    return torch.searchsorted(rows.contiguous(), numbers)


def _convert_indices_from_coo_to_csr(self: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    return _ends(self, size).to(torch.int32 if out_int32 else torch.int64)


def _convert_indices_from_csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Any:
    if crow_indices.dim() != 1:
        return NotImplemented
    pair = [_expanded(crow_indices, col_indices.shape[0]), col_indices]
    dtype = torch.int32 if out_int32 else torch.int64
    return torch.stack([part.to(dtype) for part in (pair[::-1] if transpose else pair)])


def _indices(self: Tensor) -> Tensor:
    """The coordinates of a matrix's elements, in their order."""
    if self.layout == torch.sparse_coo:
        return self._indices()
    compressed, plain = _compressed_parts(self)
    pair = [_expanded(compressed, plain.shape[0]), plain.to(torch.int64)]
    return torch.stack(pair if self.layout == torch.sparse_csr else pair[::-1])


def _is_matrix(self: Tensor) -> bool:
    return self.dim() == 2 and (
        self.layout in _COMPRESSED or (self.layout == torch.sparse_coo and self.sparse_dim() == 2)
    )


def _to_sparse(
    self: Tensor, *, layout: Any = None, blocksize: Any = None, dense_dim: int | None = None
) -> Any:
    layout = layout or torch.sparse_coo
    if self.layout == torch.strided and layout == torch.sparse_coo and blocksize is None:
        return _dense_to_coo(self, self.dim() - (dense_dim or 0))
    if layout in _COMPRESSED and not dense_dim and blocksize is None:
        return _to_compressed(self, layout)
    if layout != torch.sparse_coo or not _is_matrix(self) or self.layout not in _COMPRESSED:
        return NotImplemented
    return _coo(_indices(self), self.values(), self, self.layout == torch.sparse_csr)


def _to_sparse_of_dim(self: Tensor, sparse_dim: int) -> Any:
    if self.layout == torch.strided:
        return _dense_to_coo(self, sparse_dim)
    return _to_sparse(self) if sparse_dim == 2 else NotImplemented


def _dense_to_coo(self: Tensor, sparse_dim: int) -> Any:
    if not 0 < sparse_dim <= self.dim():
        return NotImplemented
    elements = self != 0
    if sparse_dim < self.dim():
        elements = elements.flatten(sparse_dim).any(sparse_dim)
    indices = torch.nonzero(elements).t()
    return _coo(indices, self[tuple(indices)], self, True)


def _to_compressed(self: Tensor, layout: Any) -> Any:
    coo = _dense_to_coo(self, 2) if self.layout == torch.strided and self.dim() == 2 else self
    if not isinstance(coo, Tensor) or not _is_matrix(coo) or coo.layout == layout:
        return NotImplemented
    if coo.layout != torch.sparse_coo:
        coo = _to_sparse(coo)
    of_rows = layout == torch.sparse_csr
    # Columns' elements are a transposed matrix's rows'.
    coo = (coo if of_rows else coo.transpose(0, 1)).coalesce()
    rows, columns = coo._indices()
    ends = _ends(rows, coo.shape[0])
    if self.layout in _COMPRESSED:  # whose indices keep their type
        index_type = _compressed_parts(self)[0].dtype
        ends, columns = ends.to(index_type), columns.to(index_type)
    return torch.ops.aten._sparse_compressed_tensor_unsafe(
        ends, columns, coo._values(), self.shape, layout=layout
    )


def _to_csr(self: Tensor, dense_dim: int | None = None) -> Any:
    return NotImplemented if dense_dim else _to_compressed(self, torch.sparse_csr)


def _to_csc(self: Tensor, dense_dim: int | None = None) -> Any:
    return NotImplemented if dense_dim else _to_compressed(self, torch.sparse_csc)


def _transpose(self: Tensor, dim0: int, dim1: int) -> Any:
    if not _is_matrix(self):
        return NotImplemented
    if dim0 % 2 == dim1 % 2:
        return self.clone()
    (other,) = _COMPRESSED - {self.layout}
    return torch.ops.aten._sparse_compressed_tensor_unsafe(
        *_compressed_parts(self), self.values(), (self.shape[1], self.shape[0]), layout=other
    )


# --- Products


def _wide(x: Tensor) -> Tensor:
    """In the type that sums are computed in."""
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


def _product(sparse: Tensor, dense: Tensor) -> Tensor:
    rows, columns = _indices(sparse)
    scaled = _wide(_values_of(sparse))[:, None] * dense[columns]
    return _added(rows, scaled, sparse.shape[0]).to(dense.dtype)


def _require_same_type(first: Tensor, second: Tensor) -> None:
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"expected scalar type {_scalar_name(first.dtype)} but found {_scalar_name(second.dtype)}"
        )


def _addmm(self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    if self.layout != torch.strided:
        return NotImplemented
    if mat1.dim() != 2 or mat2.dim() != 2 or mat1.shape[1] != mat2.shape[0]:
        return NotImplemented  # eager has the message
    _require_same_type(mat1, mat2)
    if _is_matrix(mat1) and mat2.layout == torch.strided:
        product = _product(mat1, mat2)
    elif mat1.layout == torch.strided and _is_matrix(mat2):
        product = _product(mat2.transpose(0, 1), mat1.t()).t()
    else:
        return NotImplemented
    product = product if alpha == 1 else product * alpha
    if beta == 0:
        return product
    return self.expand(product.shape) * beta + product if beta != 1 else self + product


def _mm(self: Tensor, mat2: Tensor) -> Any:
    if _is_matrix(self) and _is_matrix(mat2):
        product = _sparse_sparse_matmul(_as_coo(self), _as_coo(mat2))
        is_done = product is NotImplemented or self.layout == torch.sparse_coo
        return product if is_done else product.to_sparse_csr()
    size = (self.shape[0], mat2.shape[1])
    zeros = torch.zeros(size, dtype=self.dtype, device=self.device)
    return _addmm(zeros, self, mat2, beta=0)


def _as_coo(self: Tensor) -> Tensor:
    return self if self.layout == torch.sparse_coo else _to_sparse(self)


def _addmv(self: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Any:
    result = _addmm(self[..., None], mat, vec[:, None], beta=beta, alpha=alpha)
    return result if result is NotImplemented else result.squeeze(-1)


def _bmm(self: Tensor, mat2: Tensor) -> Any:
    if self.layout != torch.sparse_coo or self.sparse_dim() != 3 or mat2.layout != torch.strided:
        return NotImplemented
    batch, row, column = self._indices()
    count, height, width = self.shape
    if mat2.dim() != 3 or mat2.shape[:2] != (count, width):
        return NotImplemented
    flat = torch.stack([batch * height + row, batch * width + column])
    blocks = _coo_of_size(flat, self._values(), (count * height, count * width), False)
    return _product(blocks, mat2.flatten(0, 1)).view(count, height, -1)


def _sparse_sparse_matmul(self: Tensor, other: Tensor) -> Any:
    """Each element of the left matrix with those of the row of the right one that it meets."""
    if not _is_matrix(self) or not _is_matrix(other) or self.shape[1] != other.shape[0]:
        return NotImplemented
    if self.dtype != other.dtype:
        raise RuntimeError(
            f"mat1 dtype {_scalar_name(self.dtype)} does not match mat2 dtype {_scalar_name(other.dtype)}"
        )
    self, other = self.coalesce(), other.coalesce()
    rows = other._indices()[0].contiguous()
    inner = self._indices()[1].contiguous()
    first = torch.searchsorted(rows, inner)
    counts = torch.searchsorted(rows, inner, right=True) - first
    left, right = _ranges(first, counts, int(counts.sum()))
    indices = torch.stack([self._indices()[0][left], other._indices()[1][right]])
    values = self._values()[left] * other._values()[right]
    return _coo_of_size(indices, values, (self.shape[0], other.shape[1]), False).coalesce()


def _scalar_name(dtype: torch.dtype) -> str:
    """As torch's errors call it: Float."""
    return torch.empty(0, dtype=dtype).type().removeprefix("torch.").removesuffix("Tensor")


def _sampled_addmm(
    self: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    if self.layout != torch.sparse_csr or not _is_matrix(self):
        return NotImplemented
    if any(x.dim() != 2 or x.layout != torch.strided for x in (mat1, mat2)):
        return NotImplemented
    sizes = (self.shape[0], mat1.shape[1], self.shape[1])
    if (*mat1.shape, *mat2.shape) != (sizes[0], sizes[1], sizes[1], sizes[2]):
        return NotImplemented  # eager has the message
    if self.dtype != mat1.dtype or self.dtype != mat2.dtype:
        return NotImplemented
    if self.dtype not in (torch.float32, torch.float64, torch.complex64, torch.complex128):
        raise RuntimeError(
            "sparse_sampled_addmm: Expected self to be a floating-point or complex tensor, "
            f"but got {_scalar_name(self.dtype)}"
        )
    rows, columns = _indices(self)
    products = (_wide(mat1)[rows] * mat2.t()[columns]).sum(-1)
    return _with_values(self, (alpha * products + beta * self.values()).to(self.dtype))


# The words of torch's kernel for what a row's terms become; it takes both of an extreme.
_REDUCTIONS = {
    "sum": "sum",
    "mean": "mean",
    "amax": "amax",
    "max": "amax",
    "amin": "amin",
    "min": "amin",
}


def _reduced_product(self: Tensor, other: Tensor, reduce: str) -> Any:
    """A product whose sums may be means or extremes, and where each extreme came from among the elements."""
    if self.layout != torch.sparse_csr or not _is_matrix(self) or other.dim() != 2:
        return NotImplemented
    if reduce not in _REDUCTIONS:
        return NotImplemented  # eager has the message
    reduce = _REDUCTIONS[reduce]
    if other.shape[0] != self.shape[1]:
        return NotImplemented  # eager has the message
    name = _scalar_name(self.dtype)
    if not self.is_floating_point():
        raise NotImplementedError(f"\"spmm_reduce_kernel\" not implemented for '{name}'")
    if other.dtype != self.dtype:
        raise RuntimeError(
            f"Expected tensor for argument #1 'other' to have scalar type {name}; but got "
            f"torch.{_scalar_name(other.dtype)}Tensor instead (while checking arguments for "
            "sparse_mm_reduce)"
        )
    rows, columns = _indices(self)
    terms = _wide(self.values())[:, None] * other[columns]
    if reduce not in ("amax", "amin"):
        sums = _added(rows, terms, self.shape[0])
        result = sums if reduce == "sum" else sums / _lengths(self)
        return result.to(other.dtype), rows.new_empty(0)
    index = rows[:, None].expand(terms.shape)
    zeros = terms.new_zeros(self.shape[0], terms.shape[1])
    extremes = zeros.scatter_reduce(0, index, terms, reduce, include_self=False)
    count = torch.full_like(index, len(rows))
    element = torch.where(terms == extremes[rows], _numbers(rows), count)
    none = torch.full_like(zeros, len(rows), dtype=torch.int64)
    return extremes.to(other.dtype), none.scatter_reduce(0, index, element, "amin")


def _lengths(self: Tensor) -> Tensor:
    """Of each row, how many elements it has, one at least, as a column."""
    return self.crow_indices().diff().clamp(min=1)[:, None]


def _numbers(rows: Tensor) -> Tensor:
    return torch.arange(len(rows), device=rows.device)[:, None]


def _reduced_product_backward(
    self: Tensor, grad_out: Tensor, weight: Tensor, reduce: str, arg_out: Tensor, output_mask: Any
) -> Any:
    if self.layout != torch.sparse_csr or not _is_matrix(self):
        return NotImplemented
    rows, columns = _indices(self)
    grad = _wide(grad_out)[rows]
    reduce = _REDUCTIONS[reduce]
    if reduce == "mean":
        grad = grad / _lengths(self)[rows]
    if reduce in ("amax", "amin"):
        grad = torch.where(arg_out[rows] == _numbers(rows), grad, torch.zeros_like(grad))
    of_values = (grad * weight[columns]).sum(1).to(self.dtype)
    of_weight = _added(columns, self.values()[:, None] * grad, weight.shape[0]).to(weight.dtype)
    of_self = _with_values(self, of_values) if output_mask[0] else None
    return of_self, of_weight if output_mask[1] else None


# --- Along dimensions


def _sparse_sum_backward(grad: Tensor, self: Tensor, dim: list[int]) -> Any:
    # Not `%`, as both are coalesced where torch asks.
    summed = {d % self.dim() for d in dim}
    dense = grad if grad.layout == torch.strided else grad.to_dense()
    for d in sorted(summed):
        dense = dense.unsqueeze(d)
    return _with_values(self, _values_at(dense, self))


def _groups(self: Tensor, dim: int) -> tuple[Tensor, int]:
    """Which elements are alike in all dimensions but one, as numbers below a count."""
    sizes = _sparse_sizes(self)
    kept = [d for d in range(len(sizes)) if d != dim]
    others = [sizes[d] for d in kept]
    indices = self._indices()
    rows = torch.stack([indices[d] for d in kept]) if kept else indices[:0]
    return _places(rows, others), math.prod(others)


def _logarithmic_softmax(self: Tensor, dim: int) -> tuple[Tensor, Callable[[Tensor], Tensor]]:
    """Of the values, and what adds up values of its groups, for each element."""
    values = self._values()
    if dim >= self.sparse_dim():
        at = dim - self.sparse_dim() + 1
        return values.log_softmax(at), lambda x: x.sum(at, keepdim=True)
    group, count = _groups(self, dim)
    lowest = values.new_full((count, *values.shape[1:]), -math.inf)
    index = group.view(-1, *[1] * (values.dim() - 1)).expand(values.shape)
    shifted = values - lowest.scatter_reduce(0, index, values, "amax")[group]
    sums = _added(group, shifted.exp(), count)
    return shifted - sums[group].log(), lambda x: _added(group, x, count)[group]


def _softmax_forward(finish: Callable[[Tensor], Tensor]) -> Any:
    def forward(self: Tensor, dim: int, half_to_float: bool) -> Any:
        if half_to_float or self.layout != torch.sparse_coo:
            return NotImplemented  # eager has the message
        self = self.coalesce()
        return _with_values(self, finish(_logarithmic_softmax(self, _wrapped(dim, self))[0]))

    return forward


def _softmax_backward(is_logarithmic: bool) -> Any:
    def backward(grad_output: Tensor, output: Tensor, dim: int, self: Tensor) -> Any:
        grad = _values_of(_sparse_mask(grad_output, output))
        y = output._values()
        add_up = _logarithmic_softmax(output, dim % self.dim())[1]
        if is_logarithmic:
            return _with_values(output, grad - y.exp() * add_up(grad))
        return _with_values(output, y * (grad - add_up(grad * y)))

    return backward


# --- Of each value of compressed rows and columns


def _of_values(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return lambda self: _with_values(self, function(self.values()))


def _empty_like(self: Tensor, *, dtype: Any = None, **options: Any) -> Any:
    if _is_elsewhere(self, **options):
        return NotImplemented
    return _with_values(self, torch.empty_like(self.values(), dtype=dtype))


def _zeros_like(self: Tensor, *, dtype: Any = None, **options: Any) -> Any:
    if _is_elsewhere(self, **options):
        return NotImplemented
    dtype = dtype or self.dtype
    if self.layout in (torch.sparse_bsr, torch.sparse_bsc):
        return _without_blocks(self, dtype)
    return torch.zeros(self.shape, dtype=dtype, layout=self.layout, device=self.device)


def _without_blocks(self: Tensor, dtype: Any) -> Tensor:
    """A tensor of the same blocks, of which it has none."""
    compressed, plain = _compressed_parts(self)
    values, batch = self.values(), plain.dim() - 1
    shape = (*values.shape[:batch], 0, *values.shape[batch + 1 :])
    return torch.ops.aten._sparse_compressed_tensor_unsafe(
        torch.zeros_like(compressed),
        plain.new_empty((*plain.shape[:batch], 0)),
        values.new_empty(shape, dtype=dtype),
        self.shape,
        layout=self.layout,
    )


def _is_elsewhere(self: Tensor, layout: Any = None, device: Any = None, **_: Any) -> bool:
    return layout not in (None, self.layout) or device not in (None, self.device)


def _sum_of_values(self: Tensor, dtype: Any = None) -> Tensor:
    return self.values().sum(dtype=dtype)


_ELEMENTWISE = (
    "abs angle asin asinh atan atanh ceil deg2rad erf erfinv expm1 floor frac isinf isnan isneginf isposinf "
    "log1p neg rad2deg relu round sgn sign signbit sin sinh sqrt tan tanh trunc"
).split()

# What dense tensors have, too.
CONVERSIONS: dict[str, Callable[..., Any]] = {
    "aten::_convert_indices_from_coo_to_csr": _convert_indices_from_coo_to_csr,
    "aten::_convert_indices_from_csr_to_coo": _convert_indices_from_csr_to_coo,
    "aten::_to_sparse": _to_sparse,
    "aten::_to_sparse.sparse_dim": _to_sparse_of_dim,
    "aten::_to_sparse_csr": _to_csr,
    "aten::_to_sparse_csc": _to_csc,
}

KERNELS: dict[str, Callable[..., Any]] = CONVERSIONS | {
    "aten::_coalesce": _coalesce,
    "aten::_to_dense": _to_dense,
    "aten::add.Tensor": _add,
    "aten::sub.Tensor": _sub,
    "aten::mul.Tensor": _mul,
    "aten::sparse_mask": _sparse_mask,
    "aten::index_select": _index_select,
    "aten::empty_like": _empty_like,
    "aten::zeros_like": _zeros_like,
    "aten::transpose.int": _transpose,
    "aten::addmm": _addmm,
    "aten::addmv": _addmv,
    "aten::mm": _mm,
    "aten::bmm": _bmm,
    "aten::_sparse_sparse_matmul": _sparse_sparse_matmul,
    "aten::sparse_sampled_addmm": _sampled_addmm,
    "aten::_sparse_mm_reduce_impl": _reduced_product,
    "aten::_sparse_mm_reduce_impl_backward": _reduced_product_backward,
    "aten::_sparse_sum_backward": _sparse_sum_backward,
    "aten::_sparse_softmax": _softmax_forward(torch.exp),
    "aten::_sparse_log_softmax": _softmax_forward(torch.clone),
    "aten::_sparse_softmax_backward_data": _softmax_backward(False),
    "aten::_sparse_log_softmax_backward_data": _softmax_backward(True),
    "aten::sum": _sum_of_values,
}
KERNELS |= {f"aten::{name}": _of_values(getattr(torch, name)) for name in _ELEMENTWISE}


def check_devices(arguments: Any) -> None:
    """Raises eager's error for a tensor of the CPU among those of the device; a number may be one."""
    tensors = [x for x in arguments if isinstance(x, Tensor)]
    device = next((x.device for x in tensors if x.device.type == "xla"), None)
    for tensor in tensors:
        if device is not None and tensor.dim() > 0 and tensor.device.type != "xla":
            raise RuntimeError(
                "Expected all tensors to be on the same device, but found at least two devices, "
                f"{device} and {tensor.device}!"
            )


def is_sparse(value: Any) -> bool:
    """Whether an operator's argument is or holds a sparse tensor."""
    if isinstance(value, Tensor):
        return value.layout != torch.strided
    return isinstance(value, list) and any(is_sparse(element) for element in value)


_new = torch.Tensor.new


@functools.wraps(_new)
def new(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """`torch.Tensor.new`, which torch has for sparse tensors of its own devices only."""
    if self.layout != torch.sparse_coo or self.device.type != "xla" or kwargs:
        return _new(self, *args, **kwargs)
    options: dict[str, Any] = {"dtype": self.dtype, "device": self.device}
    if args and isinstance(args[0], Tensor):
        return torch.sparse_coo_tensor(*args, **options)
    return torch.sparse_coo_tensor(args[0] if len(args) == 1 else args or (0,), **options)


def register() -> None:
    """Puts `new` where torch's is."""
    torch.Tensor.new = new
