"""The operators that `operators.py` times: for each a function and its inputs, made on the CPU with numbers drawn from seed 0.

Those of `ELEMENTWISE` and `MATRIX` take one matrix, of any size. `LAYERS` have sizes of their own, and gradients.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

Table = dict[str, Callable[..., Any]]

_FUNCTIONS = (
    "abs acos acosh angle asin asinh atan atanh ceil cos cosh deg2rad digamma erf erfc erfinv exp exp2 expm1 floor "
    "frac i0 isfinite isnan lgamma log log10 log1p log2 logical_not logit neg rad2deg reciprocal relu round rsqrt sigmoid sign "
    "signbit sin sinc sinh sqrt square tan tanh trunc"
)
_SPECIAL = (
    "airy_ai bessel_j0 bessel_j1 bessel_y0 entr erfcx i0e i1 i1e log_ndtr modified_bessel_k0 ndtr ndtri scaled_modified_bessel_k1 "
    "spherical_bessel_j0"
)
_ACTIVATIONS = (
    "celu elu gelu glu hardshrink hardsigmoid hardswish hardtanh leaky_relu logsigmoid mish relu6 selu silu softplus softshrink "
    "softsign tanhshrink"
)
_OF_TWO = (
    "add atan2 copysign div eq floor_divide fmax fmin fmod heaviside hypot ldexp logaddexp logaddexp2 lt maximum mul nextafter "
    "pow remainder sub xlogy"
)


def _ints(x: torch.Tensor, below: int) -> torch.Tensor:
    return (x.abs() * 1e4).long() % below


def _named(module: Any, names: str) -> Table:
    """Functions of a matrix."""

    def of_matrix(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: function(x)

    return {name: of_matrix(getattr(module, name)) for name in names.split()}


def _of_two(names: str) -> Table:
    def of_matrix(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: function(x, x.flip(0))

    return {name: of_matrix(getattr(torch, name)) for name in names.split()}


ELEMENTWISE: Table = {
    **_named(torch, _FUNCTIONS),
    **_named(torch.special, _SPECIAL),
    **_named(F, _ACTIVATIONS),
    **_of_two(_OF_TWO),
    "bitwise_not": lambda x: (x > 0).bitwise_not(),
    "threshold": lambda x: F.threshold(x, 0.1, 0.2),
    "clamp": lambda x: x.clamp(-0.5, 0.5),
    "dropout": lambda x: F.dropout(x, 0.3),
    "floor_divide of integers": lambda x: _ints(x, 1000) // 7,
    "frexp": lambda x: torch.frexp(x),
    "gammainc": lambda x: torch.special.gammainc(x.abs(), x.flip(0).abs()),
    "isclose": lambda x: torch.isclose(x, x.flip(0)),
    "isin": lambda x: torch.isin(_ints(x, 1000), torch.arange(20, device=x.device)),
    "lerp": lambda x: torch.lerp(x, x.flip(0), 0.3),
    "masked_fill": lambda x: x.masked_fill(x > 0, 1.0),
    "nan_to_num": lambda x: x.nan_to_num(),
    "polygamma": lambda x: torch.polygamma(1, x),
    "prelu": lambda x: F.prelu(x, x[0, :1]),
    "erf of float64": lambda x: x.double().erf(),
    "erfinv of float64": lambda x: x.double().erf().erfinv(),
    "remainder of float64": lambda x: x.double().remainder(x.flip(0).double()),
    "to bool": lambda x: x.to(torch.bool),
    "to complex64": lambda x: x.to(torch.complex64),
    "to bfloat16": lambda x: x.to(torch.bfloat16),
    "to float64": lambda x: x.to(torch.float64),
    "to int64": lambda x: x.to(torch.int64),
    "to uint8": lambda x: (x.abs() * 50).to(torch.uint8),
    "where": lambda x: torch.where(x > 0, x, x.flip(0)),
    "zeta": lambda x: torch.special.zeta(x.abs() + 1.1, x.flip(0).abs()),
}

MATRIX: Table = {
    # Reductions.
    "all": lambda x: (x > -9).all(1),
    "amax 0": lambda x: x.amax(0),
    "amax 1": lambda x: x.amax(1),
    "aminmax": lambda x: x.aminmax(dim=1),
    "any": lambda x: (x > 9).any(0),
    "argmax 0": lambda x: x.argmax(0),
    "argmax 1": lambda x: x.argmax(1),
    "argmin": lambda x: x.argmin(),
    "count_nonzero": lambda x: x.count_nonzero(1),
    "dist": lambda x: torch.dist(x, x.flip(0)),
    "log_softmax 0": lambda x: x.log_softmax(0),
    "log_softmax 1": lambda x: x.log_softmax(1),
    "logsumexp": lambda x: x.logsumexp(1),
    "max 1": lambda x: x.max(1),
    "mean 0": lambda x: x.mean(0),
    "mean": lambda x: x.mean(),
    "min 0": lambda x: x.min(0),
    "nanmean": lambda x: x.nanmean(1),
    "nansum": lambda x: x.nansum(0),
    "norm": lambda x: x.norm(),
    "norm 3": lambda x: x.norm(3, 1),
    "prod": lambda x: x.prod(1),
    "softmax 0": lambda x: x.softmax(0),
    "softmax 1": lambda x: x.softmax(1),
    "std": lambda x: x.std(1),
    "sum 0": lambda x: x.sum(0),
    "sum 1": lambda x: x.sum(1),
    "sum of bfloat16": lambda x: x.bfloat16().sum(1),
    "sum of integers": lambda x: _ints(x, 100).sum(1),
    "var_mean": lambda x: torch.var_mean(x, 0),
    "vector_norm inf": lambda x: torch.linalg.vector_norm(x, float("inf"), 1),
    # Cumulative operations.
    "cummax": lambda x: x.cummax(1),
    "cummin 0": lambda x: x.cummin(0),
    "cumprod": lambda x: x.cumprod(1),
    "cumsum 0": lambda x: x.cumsum(0),
    "cumsum 1": lambda x: x.cumsum(1),
    "cumsum of integers": lambda x: _ints(x, 9).cumsum(1),
    "cumulative_trapezoid": lambda x: torch.cumulative_trapezoid(x, dim=1),
    "diff": lambda x: x.diff(),
    "gradient": lambda x: torch.gradient(x, dim=1),
    "logcumsumexp": lambda x: x.logcumsumexp(1),
    "trapezoid": lambda x: torch.trapezoid(x, dim=1),
    # Sorting and searching.
    "argsort": lambda x: x.argsort(1),
    "argsort descending": lambda x: x.argsort(1, descending=True),
    "bincount": lambda x: _ints(x, 100).flatten().bincount(),
    "bucketize": lambda x: torch.bucketize(x, torch.linspace(-3, 3, 50, device=x.device)),
    "bucketize of many": lambda x: torch.bucketize(x, torch.linspace(-3, 3, 999, device=x.device)),
    "histc": lambda x: x.histc(50),
    "kthvalue": lambda x: x.kthvalue(5, 1),
    "median": lambda x: x.median(1),
    "median of all": lambda x: x.median(),
    "mode": lambda x: x.round().mode(1),
    "msort": lambda x: x.msort(),
    "multinomial": lambda x: x.softmax(1).multinomial(3),
    "multinomial with replacement": lambda x: x.softmax(1).multinomial(20, replacement=True),
    "nanmedian": lambda x: x.nanmedian(1),
    "nonzero": lambda x: (x > 1).nonzero(),
    "quantile": lambda x: x.quantile(0.5, 1),
    "searchsorted": lambda x: torch.searchsorted(x.sort(1)[0], x),
    "sort 0": lambda x: x.sort(0),
    "sort 1": lambda x: x.sort(1),
    "sort of integers": lambda x: _ints(x, 1000).sort(1),
    "sort of all": lambda x: x.flatten().sort(),
    "topk": lambda x: x.topk(5, 1),
    "topk 0": lambda x: x.topk(5, 0),
    "topk 100": lambda x: x.topk(100, 1),
    "topk smallest": lambda x: x.topk(5, 1, largest=False),
    "unique": lambda x: x.round().unique(),
    "unique_consecutive": lambda x: x.round().flatten().unique_consecutive(),
    # Indices.
    "embedding": lambda x: F.embedding(_ints(x[:, :4], x.shape[0]), x),
    "gather 0": lambda x: x.gather(0, _ints(x, x.shape[0])),
    "gather 1": lambda x: x.gather(1, _ints(x, x.shape[1])),
    "index": lambda x: x[_ints(x[:, 0], x.shape[0])],
    "index of pairs": lambda x: x[_ints(x, x.shape[0]), _ints(x, x.shape[1])],
    "index_add": lambda x: torch.zeros_like(x).index_add(0, _ints(x[:, 0], x.shape[0]), x),
    "index_add 1": lambda x: torch.zeros_like(x).index_add(1, _ints(x[0], x.shape[1]), x),
    "index_copy": lambda x: x.index_copy(0, torch.arange(x.shape[0], device=x.device), x + 1),
    "index_fill": lambda x: x.index_fill(1, _ints(x[0, :50], x.shape[1]), 1.0),
    "index_put": lambda x: x.index_put((_ints(x[:, 0], x.shape[0]),), x),
    "index_put accumulate": lambda x: x.index_put((_ints(x[:, 0], x.shape[0]),), x, True),
    "index_select 0": lambda x: x.index_select(0, _ints(x[:, 0], x.shape[0])),
    "index_select 1": lambda x: x.index_select(1, _ints(x[0], x.shape[1])),
    "masked_scatter": lambda x: x.masked_scatter(x > 0, x.flip(0)),
    "masked_select": lambda x: x[x > 0],
    "put": lambda x: x.put(_ints(x, x.numel()), x),
    "repeat_interleave": lambda x: x.repeat_interleave(2, 1),
    "scatter": lambda x: x.scatter(1, _ints(x, x.shape[1]), x),
    "scatter of a number": lambda x: x.scatter(1, _ints(x, x.shape[1]), 1.0),
    "scatter_add 0": lambda x: torch.zeros_like(x).scatter_add(0, _ints(x, x.shape[0]), x),
    "scatter_add 1": lambda x: torch.zeros_like(x).scatter_add(1, _ints(x, x.shape[1]), x),
    "scatter_reduce amax": lambda x: x.scatter_reduce(1, _ints(x, x.shape[1]), x, "amax"),
    "scatter_reduce mean": lambda x: x.scatter_reduce(1, _ints(x, x.shape[1]), x, "mean"),
    "take": lambda x: x.take(_ints(x, x.numel())),
    "take_along_dim": lambda x: x.take_along_dim(x.argmax(1, keepdim=True), 1),
    # Rearrangement.
    "cat": lambda x: torch.cat([x, x], 1),
    "contiguous transpose": lambda x: x.t().contiguous(),
    "diag": lambda x: x.diag(),
    "diag_embed": lambda x: x[0].diag_embed(),
    "expand": lambda x: x[0].expand(x.shape).contiguous(),
    "flip 0": lambda x: x.flip(0),
    "flip 1": lambda x: x.flip(1),
    "kron": lambda x: torch.kron(x[:30, :30], x[:30, :30]),
    "one_hot": lambda x: F.one_hot(_ints(x[:, 0], 1000), 1000),
    "pad": lambda x: F.pad(x, (1, 1, 1, 1)),
    "pad circular": lambda x: F.pad(x[None], (2, 2), "circular"),
    "pad reflect": lambda x: F.pad(x[None], (2, 2, 2, 2), "reflect"),
    "pad replicate": lambda x: F.pad(x[None], (2, 2, 2, 2), "replicate"),
    "repeat": lambda x: x.repeat(2, 2),
    "roll 0": lambda x: x.roll(3, 0),
    "roll 1": lambda x: x.roll(3, 1),
    "roll of all": lambda x: x.roll(3),
    "rot90": lambda x: x.rot90(),
    "slice": lambda x: x[:, ::2].contiguous(),
    "stack": lambda x: torch.stack([x, x], 2),
    "stack of bfloat16": lambda x: torch.stack([x.bfloat16(), x.bfloat16()], 2),
    "tril": lambda x: x.tril(),
    "triu_indices": lambda x: torch.triu_indices(*x.shape, device=x.device),
    "unfold": lambda x: x.unfold(1, 16, 1).sum(-1),
    "unfold with gaps": lambda x: x.unfold(1, 16, 8).contiguous(),
    "vander": lambda x: torch.vander(x[0], 100),
    # Products.
    "addmm": lambda x: torch.addmm(x[0], x[:, :256], x[:256]),
    "addmv": lambda x: torch.addmv(x[0, : x.shape[0]], x, x[0]),
    "bmm": lambda x: torch.bmm(x.view(10, 100, -1), x.view(10, -1, 100)),
    "cdist": lambda x: torch.cdist(x[:200], x[:200]),
    "cdist 1": lambda x: torch.cdist(x[:200], x[:200], 1.0),
    "corrcoef": lambda x: torch.corrcoef(x[:100]),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x.flip(0)),
    "cov": lambda x: torch.cov(x[:100]),
    "cross": lambda x: torch.linalg.cross(x[:, :3], x[:, 3:6]),
    "dot": lambda x: torch.dot(x.view(-1), x.view(-1)),
    "einsum": lambda x: torch.einsum("bij,bkj->bik", x.view(10, 100, -1), x.view(10, 100, -1)),
    "matmul": lambda x: x[:, :256] @ x[:256],
    "matmul of integers": lambda x: _ints(x[:200, :200], 9) @ _ints(x[:200, :200], 9),
    "mv": lambda x: x @ x[0],
    "outer": lambda x: torch.outer(x[0], x[0]),
    "pdist": lambda x: F.pdist(x[:200]),
    "renorm": lambda x: x.renorm(2, 0, 1.0),
    # Random numbers.
    "bernoulli": lambda x: torch.bernoulli(x.sigmoid()),
    "exponential": lambda x: x.clone().exponential_(),
    "normal": lambda x: torch.randn_like(x),
    "poisson": lambda x: torch.poisson(x[:200].abs()),
    "randint": lambda x: torch.randint_like(x, 10),
    "randperm": lambda x: torch.randperm(x.numel(), device=x.device),
    "randperm of 50000": lambda x: torch.randperm(50000, device=x.device),
    "uniform": lambda x: torch.rand_like(x),
    # Transforms.
    "fft": lambda x: torch.fft.fft(x),
    "fft2": lambda x: torch.fft.fft2(x),
    "fftshift": lambda x: torch.fft.fftshift(x),
    "hfft": lambda x: torch.fft.hfft(x),
    "irfft": lambda x: torch.fft.irfft(torch.complex(x, x)),
    "rfft": lambda x: torch.fft.rfft(x),
    "stft": lambda x: torch.stft(
        x.flatten(), 400, 160, window=torch.hann_window(400, device=x.device), return_complex=True
    ),
}


def _symmetric(x: torch.Tensor) -> torch.Tensor:
    return x @ x.mT + x.shape[-1] * torch.eye(x.shape[-1], device=x.device)


# Name: function, then for each input its shape, or (the number of its values, shape) if it is of integers.
Layer = tuple[Any, ...]


def _blurred(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    padded = F.pad(x, (2, 2, 2, 2), "reflect")
    return F.conv2d(padded, weight, groups=len(weight)).square().mean((2, 3))


def _dilated(x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """The maximum of windows; `chosen` says which of their places count."""
    size = x.shape[-1]
    padded = F.pad(x, (1, 1, 1, 1), value=-math.inf)
    planes = torch.stack([torch.full_like(padded, -math.inf), padded])
    result = torch.full_like(x, -math.inf)
    for place, index in enumerate(chosen):
        row, column = divmod(place, 3)
        window = planes[..., row : row + size, column : column + size]
        result = torch.maximum(result, window.index_select(0, index)[0])
    return result


LAYERS: dict[str, Layer] = {
    # Convolutions.
    "conv1d": (lambda x, w: F.conv1d(x, w, padding=2), (16, 64, 500), (64, 64, 5)),
    "conv1d dilated": (
        lambda x, w: F.conv1d(x, w, padding=8, dilation=4),
        (8, 64, 500),
        (64, 64, 5),
    ),
    "conv1d depthwise": (
        lambda x, w: F.conv1d(x, w, padding=3, groups=256),
        (8, 256, 500),
        (256, 1, 4),
    ),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (4, 64, 56, 56), (64, 64, 3, 3)),
    "conv2d 1x1": (lambda x, w: F.conv2d(x, w), (4, 64, 56, 56), (128, 64, 1, 1)),
    "conv2d 1x1 to a channel": (lambda x, w: F.conv2d(x, w), (4, 64, 56, 56), (1, 64, 1, 1)),
    "conv2d of images": (
        lambda x, w: F.conv2d(x, w, stride=2, padding=3),
        (2, 3, 224, 224),
        (64, 3, 7, 7),
    ),
    "conv2d of patches": (
        lambda x, w: F.conv2d(x, w, stride=16),
        (2, 3, 224, 224),
        (192, 3, 16, 16),
    ),
    "conv2d of patches of 4x4": (
        lambda x, w: F.conv2d(x, w, stride=4),
        (4, 64, 64, 64),
        (64, 64, 4, 4),
    ),
    "conv2d depthwise": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=128),
        (4, 128, 56, 56),
        (128, 1, 3, 3),
    ),
    "conv2d grouped": (
        lambda x, w: F.conv2d(x, w, padding=1, groups=8),
        (4, 128, 28, 28),
        (128, 16, 3, 3),
    ),
    "conv2d dilated": (
        lambda x, w: F.conv2d(x, w, padding=2, dilation=2),
        (4, 64, 28, 28),
        (64, 64, 3, 3),
    ),
    "conv3d": (lambda x, w: F.conv3d(x, w, padding=1), (2, 16, 16, 28, 28), (32, 16, 3, 3, 3)),
    "conv_transpose1d": (
        lambda x, w: F.conv_transpose1d(x, w, stride=4, padding=2),
        (4, 128, 200),
        (128, 64, 8),
    ),
    "conv_transpose2d": (
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1),
        (4, 64, 28, 28),
        (64, 32, 4, 4),
    ),
    "conv_transpose3d": (
        lambda x, w: F.conv_transpose3d(x, w, stride=2),
        (1, 16, 8, 14, 14),
        (16, 16, 2, 2, 2),
    ),
    # Pooling.
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 7), (16, 64, 56, 56)),
    "adaptive_avg_pool2d uneven": (lambda x: F.adaptive_avg_pool2d(x, 5), (16, 64, 56, 56)),
    "adaptive_max_pool2d": (lambda x: F.adaptive_max_pool2d(x, 7), (16, 64, 56, 56)),
    "avg_pool1d": (lambda x: F.avg_pool1d(x, 3, 2, 1), (16, 64, 1000)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 2), (4, 64, 56, 56)),
    "avg_pool2d of 8x8": (lambda x: F.avg_pool2d(x, 8), (16, 64, 56, 56)),
    "avg_pool2d of 13x13, overlapping": (lambda x: F.avg_pool2d(x, 13, 1, 6), (2, 64, 26, 26)),
    "avg_pool2d overlapping": (lambda x: F.avg_pool2d(x, 3, 1, 1), (4, 64, 56, 56)),
    "avg_pool3d": (lambda x: F.avg_pool3d(x, 2), (2, 16, 16, 56, 56)),
    "fractional_max_pool2d": (lambda x: F.fractional_max_pool2d(x, 3, 20), (4, 64, 56, 56)),
    "lp_pool2d": (lambda x: F.lp_pool2d(x, 2.0, 2), (4, 64, 56, 56)),
    "max_pool1d": (lambda x: F.max_pool1d(x, 3, 2), (16, 64, 1000)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (4, 64, 56, 56)),
    "max_pool2d of a plane": (lambda x: F.max_pool2d(x, 2), (1, 1, 1000, 1000)),
    "max_pool2d of 8x8": (lambda x: F.max_pool2d(x, 8), (16, 64, 56, 56)),
    "max_pool2d of 13x13, overlapping": (lambda x: F.max_pool2d(x, 13, 1, 6), (2, 64, 13, 13)),
    "max_pool2d overlapping": (lambda x: F.max_pool2d(x, 3, 2, 1), (4, 64, 56, 56)),
    "max_pool2d overlapping, of 8 channels": (
        lambda x: F.max_pool2d(x, 3, 2, 1),
        (1, 8, 64, 64),
    ),
    "max_pool2d of 5x5 by 3": (lambda x: F.max_pool2d(x, 5, 3), (4, 64, 56, 56)),
    "max_pool2d wide": (lambda x: F.max_pool2d(x, 5, 1, 2), (4, 64, 28, 28)),
    "max_pool3d overlapping": (lambda x: F.max_pool3d(x, 3, 2, 1), (2, 8, 8, 16, 16)),
    "max_pool3d wide": (lambda x: F.max_pool3d(x, 3, 1, 1), (2, 8, 8, 16, 16)),
    "max_pool3d": (lambda x: F.max_pool3d(x, 2), (2, 16, 16, 56, 56)),
    "max_unpool2d": (
        lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_indices=True), 2),
        (4, 64, 56, 56),
    ),
    # Resampling.
    "affine_grid": (lambda t: F.affine_grid(t, [4, 3, 256, 256], align_corners=False), (4, 2, 3)),
    "fold": (lambda x: F.fold(x, (56, 56), 3, padding=1), (4, 16 * 9, 56 * 56)),
    "grid_sample": (
        lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False),
        (4, 16, 64, 64),
        (4, 64, 64, 2),
    ),
    "grid_sample nearest": (
        lambda x, g: F.grid_sample(x, g.tanh(), "nearest", align_corners=False),
        (4, 16, 64, 64),
        (4, 64, 64, 2),
    ),
    "grid_sample of 3 channels": (
        lambda x, g: F.grid_sample(x, g.tanh(), align_corners=False),
        (2, 3, 64, 64),
        (2, 64, 64, 2),
    ),
    "grid_sample of 3 channels, bicubic": (
        lambda x, g: F.grid_sample(x, g.tanh(), "bicubic", align_corners=False),
        (2, 3, 64, 64),
        (2, 64, 64, 2),
    ),
    "interpolate bicubic": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"),
        (4, 16, 64, 64),
    ),
    "interpolate bilinear": (
        lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
        (4, 16, 64, 64),
    ),
    "interpolate linear": (lambda x: F.interpolate(x, 1500, mode="linear"), (8, 64, 500)),
    "interpolate nearest": (lambda x: F.interpolate(x, scale_factor=2), (4, 16, 64, 64)),
    "interpolate trilinear": (
        lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"),
        (2, 8, 16, 28, 28),
    ),
    "interpolate smaller": (
        lambda x: F.interpolate(x, size=(224, 224), mode="bilinear"),
        (1, 3, 900, 900),
    ),
    "pixel_shuffle": (lambda x: F.pixel_shuffle(x, 2), (4, 64, 56, 56)),
    "unfold2d of few": (lambda x: F.unfold(x, 3, padding=1), (2, 4, 16, 16)),
    "unfold2d of tiles": (lambda x: F.unfold(x, 3, stride=3), (4, 16, 28, 28)),
    "unfold2d": (lambda x: F.unfold(x, 3, padding=1), (4, 16, 56, 56)),
    # Normalisation.
    "batch_norm": (
        lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
        (16, 64, 28, 28),
        64,
        64,
    ),
    "batch_norm inference": (
        lambda x, m, w: F.batch_norm(x, m.detach(), m.detach().abs(), w),
        (16, 64, 28, 28),
        64,
        64,
    ),
    "group_norm": (lambda x, w, b: F.group_norm(x, 8, w, b), (16, 64, 28, 28), 64, 64),
    "instance_norm": (lambda x: F.instance_norm(x), (16, 64, 28, 28)),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (512,), w, b), (2000, 512), 512, 512),
    "local_response_norm": (lambda x: F.local_response_norm(x, 5), (4, 64, 28, 28)),
    "normalize": (lambda x: F.normalize(x), (2000, 512)),
    "rms_norm": (lambda x, w: F.rms_norm(x, (512,), w), (2000, 512), 512),
    # Embeddings and sequences.
    "embedding of words": (F.embedding, (5000, (64, 128)), (5000, 128)),
    "embedding_bag": (F.embedding_bag, (5000, (256, 32)), (5000, 128)),
    "embedding_bag max": (
        lambda i, w: F.embedding_bag(i, w, mode="max"),
        (5000, (256, 32)),
        (5000, 128),
    ),
    "means of neighbours": (
        lambda x, i: torch.zeros_like(x[:500]).scatter_reduce(
            0, i[:, None].expand_as(x), x, "mean", include_self=False
        ),
        (50000, 64),
        (500, (50000,)),
    ),
    "sums of neighbours": (
        lambda x, i, j: torch.zeros_like(x).index_add(0, j, x[i]),
        (1000, 128),
        (1000, (10000,)),
        (1000, (10000,)),
    ),
    "gru": (torch.nn.GRU(128, 128), (50, 16, 128)),
    "lstm": (torch.nn.LSTM(128, 128), (50, 16, 128)),
    "multi_head_attention": (
        lambda x, w, v: F.multi_head_attention_forward(
            x, x, x, 128, 4, w, None, None, None, False, 0.0, v, None, need_weights=False
        )[0],
        (128, 8, 128),
        (384, 128),
        (128, 128),
    ),
    "scaled_dot_product_attention": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        *[(4, 4, 256, 64)] * 3,
    ),
    # Losses.
    "binary_cross_entropy_with_logits": (
        lambda x, y: F.binary_cross_entropy_with_logits(x, y.detach().sigmoid()),
        *[(1000, 1000)] * 2,
    ),
    "cosine_embedding_loss": (
        lambda x, y: F.cosine_embedding_loss(x, y, torch.ones(1000, device=x.device)),
        *[(1000, 512)] * 2,
    ),
    "cross_entropy": (F.cross_entropy, (1000, 1000), (1000, (1000,))),
    "cross_entropy of images": (F.cross_entropy, (4, 20, 128, 128), (20, (4, 128, 128))),
    "cross_entropy smooth": (
        lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1),
        (1000, 1000),
        (1000, (1000,)),
    ),
    "ctc_loss": (
        lambda x, y: F.ctc_loss(x.log_softmax(2), y + 1, [100] * 16, [20] * 16),
        (100, 16, 50),
        (49, (16, 20)),
    ),
    "huber_loss": (F.huber_loss, *[(1000, 1000)] * 2),
    "kl_div": (lambda x, y: F.kl_div(x.log_softmax(1), y.softmax(1)), *[(1000, 1000)] * 2),
    "mse_loss": (F.mse_loss, *[(1000, 1000)] * 2),
    "multi_margin_loss": (F.multi_margin_loss, (1000, 1000), (1000, (1000,))),
    "multilabel_soft_margin_loss": (
        lambda x, y: F.multilabel_soft_margin_loss(x, y.detach()),
        *[(1000, 1000)] * 2,
    ),
    "nll_loss2d": (F.nll_loss, (4, 20, 128, 128), (20, (4, 128, 128))),
    "smooth_l1_loss": (F.smooth_l1_loss, *[(1000, 1000)] * 2),
    "triplet_margin_loss": (F.triplet_margin_loss, *[(1000, 512)] * 3),
    # Layers.
    "bilinear": (F.bilinear, (64, 64), (64, 64), (64, 64, 64)),
    "rotated points": (
        lambda x, y: (x @ y[..., None])[..., 0],
        (100000, 3, 3),
        (100000, 3),
    ),
    "linear": (F.linear, (512, 512), (1024, 512), 1024),
    "linear 3d": (F.linear, (8, 64, 512), (1024, 512), 1024),
    # Linear algebra.
    "cholesky": (lambda x: torch.linalg.cholesky(_symmetric(x)), (10, 100, 100)),
    "cholesky_solve": (
        lambda x, y: torch.cholesky_solve(y, torch.linalg.cholesky(_symmetric(x))),
        (10, 100, 100),
        (10, 100, 10),
    ),
    "det": (torch.linalg.det, (10, 100, 100)),
    "eigh": (lambda x: torch.linalg.eigh(_symmetric(x))[0], (4, 100, 100)),
    "inv": (torch.linalg.inv, (10, 100, 100)),
    "inv of 3x3": (torch.linalg.inv, (1000, 3, 3)),
    "matrix_exp": (lambda x: torch.matrix_exp(x / 20), (10, 64, 64)),
    "matrix_power": (lambda x: torch.linalg.matrix_power(x / 9, 5), (10, 100, 100)),
    "pinv": (torch.linalg.pinv, (2, 100, 100)),
    "qr": (lambda x: torch.linalg.qr(x)[0], (10, 100, 50)),
    "slogdet": (lambda x: torch.linalg.slogdet(x)[1], (10, 100, 100)),
    "solve": (torch.linalg.solve, (10, 100, 100), (10, 100, 10)),
    "solve_triangular": (
        lambda x, y: torch.linalg.solve_triangular(_symmetric(x).tril(), y, upper=False),
        (10, 100, 100),
        (10, 100, 10),
    ),
    "svd": (torch.linalg.svdvals, (4, 100, 100)),
    # Operators of above whose gradients are of another kind.
    "cumsum": (lambda x: x.cumsum(1), (1000, 1000)),
    "cumprod": (lambda x: x.cumprod(1), (300, 300)),
    "cummax": (lambda x: x.cummax(1)[0], (1000, 1000)),
    "logcumsumexp": (lambda x: x.logcumsumexp(1), (1000, 1000)),
    "logsumexp": (lambda x: x.logsumexp(1), (1000, 1000)),
    "max": (lambda x: x.max(1)[0], (1000, 1000)),
    "amax": (lambda x: x.amax(1), (1000, 1000)),
    "median": (lambda x: x.median(1)[0], (1000, 1000)),
    "short lines, median": (lambda x: x.median(1)[0], (4, 9, 160, 160)),
    "short lines, sort": (lambda x: x.sort(1)[0], (60000, 16)),
    "short lines, topk": (lambda x: x.topk(2, 1)[0], (60000, 16)),
    "norm": (lambda x: x.norm(dim=1), (1000, 1000)),
    "prod": (lambda x: x.prod(1), (1000, 1000)),
    "softmax": (lambda x: x.softmax(1), (1000, 1000)),
    "sort": (lambda x: x.sort(1)[0], (1000, 1000)),
    "std": (lambda x: x.std(1), (1000, 1000)),
    "topk": (lambda x: x.topk(5, 1)[0], (1000, 1000)),
    "gather": (lambda x, i: x.gather(1, i), (1000, 1000), (1000, (1000, 1000))),
    "index": (lambda x, i: x[i], (1000, 1000), (1000, (1000,))),
    "index_select": (lambda x, i: x.index_select(1, i), (1000, 1000), (1000, (1000,))),
    "filter, blur of 3 channels": (_blurred, (4, 3, 256, 256), (3, 1, 5, 5)),
    "filter, colours": (
        lambda x, w: F.conv2d(x, w).square().mean(),
        (4, 3, 256, 256),
        (3, 3, 1, 1),
    ),
    "filter, dilation": (_dilated, (4, 3, 256, 256), (2, (9, 1))),
    "masked_fill": (lambda x: x.masked_fill(x.detach() > 0, 1.0), (1000, 1000)),
    "pad reflect": (lambda x: F.pad(x, (2, 2, 2, 2), "reflect"), (1, 1000, 1000)),
    "pad replicate": (lambda x: F.pad(x, (2, 2, 2, 2), "replicate"), (1, 1000, 1000)),
    "pad circular": (lambda x: F.pad(x, (2, 2), "circular"), (1, 1000, 1000)),
    "pad replicate of a volume": (
        lambda x: F.pad(x, (1,) * 6, "replicate"),
        (1, 1, 64, 64, 64),
    ),
    "cat of few columns": (lambda x, y: torch.cat([x, y], 1), (100000, 3), (100000, 1)),
    "chunk of channels": (lambda x: torch.mul(*x.chunk(2, 1)), (4, 16, 40, 40)),
    "expand of channels": (lambda x: x[:, :1].expand(-1, 4, -1, -1).contiguous(), (4, 16, 40, 40)),
    "pad circular of a volume": (lambda x: F.pad(x, (1,) * 6, "circular"), (2, 4, 16, 28, 28)),
    "roll": (lambda x: x.roll(3, 1), (1000, 1000)),
    "scatter_add": (
        lambda x, i: torch.zeros_like(x).scatter_add(1, i, x),
        (1000, 1000),
        (1000, (1000, 1000)),
    ),
    "slice": (lambda x: x[:, ::2], (1000, 1000)),
    "unfold": (lambda x: x.unfold(1, 16, 8), (1000, 1000)),
    "cdist": (torch.cdist, (200, 500), (200, 500)),
    "pdist": (F.pdist, (200, 500)),
    "pdist of rows of 32": (F.pdist, (500, 32)),
    "rfft": (lambda x: torch.fft.rfft(x).abs(), (1000, 1000)),
    "renorm": (lambda x: x.renorm(2, 0, 1.0), (1000, 1000)),
    "glu": (F.glu, (1000, 1000)),
    "gelu": (F.gelu, (1000, 1000)),
    "silu": (F.silu, (1000, 1000)),
    "prelu": (F.prelu, (64, 64, 256), 64),
}
