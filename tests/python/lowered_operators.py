"""The operators that have a lowering of their own, by OpInfo's names: what test_ops.py runs."""

ELEMENTWISE = """
__rpow__ abs acos acosh add addcdiv addcmul angle asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not
bitwise_or bitwise_right_shift bitwise_xor ceil clamp clamp_max clamp_min copysign cos cosh deg2rad digamma
div_no_rounding_mode div_floor_rounding div_trunc_rounding erf erfc erfinv exp exp2 expm1 floor floor_divide fmax
fmin fmod frac gcd heaviside hypot i0 lcm lerp lgamma log log10 log1p log2 logaddexp logaddexp2 logit maximum minimum
mul nan_to_num neg nextafter pow rad2deg reciprocal remainder round round_decimals_0 round_decimals_3
round_decimals_neg_3 rsqrt rsub sgn sigmoid sign sin sinc sinh special_entr special_i0e special_i1 special_i1e
special_ndtr special_xlog1py sqrt square sub tan tanh true_divide trunc xlogy
""".split()

COMPARISON = """
eq ge gt isfinite isinf isnan isneginf isposinf le logical_and logical_not logical_or logical_xor lt masked_fill ne
signbit where
""".split()

REDUCTION = """
all amax amin aminmax any argmax argmin count_nonzero linalg_vector_norm logsumexp max_binary
max_reduction_no_dim max_reduction_with_dim mean min_binary min_reduction_no_dim min_reduction_with_dim nansum norm
prod std std_mean std_unbiased sum var var_mean var_unbiased
""".split()

ACTIVATION = """
nn_functional_celu nn_functional_elu nn_functional_gelu nn_functional_glu nn_functional_hardshrink
nn_functional_hardsigmoid nn_functional_hardswish nn_functional_hardtanh nn_functional_leaky_relu
nn_functional_logsigmoid nn_functional_mish nn_functional_prelu nn_functional_relu nn_functional_relu6
nn_functional_selu nn_functional_silu nn_functional_softplus nn_functional_softshrink nn_functional_softsign
nn_functional_tanhshrink nn_functional_threshold log_softmax softmax nn_functional_softmin
""".split()

MATMUL = """
addbmm addmm addmv addr baddbmm bmm dot einsum inner linalg_multi_dot matmul mm mv nn_functional_bilinear
nn_functional_linear nn_functional_scaled_dot_product_attention outer tensordot vdot
""".split()

CONVOLUTION = """
nn_functional_conv1d nn_functional_conv2d nn_functional_conv3d nn_functional_conv_transpose1d
nn_functional_conv_transpose2d nn_functional_conv_transpose3d
""".split()

POOLING = """
nn_functional_adaptive_avg_pool1d nn_functional_adaptive_avg_pool2d nn_functional_adaptive_avg_pool3d
nn_functional_adaptive_max_pool1d nn_functional_adaptive_max_pool2d nn_functional_adaptive_max_pool3d
nn_functional_avg_pool1d nn_functional_avg_pool2d nn_functional_avg_pool3d nn_functional_max_pool1d
nn_functional_max_pool2d nn_functional_max_pool3d
nn_functional_max_unpool1d nn_functional_max_unpool2d nn_functional_max_unpool3d
""".split()

NORMALIZATION = """
nn_functional_batch_norm nn_functional_batch_norm_without_cudnn nn_functional_group_norm nn_functional_instance_norm
nn_functional_layer_norm nn_functional_local_response_norm nn_functional_normalize nn_functional_rms_norm
""".split()

LOSS = """
nn_functional_binary_cross_entropy nn_functional_binary_cross_entropy_with_logits nn_functional_cosine_embedding_loss
nn_functional_cross_entropy nn_functional_gaussian_nll_loss nn_functional_hinge_embedding_loss
nn_functional_huber_loss nn_functional_kl_div nn_functional_l1_loss nn_functional_margin_ranking_loss
nn_functional_mse_loss nn_functional_nll_loss nn_functional_poisson_nll_loss nn_functional_smooth_l1_loss
nn_functional_soft_margin_loss nn_functional_triplet_margin_loss
""".split()

