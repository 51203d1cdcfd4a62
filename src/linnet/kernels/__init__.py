"""Kernels: pure functions from tiles (and scalars) to tiles, registered under a name.

Importing this room registers the kernels Linnet ships; nothing here imports SciPy
until a kernel that needs it runs.
"""

from linnet.kernels.arrays import (
    convolution,
    cumulative,
    files,
    fourier,
    gather,
    histograms,
    moves,
    nd_convolution,
    quantiles,
    random_numbers,
    random_order,
    reshape,
    semiring,
    sets,
    sliding_windows,
    sort,
    user_functions,
)
from linnet.kernels.arrays.arg_extremes import arg_join, arg_tile
from linnet.kernels.arrays.contract import contract
from linnet.kernels.arrays.elementwise import add, copy, sum_tiles
from linnet.kernels.arrays.folds import fold_join
from linnet.kernels.arrays.fused import fused
from linnet.kernels.linalg import (
    chase_reflectors,
    lu,
    norms,
    panel_qr,
    pivots,
    reduce_to_band,
    small_spectra,
    tall_qr,
    triangular,
    whole_matrices,
)
from linnet.kernels.linalg.dense_factors import chol, downdate, downdate_lower, nothing, syrk, trsm
from linnet.kernels.linalg.lq import gelqt, gemlqt, tplqt, tpmlqt
from linnet.kernels.linalg.qr import gemqrt, geqrt, tpmqrt, tpqrt
from linnet.kernels.linalg.tile_products import gemm, gemm_add, gemm_block
from linnet.kernels.models import glm, nearest, row_passes, stochastic, stored_rows
from linnet.kernels.registry import Kernel, get, kernel, names
from linnet.kernels.sparse import elements as sparse_elements
from linnet.kernels.sparse import products as sparse_products

__all__ = [
    "Kernel",
    "add",
    "arg_join",
    "arg_tile",
    "chase_reflectors",
    "chol",
    "contract",
    "convolution",
    "copy",
    "cumulative",
    "downdate",
    "downdate_lower",
    "files",
    "fold_join",
    "fourier",
    "fused",
    "gather",
    "gelqt",
    "gemlqt",
    "gemm",
    "gemm_add",
    "gemm_block",
    "gemqrt",
    "geqrt",
    "get",
    "glm",
    "histograms",
    "kernel",
    "lu",
    "moves",
    "names",
    "nd_convolution",
    "nearest",
    "norms",
    "nothing",
    "panel_qr",
    "pivots",
    "quantiles",
    "random_numbers",
    "random_order",
    "reduce_to_band",
    "reshape",
    "row_passes",
    "semiring",
    "sets",
    "sliding_windows",
    "small_spectra",
    "sort",
    "sparse_elements",
    "sparse_products",
    "stochastic",
    "stored_rows",
    "sum_tiles",
    "syrk",
    "tall_qr",
    "tplqt",
    "tpmlqt",
    "tpmqrt",
    "tpqrt",
    "triangular",
    "trsm",
    "user_functions",
    "whole_matrices",
]
