"""Powers of a matrix, by squaring."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from linnet.algorithms.gemm import gemm
from linnet.algorithms.inverse import inv
from linnet.algorithms.running import run
from linnet.algorithms.stacks import Array, as_stack, cut, is_small, need_square, over_stack
from linnet.engines import Engine
from linnet.errors import InputError
from linnet.events import Sink
from linnet.tiles import TiledArray


def matrix_power(
    a: Any, n: int, *, tile: int | None = None, engine: Engine | None = None, events: Sink | None = None
) -> Array:
    """`Aⁿ` for a whole number `n`; of the inverse if `n` is negative. Integers stay integers.

    >>> matrix_power([[1, 1], [1, 0]], 10)
    array([[89, 55],
           [55, 34]])
    """
    try:
        n = operator.index(n)
    except TypeError:
        raise InputError(f"a power of a matrix is a whole number, got {n!r}") from None
    if not isinstance(a, TiledArray):
        exact = np.asarray(a)
        if exact.dtype.kind in "biu" and n >= 0 and exact.ndim >= 2:
            need_square(exact, "matrix_power")
            return np.linalg.matrix_power(exact, n)
    matrix = as_stack(a)
    need_square(matrix, "matrix_power")
    options: dict[str, Any] = {"tile": tile, "engine": engine, "events": events}
    if matrix.ndim > 2:
        assert isinstance(matrix, np.ndarray)
        return over_stack(lambda x: matrix_power(x, n, **options), matrix)
    if n < 0:
        return matrix_power(inv(matrix, **options), -n, **options)
    if n == 0:
        return np.eye(matrix.shape[0], dtype=matrix.dtype)
    if is_small(matrix, tile):
        return np.linalg.matrix_power(np.asarray(matrix), n)
    base = cut(matrix, tile, "gemm", engine)
    power: TiledArray | None = None
    while n:
        if n % 2:
            power = base if power is None else _product(power, base, engine, events)
        n //= 2
        if n:
            base = _product(base, base, engine, events)
    assert power is not None
    return power.to_numpy()


def _product(left: TiledArray, right: TiledArray, engine: Engine | None, events: Sink | None) -> TiledArray:
    if left.layout.boundaries[1] != right.layout.boundaries[0]:
        raise InputError(f"matrix_power takes a matrix in square tiles on the diagonal; got {left}")
    size = left.grid[0]
    return run(gemm.bind(M=size, N=size, K=size), {"A": left, "B": right}, engine, events)["C"]
