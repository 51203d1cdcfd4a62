"""Kernels: pure functions from tiles (and scalars) to tiles, registered under a name.

Importing this room registers the kernels Linnet ships; nothing here imports SciPy
until a kernel that needs it runs.
"""

from linnet.kernels import (
    band,
    callables,
    cumulative,
    dealing,
    diamonds,
    files,
    gather,
    histograms,
    lapack,
    lu,
    moves,
    norms,
    panels,
    pivots,
    quantiles,
    reshaping,
    sampling,
    sets,
    signals,
    sorting,
    spectra,
    tall,
    transform,
    triangular,
    windows,
)
from linnet.kernels.contract import contract
from linnet.kernels.dense import chol, downdate, downdate_lower, nothing, syrk, trsm
from linnet.kernels.elementwise import add, copy, sum_tiles
from linnet.kernels.folds import fold_join
from linnet.kernels.fused import fused
from linnet.kernels.lq import gelqt, gemlqt, tplqt, tpmlqt
from linnet.kernels.positions import arg_join, arg_tile
from linnet.kernels.products import gemm, gemm_add, gemm_block
from linnet.kernels.qr import gemqrt, geqrt, tpmqrt, tpqrt
from linnet.kernels.registry import Kernel, get, kernel, names

__all__ = [
    "Kernel",
    "add",
    "arg_join",
    "arg_tile",
    "band",
    "callables",
    "chol",
    "contract",
    "copy",
    "cumulative",
    "dealing",
    "diamonds",
    "downdate",
    "downdate_lower",
    "files",
    "fold_join",
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
    "histograms",
    "kernel",
    "lapack",
    "lu",
    "moves",
    "names",
    "norms",
    "nothing",
    "panels",
    "pivots",
    "quantiles",
    "reshaping",
    "sampling",
    "sets",
    "signals",
    "sorting",
    "spectra",
    "sum_tiles",
    "syrk",
    "tall",
    "tplqt",
    "tpmlqt",
    "tpmqrt",
    "tpqrt",
    "transform",
    "triangular",
    "trsm",
    "windows",
]
