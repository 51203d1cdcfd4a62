"""Matrices that are nearly of low rank: `svd_compressed`, from a random sketch; and `tsqr` for tall ones.

The sketch is Y = A·Ω with a few random columns Ω: its columns span nearly all that the large singular values
of A reach. N. Halko, P. G. Martinsson, J. A. Tropp, Finding structure with randomness, SIAM Review 53 (2011).
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from linnet.algorithms import qr as qr_programs
from linnet.arrays.elements.elementwise import apply, where
from linnet.arrays.elements.reductions import sum as sums
from linnet.arrays.functions.random_numbers import default_rng
from linnet.arrays.linalg.eigen_and_singular import SVDResult, svd
from linnet.arrays.linalg.factorisations import QRResult, in_leaves, is_short, qr
from linnet.arrays.linalg.matrices import adjoint, linear, made, matrices
from linnet.errors import InputError, LinAlgError
from linnet.kernels.linalg.pivots import real


@linear()
def tsqr(data: Any, /, compute_svd: bool = False, *, tile: int | None = None) -> Any:
    """QR of a matrix with more rows than columns, by a tree over its rows; with `compute_svd` its thin SVD.

    Parameters
    ----------
    data : matrix with more rows than columns
    compute_svd : whether to give its thin SVD
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    QRResult, or SVDResult with `compute_svd`

    Examples
    --------
    >>> q, r = tsqr(np.arange(12.0).reshape(6, 2))
    >>> q.shape, r.shape
    ((6, 2), (2, 2))
    """
    matrix = matrices(data)
    if matrix.ndim != 2 or matrix.shape[0] < matrix.shape[1]:
        raise LinAlgError(
            f"tsqr needs a matrix with at least as many rows as columns, not shape {matrix.shape}; use qr"
        )
    if is_short(matrix, tile):
        q, r = qr(matrix)
    else:
        tall = in_leaves(matrix, tile)
        found = made(qr_programs.factors(tall.layout, tall.dtype, skinny=True), tall)
        q, r = found["O"], found["R"]
    if not compute_svd:
        return QRResult(q, r)
    u, values, vh = svd(r, False)
    return SVDResult(q @ u, values, vh)


@linear()
def svd_compressed(
    a: Any,
    /,
    k: int,
    iterator: str = "power",
    n_power_iter: int = 0,
    n_oversamples: int = 10,
    seed: Any = None,
    coerce_signs: bool = True,
) -> SVDResult[Any]:
    """The k largest singular values and their vectors, approximately, from a random sketch of the matrix.

    The sketch has `n_oversamples` columns more than k. Where singular values fall slowly, passes over the
    matrix make it better: `n_power_iter` of them, by "power", or by "QR", which holds on to small
    ones. The same seed gives the same result. `coerce_signs` makes the columns of `U` have sums that
    are not negative.

    Parameters
    ----------
    a : matrix
    k : int; how many singular values
    iterator : "power" or "QR"; how the sample is improved
    n_power_iter : int; how often
    n_oversamples : int; how many columns more than `k` are sampled
    seed : int, optional
    coerce_signs : whether signs are made the same from run to run

    Returns
    -------
    SVDResult with `U`, `S`, `Vh`

    Examples
    --------
    >>> a = np.outer(np.arange(1.0, 5), [2.0, 1.0, 2.0])
    >>> svd_compressed(a, 1, seed=0).S.round(6)
    array([16.431677])
    """
    matrix = matrices(a)
    if matrix.ndim != 2:
        raise LinAlgError(f"svd_compressed takes one matrix, not an array of shape {matrix.shape}")
    count = operator.index(k)
    if not 1 <= count <= min(matrix.shape):
        raise InputError(
            f"k={k!r}: a matrix of shape {matrix.shape} has 1 to {min(matrix.shape)} singular values"
        )
    if iterator not in ("power", "QR"):
        raise InputError(f'iterator={iterator!r} is not known; use "power" or "QR"')
    wide = min(count + operator.index(n_oversamples), *matrix.shape)
    q = _range(matrix, wide, iterator, operator.index(n_power_iter), seed)
    # B = Qᴴ·A is short and wide: its SVD is that of the triangle of Bᴴ.
    other, triangle = qr(adjoint(matrix) @ q)
    u, values, vh = svd(adjoint(triangle), False)
    u, values, vh = (q @ u)[:, :count], values[:count], (vh @ adjoint(other))[:count]
    if coerce_signs:
        total = sums(u, 0)
        size = apply(np.absolute, total)
        turn = where(
            apply(np.equal, size, 0), 1, apply(np.divide, total, where(apply(np.equal, size, 0), 1, size))
        )
        u, vh = apply(np.divide, u, turn), apply(np.multiply, vh, turn[:, None])
    return SVDResult(u, values, vh)


def _range(matrix: Any, wide: int, iterator: str, passes: int, seed: Any) -> Any:
    """Orthonormal columns that span nearly what the largest singular values of a matrix reach."""
    chunks = (matrix.chunks[1], -1)
    drawn = default_rng(seed).standard_normal((matrix.shape[1], wide), chunks=chunks)
    sketch = matrix @ drawn.astype(real(matrix.dtype))
    for _ in range(passes):
        if iterator == "QR":
            sketch = qr(adjoint(matrix) @ qr(sketch).Q).Q
            sketch = matrix @ sketch
        else:
            sketch = matrix @ (adjoint(matrix) @ sketch)
    return qr(sketch).Q
