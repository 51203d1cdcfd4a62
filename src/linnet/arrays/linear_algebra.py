"""Linear algebra on arrays: the tiled algorithms for whatever has to be factored, expressions for the rest.

NumPy's arrays give NumPy's arrays, ours give ours. A factorisation of one of ours is a stage: the
matrix is computed, in a file if it exceeds the memory budget, and factored at once, so that a
singular matrix is an error where NumPy has it. On a cluster it is factored there (`clustered`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from linnet.algorithms import determinant, gemm, inverse, least_squares, norms, power, pseudo_inverse, qr
from linnet.algorithms import lu as lu_algorithm
from linnet.algorithms import solve as solving
from linnet.algorithms.cholesky import factor
from linnet.algorithms.spectral import eigh as _eigh
from linnet.algorithms.spectral import eigvalsh as _eigvalsh
from linnet.algorithms.spectral import matrix_rank as _matrix_rank
from linnet.algorithms.spectral import svd as _svd
from linnet.algorithms.spectral import svdvals as _svdvals
from linnet.algorithms.stacks import as_stack, over_stack
from linnet.algorithms.triangular import solve_triangular as _solve_triangular
from linnet.arrays import contraction
from linnet.arrays.building import permuted
from linnet.arrays.clustered import factors, spectra, systems
from linnet.arrays.core import NUMPY, ArrayBase, as_node, axis_of, chunked, wrap, wrapped_all
from linnet.arrays.elementwise import apply
from linnet.arrays.evaluation import computed
from linnet.arrays.wholes import gathered
from linnet.session import current_engine

F = TypeVar("F", bound=Callable[..., Any])


def _is_ours(*items: Any) -> bool:
    return any(isinstance(item, ArrayBase) for item in items)


def _value(item: Any) -> Any:
    return computed([item.node])[0] if isinstance(item, ArrayBase) else item


def face(
    function: Callable[..., Any], *numpy_functions: Any, on_nodes: Callable[..., Any] | None = None
) -> Callable[..., Any]:
    """An algorithm that takes and gives arrays of ours as well; on engines with nodes, as `on_nodes` does."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not _is_ours(*args, *kwargs.values()):
            return function(*args, **kwargs)
        engine = kwargs.get("engine") or current_engine()
        if on_nodes is not None and engine.cluster is not None:
            options = {name: value for name, value in kwargs.items() if name != "engine"}
            made = on_nodes(engine, *args, **options)
            if made is not NotImplemented:
                return made
        return wrapped_all(function(*map(_value, args), **{k: _value(v) for k, v in kwargs.items()}))

    for each in numpy_functions:
        NUMPY[each] = call
    return call


def mixed(
    numpy_function: Callable[..., Any],
    plain: Callable[..., Any] | None = None,
    small: Callable[..., Any] | None = None,
) -> Callable[[F], F]:
    """Mark an expression: for NumPy's arrays NumPy's function (or `plain`) gives NumPy's result.

    `small` is for small arrays of ours, as in `chunked`.
    """

    def mark(function: F) -> F:
        lazily = chunked(numpy_function, small=small)(function)

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if _is_ours(*args, *kwargs.values()):
                return lazily(*args, **kwargs)
            return (plain or numpy_function)(*args, **kwargs)

        return cast("F", call)

    return mark


def _factors(a: Any, **options: Any) -> Any:
    """The lower Cholesky factor of a matrix, or of each in a stack."""
    if len(a.shape) < 3:
        return factor(a, **options)
    return over_stack(lambda matrix: factor(matrix, **options), cast("Any", as_stack(a)))


