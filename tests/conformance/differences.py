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

# Tests that cannot pass, by entry; "*" is every test of the entry.
IMPOSSIBLE: dict[str, str] = {}

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
