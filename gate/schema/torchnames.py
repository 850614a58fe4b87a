"""What of torch a `reference`, a `make` or a property may name.

Only pure functions are listed: nothing random, nothing in place, nothing that reads or writes
files, compiles, loads code or changes the state of the process. What is missing here goes into a
three-line function in a file.
"""

from __future__ import annotations

_ELEMENTWISE = """
abs absolute acos acosh clamp_max clamp_min add addcdiv addcmul angle arccos arccosh arcsin arcsinh
arctan arctan2 arctanh asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not
bitwise_or bitwise_right_shift bitwise_xor ceil clamp clip copysign cos cosh deg2rad digamma div
divide eq erf erfc erfinv exp exp2 expm1 fix float_power floor floor_divide fmax fmin fmod frac ge
greater greater_equal gt heaviside hypot igamma igammac isclose isfinite isinf isnan isneginf
isposinf isreal ldexp le lerp less less_equal lgamma log log10 log1p log2 logaddexp logaddexp2
logical_and logical_not logical_or logical_xor logit lt maximum minimum mul multiply mvlgamma
nan_to_num ne neg negative nextafter not_equal polygamma positive pow rad2deg real reciprocal relu
remainder round rsqrt rsub sgn sigmoid sign signbit sin sinc sinh softmax log_softmax sqrt square
sub subtract tan tanh true_divide trunc where xlogy
"""

_REDUCING = """
all allclose amax amin aminmax any argmax argmin argsort bincount count_nonzero cummax cummin
cumprod cumsum diff dist equal histc kthvalue logcumsumexp logsumexp max mean median min mode msort
nanmean nanmedian nanquantile nansum norm prod quantile renorm searchsorted bucketize sort std
std_mean sum topk trapezoid unique unique_consecutive var var_mean cov corrcoef
"""

_SHAPING = """
atleast_1d atleast_2d atleast_3d broadcast_to cat chunk clone column_stack concat concatenate conj
diag diag_embed diagflat diagonal diagonal_scatter dstack expand_copy flatten flip fliplr flipud
gather hstack index_add index_copy index_fill index_put index_reduce index_select masked_fill
masked_scatter masked_select meshgrid moveaxis movedim narrow nonzero permute ravel
repeat_interleave reshape roll rot90 scatter scatter_add scatter_reduce select select_scatter
slice_scatter split squeeze stack swapaxes swapdims t take take_along_dim tensor_split tile
transpose tril triu unbind unflatten unsqueeze view_as_complex view_as_real vstack
"""

_LINEAR = """
addbmm addmm addmv addr baddbmm bmm chain_matmul cholesky_solve cross det dot ger inner inverse kron
logdet lu_solve matmul matrix_power mm mv outer pinverse slogdet trace triangular_solve vdot
"""

_FUNCTIONS_ONLY = """
arange as_tensor block_diag broadcast_tensors cartesian_prod cdist
combinations complex cosine_similarity cumulative_trapezoid einsum eye full
full_like imag linspace logspace ones ones_like pairwise_distance polar promote_types result_type
scalar_tensor tensor tensordot tril_indices triu_indices vander zeros zeros_like finfo iinfo
conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d avg_pool1d max_pool1d
max_pool2d max_pool3d celu selu prelu pixel_shuffle pixel_unshuffle embedding layer_norm group_norm
rms_norm native_layer_norm
"""

_CONSTANTS = """
inf nan pi e
bool uint8 uint16 uint32 uint64 int8 int16 int32 int64 int long short half float double
float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2 float8_e4m3fnuz float8_e5m2fnuz
float8_e8m0fnu complex64 complex128
"""

