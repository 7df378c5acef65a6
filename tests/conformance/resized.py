"""Samples of the database with other sizes: what a program of one structure meets when its sizes vary."""

import collections
from typing import Any

import torch
from comparison import tensors
from torch.utils import _pytree as pytree

# The sizes that a structure meets, in this order: its own come first, and again when the others have varied them.
SIZES = (7, 13, 2, 1, 0)


# Operators whose results say little where the elements come in another order: boundaries have to be sorted, lengths have to
# fit, positions be different, equal elements have no order, and of a random matrix, factors and inverses are as far from
# eager's as its condition is bad. And what eager itself does not survive, or leaves open.
OF_THESE_ELEMENTS = {
    "_segment_reduce",
    "kthvalue",
    "nn.functional.ctc_loss",
    "nn.functional.max_unpool1d",
    "nn.functional.max_unpool2d",
    "nn.functional.max_unpool3d",
    "nn.functional.pdist",  # eager's gradient of no row ends the process
    "resize_",  # what is new holds anything
    "resize_as_",
    "sparse.mm",
    "sparse.sampled_addmm",
    "topk",
    "bucketize",
    "cholesky_inverse",
    "cholesky_solve",
    "histogram",
    "histogramdd",
    "logdet",
    "lu_solve",
    "lu_unpack",
    "matrix_exp",
    "ormqr",
    "pinverse",
    "searchsorted",
    "svd_lowrank",
    "pca_lowrank",
    "triangular_solve",
}


def keeps_its_elements(name: str) -> bool:
    return name in OF_THESE_ELEMENTS or name.startswith("linalg")


# Of no elements eager has shapes or numbers of its own here (or ends the process).
WITHOUT_NONE = ("conv", "native_batch_norm", "native_layer_norm", "margin_loss")


def sizes_for(name: str) -> tuple[int, ...]:
    return SIZES[:-1] if any(part in name for part in WITHOUT_NONE) else SIZES


def varying_size(sample: Any) -> int | None:
    """The size of most dimensions, which is to vary; empty ones and those of one element are structure."""
    trees = (sample.input, sample.args, sample.kwargs)
    sizes = [size for x in tensors(trees) for size in x.shape if size > 1]
    return collections.Counter(sizes).most_common(1)[0][0] if sizes else None


def _resized_tensor(x: torch.Tensor, old: int, new: int) -> torch.Tensor:
    shape = [new if size == old else size for size in x.shape]
    if x.numel() == 0:
        y = x.new_zeros(shape)
    elif new <= old:
        y = x.detach()[tuple(slice(size) for size in shape)].clone()
    else:
        # Elements of its own, so that they are in the domain, at random, so that matrices keep their ranks.
        y = x.detach().flatten()[torch.randint(x.numel(), shape)]
    if not x.dtype.is_floating_point and not x.dtype.is_complex and x.dtype != torch.bool:
        y = y % max(new, 1)  # an index
    return y.requires_grad_(x.requires_grad)


def resized(sample: Any, old: int, new: int) -> Any:
    """The sample with `new` elements for `old` in each dimension of a tensor, and in each list of sizes."""

    def change(x: Any) -> Any:
        if isinstance(x, torch.Tensor) and old in x.shape:
            return _resized_tensor(x, old, new)
        if isinstance(x, (tuple, list)) and all(type(n) is int for n in x):
            return type(x)(new if n == old else n for n in x)
        return x

    def is_leaf(x: Any) -> bool:
        return isinstance(x, (tuple, list)) and all(type(n) is int for n in x)

    def tree(x: Any) -> Any:
        return pytree.tree_map(change, x, is_leaf=is_leaf)

    changed = sample.transform(lambda x: x)
    changed.input = tree(sample.input)
    changed.args = tuple(tree(x) for x in sample.args)
    changed.kwargs = {name: tree(x) for name, x in sample.kwargs.items()}
    return changed
