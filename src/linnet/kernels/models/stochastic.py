"""Stochastic gradient descent inside a tile of rows: many small steps, one line of numbers at the end.

Columns have means taken off and are divided by their deviations first, so that one rate suits all of them.
Steps are Adam's (Kingma and Ba, 2015): no step is longer than the rate, whatever a batch holds. What a tile
gives is the mean of its coefficients over the later half of its steps (Polyak and Juditsky, 1992); the means
of tiles, by their weight, are the next coefficients (Zinkevich et al., "Parallelized stochastic gradient
descent", 2010). So an epoch is one reading of the data, and only coefficients leave the nodes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.models.glm import Operands, pieces
from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

Tile = NDArray[Any]
_BATCH = 64
HEAD = 4
"""Loss and weight of the rows that are learned from, then of those held out; coefficients follow."""
TAIL = 2
"""Rate and seed, behind coefficients and penalties."""


@kernel(
    "column_moments",
    shape=lambda x, *_: (1, 1 + 2 * x[1]),
    dtype=lambda *_: np.dtype(np.float64),
    flops=lambda x, *_: 4.0 * x[0] * x[1],
)
def column_moments(x: Tile, shift: Tile, *weight: Tile) -> Tile:
    """The weight of rows, and sums and sums of squares of columns with `shift` taken off.

    >>> column_moments(np.array([[1.0], [3.0]]), np.zeros(1))
    array([[ 2.,  4., 10.]])
    """
    return quietly(_moments, x, shift, weight[0] if weight else None)


def _moments(x: Tile, shift: Tile, weight: Tile | None) -> Tile:
    columns = x.shape[1]
    line = np.zeros((1, 1 + 2 * columns))
    for part, piece in pieces(x, shift):
        w = np.ones(len(piece)) if weight is None else weight[part].astype(np.float64)
        line[0, 0] += w.sum()
        line[0, 1 : 1 + columns] += w @ piece
        line[0, 1 + columns :] += w @ (piece * piece)
    return line


@kernel(
    "glm_epoch",
    shape=lambda x, state, *_, **__: (1, HEAD + (state[0] - TAIL) // 2),
    dtype=lambda *_, **__: np.dtype(np.float64),
    flops=lambda x, state, *_, **__: 6.0 * x[0] * state[0],
)
def glm_epoch(
    x: Tile,
    state: Tile,
    *tiles: Tile,
    given: str,
    family: str,
    link: str,
    parameter: float,
    intercept: bool,
    classes: int,
) -> Tile:
    """Steps over the rows of a tile, in an order drawn by the seed.

    `state` has coefficients, penalties of a row of weight 1, rate and seed. With more than one class `y` are
    numbers of classes, and coefficients have a row for each.

    >>> x, y, one = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), np.ones(1)
    >>> how = {"family": "gaussian", "link": "identity", "parameter": 0.0, "intercept": False, "classes": 1}
    >>> line = glm_epoch(x, np.array([0.0, 0.0, 0.5, 7.0]), y, 0 * one, one, given="ysd", **how)
    >>> line.round(3)
    array([[1., 2., 0., 0., 1.]])
    """
    return quietly(_epoch, x, state, Operands(tiles, given), (family, link, parameter), intercept, classes)


def _epoch(
    x: Tile, state: Tile, by: Operands, model: tuple[str, str, float], intercept: bool, classes: int
) -> Tile:
    size = (len(state) - TAIL) // 2
    coef = state[:size].reshape(classes, -1).copy()
    penalty = state[size : 2 * size].reshape(classes, -1)
    rate, seed = float(state[-2]), int(state[-1])
    weight = np.ones(x.shape[0]) if by.weight is None else by.weight.astype(np.float64)
    held = np.zeros(x.shape[0], bool) if by.held is None else by.held > 0
    line = np.zeros((1, HEAD + size))
    rows = np.flatnonzero(~held & (weight > 0))
    rows = np.random.default_rng(seed).permutation(rows)
    mean, square, kept, total = np.zeros_like(coef), np.zeros_like(coef), np.zeros_like(coef), 0
    steps = -(-len(rows) // _BATCH)
    for start in range(0, x.shape[0], 64 * _BATCH):
        here = start + np.flatnonzero(held[start : start + 64 * _BATCH])
        loss, _ = _slopes(_standard(x, here, by), coef, here, by, model, intercept)
        line[0, 2] += weight[here] @ loss
        line[0, 3] += weight[here].sum()
    for step in range(1, steps + 1):
        here = rows[(step - 1) * _BATCH : step * _BATCH]
        piece, w = _standard(x, here, by), weight[here]
        loss, slope = _slopes(piece, coef, here, by, model, intercept)
        line[0, 0] += w @ loss
        line[0, 1] += w.sum()
        slope *= (w / w.sum())[:, None]
        gradient = penalty * coef
        gradient[:, : piece.shape[1]] += slope.T @ piece
        if intercept:
            gradient[:, -1] += slope.sum(axis=0)
        mean = 0.9 * mean + 0.1 * gradient
        square = 0.999 * square + 0.001 * gradient * gradient
        length = rate * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
        coef = coef - length * mean / (np.sqrt(square) + 1e-12)
        if 2 * step > steps:
            kept += coef
            total += 1
    line[0, HEAD:] = line[0, 1] * (kept / total if total else coef).ravel()
    return line


def _standard(x: Tile, rows: Tile, by: Operands) -> Tile:
    assert by.shift is not None
    assert by.spread is not None
    return (x[rows] - by.shift) / by.spread


def _slopes(
    piece: Tile, coef: Tile, rows: Tile, by: Operands, model: tuple[str, str, float], intercept: bool
) -> tuple[Tile, Tile]:
    """The loss of each row, and its derivative by each predictor."""
    from linnet.kernels.models import families

    eta = piece @ coef[:, : piece.shape[1]].T
    if intercept:
        eta += coef[:, -1]
    y = by.y[rows]
    if len(coef) == 1:
        if by.offset is not None:
            eta[:, 0] += by.offset[rows]
        found = families.rows(*model, eta[:, 0], y, "none")
        # Where a step led to an impossible mean, the batch says nothing.
        slope = np.where(np.isfinite(found.gradient), found.gradient, 0.0)
        return np.where(np.isfinite(found.loss), found.loss, 1e300), slope[:, None]
    here, codes = np.arange(len(rows)), y.astype(np.intp)
    highest = eta.max(axis=1, initial=-np.inf)
    share = np.exp(eta - highest[:, None])
    together = share.sum(axis=1)
    loss = np.log(together) + highest - eta[here, codes]
    share /= together[:, None]
    share[here, codes] -= 1
    return loss, share
