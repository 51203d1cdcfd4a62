"""Passes over the rows of generalised linear models: objective, gradient and Hessian in one reading of the
data.

A tile of rows is walked through in pieces that stay in cache: the product with the coefficients, the loss of
each
row, its derivatives, `Xᵀg` and `XᵀWX` all see the piece while it is there. A pass gives one line of numbers,

    loss, weight, gradient (q numbers), Hessian (q·q numbers, by rows)

and lines of tiles are added. With an intercept there is a column of ones behind those of `x`, which nobody
stores. `shift` is taken off the columns before anything else, so that columns far from zero lose no digits.
The formulas of families are imported when a kernel runs: they need SciPy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.models.products import add_hessian, mirror
from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

Tile = NDArray[Any]
_PIECE = 1 << 21
"""Bytes of a piece: it and its weighted copy stay in cache, and BLAS has enough rows at a time."""
HEAD = 2
"""Numbers in front of the gradient."""


def line_length(columns: int, hessian: bool) -> int:
    """Numbers in the line of a pass over so many columns, that of the intercept counted.

    >>> line_length(3, True)
    14
    """
    return HEAD + columns + (columns * columns if hessian else 0)


def pieces(x: Tile, shift: Tile | None = None, copies: int = 1) -> Iterator[tuple[slice, Tile]]:
    """The rows of a tile in pieces of doubles; a piece may be written over by the next.

    Pieces are shorter where so many `copies` of them are made.
    """
    # Of many columns a piece has as many rows: products of columns are as large as the piece then.
    count = max(64, _PIECE // (8 * max(1, x.shape[1]) * copies), x.shape[1] // copies)
    plain = x.dtype == np.float64 and shift is None
    room = None if plain else np.empty((min(count, x.shape[0]), x.shape[1]))
    for start in range(0, x.shape[0], count):
        part = slice(start, min(start + count, x.shape[0]))
        piece = x[part]
        if room is not None:
            held = room[: piece.shape[0]]
            if shift is None:
                held[...] = piece
            else:
                np.subtract(piece, shift, out=held)
            piece = held
        yield part, piece


class Operands:
    """What a pass is given besides `x` and coefficients, by name: `given` says which there are."""

    def __init__(self, tiles: tuple[Tile, ...], given: str) -> None:
        named = dict(zip(given, tiles, strict=True))
        self.y: Tile = named["y"]
        self.weight: Tile | None = named.get("w")
        self.offset: Tile | None = named.get("o")
        self.shift: Tile | None = named.get("s")
        self.spread: Tile | None = named.get("d")
        self.held: Tile | None = named.get("h")
        self.scale: float = float(named["z"][0]) if "z" in named else 1.0


def _pass_shape(x: Any, coef: Any, *_: Any, curvature: str, **__: Any) -> tuple[int, int]:
    return (1, line_length(coef[0], curvature != "none"))


def _pass_flops(x: Any, coef: Any, *_: Any, curvature: str, **__: Any) -> float:
    rows_, columns = x
    return float(rows_) * (4 * columns + 60) + (
        0 if curvature == "none" else float(rows_) * columns * (columns + 2)
    )


def _doubles(*_: Any, **__: Any) -> Any:
    return np.dtype(np.float64)


@kernel("glm_pass", shape=_pass_shape, dtype=_doubles, flops=_pass_flops)
def glm_pass(
    x: Tile,
    coef: Tile,
    *tiles: Tile,
    given: str,
    family: str,
    link: str,
    parameter: float,
    intercept: bool,
    curvature: str,
) -> Tile:
    """The line of a tile of rows.

    `given` names the further operands, a letter each: y, w (weights), o (offsets), s (what to take off
    columns).

    >>> x, y = np.array([[1.0], [2.0]]), np.array([1.0, 3.0])
    >>> how = {"family": "gaussian", "link": "identity", "parameter": 0.0}
    >>> glm_pass(x, np.zeros(1), y, given="y", intercept=False, curvature="observed", **how)
    array([[ 5.,  2., -7.,  5.]])
    """
    return quietly(_walk, x, coef, Operands(tiles, given), (family, link, parameter), intercept, curvature)


def _walk(
    x: Tile, coef: Tile, by: Operands, model: tuple[str, str, float], intercept: bool, curvature: str
) -> Tile:
    from linnet.kernels.models.families import rows

    columns, total = x.shape[1], coef.shape[0]
    line = np.zeros((1, line_length(total, curvature != "none")))
    gradient = line[0, HEAD : HEAD + total]
    hessian = line[0, HEAD + total :].reshape(total, total) if curvature != "none" else None
    scaled: Tile | None = None
    ones = model[:2] == ("gaussian", "identity") and by.weight is None
    for part, piece in pieces(x, by.shift):
        eta = piece @ coef[:columns]
        if intercept:
            eta += coef[columns]
        if by.offset is not None:
            eta += by.offset[part]
        found = rows(*model, eta, by.y[part], curvature)
        loss, slope, curve = found.loss, found.gradient, found.curvature
        if by.weight is not None:
            w = by.weight[part]
            loss = np.where(w == 0, 0.0, loss * w)  # a row without weight is not there, whatever it holds
            slope = np.where(w == 0, 0.0, slope * w)
            curve = None if curve is None else np.where(w == 0, 0.0, curve * w)
        line[0, 0] += loss.sum()
        line[0, 1] += piece.shape[0] if by.weight is None else by.weight[part].sum()
        gradient[:columns] += slope @ piece
        if intercept:
            gradient[columns] += slope.sum()
        if hessian is not None and curve is not None:
            if scaled is None:
                scaled = np.empty(piece.shape)
            add_hessian(hessian, piece, None if ones else curve, scaled[: piece.shape[0]], intercept)
    if hessian is not None:
        mirror(hessian)
    return line


@kernel(
    "glm_start",
    shape=lambda x, mean, *_, intercept, **__: (1, line_length(x[1] + intercept, True)),
    dtype=_doubles,
    flops=lambda x, *_, **__: float(x[0]) * x[1] * (x[1] + 4),
)
def glm_start(
    x: Tile,
    mean: Tile,
    *tiles: Tile,
    given: str,
    family: str,
    link: str,
    parameter: float,
    intercept: bool,
) -> Tile:
    """The first step of iteratively reweighted least squares, from means between `y` and its mean.

    Its Hessian is that of weighted least squares, its gradient minus their right side.

    >>> x, y = np.array([[1.0], [2.0]]), np.array([1.0, 3.0])
    >>> how = {"family": "gaussian", "link": "identity", "parameter": 0.0}
    >>> glm_start(x, np.array([2.0]), y, given="y", intercept=False, **how)
    array([[ 0.,  2., -7.,  5.]])
    """
    return quietly(_start, x, float(mean[0]), Operands(tiles, given), (family, link, parameter), intercept)


def _start(x: Tile, mean: float, by: Operands, model: tuple[str, str, float], intercept: bool) -> Tile:
    from linnet.kernels.models.families import FAMILIES, LINKS

    family, link = FAMILIES[model[0]], LINKS[model[1]]
    columns = x.shape[1]
    total = columns + intercept
    line = np.zeros((1, line_length(total, True)))
    gradient, hessian = line[0, HEAD : HEAD + total], line[0, HEAD + total :].reshape(total, total)
    for part, piece in pieces(x, by.shift):
        y = by.y[part]
        mu = 0.5 * (y + (0.5 if model[0] == "binomial" else mean))
        eta = link.forward(mu)
        slope = link.first(eta, mu)
        weight = slope * slope / family.variance(mu, model[2])
        if by.weight is not None:
            weight = weight * by.weight[part]
        target = eta + (y - mu) / slope
        if by.offset is not None:
            target = target - by.offset[part]
        line[0, 1] += piece.shape[0] if by.weight is None else by.weight[part].sum()
        gradient[:columns] -= (weight * target) @ piece
        if intercept:
            gradient[columns] -= weight @ target
        add_hessian(hessian, piece, weight, np.empty(piece.shape), intercept)
    mirror(hessian)
    return line


@kernel("glm_dispersion", shape=_pass_shape, dtype=_doubles, flops=_pass_flops)
def glm_dispersion(x: Tile, coef: Tile, *tiles: Tile, given: str, intercept: bool, curvature: str) -> Tile:
    """The line of a negative binomial model whose dispersion is a coefficient too, the last one.

    >>> x, y = np.array([[1.0], [2.0]]), np.array([1.0, 3.0])
    >>> line = glm_dispersion(x, np.array([0.5, 1.0]), y, given="y", intercept=False, curvature="observed")
    >>> line.shape
    (1, 8)
    """
    return quietly(_walk_dispersion, x, coef, Operands(tiles, given), intercept)


def _walk_dispersion(x: Tile, coef: Tile, by: Operands, intercept: bool) -> Tile:
    from linnet.kernels.models.families import rows

    columns, total, alpha = x.shape[1], coef.shape[0], float(coef[-1])
    line = np.zeros((1, line_length(total, True)))
    gradient, hessian = line[0, HEAD : HEAD + total], line[0, HEAD + total :].reshape(total, total)
    for part, piece in pieces(x, by.shift):
        eta = piece @ coef[:columns]
        if intercept:
            eta += coef[columns]
        if by.offset is not None:
            eta += by.offset[part]
        y, w = by.y[part], 1.0 if by.weight is None else by.weight[part]
        found = rows("negative_binomial", "log", alpha, eta, y, "observed")
        loss, first, second, mixed = _by_dispersion(alpha, np.exp(eta), y)
        line[0, 0] += np.sum(w * (loss + found.loss))
        line[0, 1] += piece.shape[0] if by.weight is None else by.weight[part].sum()
        assert found.curvature is not None
        slope, curve, mixed = w * found.gradient, w * found.curvature, w * mixed
        gradient[:columns] += slope @ piece
        hessian[:columns, -1] += mixed @ piece
        if intercept:
            gradient[columns] += slope.sum()
            hessian[columns, -1] += mixed.sum()
        gradient[-1] += np.sum(w * first)
        hessian[-1, -1] += np.sum(w * second)
        add_hessian(hessian[:-1, :-1], piece, curve, np.empty(piece.shape), intercept)
    mirror(hessian)
    return line


def _by_dispersion(alpha: float, mu: Tile, y: Tile) -> tuple[Tile, Tile, Tile, Tile]:
    """What the loss has besides that of a fixed dispersion; derivatives of all by it; and the mixed ones."""
    from scipy import special

    a = 1 / alpha
    loss = special.gammaln(a) - special.gammaln(y + a) - y * np.log(alpha)
    grown = 1 + alpha * mu
    apart = special.digamma(a) - special.digamma(y + a)
    curved = special.polygamma(1, a) - special.polygamma(1, y + a)
    logs, share = np.log1p(alpha * mu), mu / grown
    # Of the whole loss: gammaln(a) - gammaln(y + a) - y·log(alpha) + (y + a)·log(1 + alpha·mu) - y·eta.
    first = -a * a * apart - y * a - a * a * logs + (y + a) * share
    second = 2 * a**3 * apart + a**4 * curved + y * a * a + 2 * a**3 * logs - 2 * a * a * share
    second = second - (y + a) * share * share
    mixed = -(mu - y) * mu / (grown * grown)
    return loss, first, second, mixed


@kernel(
    "glm_statistics",
    shape=lambda *_, **__: (1, 4),
    dtype=_doubles,
    flops=lambda x, *_, **__: 2.0 * math.prod(x) + 60.0 * x[0],
)
def glm_statistics(
    x: Tile,
    coef: Tile,
    *tiles: Tile,
    given: str,
    family: str,
    link: str,
    parameter: float,
    intercept: bool,
) -> Tile:
    """Deviance, Pearson's chi-square, log-likelihood at a scale (the operand z), and the weight of a tile of
    rows.

    >>> x, y = np.array([[1.0], [2.0]]), np.array([1.0, 3.0])
    >>> how = {"family": "gaussian", "link": "identity", "parameter": 0.0}
    >>> glm_statistics(x, np.ones(1), y, given="y", intercept=False, **how)[0, :2]
    array([1., 1.])
    """
    by = Operands(tiles, given)
    return quietly(_statistics, x, coef, by, (family, link, parameter), intercept)


def _statistics(x: Tile, coef: Tile, by: Operands, model: tuple[str, str, float], intercept: bool) -> Tile:
    from linnet.kernels.models.families import FAMILIES, LINKS, log_likelihood

    name, link, parameter = model
    if name == "negative_binomial" and coef.shape[0] > x.shape[1] + intercept:
        parameter = float(coef[-1])
    family = FAMILIES[name]
    line = np.zeros((1, 4))
    for part, piece in pieces(x, by.shift):
        eta = piece @ coef[: x.shape[1]]
        if intercept:
            eta += coef[x.shape[1]]
        if by.offset is not None:
            eta += by.offset[part]
        y = by.y[part].astype(np.float64)
        w = np.ones(len(y)) if by.weight is None else by.weight[part].astype(np.float64)
        mu = LINKS[link].inverse(eta)
        line[0, 0] += 2 * np.sum(w * family.half_deviance(y, mu, parameter))
        line[0, 1] += np.sum(w * (y - mu) ** 2 / family.variance(mu, parameter))
        line[0, 2] += log_likelihood(name, parameter, by.scale, y, mu, w)
        line[0, 3] += w.sum()
    return line


@kernel(
    "softmax_pass",
    shape=lambda x, coef, *_, curvature, **__: (1, line_length(math.prod(coef), curvature != "none")),
    dtype=_doubles,
    flops=lambda x, coef, *_, curvature, **__: (
        float(x[0]) * coef[0] * (4 * x[1] + 30 + (0 if curvature == "none" else x[1] * x[1] * (coef[0] + 1)))
    ),
)
def softmax_pass(x: Tile, coef: Tile, *tiles: Tile, given: str, intercept: bool, curvature: str) -> Tile:
    """The line of a multinomial model: `y` are numbers of classes, `coef` has a row for each class.

    >>> x, y = np.array([[1.0], [2.0]]), np.array([0.0, 1.0])
    >>> softmax_pass(x, np.zeros((2, 1)), y, given="y", intercept=False, curvature="none").round(3)
    array([[ 1.386,  2.   ,  0.5  , -0.5  ]])
    """
    return quietly(_walk_softmax, x, coef, Operands(tiles, given), intercept, curvature)


def _walk_softmax(x: Tile, coef: Tile, by: Operands, intercept: bool, curvature: str) -> Tile:
    classes, total = coef.shape
    columns = x.shape[1]
    wanted = curvature != "none"
    line = np.zeros((1, line_length(classes * total, wanted)))
    gradient = line[0, HEAD : HEAD + classes * total].reshape(classes, total)
    hessian = line[0, HEAD + classes * total :].reshape(classes, total, classes, total) if wanted else None
    for part, piece in pieces(x, by.shift, classes if wanted else 1):
        eta = piece @ coef[:, :columns].T
        if intercept:
            eta += coef[:, columns]
        loss, share, slope, w = softmax_rows(eta, by.y[part], None if by.weight is None else by.weight[part])
        line[0, 0] += loss
        line[0, 1] += w.sum()
        gradient[:, :columns] += slope.T @ piece
        if intercept:
            gradient[:, columns] += slope.sum(axis=0)
        if hessian is not None:
            add_softmax_hessian(hessian, piece, share, w, intercept)
    if hessian is not None:
        mirror(hessian.reshape(classes * total, classes * total))
    return line


def softmax_rows(eta: Tile, y: Tile, weight: Tile | None) -> tuple[float, Tile, Tile, Tile]:
    """The loss of rows together; of each row the probabilities, derivatives by predictors, and the weight."""
    codes = y.astype(np.intp)
    here = np.arange(len(codes))
    highest = eta.max(axis=1)
    share = np.exp(eta - highest[:, None])
    together = share.sum(axis=1)
    share /= together[:, None]
    loss = np.log(together) + highest - eta[here, codes]
    w = np.ones(len(codes)) if weight is None else weight.astype(np.float64)
    slope = share.copy()
    slope[here, codes] -= 1
    slope *= w[:, None]
    return float(np.where(w == 0, 0.0, loss * w).sum()), share, slope, w


def add_softmax_hessian(hessian: Tile, piece: Tile, share: Tile, w: Tile, intercept: bool) -> None:
    """Add `Xᵀ diag(w·p_k·([k = l] - p_l)) X` for all pairs of classes: all products `p_k·p_l` by one SYRK."""
    room = np.empty(piece.shape)
    count, classes = share.shape
    for k in range(classes):
        add_hessian(hessian[k, :, k, :], piece, w * share[:, k], room, intercept)
    spread = np.empty((count, classes, hessian.shape[1]))
    weighted = share * np.sqrt(w)[:, None]
    np.multiply(weighted[:, :, None], piece[:, None, :], out=spread[:, :, : piece.shape[1]])
    if intercept:
        spread[:, :, -1] = weighted
    flat = spread.reshape(count, -1)
    hessian -= (flat.T @ flat).reshape(hessian.shape)


@kernel("glm_mean", shape=lambda eta, **_: eta, dtype=_doubles, flops=lambda eta, **_: 20.0 * math.prod(eta))
def glm_mean(eta: Tile, *, link: str) -> Tile:
    """The mean that belongs to a predictor.

    >>> glm_mean(np.array([0.0, 1.0]), link="identity")
    array([0., 1.])
    """
    from linnet.kernels.models.families import LINKS

    return quietly(LINKS[link].inverse, np.asarray(eta, np.float64))


@kernel(
    "glm_rows",
    shape=lambda eta, *_, **__: [eta, eta, eta],
    dtype=lambda *_, **__: [np.dtype(np.float64)] * 3,
    flops=lambda eta, *_, **__: 60.0 * math.prod(eta),
)
def glm_rows(
    eta: Tile, y: Tile, *weight: Tile, family: str, link: str, parameter: float, curvature: str
) -> list[Tile]:
    """Loss, its derivative and its curvature of each row.

    >>> how = {"family": "gaussian", "link": "identity", "parameter": 0.0, "curvature": "observed"}
    >>> glm_rows(np.array([1.0]), np.array([3.0]), **how)
    [array([2.]), array([-2.]), array([1.])]
    """
    return quietly(_each_row, eta, y, weight[0] if weight else None, (family, link, parameter), curvature)


def _each_row(
    eta: Tile, y: Tile, weight: Tile | None, model: tuple[str, str, float], curvature: str
) -> list[Tile]:
    from linnet.kernels.models.families import rows

    found = rows(*model, eta, y, curvature)
    made = [np.array(each, np.float64) for each in (found.loss, found.gradient, found.curvature)]
    return made if weight is None else [np.where(weight == 0, 0.0, each * weight) for each in made]
