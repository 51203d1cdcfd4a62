"""LU, systems, inverses, determinants, powers and least squares on nodes."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import Any

import numpy as np

from linnet.algorithms.condition import PROBES, length, probes, warn_if_singular
from linnet.algorithms.determinant import SlogdetResult, det_of, is_odd, slogdet_of
from linnet.algorithms.least_squares import LstsqResult, rank_of, relative_cut
from linnet.algorithms.lu import LUFactors, LUResult, eliminated, exchanges, order_of
from linnet.algorithms.solve import SINGULAR
from linnet.algorithms.triangular import check_diagonal, operation_of
from linnet.algorithms.tuning import SHORTCUT
from linnet.arrays.clustered.factors import qr, solve_triangular
from linnet.arrays.clustered.placing import adjoint, is_large, kept, left, placed, square, value
from linnet.arrays.clustered.spectra import decomposed, values_of
from linnet.arrays.core import as_node, wrap
from linnet.arrays.grids import eye
from linnet.engines import Engine
from linnet.errors import LinAlgError
from linnet.events import Sink
from linnet.kernels.fortran import promote
from linnet.tiles import Layout


def _packed(engine: Engine, a: Any, tile: int | None, events: Sink | None) -> tuple[Any, Any]:
    """U with L below its diagonal, and the permutation."""
    matrix = placed(engine, a, square(a, tile, "lu"))
    made, order = eliminated(matrix, lower=True, engine=engine, events=events)
    upper, lower = (left(made, name, matrix.layout, matrix.dtype) for name in ("U", "L"))
    return kept(engine, upper + lower), order


def lu(engine: Engine, a: Any, *, tile: int | None = None, events: Sink | None = None, **others: Any) -> Any:
    """The permutation, `L` and `U`."""
    if others or not is_large(a, tile):
        return NotImplemented
    packed, order = _packed(engine, a, tile, events)
    k = min(packed.shape)
    lower = np.tril(packed[:, :k], -1) + eye(packed.shape[0], k, dtype=packed.dtype)
    return LUResult(wrap(as_node(order)), lower, np.triu(packed[:k]))


def lu_factor(
    engine: Engine, a: Any, *, tile: int | None = None, events: Sink | None = None, **others: Any
) -> Any:
    """A factorisation to keep."""
    if others or not is_large(a, tile):
        return NotImplemented
    packed, order = _packed(engine, a, tile, events)
    piv, reached = exchanges(order, min(packed.shape))
    if not np.array_equal(reached, order):  # below the last pivot, the order of rows is free
        packed = packed[np.argsort(order)[reached]]
    return LUFactors(packed, wrap(as_node(piv)))


def lu_solve(engine: Engine, factors: Any, b: Any, *, trans: int | str = 0, **options: Any) -> Any:
    """`X` with `op(A)·X = B`, from `lu_factor(A)`."""
    packed, piv = factors
    if not is_large(packed, options.get("tile")) or len(np.shape(b)) not in (1, 2):
        return NotImplemented
    order, given = order_of(value(engine, piv), packed.shape[0]), wrap(as_node(b))
    unit: dict[str, Any] = {"lower": True, "unit_diagonal": True, "trans": trans, **options}
    if operation_of(trans) == "N":
        half = solve_triangular(engine, packed, given[order], **unit)
        return solve_triangular(engine, packed, half, **options)
    half = solve_triangular(engine, packed, given, trans=trans, **options)
    return solve_triangular(engine, packed, half, **unit)[np.argsort(order)]


def solve(
    engine: Engine, a: Any, b: Any, *, tile: int | None = None, events: Sink | None = None, **others: Any
) -> Any:
    """`X` with `A·X = B`."""
    if others or not is_large(a, tile) or len(np.shape(b)) not in (1, 2) or 0 in np.shape(b):
        return NotImplemented
    right = wrap(as_node(b))
    n = a.shape[0]
    if a.shape[1] != n or right.shape[0] != n:
        raise LinAlgError(
            f"a is {n}×{a.shape[1]} and b has {right.shape[0]} rows; a must be square, with as many rows as b"
        )
    if right.ndim == 1:
        return solve(engine, a, right[:, None], tile=tile, events=events)[:, 0]
    dtype = promote(a.dtype, right.dtype)
    rows, columns = square(a, tile, "lu").boundaries
    beside = right.shape[1] + PROBES
    edges = Layout.regular((beside,), rows[1]).boundaries[0]
    whole = np.concatenate([a, right, wrap(as_node(probes(n, dtype)))], axis=1)
    matrix = placed(engine, whole, Layout((rows, (*columns, *(n + edge for edge in edges[1:])))), dtype)
    made, _ = eliminated(matrix, steps=len(rows) - 1, engine=engine, events=events)
    upper = left(made, "U", matrix.layout, dtype)
    pivots = value(engine, np.diagonal(upper))
    check_diagonal(np.split(pivots, rows[1:-1]), SINGULAR)
    solution = solve_triangular(engine, upper[:, :n], upper[:, n:], tile=tile, events=events)
    inverse = length([value(engine, solution[:, -PROBES:])]) / PROBES**0.5
    warn_if_singular(pivots, inverse, _size(engine, a), dtype)
    return solution[:, :-PROBES]


def _size(engine: Engine, a: Any) -> Iterator[Any]:
    """The Frobenius norm of a matrix, computed if it is asked for, as a matrix of one element."""
    yield value(engine, np.linalg.norm(a)).reshape(1, 1)


def inv(engine: Engine, a: Any, *, tile: int | None = None, **options: Any) -> Any:
    """The inverse."""
    if not is_large(a, tile):
        return NotImplemented
    identity = eye(a.shape[0], dtype=promote(a.dtype))
    return solve(engine, a, identity, tile=tile, **options)


def _pivots(engine: Engine, a: Any, tile: int | None, events: Sink | None) -> tuple[Any, bool]:
    """The diagonal of U, and whether the permutation is odd."""
    if a.shape[0] != a.shape[1]:
        raise LinAlgError(f"determinants are of square matrices; got {a.shape[0]}×{a.shape[1]}")
    matrix = placed(engine, a, square(a, tile, "lu"))
    made, order = eliminated(matrix, engine=engine, events=events)
    return value(engine, np.diagonal(left(made, "U", matrix.layout, matrix.dtype))), is_odd(order)


def det(engine: Engine, a: Any, *, tile: int | None = None, events: Sink | None = None, **others: Any) -> Any:
    """The determinant."""
    if others or not is_large(a, tile):
        return NotImplemented
    return wrap(as_node(det_of(*_pivots(engine, a, tile, events))))


def slogdet(
    engine: Engine, a: Any, *, tile: int | None = None, events: Sink | None = None, **others: Any
) -> Any:
    """The sign and the logarithm of the modulus of the determinant."""
    if others or not is_large(a, tile):
        return NotImplemented
    sign, size = slogdet_of(*_pivots(engine, a, tile, events))
    return SlogdetResult(wrap(as_node(sign)), wrap(as_node(size)))


def matrix_power(engine: Engine, a: Any, n: int, *, tile: int | None = None, **options: Any) -> Any:
    """`Aⁿ`, by squaring."""
    if not is_large(a, tile) or a.shape[0] != a.shape[1] or not hasattr(n, "__index__"):
        return NotImplemented
    n = operator.index(n)
    if n < 0:
        return matrix_power(engine, inv(engine, a, tile=tile, **options), -n, tile=tile, **options)
    base = a if a.dtype.kind in "biu" else a.astype(promote(a.dtype), copy=False)
    power = eye(a.shape[0], dtype=base.dtype) if n == 0 else None
    while n:
        if n % 2:
            power = base if power is None else kept(engine, power @ base)
        n //= 2
        if n:
            base = kept(engine, base @ base)
    return power


def lstsq(
    engine: Engine, a: Any, b: Any, rcond: float | None = None, *, tile: int | None = None,
    events: Sink | None = None, **others: Any,
) -> Any:  # fmt: skip
    """The shortest `x` that minimises ‖A·x − b‖."""
    if others or not is_large(a, tile) or len(np.shape(b)) not in (1, 2) or np.shape(b)[0] != a.shape[0]:
        return NotImplemented
    right = wrap(as_node(b))
    if right.ndim == 1:
        found = lstsq(engine, a, right[:, None], rcond, tile=tile, events=events)
        return found._replace(x=found.x[:, 0])
    dtype = promote(a.dtype, right.dtype)
    matrix, right = a.astype(dtype, copy=False), right.astype(dtype, copy=False)
    m, n = a.shape
    wide = m < n
    q, r = qr(engine, adjoint(matrix) if wide else matrix, tile=tile, events=events)
    values = values_of(engine, r, tile, events)
    rank = rank_of(values, relative_cut(rcond, a.shape, dtype))
    side = right if wide else adjoint(q) @ right
    if rank == min(m, n):
        whole = r.shape[0] if r.shape[0] < SHORTCUT else None
        solved = solve_triangular(
            engine, r, side, trans="C" if wide else "N", tile=tile or whole, events=events
        )
    else:
        solved = _truncated(decomposed(engine, r, tile, events), rank, side, wide)
    x = q @ solved if wide else solved
    residuals: Any = np.empty(0, values.dtype)
    if rank == n < m:
        residuals = (abs(right - matrix @ x) ** 2).sum(axis=0)
    return LstsqResult(kept(engine, x), wrap(as_node(residuals)), rank, wrap(as_node(values)))


def _truncated(decomposition: Any, rank: int, side: Any, wide: bool) -> Any:
    """`R⁺·Z`, or for a wide matrix `(Rᴴ)⁺·Z`, with all but the first singular values taken for zero."""
    u, values, vh = decomposition
    first, second = u[:, :rank], adjoint(vh[:rank])
    if wide:
        first, second = second, first
    return second @ ((adjoint(first) @ side) / values[:rank, None])