cholesky_lower = face(_factors, on_nodes=factors.cholesky)
qr = face(qr.qr_factors, np.linalg.qr, on_nodes=factors.qr)
lu = face(lu_algorithm.lu, on_nodes=systems.lu)
lu_factor = face(lu_algorithm.lu_factor, on_nodes=systems.lu_factor)
lu_solve = face(solving.lu_solve, on_nodes=systems.lu_solve)
cho_factor = face(solving.cho_factor, on_nodes=factors.cho_factor)
cho_solve = face(solving.cho_solve, on_nodes=factors.cho_solve)
solve = face(solving.solve, np.linalg.solve, on_nodes=systems.solve)
solve_triangular = face(_solve_triangular, on_nodes=factors.solve_triangular)
lstsq = face(least_squares.least_squares, np.linalg.lstsq, on_nodes=systems.lstsq)
inv = face(inverse.inv, np.linalg.inv, on_nodes=systems.inv)
det = face(determinant.det, np.linalg.det, on_nodes=systems.det)
slogdet = face(determinant.slogdet, np.linalg.slogdet, on_nodes=systems.slogdet)
eigh = face(_eigh, np.linalg.eigh, on_nodes=spectra.eigh)
eigvalsh = face(_eigvalsh, np.linalg.eigvalsh, on_nodes=spectra.eigvalsh)
svd = face(_svd, np.linalg.svd, on_nodes=spectra.svd)
svdvals = face(_svdvals, np.linalg.svdvals, on_nodes=spectra.svdvals)
pinv = face(pseudo_inverse.pseudo_inverse, np.linalg.pinv, on_nodes=spectra.pinv)
matrix_rank = face(_matrix_rank, np.linalg.matrix_rank, on_nodes=spectra.matrix_rank)
matrix_power = face(power.matrix_power, np.linalg.matrix_power, on_nodes=systems.matrix_power)
cond = face(norms.cond, np.linalg.cond, on_nodes=spectra.cond)


def cholesky(a: Any, /, *, upper: bool = False, **options: Any) -> Any:
    """The Cholesky factor: lower triangular, or with `upper` its conjugate transpose.

    >>> cholesky(np.array([[4.0, 2.0], [2.0, 5.0]]), upper=True)
    array([[2., 1.],
           [0., 2.]])
    """
    made = cholesky_lower(a, **options)
    if not upper:
        return made
    if not _is_ours(made):
        return np.conj(np.swapaxes(made, -1, -2))
    return matrix_transpose(apply(np.conjugate, made))


NUMPY[np.linalg.cholesky] = cholesky


def matmul(a: Any, b: Any, /, **options: Any) -> Any:
    """The matrix product; for arrays of ours lazily."""
    if _is_ours(a, b):
        return contraction.matmul(a, b, **options)
    if np.ndim(a) != 2 or np.ndim(b) != 2:
        return np.matmul(a, b)
    return gemm.product(a, b, **options)


NUMPY[np.linalg.matmul] = matmul


class EigResult(NamedTuple):
    """Eigenvalues and eigenvectors of a general matrix."""

    eigenvalues: Any
    eigenvectors: Any


def _numpy_eig(a: Any, *, gather: bool = False) -> Any:
    """`np.linalg.eig`: real where all eigenvalues are."""
    if not _is_ours(a):
        return EigResult(*np.linalg.eig(a))
    return EigResult(*map(wrap_value, gathered(np.linalg.eig, [a.node], "eig", gather)))


def _numpy_eigvals(a: Any, *, gather: bool = False) -> Any:
    """`np.linalg.eigvals`: real where all eigenvalues are."""
    if not _is_ours(a):
        return np.linalg.eigvals(a)
    return wrap_value(gathered(np.linalg.eigvals, [a.node], "eigvals", gather))


def eig(a: Any, /, *, gather: bool = False) -> Any:
    """Eigenvalues and right eigenvectors of a general square matrix, in one place: LAPACK's `geev`.

    They are complex, as the array API standard asks; `np.linalg.eig` gives real ones where it can.

    >>> eig(np.array([[2.0, 0.0], [0.0, 3.0]])).eigenvalues
    array([2.+0.j, 3.+0.j])
    """
    return EigResult(*map(_as_complex, _numpy_eig(a, gather=gather)))


def eigvals(a: Any, /, *, gather: bool = False) -> Any:
    """Eigenvalues of a general square matrix, in one place; they are complex."""
    return _as_complex(_numpy_eigvals(a, gather=gather))


