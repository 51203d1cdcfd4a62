"""Linear algebra of arrays: norms, products, traces; the rest is in `factors` and `spectra`.

NumPy's arrays give NumPy's results, ours lazy ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from linnet.algorithms import products as product_programs
from linnet.arrays.elements.core import ArrayBase, as_node, chunked, wrap
from linnet.arrays.elements.elementwise import apply
from linnet.arrays.functions import contractions, einsum
from linnet.arrays.linalg.matrices import (
    cut,
    cut_like_rows,
    floating,
    linear,
    made,
    matrices,
    need_square,
    operand,
    refuse_engine,
)
from linnet.errors import InputError, LinAlgError

F = TypeVar("F", bound=Callable[..., Any])


def _is_ours(*items: Any) -> bool:
    return any(isinstance(item, ArrayBase) for item in items)


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
                refuse_engine(function.__name__, kwargs.pop("engine", None), kwargs.pop("events", None))
                return lazily(*args, **kwargs)
            return (plain or numpy_function)(*args, **kwargs)

        return cast("F", call)

    return mark


# ---- products


@linear(np.linalg.matmul)
def matmul(a: Any, b: Any, /, *, op_a: str = "N", op_b: str = "N", tile: int | None = None) -> Any:
    """`op(A)·op(B)`, for matrices and stacks; an operation is "N" (none), "T" (transpose) or "C" (adjoint).

    Parameters
    ----------
    a, b : matrices or stacks of them
    op_a, op_b : "N", "T" or "C"; what is done with each before
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    Array, or a NumPy array if both are

    Examples
    --------
    >>> matmul(np.array([[1.0, 2.0]]), np.array([[1.0, 3.0]]), op_a="T")
    array([[1., 3.],
           [2., 6.]])
    """
    left, right = _turned(a, op_a), _turned(b, op_b)
    if tile is not None:
        left, right = left.rechunk(tile), right.rechunk(tile)
    return contractions.matmul(left, right)


def _turned(a: Any, op: str) -> Any:
    if op not in ("N", "T", "C"):
        raise InputError(f'operation {op!r} on a factor is not known; use "N", "T" or "C"')
    array = operand(a)
    if op == "N":
        return array
    return apply(np.conjugate, array.mT) if op == "C" and array.dtype.kind == "c" else array.mT


@linear()
def syrk(a: Any, /, *, adjoint: bool = False, tile: int | None = None) -> Any:
    """`A·Aᴴ`, or `Aᴴ·A` with `adjoint`: a Hermitian matrix, of which one half is computed.

    Parameters
    ----------
    a : matrix
    adjoint : whether to compute `Aᴴ·A`
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array

    Examples
    --------
    >>> syrk([[1.0, 2.0], [0.0, 1.0]])
    array([[5., 2.],
           [2., 1.]])
    """
    matrix = _matrix(a, "a")
    if adjoint:  # Aᴴ·A is the conjugate of Aᵀ·(Aᵀ)ᴴ
        return _conjugate(syrk(matrix.mT, tile=tile))
    node = cut(matrix, "gemm", tile)
    return made(product_programs.gram_of(node.layout, node.dtype), node)["C"]


@linear()
def symm(a: Any, b: Any, /, *, lower: bool = True, side: str = "left", tile: int | None = None) -> Any:
    """`A·B` (side="left") or `B·A` (side="right"), for a Hermitian `A` of which one triangle is read.

    Parameters
    ----------
    a : Hermitian matrix
    b : matrix
    lower : which triangle of `a` is read
    side : "left" or "right"; where `a` is
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array

    Examples
    --------
    >>> symm([[1.0, 0.0], [2.0, 3.0]], [[1.0], [1.0]])
    array([[3.],
           [5.]])
    """
    matrix, other = _square_and_other(a, b, side, "symm")
    # The lower triangle of Aᵀ, which is conj(A), is the upper one of A; and (B·A)ᵀ = conj(A)·Bᵀ.
    conjugated = lower != (side == "left")
    node = cut(matrix if lower else matrix.mT, "gemm", tile)
    right = cut_like_rows(_conjugate(other) if conjugated else other, node)
    found = made(product_programs.hermitian_product(node.layout, right.layout, right.dtype), node, right)["X"]
    found = _conjugate(found) if conjugated else found
    return found if side == "left" else found.mT


@linear()
def trmm(
    t: Any,
    b: Any,
    /,
    *,
    lower: bool = True,
    unit_diagonal: bool = False,
    side: str = "left",
    tile: int | None = None,
) -> Any:
    """`T·B` (side="left") or `B·T` (side="right"), for a triangle `T`; its other half is not read.

    Parameters
    ----------
    t : triangle
    b : matrix
    lower : which half of `t` is read
    unit_diagonal : whether its diagonal counts as ones
    side : "left" or "right"; where the triangle is
    tile : int, optional; length of the tiles to compute with; by default it is chosen

    Returns
    -------
    array

    Examples
    --------
    >>> trmm([[1.0, 9.0], [2.0, 3.0]], [[1.0], [1.0]])
    array([[1.],
           [5.]])
    """
    matrix, other = _square_and_other(t, b, side, "trmm")
    node = cut(matrix if side == "left" else matrix.mT, "gemm", tile)
    right = cut_like_rows(other, node)
    recipe = product_programs.triangular_product(
        node.layout, right.layout, right.dtype, lower=lower == (side == "left"), unit=unit_diagonal
    )
    found = made(recipe, node, right)["X"]
    return found if side == "left" else found.mT


def _conjugate(a: Any) -> Any:
    return apply(np.conjugate, a) if a.dtype.kind == "c" else a


def _matrix(a: Any, name: str) -> Any:
    array = matrices(a, name)
    if array.ndim != 2:
        raise LinAlgError(f"{name} must be a matrix, got an array of shape {array.shape}")
    return array


def _square_and_other(a: Any, b: Any, side: str, what: str) -> tuple[Any, Any]:
    """The square matrix, and the other one, transposed if it stands on the left."""
    if side not in ("left", "right"):
        raise InputError(f"side {side!r} is not known; use 'left' or 'right'")
    square, other = _matrix(a, "a"), _matrix(b, "b")
    need_square(square, what)
    length = other.shape[-2 if side == "left" else -1]
    if length != square.shape[-1]:
        raise LinAlgError(
            f"{what}: the square matrix is {square.shape[-2]}×{square.shape[-1]} but b has {length} "
            f"{'rows' if side == 'left' else 'columns'}; they must be as many"
        )
    square, other = floating(square, other), floating(other, square)
    return square, other if side == "left" else other.mT


# ---- expressions


def in_range(function: Callable[..., Any]) -> Callable[..., Any]:
    """NumPy's norm of a small array; left to ours where NumPy's squares may leave the range of floats."""

    def small(x: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            with np.errstate(all="ignore"):
                made = function(x, *args, **kwargs)
        except (ValueError, TypeError):
            return NotImplemented  # an order that we know, or an error in our words
        if not np.size(x) or made.dtype.kind != "f":
            return made
        low, high = range_of(made.dtype)
        return made if ((made >= low) & (made <= high)).all() else NotImplemented

    return small


@functools.cache
def range_of(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """Between these, squares and many of them are floats."""
    info = np.finfo(dtype)
    return info.tiny**0.25, info.max**0.25


@mixed(np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """The last two axes swapped.

    Parameters
    ----------
    x : array_like with at least two axes

    Returns
    -------
    array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.linalg.matrix_transpose(ln.ones((2, 3))).shape
    (3, 2)
    """
    return wrap(as_node(x)).mT


@mixed(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross product of vectors of three elements.

    Parameters
    ----------
    x1, x2 : array_like
    axis : int; the axis of the three elements

    Returns
    -------
    array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.linalg.cross([1, 0, 0], [0, 1, 0])
    array([0, 0, 1])
    """
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
    """The products of all pairs of elements of two vectors.

    Parameters
    ----------
    x1, x2 : vectors

    Returns
    -------
    array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.linalg.outer(ln.asarray([1, 2]), ln.asarray([1, 10])).compute()
    array([[ 1, 10],
           [ 2, 20]])
    """
    a, b = as_node(x1), as_node(x2)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"outer takes vectors; got shapes {a.shape} and {b.shape}")
    return contractions.outer(wrap(a), wrap(b))


