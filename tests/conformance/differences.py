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

# What runs on the CPU, in float32 and int64: results whose size depends on the data.
RUNS_ON_CPU = {
    "bincount": {"aten::bincount"},  # as long as the largest number
    "index_fill": {"aten::_unique"},  # torch's gradient asks whether an index is repeated
    "unique": {"aten::_unique2", "aten::unique_dim"},
    "unique_consecutive": {"aten::unique_consecutive"},
}

# Samples that torch's kernels refuse and programs take (TORCH_XLA_INTERPRET=always): a program computes them.
INTERPRETER_REFUSES: set[str] = set()

# Compared by the size of their error, which must be at most so many times eager's: both are held against what eager computes
# in the next wider type. (Everywhere else a result that is out of tolerance of eager's must be within it of that one.)
COMPARED_BY_ERROR = {
    # Gradients that divide by differences of singular values or eigenvalues, by small pivots, or that multiply many
    # reflectors: they magnify the last digits, in which two builds of LAPACK differ, beyond any tolerance.
    "linalg.householder_product": 4,
    "linalg.lstsq": 2,
    "linalg.svd": 2,
    "svd": 2,
    # Sums that cancel, with each step rounded to the type: their order decides of bfloat16 and float16.
    "nn.functional.embedding_bag": 2,
    # Gradients that are zero but for roundings: of the weights of two observations, and of a vector of one element
    # divided by its norm. One rounding more is many times an error of one.
    "cov": 16,
    "nn.functional.normalize": 16,
    # By the device's name torch decides how the chunks of bfloat16 and float16 are summed: in float32 on the CPU, in the
    # type itself on devices that it does not know.
    "nn.functional.linear_cross_entropy": 6,
}

# Types in which eager's own result on the CPU is wrong (of order 1e30 where it should be 1): the device is compared
# with eager's in the next wider type.
WRONG_IN_EAGER = {"matrix_exp": {torch.bfloat16, torch.float16}}

# Operators that in eager write a result into a target with gaps as if it had none.
WRONG_INTO_STRIDED = {"narrow_copy", "nn.functional.avg_pool3d"}

_NO_COMPLEX_HALF = "StableHLO has no complex numbers of half precision; the device says so"
_NO_FLOAT8 = "its arguments are 8-bit floats, with which the device does not compute; it says so"
_ONLY_CUDA = "the operator is of CUDA alone, and fails on the CPU too"

# Tests that cannot pass: by entry, by entry and type, or by test and entry.
IMPOSSIBLE: dict[str, str] = {
    "chalf": _NO_COMPLEX_HALF,
    "complex float16": _NO_COMPLEX_HALF,
    "view_as_complex float16": _NO_COMPLEX_HALF,
    "bmm.triton_optimized": _ONLY_CUDA,
    "jiterator_2inputs_2outputs": _ONLY_CUDA,
    "jiterator_4inputs_with_extra_args": _ONLY_CUDA,
    "jiterator_binary": _ONLY_CUDA,
    "jiterator_binary_return_by_ref": _ONLY_CUDA,
    "jiterator_unary": _ONLY_CUDA,
    "torch._scaled_mm_v2": _ONLY_CUDA,
    "torch._scaled_mm": _NO_FLOAT8,
    "test_errors clamp_max": "torch lists a call as an error that eager takes",
    "test_errors clamp_min": "torch lists a call as an error that eager takes",
    "test_given_out sparse.sampled_addmm": "the device converts to the target's type, where eager refuses another one",
    "test_noncontiguous_inputs native_group_norm": "eager refuses; on the device every tensor is contiguous",
    "test_given_out normal": "torch's normal of a tensor and a number does not resize an empty out, and fails",
    "test_given_out normal.number_mean": "torch's normal of a number and a tensor does not resize an empty out, and fails",
}


# Whose errors of the same type are told in other words.
OTHER_WORDS = {
    "narrow_copy",  # eager's kernel for the CPU has its own, the others those of narrow
    "ormqr",  # types are looked at before sizes
    "gather",  # a target that is expanded is refused before indices are looked at
}


def why_impossible(test: str, entry: str, dtype: str) -> str | None:
    for key in (entry, f"{entry} {dtype}", f"{test} {entry}"):
        if key in IMPOSSIBLE:
            return IMPOSSIBLE[key]
    return None