def _as_complex(values: Any) -> Any:
    return values.astype(np.result_type(values.dtype, np.complex64))


def wrap_value(value: Any) -> Any:
    """An array of ours around NumPy's."""
    return wrap(as_node(value))


NUMPY[np.linalg.eig] = _numpy_eig
NUMPY[np.linalg.eigvals] = _numpy_eigvals


# ---- expressions


def _in_range(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's norm of a small array; left to ours where NumPy's squares may leave the range of floats."""

    def small(x: Any, *args: Any, **kwargs: Any) -> Any:
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            made = function(x, *args, **kwargs)
        if not np.size(x) or made.dtype.kind != "f":
            return made
        low, high = _range(made.dtype)
        return made if ((made >= low) & (made <= high)).all() else NotImplemented

    return small


def _range(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Between these, squares and many of them are floats."""
    info = np.finfo(dtype)
    return info.tiny**0.25, info.max**0.25


@mixed(np.linalg.vector_norm, small=_in_range(np.linalg.vector_norm))
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along an axis (None: of all elements)."""
    array = wrap(as_node(x))
    size = abs(array)
    axes = tuple(range(array.ndim)) if axis is None else axis
    if array.dtype.kind not in "fc":
        size = size.astype(np.float64)
    if ord == np.inf:
        return size.max(axis=axes, keepdims=keepdims)
    if ord == -np.inf:
        return size.min(axis=axes, keepdims=keepdims)
    if ord == 0:
        return (size != 0).astype(size.dtype).sum(axis=axes, keepdims=keepdims)
    if ord == 1:
        return size.sum(axis=axes, keepdims=keepdims)
    if ord == 2:
        return _scaled_norm(size, axes, keepdims)
    return ((size**ord).sum(axis=axes, keepdims=keepdims)) ** (1.0 / ord)


def _scaled_norm(size: Any, axes: Any, keepdims: bool) -> Any:
    """The Euclidean norm; elements whose squares leave the range of floats are scaled first."""
    largest = (
        size.max(axis=axes, keepdims=True) if 0 not in size.shape else size.sum(axis=axes, keepdims=True)
    )
    low, high = _range(size.dtype)
    extreme = (largest > high) | ((largest < low) & (largest > 0))
    scale = np.where(extreme & np.isfinite(largest), largest, largest.dtype.type(1))
    total = np.sqrt(((size / scale) ** 2).sum(axis=axes, keepdims=True)) * scale
    if keepdims:
        return total
    drop = {axis_of(a, size.ndim) for a in (axes if isinstance(axes, tuple) else (axes,))}
    return wrap(permuted(total.node, tuple(a for a in range(size.ndim) if a not in drop)))


@mixed(np.linalg.matrix_norm, small=_in_range(np.linalg.matrix_norm))
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of matrices in the last two axes."""
    array = wrap(as_node(x))
    if array.ndim < 2:
        raise ValueError(f"matrix_norm takes matrices; got shape {array.shape}")
    return _matrix_norm(array, ord, (array.ndim - 2, array.ndim - 1), keepdims)


def _matrix_norm(array: Any, ord: Any, axes: tuple[int, int], keepdims: bool) -> Any:
    if ord in ("fro", None):
        return vector_norm(array, axis=axes, keepdims=keepdims)
    if ord in (1, -1, np.inf, -np.inf):
        rows, columns = axes
        summed, kept = (rows, columns) if ord in (1, -1) else (columns, rows)
        total = abs(array).sum(axis=summed, keepdims=True)
        pick = total.max if ord > 0 else total.min
        made = pick(axis=kept, keepdims=True)
    elif ord in (2, -2, "nuc"):
        others = tuple(a for a in range(array.ndim) if a not in axes)
        values = svdvals(wrap(permuted(array.node, (*others, *axes))))
        pick = values.sum if ord == "nuc" else values.max if ord == 2 else values.min
        small = pick(axis=-1)
        if not keepdims:
            return small
        order = [-1] * array.ndim
        for place, axis in enumerate(others):
            order[axis] = place
        return wrap(permuted(small.node, tuple(order)))
    else:
        raise ValueError(f"norm of order {ord!r} of matrices; use 1, -1, 2, -2, inf, -inf, 'fro' or 'nuc'")
    kept_axes = tuple(a for a in range(array.ndim) if a not in axes)
    return made if keepdims else wrap(permuted(made.node, kept_axes))


@mixed(np.linalg.norm, norms.norm, small=_in_range(np.linalg.norm))
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, **options: Any) -> Any:
    """NumPy's norm: of vectors along one axis, of matrices along two, of all elements."""
    array = wrap(as_node(x))
    if axis is None and ord is None:
        return vector_norm(array, keepdims=keepdims)
    if axis is None:
        if array.ndim not in (1, 2):
            raise ValueError(f"norm of order {ord!r} of an array of shape {array.shape}: give axis=")
        axis = tuple(range(array.ndim))
    axes = tuple(axis_of(a, array.ndim) for a in (axis if isinstance(axis, tuple) else (axis,)))
    if len(axes) == 1:
        if isinstance(ord, str):
            raise ValueError(f"invalid norm order {ord!r} for vectors")
        return vector_norm(array, axis=axes[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(axes) != 2 or axes[0] == axes[1]:
        raise ValueError(f"axis={axis}: norms are of vectors (one axis) or matrices (two different axes)")
    return _matrix_norm(array, ord, (axes[0], axes[1]), keepdims)


@mixed(np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """The last two axes swapped."""
    return wrap(as_node(x)).mT


@mixed(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of three elements."""
    a, b = wrap(as_node(x1)), wrap(as_node(x2))
    if a.shape[axis] != 3 or b.shape[axis] != 3:
        raise ValueError(f"cross takes vectors of 3 elements along axis {axis}; got {a.shape} and {b.shape}")
    first = [np.take(a, k, axis=axis) for k in range(3)]
    second = [np.take(b, k, axis=axis) for k in range(3)]
    parts = [
        first[(k + 1) % 3] * second[(k + 2) % 3] - first[(k + 2) % 3] * second[(k + 1) % 3] for k in range(3)
    ]
    return np.stack(parts, axis=axis)


@mixed(np.linalg.outer)
def outer(x1: Any, x2: Any, /) -> Any:
    """The products of all pairs of elements of two vectors."""
    a, b = as_node(x1), as_node(x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"outer takes vectors; got shapes {a.shape} and {b.shape}")
    return contraction.outer(wrap(a), wrap(b))


@mixed(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of several matrices, in the order that takes least work."""
    nodes = [wrap(as_node(each)) for each in arrays]
    if len(nodes) < 2:
        raise ValueError(f"multi_dot takes two matrices or more, got {len(nodes)}")
    letters = "abcdefghijklmnopqrstuvwxyz"
    place = 0 if nodes[0].ndim == 2 else -1
    specs = ["".join(letters[place + k : place + k + 2]) for k in range(len(nodes))]
    if nodes[0].ndim == 1:
        specs[0] = letters[0]
        specs[1:] = [letters[k : k + 2] for k in range(len(nodes) - 1)]
    specs = [s[: n.ndim] for s, n in zip(specs, nodes, strict=True)]
    result = (specs[0][0] if nodes[0].ndim == 2 else "") + (specs[-1][1] if nodes[-1].ndim == 2 else "")
    return contraction.einsum(",".join(specs) + "->" + result, *nodes, out=out)


@mixed(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices in the last two axes."""
    return np.diagonal(wrap(as_node(x)), offset, -2, -1)


@mixed(np.linalg.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of matrices in the last two axes."""
    return np.diagonal(wrap(as_node(x)), offset, -2, -1).sum(axis=-1, dtype=dtype)


tensordot = mixed(np.linalg.tensordot)(contraction.tensordot)
vecdot = mixed(np.linalg.vecdot)(contraction.vecdot)
