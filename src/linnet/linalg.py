"""Linear algebra, tile by tile: `numpy.linalg`'s names on every core, within a memory budget.

>>> import numpy as np
>>> from linnet import linalg
>>> a = np.array([[4.0, 2.0], [2.0, 5.0]])
>>> linalg.cholesky(a)
array([[2., 0.],
       [1., 2.]])
>>> p, l, u = linalg.lu(a)
>>> bool(np.allclose(a[p], l @ u))
True

Every function takes NumPy arrays (or a TiledArray) and returns NumPy arrays. `tile=` forces a
tile size, `engine=` an engine; without them matrices smaller than 1024 go straight to LAPACK,
and the engine of the session runs the rest.
"""

from linnet.algorithms.cholesky import factor as cholesky
from linnet.algorithms.determinant import SlogdetResult, det, slogdet
from linnet.algorithms.gemm import product as matmul
from linnet.algorithms.inverse import inv
from linnet.algorithms.least_squares import LstsqResult
from linnet.algorithms.least_squares import least_squares as lstsq
from linnet.algorithms.lu import LUFactors, LUResult, lu, lu_factor
from linnet.algorithms.norms import cond, norm
from linnet.algorithms.power import matrix_power
from linnet.algorithms.products import symm, syrk, trmm
from linnet.algorithms.pseudo_inverse import pseudo_inverse as pinv
from linnet.algorithms.qr import QRResult
from linnet.algorithms.qr import qr_factors as qr
from linnet.algorithms.solve import CholeskyFactors, ConditionWarning, cho_factor, cho_solve, lu_solve, solve
from linnet.algorithms.spectral import (
    EighResult,
    SVDResult,
    eigh,
    eigvalsh,
    matrix_rank,
    svd,
    svdvals,
)
from linnet.algorithms.triangular import solve_triangular
from linnet.errors import LinAlgError

__all__ = [
    "CholeskyFactors",
    "ConditionWarning",
    "EighResult",
    "LUFactors",
    "LUResult",
    "LinAlgError",
    "LstsqResult",
    "QRResult",
    "SVDResult",
    "SlogdetResult",
    "cho_factor",
    "cho_solve",
    "cholesky",
    "cond",
    "det",
    "eigh",
    "eigvalsh",
    "inv",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_power",
    "matrix_rank",
    "norm",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "symm",
    "syrk",
    "trmm",
]
