"""Operators for which torch has no decomposition, as compositions of others: their parts stay on the device.

Each takes its operator's arguments; NotImplemented leaves a case to the CPU. Where the data decides on the result's size, one
number is read.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from torch_xla._grouped_products import columns_times_rows, rows_of_groups, rows_times_matrices

Generator = torch.Generator | None

# Drawing by rejection takes the first of so many attempts. What accepts one least often are Poisson's numbers of mean ten, which
# six in seven attempts bring: all twenty fail once in 10^16 draws.
_ATTEMPTS = 20
# From this mean on, counts are drawn by rejection; below, by searching a table of so many cumulative probabilities.
_LARGE_MEAN = 10
_TABLE = 80


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


def _unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    if self.numel() == 0 or (dim is not None and self.dim() == 0):
        return NotImplemented
    if dim is not None:
        rows = self.movedim(dim, 0)
        unique, group, counts = _unique_rows(rows, None, return_inverse, return_counts)
        return unique.movedim(0, dim), group, counts
    unique, group, counts = _unique_rows(self.reshape(-1), None, return_inverse, return_counts)
    return unique, group.view(self.shape) if return_inverse else group, counts


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


# --- Draws


def _first_accepted(values: Tensor, accepted: Tensor, otherwise: Tensor) -> Tensor:
    """Of the attempts along dimension 0, the first that was accepted."""
    attempt = accepted.to(torch.uint8).argmax(0, keepdim=True)
    return torch.where(accepted.any(0), values.gather(0, attempt)[0], otherwise)


def _uniform(like: Tensor, generator: Generator, attempts: int = _ATTEMPTS) -> Tensor:
    """Numbers of (0, 1], so that they have logarithms."""
    shape = (attempts, *like.shape)
    return 1 - torch.rand(shape, dtype=like.dtype, device=like.device, generator=generator)


def _gamma_of_one_and_more(shape: Tensor, generator: Generator) -> Tensor:
    """Marsaglia and Tsang, 2000."""
    d = shape - 1 / 3
    c = 1 / (9 * d).sqrt()
    size = (_ATTEMPTS, *shape.shape)
    normal = torch.randn(size, dtype=shape.dtype, device=shape.device, generator=generator)
    root = 1 + c * normal
    cube = root**3
    bound = normal**2 / 2 + d * (1 - cube + torch.log(cube.clamp_min(0)))
    accepted = (root > 0) & (_uniform(shape, generator).log() < bound)
    return _first_accepted(d * cube, accepted, d)


def _standard_gamma(self: Tensor, generator: Generator = None) -> Any:
    wide = torch.float64 if self.dtype == torch.float64 else torch.float32
    shape = self.to(wide)
    is_small = shape < 1
    drawn = _gamma_of_one_and_more(torch.where(is_small, shape + 1, shape), generator)
    boost = _uniform(shape, generator, 1)[0].log() / shape
    drawn = torch.where(is_small, drawn * boost.exp(), drawn)
    return drawn.to(self.dtype).clamp_min(torch.finfo(self.dtype).tiny)


def _sample_dirichlet(self: Tensor, generator: Generator = None) -> Any:
    drawn = _standard_gamma(self.to(torch.float64), generator)
    shares = drawn / drawn.sum(-1, keepdim=True)
    return shares.to(self.dtype).clamp_min(torch.finfo(self.dtype).tiny)


def _counts_below(uniform: Tensor, log_probability: Tensor) -> Tensor:
    """How many of the cumulative probabilities, along dimension 0, are below a uniform number."""
    return (uniform > log_probability.exp().cumsum(0)).sum(0).to(uniform.dtype)


def _table(like: Tensor) -> Tensor:
    return torch.arange(_TABLE, dtype=like.dtype, device=like.device).view(-1, *[1] * like.dim())


def _poisson_of_small_mean(mean: Tensor, generator: Generator) -> Tensor:
    k = _table(mean)
    log_probability = torch.special.xlogy(k, mean) - mean - torch.lgamma(k + 1)
    return _counts_below(_uniform(mean, generator, 1)[0], log_probability)


def _poisson_of_large_mean(mean: Tensor, generator: Generator) -> Tensor:
    """Hörmann's transformed rejection with squeeze, 1993."""
    b = 0.931 + 2.53 * mean.sqrt()
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    u = _uniform(mean, generator) - 0.5
    v = _uniform(mean, generator)
    us = 0.5 - u.abs()
    k = ((2 * a / us + b) * u + mean + 0.43).floor()
    is_inside = (us >= 0.07) & (v <= 0.9277 - 3.6224 / (b - 2))
    log_ratio = v.log() + inverse_alpha.log() - (a / us**2 + b).log()
    log_probability = k * mean.log() - mean - torch.lgamma(k.clamp_min(0) + 1)
    is_possible = (k >= 0) & ((us >= 0.013) | (v <= us))
    return _first_accepted(
        k, is_inside | (is_possible & (log_ratio <= log_probability)), mean.floor()
    )


