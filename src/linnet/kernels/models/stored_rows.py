"""Passes over sparse rows: what is stored is all that is touched.

A tile of rows is three columns of numbers: the elements that are stored, the column of each, and how many
each row has. Predictors and gradients take time in proportion to what is stored, and so does `XᵀWX` where
rows have few elements; where they have many, a piece of rows is made dense in cache, since BLAS is faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.models.glm import HEAD, Operands, add_softmax_hessian, line_length
from linnet.kernels.models.products import add_hessian, mirror
from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

Tile = NDArray[Any]
_FEW = 0.1
"""A share of elements that are stored below which sparse products are faster than dense ones."""
_PIECE = 1 << 20


def _matrix(values: Tile, columns: Tile, counts: Tile, width: int) -> Any:
    from scipy import sparse

    ends = np.concatenate([[0], np.cumsum(counts)])
    return sparse.csr_array(
        (values.astype(np.float64, copy=False), columns, ends), shape=(len(counts), width)
    )


def _pieces(matrix: Any, shift: Tile | None) -> Any:
    """Rows made dense, as many as stay in cache."""
    count = max(64, _PIECE // (8 * max(1, matrix.shape[1])))
    for start in range(0, matrix.shape[0], count):
        part = slice(start, min(start + count, matrix.shape[0]))
        piece = matrix[part].toarray()
        yield part, piece if shift is None else piece - shift


def _flops(values: Any, *_: Any, **__: Any) -> float:
    return 50.0 * values[0]


@kernel(
    "stored_glm_pass",
    shape=lambda values, columns, counts, coef, *_, curvature, **__: (
        (1, line_length(coef[0], curvature != "none"))
    ),
    dtype=lambda *_, **__: np.dtype(np.float64),
    flops=_flops,
)
def stored_glm_pass(
    values: Tile,
    columns: Tile,
    counts: Tile,
    coef: Tile,
    *tiles: Tile,
    given: str,
    family: str,
    link: str,
    parameter: float,
    intercept: bool,
    curvature: str,
) -> Tile:
    """The line of a tile of rows, as `glm_pass` gives it.

    >>> values, columns, counts = np.array([1.0, 2.0]), np.array([0, 0]), np.array([1, 1])
    >>> how = {"family": "gaussian", "link": "identity", "parameter": 0.0, "intercept": False}
    >>> y = np.array([1.0, 3.0])
    >>> stored_glm_pass(values, columns, counts, np.zeros(1), y, given="y", curvature="observed", **how)
    array([[ 5.,  2., -7.,  5.]])
    """
    matrix = _matrix(values, columns, counts, len(coef) - intercept)
    return quietly(
        _walk, matrix, coef, Operands(tiles, given), (family, link, parameter), intercept, curvature
    )


def _walk(
    matrix: Any, coef: Tile, by: Operands, model: tuple[str, str, float], intercept: bool, curvature: str
) -> Tile:
    from linnet.kernels.models.families import rows

    width, total = matrix.shape[1], len(coef)
    line = np.zeros((1, line_length(total, curvature != "none")))
    eta = matrix @ coef[:width]
    if intercept:
        eta += coef[width]
    if by.shift is not None:
        eta -= by.shift @ coef[:width]
    if by.offset is not None:
        eta += by.offset
    found = rows(*model, eta, by.y, curvature)
    loss, slope, curve = found.loss, found.gradient, found.curvature
    if by.weight is not None:
        w = by.weight
        loss, slope = np.where(w == 0, 0.0, loss * w), np.where(w == 0, 0.0, slope * w)
        curve = None if curve is None else np.where(w == 0, 0.0, curve * w)
    line[0, 0] = loss.sum()
    line[0, 1] = len(eta) if by.weight is None else by.weight.sum()
    gradient = line[0, HEAD : HEAD + total]
    gradient[:width] = matrix.T @ slope
    if by.shift is not None:
        gradient[:width] -= by.shift * slope.sum()
    if intercept:
        gradient[width] = slope.sum()
    if curve is not None:
        _add(line[0, HEAD + total :].reshape(total, total), matrix, curve, by.shift, intercept)
    return line


def _add(hessian: Tile, matrix: Any, curve: Tile, shift: Tile | None, intercept: bool) -> None:
    from scipy import sparse

    width = matrix.shape[1]
    if shift is None and matrix.nnz <= _FEW * matrix.shape[0] * width:
        counts = np.diff(matrix.indptr)
        weighted = sparse.csr_array(
            (matrix.data * np.repeat(curve, counts), matrix.indices, matrix.indptr), shape=matrix.shape
        )
        hessian[:width, :width] = (matrix.T @ weighted).toarray()
        if intercept:
            hessian[:width, width] = matrix.T @ curve
            hessian[width, width] = curve.sum()
    else:
        for part, piece in _pieces(matrix, shift):
            add_hessian(hessian, piece, curve[part], np.empty(piece.shape), intercept)
    mirror(hessian)


@kernel(
    "stored_softmax_pass",
    shape=lambda values, columns, counts, coef, *_, curvature, **__: (
        (1, line_length(coef[0] * coef[1], curvature != "none"))
    ),
    dtype=lambda *_, **__: np.dtype(np.float64),
    flops=_flops,
)
def stored_softmax_pass(
    values: Tile,
    columns: Tile,
    counts: Tile,
    coef: Tile,
    *tiles: Tile,
    given: str,
    intercept: bool,
    curvature: str,
) -> Tile:
    """The line of a tile of rows, as `softmax_pass` gives it.

    >>> values, columns, counts = np.array([1.0, 2.0]), np.array([0, 0]), np.array([1, 1])
    >>> how = {"given": "y", "intercept": False, "curvature": "none"}
    >>> stored_softmax_pass(values, columns, counts, np.zeros((2, 1)), np.array([0.0, 1.0]), **how).round(3)
    array([[ 1.386,  2.   ,  0.5  , -0.5  ]])
    """
    matrix = _matrix(values, columns, counts, coef.shape[1] - intercept)
    return quietly(_softmax, matrix, coef, Operands(tiles, given), intercept, curvature != "none")


def _softmax(matrix: Any, coef: Tile, by: Operands, intercept: bool, wanted: bool) -> Tile:
    from linnet.kernels.models.glm import softmax_rows

    (classes, total), width = coef.shape, matrix.shape[1]
    line = np.zeros((1, line_length(classes * total, wanted)))
    eta = matrix @ coef[:, :width].T
    if intercept:
        eta += coef[:, width]
    loss, share, slope, w = softmax_rows(eta, by.y, by.weight)
    line[0, 0], line[0, 1] = loss, w.sum()
    gradient = line[0, HEAD : HEAD + classes * total].reshape(classes, total)
    gradient[:, :width] = (matrix.T @ slope).T
    if intercept:
        gradient[:, width] = slope.sum(axis=0)
    if wanted:
        hessian = line[0, HEAD + classes * total :].reshape(classes, total, classes, total)
        for part, piece in _pieces(matrix, None):
            add_softmax_hessian(hessian, piece, share[part], w[part], intercept)
        mirror(hessian.reshape(classes * total, classes * total))
    return line
