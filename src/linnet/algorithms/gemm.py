"""Matrix product: each tile of C is one task that reads a row of tiles of A and a column of tiles of B."""
# pyright: reportInvalidTypeForm=false, reportIndexIssue=false

from __future__ import annotations

import functools
import heapq
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.algorithms.running import as_matrix, budget, room, run, sized
from linnet.algorithms.tuning import SHORTCUT, tile_size
from linnet.engines import Engine, available_cores
from linnet.errors import InputError
from linnet.events import Sink
from linnet.kernels import gemm as multiply
from linnet.kernels import gemm_add, gemm_block, gemm_conjugate
from linnet.kernels.fortran import promote
from linnet.programs import BoundProgram, In, Out, Temp, TileProgram, tile_program
from linnet.session import current_engine
from linnet.tiles import Boundaries, Layout, TiledArray

_SMALL = 512
"""Rows of a tile up to which BLAS, given one at a time, spends much of its time on copying the factors."""
_BLOCKS = [(2, 8), (4, 4), (2, 4), (1, 4), (1, 2), (1, 1)]
"""Rows and columns of such tiles that one task computes: the first that gives all workers about as much."""
_UNEVEN = 1.15
"""How much more than its share a worker may get."""
_EVEN = 64
"""Where all tiles end at multiples of this, BLAS rounds alike whatever is computed together."""
_ANYWHERE = (2, 4)
"""What one task computes where they do not: its bits must not depend on the number of workers."""


@tile_program(verify=False)
def gemm(A: In, B: In, C: Out, M: int, N: int, K: int):
    assert K >= 1
    for i in range(M):
        for j in range(N):
            C[i, j] = multiply(A[i, 0:K], B[0:K, j])


@functools.cache
def block_gemm(rows: int, columns: int) -> TileProgram:
    """The same product, so many tiles a task: for arrays in one piece, of which tiles are only views."""

    @tile_program(verify=False)
    def block_gemm(A: In, B: In, C: Out, M: int, N: int, K: int):
        assert K >= 1
        for i in range(0, M, rows):
            for j in range(0, N, columns):
                C[i : min(i + rows, M), j : min(j + columns, N)] = gemm_block(
                    A[i : min(i + rows, M), 0:K], B[0:K, j : min(j + columns, N)]
                )

    return block_gemm


@tile_program(verify=False)
def accumulated_gemm(A: In, B: In, C: Out, P: Temp, M: int, N: int, K: int):
    """The same product, one task for each pair of tiles: for engines where no worker can hold a row."""
    assert K >= 1
    for i in range(M):
        for j in range(N):
            if K == 1:
                C[i, j] = multiply(A[i, 0], B[0, j])
            else:
                P[1, i, j] = multiply(A[i, 0], B[0, j])
                for k in range(1, K - 1):
                    P[k + 1, i, j] = gemm_add(P[k, i, j], A[i, k], B[k, j])
                C[i, j] = gemm_add(P[K - 1, i, j], A[i, K - 1], B[K - 1, j])


@tile_program(verify=False)
def conjugate_gemm(A: In, B: In, C: Out, M: int, N: int, K: int, CA: int, CB: int):
    """The same product with A conjugated if CA is 1, and B if CB is 1."""
    assert K >= 1
    for i in range(M):
        for j in range(N):
            C[i, j] = gemm_conjugate(A[i, 0:K], B[0:K, j], CA, CB)


def matmul(
    a: NDArray[Any] | TiledArray,
    b: NDArray[Any] | TiledArray,
    *,
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
) -> TiledArray:
    """`A·B` in tiles.

    >>> import numpy as np
    >>> matmul(np.arange(6.0).reshape(2, 3), np.ones((3, 2)), tile=2).to_numpy()
    array([[ 3.,  3.],
           [12., 12.]])
    """
    left, right = _factors(a, b, tile, engine)
    bound = _bound(a, b, left, right, engine or current_engine())
    return run(bound, {"A": left, "B": right}, engine, events)["C"]