_SUBMODULES = """
linalg.cholesky linalg.cond linalg.cross linalg.det linalg.diagonal linalg.eig linalg.eigh
linalg.eigvalsh linalg.inv linalg.lstsq linalg.lu linalg.lu_factor linalg.lu_solve linalg.matmul
linalg.matrix_exp linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.multi_dot
linalg.norm linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.solve_triangular linalg.svd
linalg.svdvals linalg.vander linalg.vecdot linalg.vector_norm
special.bessel_j0 special.bessel_j1 special.digamma special.entr special.erf special.erfc
special.erfcx special.erfinv special.exp2 special.expit special.expm1 special.gammainc
special.gammaincc special.gammaln special.i0 special.i0e special.i1 special.i1e special.log1p
special.log_ndtr special.log_softmax special.logit special.logsumexp special.ndtr special.ndtri
special.psi special.round special.sinc special.softmax special.xlog1py special.xlogy
fft.fft fft.fft2 fft.fftfreq fft.fftn fft.fftshift fft.hfft fft.ifft fft.ifft2 fft.ifftn
fft.ifftshift fft.ihfft fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftfreq fft.rfftn
"""

_NN = """
adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d
affine_grid avg_pool1d avg_pool2d avg_pool3d batch_norm bilinear binary_cross_entropy
binary_cross_entropy_with_logits celu conv1d conv2d conv3d conv_transpose1d conv_transpose2d
conv_transpose3d cosine_embedding_loss cosine_similarity cross_entropy ctc_loss elu embedding
embedding_bag fold gaussian_nll_loss gelu glu grid_sample group_norm hardshrink hardsigmoid
hardswish hardtanh hinge_embedding_loss huber_loss instance_norm interpolate kl_div l1_loss
layer_norm leaky_relu linear local_response_norm log_softmax logsigmoid lp_pool1d lp_pool2d
margin_ranking_loss max_pool1d max_pool2d max_pool3d mish mse_loss multi_margin_loss
multilabel_margin_loss multilabel_soft_margin_loss nll_loss normalize one_hot pad pairwise_distance
pdist pixel_shuffle pixel_unshuffle poisson_nll_loss prelu relu relu6 rms_norm
scaled_dot_product_attention selu sigmoid silu smooth_l1_loss soft_margin_loss softmax softmin
softplus softshrink softsign tanh tanhshrink threshold triplet_margin_loss unfold upsample
"""

_METHODS_ONLY = """
bfloat16 bool byte char contiguous cpu dim double expand expand_as float half int is_complex
is_contiguous is_floating_point is_signed item long nelement new_full new_ones new_zeros numel
repeat reshape_as short size stride sum_to_size to tolist type_as unfold view view_as
"""

_FUNCTIONS_OF_TORCH = """
atleast_1d atleast_2d atleast_3d bucketize cat chain_matmul column_stack concat concatenate dstack
expand_copy hstack meshgrid rsub searchsorted stack std_mean trapezoid var_mean view_as_complex
view_as_real vstack
"""

_ATTRIBUTES = """
shape ndim dtype device T mT H mH real imag values indices
Q R U S V Vh L P LU pivots sign logabsdet eigenvalues eigenvectors solution residuals
min max eps tiny smallest_normal bits
"""


def _words(*groups: str) -> frozenset[str]:
    return frozenset(word for group in groups for word in group.split())


TORCH_NAMES: frozenset[str] = frozenset(
    f"torch.{name}"
    for name in _words(
        _ELEMENTWISE, _REDUCING, _SHAPING, _LINEAR, _FUNCTIONS_ONLY, _CONSTANTS, _SUBMODULES
    )
) | frozenset(f"F.{name}" for name in _words(_NN))
"""Every host name of `reference`, `make` and `properties`; `F` is `torch.nn.functional`."""

METHODS: frozenset[str] = _words(
    _ELEMENTWISE, _REDUCING, _SHAPING, _LINEAR, _METHODS_ONLY
) - _words(_FUNCTIONS_OF_TORCH)
"""Every tensor method of `reference`, `make` and `properties`."""

ATTRIBUTES: frozenset[str] = _words(_ATTRIBUTES)
"""Every attribute of a tensor or of a named result there."""

PURE_METHODS: frozenset[str] = frozenset({"stride", "numel", "is_contiguous"})
"""Tensor methods that are allowed everywhere."""

PURE_ATTRIBUTES: frozenset[str] = frozenset({"shape", "ndim", "dtype"})
"""Tensor attributes that are allowed everywhere."""