@mixed(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """The product of several matrices, in the order that takes least work.

    Parameters
    ----------
    arrays : sequence of matrices; the first and the last may be vectors
    out : array, optional; where the result goes

    Returns
    -------
    array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.linalg.multi_dot([ln.ones((2, 3)), ln.ones((3, 4)), ln.ones((4, 1))]).compute()
    array([[12.],
           [12.]])
    """
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
    return einsum.einsum(",".join(specs) + "->" + result, *nodes, out=out)


@mixed(np.linalg.diagonal)
def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices in the last two axes.

    Parameters
    ----------
    x : array_like
    offset : int; which diagonal

    Returns
    -------
    array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.linalg.diagonal([[1, 2], [3, 4]])
    array([1, 4])
    """
    return np.diagonal(wrap(as_node(x)), offset, -2, -1)


@mixed(np.linalg.trace)
def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of matrices in the last two axes.

    Parameters
    ----------
    x : array_like
    offset : int; which diagonal
    dtype : optional; the type to add in

    Returns
    -------
    array

    Examples
    --------
    >>> import linnet as ln
    >>> int(ln.linalg.trace([[1, 2], [3, 4]]))
    5
    """
    return np.diagonal(wrap(as_node(x)), offset, -2, -1).sum(axis=-1, dtype=dtype)


tensordot = mixed(np.linalg.tensordot)(contractions.tensordot)
vecdot = mixed(np.linalg.vecdot)(contractions.vecdot)
