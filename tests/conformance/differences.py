"""Where the device cannot do what eager does on the CPU, each with its reason: nothing else may fail."""

import torch

# The contents are whatever the memory held.
UNDEFINED_CONTENTS = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}

# Which of several equal elements the other results (positions, and the gradient that goes there) stand for is left open:
# eager takes what its unstable sort leaves at the end.
ONLY_VALUES = {"mode"}

# Operators whose arguments, all but the first, eager wants on the CPU whatever the device.
ARGUMENTS_ON_CPU = {"tensor_split"}

# Which of equal elements a result or an index stands for is not defined; the place of `dim` among the arguments.
TIES = {"argsort": 0, "kthvalue": 1, "msort": 0, "sort": 0, "topk": 1}

# Gradients that divide by differences of singular values or eigenvalues, by small pivots, or that multiply many
# reflectors: they magnify the last digits, in which two builds of LAPACK differ, beyond any tolerance. Here the
# device must be as near as eager to what twice the precision gives.
ILL_CONDITIONED = {
    "linalg.householder_product",
    "linalg.lstsq",
    "linalg.svd",
    "svd",
    # Sums that cancel, with the step rounded to the type: their order decides of bfloat16 and float16.
    "grid_sampler_2d",
    "grid_sampler_3d",
    "nn.functional.embedding_bag",
    "nn.functional.grid_sample",
}

# Types in which eager's own result on the CPU is wrong (of order 1e30 where it should be 1): the device is compared
# with eager's in the next wider type.
WRONG_IN_EAGER = {"matrix_exp": {torch.bfloat16, torch.float16}}

_NO_COMPLEX_HALF = "StableHLO has no complex numbers of half precision; the device says so"
_NO_SPARSE = "a sparse tensor is made of an index's and its values' memory; the device says that it has dense ones only"

# Tests that cannot pass: by entry, by entry and type, or by test and entry.
IMPOSSIBLE: dict[str, str] = {
    "chalf": _NO_COMPLEX_HALF,
    "complex float16": _NO_COMPLEX_HALF,
    "view_as_complex float16": _NO_COMPLEX_HALF,
    "sparse.sampled_addmm": _NO_SPARSE,
    "to_sparse": _NO_SPARSE,
    "test_given_out normal": "torch's normal of a tensor and a number does not resize an empty out, and fails",
    "test_given_out normal.number_mean": "torch's normal of a number and a tensor does not resize an empty out, and fails",
}


def why_impossible(test: str, entry: str, dtype: str) -> str | None:
    for key in (entry, f"{entry} {dtype}", f"{test} {entry}"):
        if key in IMPOSSIBLE:
            return IMPOSSIBLE[key]
    return None
