"""QR of any matrix: small ones by LAPACK, tall and skinny ones by a tree, all others by panels.

The programs are in `householder` (panels) and `tsqr` (trees).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.algorithms.householder import factorise, qr, qr_at_hand, qr_with_q
from linnet.algorithms.running import as_matrix, at_hand, budget, need_square_tiles, room, run, sized
from linnet.algorithms.stacks import as_stack, is_small, over_stack
from linnet.algorithms.tsqr import leaves, tsqr, tsqr_with_q
from linnet.algorithms.tuning import SHORTCUT, tile_size
from linnet.engines import Engine
from linnet.errors import InputError, LinAlgError
from linnet.events import Sink
from linnet.kernels.fortran import promote
from linnet.session import current_engine
from linnet.tiles import Boundaries, Layout, TiledArray, human
from linnet.tiles.amounts import total_memory

_SKINNY = 8
"""A matrix with this many times more rows than columns is factorised by a tree."""

Matrix = NDArray[Any]


class QRResult(NamedTuple):
    """`A = Q·R`."""

    Q: Matrix
    R: Matrix


def qr_factors(
    a: Matrix | TiledArray,
    mode: str = "reduced",
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> QRResult | Matrix:
    """`Q` with orthonormal columns and upper triangular `R`, with `Q·R = A`.

    `mode` is "reduced" (`Q` is m×k and `R` k×n, k = min(m, n)), "complete" (`Q` is m×m and `R` m×n),
    or "r" (`R` alone, k×n). A stack of matrices (..., m, n) is factorised one by one. The signs of
    the rows of `R` are not determined.

    >>> a = np.arange(12.0).reshape(4, 3) + np.eye(4, 3)
    >>> q, r = qr_factors(a)
    >>> q.shape, r.shape, bool(np.allclose(q @ r, a))
    ((4, 3), (3, 3), True)
    >>> qr_factors(a, "complete").Q.shape
    (4, 4)
    """
    if mode not in ("reduced", "complete", "r"):
        raise InputError(f"mode {mode!r} is not known; use 'reduced', 'complete' or 'r'")
    stack = as_stack(a)
    if at_once(stack, tile):
        known: Any = np.linalg.qr(np.asarray(stack), mode)
        return known if mode == "r" else QRResult(*known)
    chosen = current_engine() if engine is None else engine
    factors = {"reduced": _reduced, "complete": _complete, "r": _triangle}[mode]
    if isinstance(stack, TiledArray) or stack.ndim == 2:
        found = factors(stack, tile, chosen, events)
    else:
        count = 1 if mode == "r" else 2
        found = over_stack(lambda each: factors(each, tile, chosen, events), stack, outputs=count)
    return found if mode == "r" else QRResult(*found)


def qr_r(
    a: Matrix | TiledArray,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> TiledArray:
    """The upper triangular (trapezoidal) factor `R` of `A = Q·R` in tiles, with min(m, n) rows.

    >>> a = np.arange(12.0).reshape(4, 3) + np.eye(4, 3)
    >>> r = qr_r(a, tile=2).to_numpy()
    >>> bool(np.allclose(r.T @ r, a.T @ a)), r.shape
    (True, (3, 3))
    """
    matrix = square_tiles(a, tile, engine)
    return run(sized(qr, P=matrix.grid[0], Q=matrix.grid[1]), {"A": matrix}, engine, events)["R"]


# ---- the modes


def _triangle(a: Matrix | TiledArray, tile: int | None, engine: Engine, events: Sink | None) -> Matrix:
    skinny = is_skinny(a)
    matrix = leaves(a, tile) if skinny else square_tiles(a, tile, engine)
    rows, columns, edges = _cuts(matrix)
    r = engine.zeros((edges[-1], columns[-1]), promote(matrix.dtype))
    bound = sized(tsqr, N=len(rows) - 1) if skinny else sized(qr, P=matrix.grid[0], Q=matrix.grid[1])
    engine.run(bound, {"A": matrix}, out={"R": TiledArray.over(r, Layout((edges, columns)))}, events=events)
    return r


def _reduced(
    a: Matrix | TiledArray, tile: int | None, engine: Engine, events: Sink | None
) -> tuple[Matrix, Matrix]:
    skinny = is_skinny(a)
    matrix = leaves(a, tile) if skinny else square_tiles(a, tile, engine)
    rows, columns, edges = _cuts(matrix)
    q = room(engine, (rows[-1], edges[-1]), promote(matrix.dtype))
    r = engine.zeros((edges[-1], columns[-1]), q.dtype)
    out = {
        "O": TiledArray.over(q, Layout((rows, edges))),
        "R": TiledArray.over(r, Layout((edges, columns))),
    }
    P, Q = matrix.grid
    if skinny:
        bound = sized(tsqr_with_q, N=P)
    elif at_hand(engine):
        bound = sized(qr_at_hand, P=P, Q=Q, K=min(P, Q))
    else:
        bound = sized(qr_with_q, P=P, Q=Q)
    engine.run(bound, {"A": matrix}, out=out, events=events)
    return q, r


def _cuts(matrix: TiledArray) -> tuple[Boundaries, Boundaries, Boundaries]:
    """Where rows and columns are cut, and where the columns of Q and the rows of R are."""
    rows, columns = matrix.layout.boundaries
    return rows, columns, (*columns[: min(matrix.grid)], min(matrix.shape))


def _complete(
    a: Matrix | TiledArray, tile: int | None, engine: Engine, events: Sink | None
) -> tuple[Matrix, Matrix]:
    m, n = a.shape
    if m <= n:
        return _reduced(a, tile, engine, events)
    _need_memory(m, promote(a.dtype), engine)
    matrix = square_tiles(a, tile, engine)
    dtype = promote(matrix.dtype)
    reflectors, triangle = factorise(matrix, engine=engine, events=events)
    rest = reflectors.apply(_last_columns(matrix.layout, dtype), engine=engine, events=events)
    q = room(engine, (m, m), dtype)
    q[:, :n] = reflectors.form(engine=engine, events=events)
    q[:, n:] = rest
    r = np.zeros((m, n), dtype)
    r[:n] = triangle
    return q, r


def _last_columns(layout: Layout, dtype: np.dtype[Any]) -> TiledArray:
    """The last m - n columns of the identity, in tiles; those that are zero share their memory."""
    rows = layout.boundaries[0]
    m, n = layout.shape
    step = max(b - a for a, b in pairwise(rows))
    cut = Layout((rows, (*range(0, m - n, step), m - n)))
    tiles: dict[tuple[int, ...], Matrix] = {}
    zeros: dict[tuple[int, ...], Matrix] = {}
    for index in cut.indices():
        down, across = cut.slices(index)
        shape = cut.tile_shape(index)
        shift = down.start - across.start - n
        if -shape[0] < shift < shape[1]:
            tiles[index] = np.eye(*shape, k=shift, dtype=dtype)
        else:
            tiles[index] = zeros.setdefault(shape, np.zeros(shape, dtype))
    return TiledArray(cut, dtype, tiles)


def _need_memory(m: int, dtype: np.dtype[Any], engine: Engine) -> None:
    """Refuse a complete Q that is larger than the memory of the engine, or of this machine."""
    needed = m * m * dtype.itemsize
    allowed = budget(engine)
    present = total_memory() if allowed is None else allowed
    if needed > present:
        whose = "this machine has" if allowed is None else "the budget is"
        raise LinAlgError(
            f"the complete Q of a matrix of {m:,} rows is {m:,}×{m:,}: {human(needed)}, and {whose} "
            f"{human(present)}; use mode='reduced', or keep Q as reflectors "
            "(linnet.algorithms.householder.factorise) and apply it"
        )


# ---- what QR and least squares share


def at_once(a: Matrix | TiledArray, tile: int | None) -> bool:
    """Whether each matrix goes to LAPACK in one piece: no tile size is given, and it is small."""
    few = isinstance(a, np.ndarray) and tile is None and a.shape[-2] * a.shape[-1] < SHORTCUT**2
    return few or (tile is None and is_small(a, tile))


def is_skinny(a: Matrix | TiledArray) -> bool:
    """Whether the matrix is so tall that a tree is better than panels; one in tiles is as it is cut."""
    if isinstance(a, TiledArray) and a.grid[1] != 1:
        return False
    return a.shape[0] >= _SKINNY * max(1, a.shape[1])


def square_tiles(a: Matrix | TiledArray, tile: int | None, engine: Engine | None = None) -> TiledArray:
    """The matrix in tiles that are square on the diagonal."""
    side = tile_size(a.shape, promote(a.dtype), "qr", budget(engine)) if tile is None else tile
    matrix = as_matrix(a, side)
    need_square_tiles(matrix, "QR")
    return matrix
