"""Passes over rows that end in a line of numbers for each tile: products of columns, factors, networks.

As in `glm`, a tile is walked through in pieces that stay in cache, and lines of tiles are added.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.models.glm import pieces
from linnet.kernels.models.products import add_squares, mirror
from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

Tile = NDArray[Any]


def _doubles(*_: Any, **__: Any) -> Any:
    return np.dtype(np.float64)


@kernel(
    "gram_pass",
    shape=lambda x, *_: (1, 1 + x[1] + x[1] * x[1]),
    dtype=_doubles,
    flops=lambda x, *_: float(x[0]) * x[1] * (x[1] + 2),
)
def gram_pass(x: Tile, *shift: Tile) -> Tile:
    """The number of rows, the sums of columns, and `XᵀX`; of columns with `shift` taken off.

    >>> gram_pass(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 2.,  4.,  6., 10., 14., 14., 20.]])
    """
    return quietly(_gram, x, shift[0] if shift else None)


def _gram(x: Tile, shift: Tile | None) -> Tile:
    columns = x.shape[1]
    line = np.zeros((1, 1 + columns + columns * columns))
    line[0, 0] = x.shape[0]
    sums, products = line[0, 1 : 1 + columns], line[0, 1 + columns :].reshape(columns, columns)
    for _, piece in pieces(x, shift):
        sums += piece.sum(axis=0)
        add_squares(products, piece)
    mirror(products)
    return line


@kernel(
    "nmf_rows",
    shape=lambda x, w, h, **_: w,
    dtype=_doubles,
    flops=lambda x, w, h, *, sweeps, **_: 2.0 * math.prod(x) * h[0] + 4.0 * sweeps * x[0] * h[0] ** 2,
)
def nmf_rows(x: Tile, w: Tile, h: Tile, *, sweeps: int, l1: float, l2: float) -> Tile:
    """New non-negative factors of rows, by coordinate descent (HALS): `x ≈ w·h`.

    >>> nmf_rows(np.array([[2.0, 4.0]]), np.array([[1.0]]), np.array([[1.0, 2.0]]), sweeps=1, l1=0.0, l2=0.0)
    array([[2.]])
    """
    products, target = h @ h.T, np.asarray(x @ h.T, np.float64) - l1
    made = np.array(w, np.float64)
    for _ in range(sweeps):
        for k in range(h.shape[0]):
            curve = products[k, k] + l2
            if curve <= 0:
                continue
            slope = target[:, k] - made @ products[:, k] - l2 * made[:, k]
            made[:, k] = np.maximum(made[:, k] + slope / curve, 0.0)
    return made


@kernel(
    "nmf_pass",
    shape=lambda x, w: (1, 1 + w[1] * (x[1] + w[1])),
    dtype=_doubles,
    flops=lambda x, w: 2.0 * math.prod(x) * w[1] + 2.0 * x[0] * w[1] ** 2,
)
def nmf_pass(x: Tile, w: Tile) -> Tile:
    """The squares of `x`, `WᵀX` and `WᵀW` in one line.

    >>> nmf_pass(np.array([[2.0, 4.0]]), np.array([[2.0]]))
    array([[20.,  4.,  8.,  4.]])
    """
    x = np.asarray(x, np.float64)
    flat = x.ravel()
    return np.concatenate([[flat @ flat], (w.T @ x).ravel(), (w.T @ w).ravel()])[None]


# ---- networks


def layer_shapes(sizes: tuple[int, ...]) -> list[tuple[int, int]]:
    """The matrix of each layer, the row of its intercepts counted.

    >>> layer_shapes((3, 5, 2))
    [(4, 5), (6, 2)]
    """
    return [(a + 1, b) for a, b in itertools.pairwise(sizes)]


def layers(flat: Tile, sizes: tuple[int, ...]) -> list[Tile]:
    """The matrices of layers, as views of the vector of all parameters."""
    found, start = [], 0
    for a, b in layer_shapes(sizes):
        found.append(flat[start : start + a * b].reshape(a, b))
        start += a * b
    return found


def _activated(z: Tile, activation: str) -> Tile:
    if activation == "relu":
        return np.maximum(z, 0.0)
    if activation == "tanh":
        return np.tanh(z)
    if activation == "logistic":
        from scipy import special

        return special.expit(z)
    return z


def _slope(a: Tile, activation: str) -> Tile | float:
    """The derivative of an activation, from its value."""
    if activation == "relu":
        return a > 0
    if activation == "tanh":
        return 1 - a * a
    return a * (1 - a) if activation == "logistic" else 1.0


def forward(x: Tile, matrices: list[Tile], activation: str) -> list[Tile]:
    """The values of every layer; those of the last are not activated."""
    values = [np.asarray(x, np.float64)]
    for place, matrix in enumerate(matrices):
        z = values[-1] @ matrix[:-1] + matrix[-1]
        values.append(z if place == len(matrices) - 1 else _activated(z, activation))
    return values


@kernel(
    "mlp_pass",
    shape=lambda x, flat, *_, **__: (1, 2 + flat[0]),
    dtype=_doubles,
    flops=lambda x, flat, *_, **__: 6.0 * x[0] * flat[0],
)
def mlp_pass(
    x: Tile, flat: Tile, y: Tile, *weight: Tile, sizes: tuple[int, ...], activation: str, kind: str
) -> Tile:
    """Loss, weight and gradient of a network on rows: values forward, errors backward.

    `kind` is "classes" (softmax; y are numbers of classes) or "numbers" (half squares; y has the columns).

    >>> x, y = np.array([[1.0]]), np.array([[3.0]])
    >>> mlp_pass(x, np.array([2.0, 0.0]), y, sizes=(1, 1), activation="relu", kind="numbers")
    array([[ 0.5,  1. , -1. , -1. ]])
    """
    return quietly(_network, x, flat, y, weight[0] if weight else None, tuple(sizes), activation, kind)


def _network(
    x: Tile, flat: Tile, y: Tile, weight: Tile | None, sizes: tuple[int, ...], activation: str, kind: str
) -> Tile:
    matrices = layers(flat, sizes)
    line = np.zeros((1, 2 + len(flat)))
    slopes = layers(line[0, 2:], sizes)
    for part, piece in pieces(x, None, max(1, max(sizes) // max(1, sizes[0]))):
        values = forward(piece, matrices, activation)
        w = np.ones(len(piece)) if weight is None else weight[part].astype(np.float64)
        loss, error = _errors(values[-1], y[part], kind)
        line[0, 0] += loss @ w
        line[0, 1] += w.sum()
        error = error * w[:, None]
        for place in range(len(matrices) - 1, -1, -1):
            slopes[place][:-1] += values[place].T @ error
            slopes[place][-1] += error.sum(axis=0)
            if place:
                error = (error @ matrices[place][:-1].T) * _slope(values[place], activation)
    return line


def _errors(output: Tile, y: Tile, kind: str) -> tuple[Tile, Tile]:
    """The loss of each row, and its derivative by the output."""
    if kind == "numbers":
        away = output - y
        return 0.5 * np.einsum("ij,ij->i", away, away), away
    here, codes = np.arange(len(y)), y.astype(np.intp)
    highest = output.max(axis=1)
    share = np.exp(output - highest[:, None])
    together = share.sum(axis=1)
    loss = np.log(together) + highest - output[here, codes]
    share /= together[:, None]
    share[here, codes] -= 1
    return loss, share


@kernel(
    "mlp_output",
    shape=lambda x, flat, *, sizes, **_: (x[0], sizes[-1]),
    dtype=_doubles,
    flops=lambda x, flat, **_: 2.0 * x[0] * flat[0],
)
def mlp_output(x: Tile, flat: Tile, *, sizes: tuple[int, ...], activation: str) -> Tile:
    """The output of a network for each row.

    >>> mlp_output(np.array([[1.0]]), np.array([2.0, 0.5]), sizes=(1, 1), activation="relu")
    array([[2.5]])
    """
    return forward(x, layers(flat, tuple(sizes)), activation)[-1]
