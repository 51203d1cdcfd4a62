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

NumPy arrays (or a TiledArray) give NumPy arrays, at once. Arrays of ours (`ln.Array`) give lazy ones: nothing
runs before somebody asks, and then all of the expression is one program. `tile=` forces a tile size, and for
NumPy arrays `engine=` an engine; without them matrices smaller than 1024 go straight to LAPACK, and the
session's engine runs the rest.
"""

from linnet.arrays.linalg.eigen_and_singular import (
    EighResult,
    EigResult,
    SVDResult,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    svd,
    svdvals,
)
from linnet.arrays.linalg.factorisations import (
    CholeskyFactors,
    LUFactors,
    LUPermuted,
    LUResult,
    QRResult,
    cho_factor,
    cholesky,
    lu,
    lu_factor,
    qr,
)
from linnet.arrays.linalg.least_squares import LstsqResult, cond, lstsq, matrix_rank, pinv
from linnet.arrays.linalg.linear_systems import (
    SlogdetResult,
    cho_solve,
    det,
    inv,
    lu_solve,
    matrix_power,
    slogdet,
    solve,
    solve_triangular,
)
from linnet.arrays.linalg.low_rank import svd_compressed, tsqr
from linnet.arrays.linalg.norms import matrix_norm, norm, vector_norm
from linnet.arrays.linalg.norms_and_products import (
    cross,
    diagonal,
    matmul,
    matrix_transpose,
    multi_dot,
    outer,
    symm,
    syrk,
    tensordot,
    trace,
    trmm,
    vecdot,
)
from linnet.arrays.linalg.tensor_equations import tensorinv, tensorsolve
from linnet.errors import ConditionWarning, LinAlgError

__all__ = [
    "CholeskyFactors",
    "ConditionWarning",
    "EigResult",
    "EighResult",
    "LUFactors",
    "LUPermuted",
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
    "svd_compressed",
    "svdvals",
    "symm",
    "syrk",
    "tensordot",
    "tensorinv",
    "tensorsolve",
    "trace",
    "trmm",
    "tsqr",
    "vecdot",
    "vector_norm",
]
