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

NumPy arrays (or a TiledArray) give NumPy arrays, arrays of ours (`ln.Array`) give arrays of ours. `tile=`
forces a tile size, `engine=` an engine; without them matrices smaller than 1024 go straight to
LAPACK, and the engine of the session runs the rest.
"""

from linnet.algorithms.condition import ConditionWarning
from linnet.algorithms.determinant import SlogdetResult
from linnet.algorithms.least_squares import LstsqResult
from linnet.algorithms.lu import LUFactors, LUResult
from linnet.algorithms.products import symm, syrk, trmm
from linnet.algorithms.qr import QRResult
from linnet.algorithms.solve import CholeskyFactors
from linnet.algorithms.spectral import EighResult, SVDResult
from linnet.arrays.linear_algebra import (
    EigResult,
    cho_factor,
    cho_solve,
    cholesky,
    cond,
    cross,
    det,
    diagonal,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    inv,
    lstsq,
    lu,
    lu_factor,
    lu_solve,
    matmul,
    matrix_norm,
    matrix_power,
    matrix_rank,
    matrix_transpose,
    multi_dot,
    norm,
    outer,
    pinv,
    qr,
    slogdet,
    solve,
    solve_triangular,
    svd,
    svdvals,
    tensordot,
    trace,
    vecdot,
    vector_norm,
)
from linnet.arrays.tensor_equations import tensorinv, tensorsolve
from linnet.errors import LinAlgError

__all__ = [
    "CholeskyFactors",
    "ConditionWarning",
    "EigResult",
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
    "cross",
    "det",
    "diagonal",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "lstsq",
    "lu",
    "lu_factor",
    "lu_solve",
    "matmul",
    "matrix_norm",
    "matrix_power",
    "matrix_rank",
    "matrix_transpose",
    "multi_dot",
    "norm",
    "outer",
    "pinv",
    "qr",
    "slogdet",
    "solve",
    "solve_triangular",
    "svd",
    "svdvals",
    "symm",
    "syrk",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "trmm",
    "vecdot",
    "vector_norm",
]
