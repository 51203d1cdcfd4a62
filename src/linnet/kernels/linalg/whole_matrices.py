"""Matrices small enough for LAPACK to take them whole: one kernel for each function of linear algebra.

Each takes tiles that hold whole matrices, or stacks of them in their last two axes, and gives what the tile
program of the same name gives: vectors of a spectrum as rows, a number as an axis of one. Numbers behind the
tiles say where in its stack a tile begins, so that an error can name the matrix.
"""

from __future__ import annotations

import cmath
import importlib
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import LinAlgError, MatrixError
from linnet.kernels.linalg.dense_factors import chol, of_stack
from linnet.kernels.linalg.lu import factor
from linnet.kernels.linalg.pivots import bad_condition, check_pivots, determinant, exchanged, real
from linnet.kernels.linalg.triangular import solve_with
from linnet.kernels.registry import kernel
from linnet.machine.fortran import promote

Array = NDArray[Any]
Shape = tuple[int, ...]

PROBES = 2
"""Columns that are solved along with a system, to estimate its condition."""
_INT, _FLOAT = np.dtype(np.int64), np.dtype(np.float64)


@lru_cache(maxsize=16)
def probes(rows: int, dtype: np.dtype[Any]) -> Array:
    """Columns of normal numbers, the same for every matrix of a size.

    The mean of `‖A⁻¹·z‖²` is `‖A⁻¹‖²` (Frobenius), so that what they are when solved tells how large the
    inverse is, whatever the pivots look like; it is ten times too small for one matrix in 150. LAPACK's
    `gecon` would read the factors several times after the fact; two columns more cost next to nothing.

    >>> probes(3, np.dtype("f4")).shape
    (3, 2)
    """
    made = np.random.default_rng(rows).standard_normal((rows, PROBES)).astype(dtype)
    made.flags.writeable = False
    return made


def _register(
    name: str, function: Callable[..., Any], shape: Any, dtype: Any, outputs: int = 1, **declared: Any
) -> None:
    """A kernel whose declarations see the shapes, or dtypes, of its tiles and no numbers."""

    def shapes(*args: Any, **_: Any) -> Any:
        return shape(*(each for each in args if isinstance(each, tuple)))

    def dtypes(*args: Any, **_: Any) -> Any:
        return dtype(*(each for each in args if isinstance(each, np.dtype)))

    declared |= {"outputs": outputs, "shape": shapes, "dtype": dtypes, "scratch": 3.0, "refuses": True}
    kernel(f"lapack.{name}", **declared)(function)


def _split(args: tuple[Any, ...]) -> tuple[list[Array], tuple[int, ...]]:
    """The tiles among the arguments, and the numbers behind them."""
    tiles = [each for each in args if isinstance(each, np.ndarray)]
    return tiles, tuple(int(each) for each in args[len(tiles) :])


def _of_each(name: str, one: Callable[..., Any], shape: Any, dtype: Any, outputs: int = 1) -> None:
    """A kernel that calls a function on each matrix of a stack; its error names the matrix."""

    def every(*args: Any, **options: Any) -> Any:
        if args[0].ndim == 2:
            return one(*args, **options)
        tiles, first = _split(args)
        batch = tiles[0].shape[:-2]
        found: list[Any] = []
        for index in np.ndindex(*batch):
            try:
                found.append(one(*(tile[index] for tile in tiles), **options))
            except LinAlgError as error:
                place = tuple(a + b for a, b in zip(first or (0,) * len(index), index, strict=True))
                raise MatrixError(f"{of_stack(place)}{error}") from error
        # With no matrix at all, identities tell the shapes and dtypes of what would be returned.
        like = found or [one(*(np.eye(*tile.shape[-2:], dtype=tile.dtype) for tile in tiles), **options)]
        columns = zip(*(each if outputs > 1 else (each,) for each in like), strict=True)
        made = [np.stack(each)[: len(found)].reshape(*batch, *each[0].shape) for each in columns]
        return tuple(made) if outputs > 1 else made[0]

    every.__qualname__ = name  # tells kernels of this module apart
    _register(name, every, shape, dtype, outputs)