def _poisson(self: Tensor, generator: Generator = None) -> Any:
    if not self.is_floating_point():
        return NotImplemented  # eager has the message
    torch._assert_async((self >= 0).all(), "invalid Poisson rate, expected rate to be non-negative")
    mean = self.to(torch.float64)
    is_large = mean >= _LARGE_MEAN
    large = _poisson_of_large_mean(torch.where(is_large, mean, _LARGE_MEAN), generator)
    small = _poisson_of_small_mean(torch.where(is_large, 0, mean), generator)
    return torch.where(is_large, large, small).to(self.dtype)


def _log_choose(n: Tensor, k: Tensor) -> Tensor:
    return torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)


def _binomial_of_small_mean(n: Tensor, p: Tensor, generator: Generator) -> Tensor:
    k = _table(n)
    is_possible = k <= n
    k = torch.where(is_possible, k, 0)
    log_probability = _log_choose(n, k) + torch.special.xlogy(k, p) + (n - k) * torch.log1p(-p)
    log_probability = torch.where(is_possible, log_probability, -torch.inf)
    return torch.minimum(_counts_below(_uniform(n, generator, 1)[0], log_probability), n)


def _binomial_of_large_mean(n: Tensor, p: Tensor, generator: Generator) -> Tensor:
    """Hörmann's transformed rejection, 1993."""
    deviation = (n * p * (1 - p)).sqrt()
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    alpha = (2.83 + 5.1 / b) * deviation
    mode = ((n + 1) * p).floor()
    u = _uniform(n, generator) - 0.5
    v = _uniform(n, generator)
    us = 0.5 - u.abs()
    k = ((2 * a / us + b) * u + n * p + 0.5).floor()
    is_inside = (us >= 0.07) & (v <= 0.92 - 4.2 / b)
    is_possible = (k >= 0) & (k <= n)
    k = torch.where(is_possible, k, mode)
    log_ratio = v.log() + alpha.log() - (a / us**2 + b).log()
    odds = torch.log(p / (1 - p))
    bound = _log_choose(n, k) - _log_choose(n, mode) + (k - mode) * odds
    return _first_accepted(k, is_possible & (is_inside | (log_ratio <= bound)), mode)


def _binomial(count: Tensor, prob: Tensor, generator: Generator = None) -> Any:
    if not (count.is_floating_point() and prob.is_floating_point()):
        return NotImplemented  # eager has the message
    n, p = torch.broadcast_tensors(
        count.to(torch.float64).clamp_min(0).floor(), prob.to(torch.float64)
    )
    is_flipped = p > 0.5
    p = torch.where(is_flipped, 1 - p, p).clamp_min(0)
    is_large = n * p >= _LARGE_MEAN
    small = _binomial_of_small_mean(
        torch.where(is_large, 0, n), torch.where(is_large, 0, p), generator
    )
    large = _binomial_of_large_mean(
        torch.where(is_large, n, 4 * _LARGE_MEAN), torch.where(is_large, p, 0.5), generator
    )
    drawn = torch.where(is_large, large, small)
    drawn = torch.where(is_flipped, n - drawn, drawn)
    return torch.where(prob.isnan(), torch.nan, drawn).to(count.dtype)


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


def _col2im(self: Tensor, *window: list[int]) -> Tensor:
    _refuse_integers("col2im", self)
    return _torchs(_aten.col2im.default, self, *window)


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
    "aten::_standard_gamma": _standard_gamma,
    "aten::_sample_dirichlet": _sample_dirichlet,
    "aten::poisson": _poisson,
    "aten::binomial": _binomial,
    "aten::_grouped_mm": _grouped_mm,
    "aten::im2col": _im2col,
    "aten::col2im": _col2im,
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
