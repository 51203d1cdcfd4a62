"""Kernels: pure functions from tiles (and scalars) to tiles, registered under a name.

Importing this room registers the kernels Linnet ships; nothing here imports SciPy
until a kernel that needs it runs.
"""

from linnet.kernels.dense import (
    chol,
    downdate,
    downdate_lower,
    gemm,
    gemm_add,
    gemm_conjugate,
    syrk,
    trsm,
)
from linnet.kernels.elementwise import add, copy, sum_tiles
from linnet.kernels.lq import gelqt, gemlqt, tplqt, tpmlqt
from linnet.kernels.qr import gemqrt, geqrt, tpmqrt, tpqrt
from linnet.kernels.registry import Kernel, get, kernel, names

__all__ = [
    "Kernel",
    "add",
    "chol",
    "copy",
    "downdate",
    "downdate_lower",
    "gelqt",
    "gemlqt",
    "gemm",
    "gemm_add",
    "gemm_conjugate",
    "gemqrt",
    "geqrt",
    "get",
    "kernel",
    "names",
    "sum_tiles",
    "syrk",
    "tplqt",
    "tpmlqt",
    "tpmqrt",
    "tpqrt",
    "trsm",
]