def _of_all(
    name: str, function: Callable[..., Any], shape: Any, dtype: Any, outputs: int = 1, **declared: Any
) -> None:
    """A kernel that calls a function of NumPy's, which takes stacks; its error says what may be wrong."""

    def all_at_once(*args: Any, **options: Any) -> Any:
        tiles = args if args[0].ndim == 2 else _split(args)[0]
        try:
            return function(*map(_for_lapack, tiles), **options)
        except np.linalg.LinAlgError as error:
            raise MatrixError(f"{error}; is every element of the matrix finite?") from error

    all_at_once.__qualname__ = name
    _register(name, all_at_once, shape, dtype, outputs, **declared)


_NATIVE = frozenset(map(np.dtype, "fdFD"))


def _for_lapack(a: Array) -> Array:
    return a if a.dtype in _NATIVE else a.astype(promote(a.dtype))


def _same(a: Shape, *_: Shape) -> Shape:
    return a


def _pair(a: np.dtype[Any]) -> tuple[Any, Any]:
    return promote(a), promote(a)


def _rows(vectors: Array) -> Array:
    return np.ascontiguousarray(vectors.swapaxes(-1, -2))


# ---- factors


_TINY = 64
"""Rows up to which the shortest way to LAPACK counts, even if it holds the interpreter for so long."""
_LETTER = {"f": "s", "d": "d", "F": "c", "D": "z"}


@cache
def _gesv(char: str) -> Any:
    """LAPACK's `gesv`, as SciPy wraps it: in a third of the time of `np.linalg.solve` for ten rows."""
    return getattr(importlib.import_module("scipy.linalg.lapack"), f"{_LETTER[char]}gesv")


def _cholesky(a: Array) -> Array:
    if len(a) <= _TINY:
        try:
            return np.linalg.cholesky(_for_lapack(a))
        except np.linalg.LinAlgError:
            pass  # which minor is not positive is found below
    return np.ascontiguousarray(chol.function(a, 0, 0))


def _lu(a: Array) -> tuple[Array, Array, Array]:
    packed = np.array(a, promote(a.dtype), order="F")
    order, _ = factor(packed)
    (reached,), piv = exchanged.function([order], min(a.shape))
    return np.ascontiguousarray(packed), piv, reached


def _lu_parts(a: Array) -> tuple[Array, Array, Array]:
    """The permutation, L and U."""
    packed, _, order = _lu(a)
    k = min(a.shape)
    lower = np.tril(packed[:, :k], -1)
    np.fill_diagonal(lower, 1)
    return order, lower, np.triu(packed[:k])


def _thin(a: Shape) -> tuple[Shape, Shape]:
    k = min(a[-2:])
    return (*a[:-1], k), (*a[:-2], k, a[-1])


_of_each("cholesky", _cholesky, _same, promote)
_of_each("lu", _lu, lambda a: (a, (*a[:-2], min(a[-2:])), a[:-1]), lambda a: (promote(a), _INT, _INT), 3)
_of_each(
    "lu_parts",
    _lu_parts,
    lambda a: (a[:-1], *_thin(a)),
    lambda a: (_INT, promote(a), promote(a)),
    3,
)
_of_all("qr", lambda a: tuple(np.linalg.qr(a)), _thin, _pair, 2)
_of_all("qr_r", lambda a: np.linalg.qr(a, "r"), lambda a: _thin(a)[1], promote)
_of_all(
    "qr_complete", lambda a: tuple(np.linalg.qr(a, "complete")), lambda a: ((*a[:-1], a[-2]), a), _pair, 2
)


# ---- systems


def _solve(a: Array, b: Array) -> tuple[Array, Array]:
    """The solution of a system, and its condition if that is bad (see `condition_of`); else 0."""
    dtype = a.dtype if a.dtype == b.dtype and a.dtype in _NATIVE else promote(a.dtype, b.dtype)
    wide = np.concatenate((b, probes(len(b), dtype)), axis=1)
    solution = _shortest_way(a, wide, dtype)
    if solution is None:
        packed = np.array(a, dtype=dtype, order="F")
        order, _ = factor(packed)
        check_pivots.function([packed.diagonal()])
        solution = np.array(wide[order], dtype=dtype, order="F")
        solve_with(packed, solution, True, True)
        solve_with(packed, solution, False, False)
    return solution[:, :-PROBES].copy(), bad_condition(a, solution, b.shape[1])


def _inverse(a: Array) -> tuple[Array, Array]:
    """The inverse of a matrix, and its condition as `_solve` has it."""
    dtype = a.dtype if a.dtype in _NATIVE else promote(a.dtype)
    identity = np.eye(len(a), dtype=dtype)
    found = _shortest_way(a, identity, dtype)
    return _solve(a, identity) if found is None else (found.copy(), bad_condition(a, found))