INDEXING = """
gather index_add index_copy index_fill index_put index_select masked_scatter masked_select nn_functional_embedding
nonzero put scatter scatter_add scatter_reduce_amax scatter_reduce_amin scatter_reduce_mean scatter_reduce_prod
scatter_reduce_sum take take_along_dim
""".split()

SHAPE = """
block_diag cat chunk column_stack constant_pad_nd diag_embed diagonal_scatter dstack flip fliplr flipud hstack
nn_functional_pad_circular nn_functional_pad_constant nn_functional_pad_reflect nn_functional_pad_replicate
nn_functional_pixel_shuffle nn_functional_pixel_unshuffle repeat roll rot90 select_scatter slice_scatter stack tile
trace tril triu unfold vstack
""".split()

SORTING = """
argsort bucketize cummax cummin cumprod cumsum kthvalue logcumsumexp median msort searchsorted sort topk
""".split()

FOURIER_AND_LINEAR_ALGEBRA = """
cdist cholesky_inverse cross fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft
fft_rfft2 fft_rfftn geqrf linalg_cholesky linalg_cholesky_ex linalg_cross linalg_det linalg_eig linalg_eigh
linalg_inv linalg_ldl_factor linalg_ldl_solve linalg_lstsq linalg_lu linalg_lu_solve linalg_pinv linalg_qr
linalg_slogdet linalg_solve linalg_solve_triangular linalg_svdvals nn_functional_pdist ormqr
""".split()

# torch makes these of others.
COMPOSED = """
T addmm_decomposed atleast_2d broadcast_to clone complex conj_physical contiguous cov diag diagonal diff dist expand
flatten float_power index_reduce_amax index_reduce_amin index_reduce_mean index_reduce_prod isclose kron ldexp
log_softmax_with_dtype max_pool2d_with_indices_backward movedim narrow native_batch_norm native_layer_norm
nn_functional_cosine_similarity nn_functional_one_hot
nn_functional_pairwise_distance nn_functional_unfold permute polar polygamma_polygamma_n_0 polygamma_polygamma_n_1
polygamma_polygamma_n_2 positive reshape select slice softmax_with_dtype split squeeze std_mean_unbiased t
torch_ops_aten__safe_softmax_default transpose trapezoid unbind unflatten unsqueeze var_mean_unbiased view
""".split()

# Compared by shape and type alone.
RANDOM_OPERATORS = """
bernoulli cauchy exponential geometric log_normal multinomial nn_functional_dropout normal rand_like randint
randint_like randn randn_like uniform
""".split()

LOWERED = (
    ELEMENTWISE
    + COMPARISON
    + REDUCTION
    + ACTIVATION
    + MATMUL
    + CONVOLUTION
    + POOLING
    + NORMALIZATION
    + LOSS
    + INDEXING
    + SHAPE
    + SORTING
    + FOURIER_AND_LINEAR_ALGEBRA
    + COMPOSED
    + RANDOM_OPERATORS
)
RANDOM = set(RANDOM_OPERATORS)

# Which of several equal integers they name, eager leaves open: their values alone are compared.
TIES = {"kthvalue", "median", "topk"}

# Whose results' shape depends on the data, in the gradient too.
FALLBACKS = {"index_fill": {"aten::_unique"}}

# Where a series or the order of a sum makes more of a difference than elsewhere.
TOLERANCES = {
    "digamma": {"rtol": 1e-3, "atol": 1e-4},
    "lgamma": {"rtol": 1e-3, "atol": 1e-4},
    "logcumsumexp": {"rtol": 2e-3, "atol": 1e-5},
    "polar": {"rtol": 1e-4, "atol": 1e-4},
    "polygamma_polygamma_n_0": {"rtol": 1e-3, "atol": 1e-4},
    "polygamma_polygamma_n_1": {"rtol": 1e-3, "atol": 1e-4},
    "polygamma_polygamma_n_2": {"rtol": 1e-3, "atol": 1e-4},
    "nn_functional_conv_transpose3d": {"rtol": 1e-4, "atol": 1e-4},
    "native_layer_norm": {"rtol": 1e-4, "atol": 1e-4},
    "nn_functional_layer_norm": {"rtol": 1e-4, "atol": 1e-4},
    "nn_functional_scaled_dot_product_attention": {"rtol": 1e-4, "atol": 1e-4},
}
