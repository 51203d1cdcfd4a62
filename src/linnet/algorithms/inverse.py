"""The inverse: the solution of a system whose right side is the identity."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.algorithms.solve import solve, solved
from linnet.algorithms.stacks import Array, as_stack, cut, identity, is_small, need_square, over_stack
from linnet.engines import Engine
from linnet.events import Sink


def inv(
    a: Any, *, tile: int | None = None, engine: Engine | None = None, events: Sink | None = None
) -> Array:
    """The inverse of a matrix, or of each in a stack; a singular matrix is an error.

    >>> inv([[0.0, 2.0], [4.0, 0.0]])
    array([[0.  , 0.25],
           [0.5 , 0.  ]])
    """
    matrix = as_stack(a)
    need_square(matrix, "inv")
    if matrix.ndim > 2:
        assert isinstance(matrix, np.ndarray)
        if is_small(matrix, tile):
            return solve(matrix, np.eye(matrix.shape[-1], dtype=matrix.dtype))
        return over_stack(lambda x: inv(x, tile=tile, engine=engine, events=events), matrix)
    if is_small(matrix, tile):
        return solve(matrix, np.eye(matrix.shape[0], dtype=matrix.dtype))
    tiled = cut(matrix, tile, "lu", engine)
    return solved(tiled, identity(tiled), engine, events).to_numpy()