def _shortest_way(a: Array, b: Array, dtype: np.dtype[Any]) -> Array | None:
    """The solution of a system by LAPACK's `gesv`; None if a minor is zero, or it must go another way."""
    if 0 < len(a) <= _TINY:
        *_, solution, failed = _gesv(dtype.char)(a, b)
        return None if failed else solution
    if dtype.char not in "dD":
        return None  # NumPy computes others in these
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        return None


def _solve_triangular(a: Array, b: Array, *, lower: bool, unit: bool) -> Array:
    solution = np.array(b, dtype=promote(a.dtype, b.dtype), order="F")
    if not unit:
        check_pivots.function([a.diagonal()], exchanges=False)
    solve_with(a, solution, lower, unit)
    return np.ascontiguousarray(solution)


_of_each("solve", _solve, lambda a, b: (b, (*a[:-2], 1)), lambda a, b: (promote(a, b), _FLOAT), 2)
_of_each("inv", _inverse, lambda a: (a, (*a[:-2], 1)), lambda a: (promote(a), _FLOAT), 2)
_of_each("solve_triangular", _solve_triangular, lambda a, b: b, promote)


# ---- numbers


_LEAST = {char: float(np.finfo(char).tiny) for char in "fdFD"}


def _det(stack: Array) -> Array:
    """Determinants; nothing overflows on the way."""
    with np.errstate(all="ignore"):
        values = np.array(np.linalg.det(stack))[..., None]
    if stack.ndim == 2 and _LEAST[stack.dtype.char] <= abs(values[0]) < np.inf:
        return values
    # What is out of range may have gone out of range on the way only.
    sizes = np.abs(values)
    for *index, _ in np.argwhere(~np.isfinite(sizes) | (sizes < _LEAST[stack.dtype.char])).tolist():
        packed = np.array(stack[tuple(index)], order="F")
        order, _ = factor(packed)
        values[tuple(index)] = determinant.function([packed.diagonal()], [order]) if packed.size else 1
    return values


def _slogdet(stack: Array) -> tuple[Array, ...]:
    return tuple(np.asarray(each)[..., None] for each in np.linalg.slogdet(stack))


def _power(*args: Any, n: int) -> Array:
    """A power of a matrix that is not negative; integers stay integers."""
    a = _split(args)[0][0]
    return np.linalg.matrix_power(a if a.dtype.kind in "biu" else a.astype(promote(a.dtype), copy=False), n)


def _one(a: Shape) -> Shape:
    return (*a[:-2], 1)


_of_all("det", _det, _one, promote)
_of_all("slogdet", _slogdet, lambda a: (_one(a), _one(a)), lambda a: (promote(a), real(promote(a))), 2)
_register("power", _power, _same, lambda a: a if a.kind in "biu" else promote(a))


# ---- spectra


def _svd(full: bool) -> Callable[[Array], tuple[Array, Array, Array]]:
    def decomposed(a: Array) -> tuple[Array, Array, Array]:
        u, values, vh = np.linalg.svd(a, full_matrices=full)
        return _rows(u), values, vh

    return decomposed


def _vectors(full: bool) -> Callable[[Shape], tuple[Shape, Shape, Shape]]:
    def shapes(a: Shape) -> tuple[Shape, Shape, Shape]:
        *batch, m, n = a
        k = min(m, n)
        return (*batch, m if full else k, m), (*batch, k), (*batch, n if full else k, n)

    return shapes


def _triple(a: np.dtype[Any]) -> tuple[Any, Any, Any]:
    return promote(a), real(promote(a)), promote(a)


def _complex(a: np.dtype[Any]) -> np.dtype[Any]:
    return np.result_type(promote(a), np.complex64)