def product(
    a: NDArray[Any] | TiledArray,
    b: NDArray[Any] | TiledArray,
    *,
    op_a: str = "N",
    op_b: str = "N",
    tile: int | None = None,
    engine: Engine | None = None,
    events: Sink | None = None,
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """`op(A)·op(B)` as one array; an operation is "N" (none), "T" (transpose) or "C" (adjoint).

    Tiles are views of the factors, and results go where they belong: nothing is copied. `out`
    may be an `np.memmap`. Matrices smaller than 1024 go to BLAS in one piece, unless `tile` is given.

    >>> import numpy as np
    >>> product(np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]]), op_a="T")
    array([[1., 3.],
           [2., 6.]])
    """
    x, conjugate_a = _turned(a, op_a)
    y, conjugate_b = _turned(b, op_b)
    left, right = _factors(x, y, tile, engine)
    dtype = promote(left.dtype, right.dtype)
    shape = (left.shape[0], right.shape[1])
    if out is not None and (out.shape != shape or out.dtype != dtype):
        raise InputError(
            f"the product is {shape[0]}×{shape[1]} of {dtype}; "
            f"out has shape {out.shape} and dtype {out.dtype}"
        )
    chosen = engine or current_engine()
    whole = room(chosen, shape, dtype) if out is None else out
    place = TiledArray.over(whole, Layout((left.layout.boundaries[0], right.layout.boundaries[1])))
    if conjugate_a or conjugate_b:
        sizes = {"M": left.grid[0], "N": right.grid[1], "K": left.grid[1]}
        bound = sized(conjugate_gemm, **sizes, CA=int(conjugate_a), CB=int(conjugate_b))
    else:
        bound = _bound(a, b, left, right, chosen)
    chosen.run(bound, {"A": left, "B": right}, out={"C": place}, events=events)
    return whole


def _bound(a: Any, b: Any, left: TiledArray, right: TiledArray, engine: Engine) -> BoundProgram:
    """Small tiles that lie beside one another in memory are computed several at a time, others one by one."""
    m, n, k = left.grid[0], right.grid[1], left.grid[1]
    in_one_piece = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and budget(engine) is None
    if not in_one_piece or left.layout.tile_shape((0, 0))[0] > _SMALL:
        return sized(gemm, M=m, N=n, K=k)
    rows, columns = _block(left.layout.boundaries[0], right.layout.boundaries[1], engine)
    return sized(block_gemm(rows, columns), M=m, N=n, K=k)


def _block(rows: Boundaries, columns: Boundaries, engine: Engine) -> tuple[int, int]:
    """How many tiles one task computes. The number of workers may change the speed, and no bit."""
    if any(edge % _EVEN for edge in (*rows, *columns)):
        return _ANYWHERE
    workers = available_cores() if engine.cluster is None else engine.cluster.workers
    fair = (block for block in _BLOCKS if _share(rows, columns, block, workers) <= _UNEVEN / workers)
    return next(fair, _BLOCKS[-1])


def _share(rows: Boundaries, columns: Boundaries, block: tuple[int, int], workers: int) -> float:
    """What part of the product the worker with the most to do gets, if each takes the next largest block.

    >>> _share((0, 64, 128, 192), (0, 64), (2, 1), workers=2)
    0.6666666666666666
    """
    heights, widths = (
        np.diff([*edges[:-1:step], edges[-1]]) for edges, step in zip((rows, columns), block, strict=True)
    )
    loads = [0.0] * workers
    for area in sorted(np.outer(heights, widths).ravel().tolist(), reverse=True):
        heapq.heapreplace(loads, loads[0] + area)
    return max(loads) / max(1, rows[-1] * columns[-1])


def _turned(a: NDArray[Any] | TiledArray, op: str) -> tuple[NDArray[Any] | TiledArray, bool]:
    """The matrix as the operation turns it (a view), and whether it must also be conjugated."""
    if op not in ("N", "T", "C"):
        raise InputError(f'operation {op!r} on a factor is not known; use "N", "T" or "C"')
    if op == "N":
        return a, False
    turned = a.transposed() if isinstance(a, TiledArray) else np.asarray(a).T
    return turned, op == "C" and turned.dtype.kind == "c"


def _factors(
    a: NDArray[Any] | TiledArray, b: NDArray[Any] | TiledArray, tile: int | None, engine: Engine | None
) -> tuple[TiledArray, TiledArray]:
    longest = max((*np.shape(a), *np.shape(b), 1))
    if tile is None and longest < SHORTCUT:
        tile = longest
    dtype = np.result_type(a.dtype, b.dtype)
    side = tile or tile_size((*np.shape(a), *np.shape(b)), dtype, "gemm", budget(engine))
    left, right = as_matrix(a, side), as_matrix(b, side)
    if left.layout.boundaries[1] != right.layout.boundaries[0]:
        raise InputError(
            f"cannot multiply {left.shape[0]}×{left.shape[1]} by {right.shape[0]}×{right.shape[1]}: "
            "the columns of the first must be as many, and cut as, the rows of the second"
        )
    return left, right