def _eig(a: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eig(a)
    return values.astype(_complex(a.dtype)), vectors.astype(_complex(a.dtype))


def _eigh(a: Array) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(a)
    return values, _rows(vectors)


_of_all("svd", _svd(True), _vectors(True), _triple, 3)
_of_all("svd_thin", _svd(False), _vectors(False), _triple, 3)
_of_all(
    "svdvals",
    lambda a: np.linalg.svd(a, compute_uv=False),
    lambda a: (*a[:-2], min(a[-2:])),
    lambda a: real(promote(a)),
)
_of_all("eigh", _eigh, lambda a: (a[:-1], a), lambda a: (real(promote(a)), promote(a)), 2)
_of_all("eigvalsh", np.linalg.eigvalsh, lambda a: a[:-1], lambda a: real(promote(a)))
# There is no tiled way for general matrices.
_of_all("eig", _eig, lambda a: (a[:-1], a), lambda a: (_complex(a), _complex(a)), 2, gathers=True)
_of_all(
    "eigvals",
    lambda a: np.linalg.eigvals(a).astype(_complex(a.dtype)),
    lambda a: a[:-1],
    _complex,
    gathers=True,
)


# ---- least squares, rank and condition; what takes values takes lazy ones too


def counting(values: Any, relative: Any) -> Any:
    """Which singular values, or moduli of eigenvalues, are above a share of the largest."""
    return values > values.max(axis=-1, keepdims=True, initial=0) * relative


def inverted(values: Any, counts: Any) -> Any:
    """1 over each value that counts, 0 for the others."""
    one, zero = values.dtype.type(1), values.dtype.type(0)
    return np.where(counts, one / np.where(counts, values, one), zero)


def condition_from(values: Any, smallest: bool) -> Any:
    """The condition of a matrix from its singular values, along an axis of one; its inverse if `smallest`."""
    first, last = values[..., :1], values[..., -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = last / first if smallest else first / last
    # 0/0 is the zero matrix; where something in the matrix is not a number, so is this.
    unknown = np.isnan(ratio) & ~np.isnan(values).any(axis=-1, keepdims=True)
    return np.where(unknown, values.dtype.type(np.inf), ratio)


def _pinv(a: Array, *, relative: float, hermitian: bool) -> Array:
    if hermitian:
        values, vectors = np.linalg.eigh(a)
        left, right = vectors, vectors
        counts = counting(np.abs(values), relative)
    else:
        u, values, vh = np.linalg.svd(a, full_matrices=False)
        left, right = vh.conj().mT, u
        counts = counting(values, relative)
    return (left * inverted(values, counts)[..., None, :]) @ right.conj().mT


def _rank(a: Array, *, tol: float | None, relative: float, hermitian: bool) -> Array:
    values = np.abs(np.linalg.eigvalsh(a)) if hermitian else np.linalg.svd(a, compute_uv=False)
    counts = counting(values, relative) if tol is None else values > tol
    return counts.sum(axis=-1, keepdims=True, dtype=np.int64)


def _cond(a: Array, *, smallest: bool) -> Array:
    values = np.linalg.svd(a, compute_uv=False)
    if values.ndim == 1 and 0 < values[-1] < np.inf:  # what may be out of the way is not
        return values[-1:] / values[:1] if smallest else values[:1] / values[-1:]
    found = condition_from(values, smallest)
    # Without a NaN, what is not finite counts as singular.
    with_nan: Any = np.isnan(a).any(axis=(-2, -1), keepdims=True)
    without_nan = ~with_nan[..., 0]
    return np.where(np.isnan(found) & without_nan, found.dtype.type(np.inf), found)


def _lstsq(a: Array, b: Array, *, relative: float) -> tuple[Array, Array, Array, Array]:
    """The shortest solution, sums of squares of what it leaves, the rank, the singular values."""
    a, b = _for_lapack(a), _for_lapack(b)
    line = a.reshape(-1)
    # LAPACK would find that out with a noise. The sum of squares tells it soonest, unless it is too large.
    if not cmath.isfinite(line.dot(line)) and not np.isfinite(a).all():
        raise MatrixError(
            "SVD did not converge in Linear Least Squares; is every element of the matrix finite?"
        )
    x, sums, rank, values = np.linalg.lstsq(a, b, relative)
    if not sums.size:  # NumPy leaves them out where they are not asked for
        sums = np.zeros(b.shape[1:], values.dtype)
    return x, sums, np.array([rank], _INT), values


_of_all("pinv", _pinv, lambda a: (*a[:-2], a[-1], a[-2]), promote)
_of_all("rank", _rank, _one, lambda _: _INT)
_of_all("cond", _cond, _one, lambda a: real(promote(a)))
_of_each(
    "lstsq",
    _lstsq,
    lambda a, b: ((*a[:-2], a[-1], b[-1]), (*a[:-2], b[-1]), _one(a), (*a[:-2], min(a[-2:]))),
    lambda a, b: (promote(a, b), real(promote(a, b)), _INT, real(promote(a, b))),
    4,
)
