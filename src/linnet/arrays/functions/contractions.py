"""Contractions: products of matrices and vectors, `tensordot`."""

from __future__ import annotations

import functools
import math
import string
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from typing import cast as cast_to

import numpy as np

from linnet.arrays.elements.core import ArrayBase, as_node, axis_of, chunked, is_small, wrap, wrapped
from linnet.arrays.elements.elementwise import apply, cast
from linnet.arrays.elements.long_results import computed_anew
from linnet.arrays.elements.operators import taken
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import permuted
from linnet.arrays.expression.nodes import Node
from linnet.arrays.expression.sums_of_products import contracted

if TYPE_CHECKING:
    from linnet.arrays.array import Array

F = TypeVar("F", bound=Callable[..., Any])
_LETTERS = string.ascii_letters

_FEW_PRODUCTS = 1 << 21
"""Products of two elements that are made at once: a matrix of 16 MB times a vector."""


def with_common_dtype(*items: Any) -> tuple[list[Node], np.dtype[Any]]:
    """Operands, and the dtype of their product."""
    nodes = [as_node(item) for item in items]
    for node in nodes:
        if node.dtype.kind not in "biufc":
            raise TypeError(f"products of {node.dtype} are not defined; convert to numbers first")
    return nodes, np.result_type(*(node.dtype for node in nodes))


def _kind(item: Any) -> str:
    return getattr(getattr(item, "dtype", None), "kind", "")


def _check_durations(*dtypes: np.dtype[Any]) -> None:
    """Durations are multiplied with one another and with whole numbers: by their counts."""
    try:
        np.result_type(*dtypes)
    except TypeError:
        raise TypeError(
            f"products of {' and '.join(map(str, dtypes))} are not defined (NumPy makes Python objects of "
            "them); divide durations by one of them first: x / np.timedelta64(1, 's')"
        ) from None


def _by_counts(function: Any, a: Any, b: Any, *others: Any) -> Any:
    """A sum of products of durations: that of their counts, whatever their units, without a unit."""
    _check_durations(a.dtype, b.dtype)
    counts = (each.view(np.int64) if each.dtype.kind == "m" else each.astype(np.int64) for each in (a, b))
    return function(*counts, *others).view("m8")


def _of_durations(without_axes: bool) -> Callable[[F], F]:
    """Let a function of two arrays take durations too, those without axes among them or not."""

    def mark(function: F) -> F:
        @functools.wraps(function)
        def call(a: Any, b: Any, *others: Any, **keywords: Any) -> Any:
            pair: list[Any] = [
                each if isinstance(each, ArrayBase) else wrap(as_node(each)) for each in (a, b)
            ]
            as_counts = without_axes or all(each.ndim for each in pair)
            if "m" not in [each.dtype.kind for each in pair] or not as_counts:
                return function(a, b, *others, **keywords)
            return _by_counts(functools.partial(function, **keywords), *pair, *others)

        return cast_to("F", call)

    return mark


def _straight(function: Any) -> Any:
    """NumPy's function, but refusing what would become Python objects."""

    def call(a: Any, b: Any, *others: Any, **keywords: Any) -> Any:
        if _kind(a) == "m" or _kind(b) == "m":
            _check_durations(*(np.asarray(each).dtype for each in (a, b)))
        return function(a, b, *others, **keywords)

    return call


def _single(node: Node, letters: str, lengths: dict[str, int]) -> tuple[Node, str]:
    """The node without axes of length 1 that others spread: they need no letter."""
    kept = [axis for axis, c in enumerate(letters) if not (node.shape[axis] == 1 and lengths[c] != 1)]
    if len(kept) == len(letters):
        return node, letters
    return permuted(node, tuple(kept)), "".join(letters[axis] for axis in kept)


def pair_product(letters: Sequence[str], nodes: Sequence[Node], out: str, dtype: Any) -> Node:
    """A contraction in which axes of length 1 are broadcast."""
    lengths: dict[str, int] = {}
    for own, node in zip(letters, nodes, strict=True):
        for letter, length in zip(own, node.shape, strict=True):
            if lengths.setdefault(letter, length) == 1:
                lengths[letter] = length
    pairs = [_single(node, own, lengths) for node, own in zip(nodes, letters, strict=True)]
    return contracted([own for _, own in pairs], [node for node, _ in pairs], out, dtype)


@chunked(np.matmul)
def matmul(x1: Any, x2: Any, /, *, dtype: Any = None, out: Any = None) -> Array:
    """The matrix product; leading axes are broadcast, and vectors are rows or columns.

    Parameters
    ----------
    x1, x2 : array_like
    dtype : optional; the type to compute in
    out : array, optional; where the result goes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.matmul([[1, 2], [3, 4]], [[1, 0], [0, 10]]).compute()
    array([[ 1, 20],
           [ 3, 40]])
    """
    if dtype is not None:  # the products too are of this dtype, not only the result
        np.matmul(*(np.ones((1, 1), as_node(each).dtype) for each in (x1, x2)), dtype=dtype)
        x1, x2 = (wrap(cast(as_node(each), dtype)) for each in (x1, x2))
    (a, b), common = with_common_dtype(x1, x2)
    if not a.ndim or not b.ndim:
        raise ValueError(f"matmul takes arrays with axes, got shapes {a.shape} and {b.shape}; use multiply")
    if a.shape[-1] != b.shape[-2 if b.ndim > 1 else 0]:
        raise ValueError(
            f"matmul: {a.shape} and {b.shape} do not fit: {a.shape[-1]} columns against "
            f"{b.shape[-2 if b.ndim > 1 else 0]} rows"
        )
    stack = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    free = _LETTERS[: len(stack)]
    left = (free[len(free) - (a.ndim - 2) :] if a.ndim > 2 else "") + ("Y" if a.ndim > 1 else "") + "X"
    right = (free[len(free) - (b.ndim - 2) :] if b.ndim > 2 else "") + "X" + ("Z" if b.ndim > 1 else "")
    made = free + ("Y" if a.ndim > 1 else "") + ("Z" if b.ndim > 1 else "")
    return finished_product(pair_product([left, right], [a, b], made, common), out)


def finished_product(node: Node, out: Any = None) -> Any:
    result = wrap(node)
    if out is None:
        return result
    if not isinstance(out, ArrayBase) or out.__node__.shape != node.shape:
        raise TypeError(f"out= must be an array of shape {node.shape}")
    out._node = cast(result.__node__, out.__node__.dtype)
    return out


@chunked(np.tensordot, small=_straight(np.tensordot))
@_of_durations(without_axes=True)
def tensordot(x1: Any, x2: Any, /, axes: Any = 2) -> Array:
    """The sum of products over the given axes of both.

    Parameters
    ----------
    x1, x2 : array_like
    axes : how many of the last and the first ones; or two sequences that name them

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.tensordot(ln.ones((2, 3)), ln.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    (a, b), common = with_common_dtype(x1, x2)
    if isinstance(axes, int):
        first, second = list(range(a.ndim - axes, a.ndim)), list(range(axes))
        if axes < 0 or axes > min(a.ndim, b.ndim):
            raise ValueError(f"tensordot over {axes} axes of arrays of shapes {a.shape} and {b.shape}")
    else:
        given = [[each] if isinstance(each, int) else list(each) for each in axes]
        first = [axis_of(axis, a.ndim) for axis in given[0]]
        second = [axis_of(axis, b.ndim) for axis in given[1]]
    if len(first) != len(second) or any(
        a.shape[i] != b.shape[j] for i, j in zip(first, second, strict=False)
    ):
        raise ValueError(
            f"tensordot: shapes {a.shape} and {b.shape} do not fit along axes {first} and {second}"
        )
    left = list(_LETTERS[: a.ndim])
    right = list(_LETTERS[a.ndim : a.ndim + b.ndim])
    for i, j in zip(first, second, strict=True):
        right[j] = left[i]
    made = [c for axis, c in enumerate(left) if axis not in first]
    made += [c for axis, c in enumerate(right) if axis not in second]
    return wrap(contracted(["".join(left), "".join(right)], [a, b], "".join(made), common))


@chunked(np.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The inner product of vectors along an axis; the first is conjugated.

    Parameters
    ----------
    x1, x2 : array_like
    axis : int

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.vecdot([[1, 2], [3, 4]], [1, 10]).compute()
    array([21, 43])
    """
    (a, b), common = with_common_dtype(x1, x2)
    if not a.ndim or not b.ndim or a.shape[axis] != b.shape[axis]:
        raise ValueError(f"vecdot: {a.shape} and {b.shape} do not fit along axis {axis}")
    if a.dtype.kind == "c":
        a = apply(np.conjugate, wrap(a)).__node__
    ndim = max(a.ndim, b.ndim)
    letters = _LETTERS[:ndim]
    place = axis_of(axis, min(a.ndim, b.ndim)) - min(a.ndim, b.ndim)
    made = "".join(c for k, c in enumerate(letters) if k != ndim + place)
    return wrap(pair_product([letters[ndim - a.ndim :], letters[ndim - b.ndim :]], [a, b], made, common))


@chunked(np.dot, small=_straight(np.dot))
@_of_durations(without_axes=False)
def dot(a: Any, b: Any, out: Any = None) -> Array:
    """NumPy's dot: the last axis of `a` with the last but one of `b`.

    Parameters
    ----------
    a, b : array_like
    out : array, optional; where the result goes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.dot([[1, 2], [3, 4]], [1, 10]).compute()
    array([21, 43])
    """
    (x, y), common = with_common_dtype(a, b)
    if not x.ndim or not y.ndim:
        return apply(np.multiply, wrap(x), wrap(y))
    if x.ndim <= 2 and y.ndim <= 2:
        return matmul(wrap(x), wrap(y), out=out)
    left, right = list(_LETTERS[: x.ndim]), list(_LETTERS[x.ndim : x.ndim + y.ndim])
    place = -2 if y.ndim > 1 else -1
    right[place] = left[-1]
    made = left[:-1] + [c for k, c in enumerate(right) if k != y.ndim + place]
    if x.shape[-1] != y.shape[place]:
        raise ValueError(f"dot: shapes {x.shape} and {y.shape} do not fit")
    node = contracted(["".join(left), "".join(right)], [x, y], "".join(made), common)
    return finished_product(node, out)


@chunked(np.inner, small=_straight(np.inner))
@_of_durations(without_axes=False)
def inner(a: Any, b: Any, /) -> Array:
    """The sum of products over the last axes of both.

    Parameters
    ----------
    a, b : array_like

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.inner([1, 2], [3, 4]).compute()
    np.int64(11)
    """
    (x, y), _ = with_common_dtype(a, b)
    if not x.ndim or not y.ndim:
        return apply(np.multiply, wrap(x), wrap(y))
    return tensordot(wrap(x), wrap(y), axes=((x.ndim - 1,), (y.ndim - 1,)))


def _outer_at_once(a: Any, b: Any, out: Any = None) -> Any:
    if out is not None:
        return np.outer(a, b, out)
    return computed_anew(np.multiply, np.asarray(a).reshape(-1, 1), np.asarray(b).reshape(1, -1))


@chunked(np.outer, small=_outer_at_once)
def outer(a: Any, b: Any, out: Any = None) -> Array:
    """The products of all elements of `a` with all of `b`.

    Parameters
    ----------
    a, b : array_like; they are flattened
    out : array, optional; where the result goes

    Returns
    -------
    Array with two axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.outer([1, 2], [1, 10]).compute()
    array([[ 1, 10],
           [ 2, 20]])
    """
    x, y = as_node(a), as_node(b)
    flat = [wrap(n) if n.ndim == 1 else wrap(n).reshape(-1) for n in (x, y)]
    columns = wrap(permuted(flat[0].__node__, (0, -1)))
    rows = wrap(permuted(flat[1].__node__, (-1, 0)))
    return finished_product(apply(np.multiply, columns, rows).__node__, out)


@chunked(np.vdot, small=_straight(np.vdot))
@_of_durations(without_axes=True)
def vdot(a: Any, b: Any, /) -> Array:
    """The inner product of all elements; the first array is conjugated.

    Parameters
    ----------
    a, b : array_like; they are flattened

    Returns
    -------
    Array without axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.vdot([1j, 2], [1j, 3]).compute()
    np.complex128(7+0j)
    """
    x, y = (wrap(as_node(each)).reshape(-1) for each in (a, b))
    return vecdot(x, y)


@chunked(np.matvec)
def matvec(x1: Any, x2: Any, /) -> Array:
    """Matrices times vectors, the last axes.

    Parameters
    ----------
    x1 : array_like; matrices in the last two axes
    x2 : array_like; vectors in the last axis

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.matvec([[1, 2], [3, 4]], [1, 10]).compute()
    array([21, 43])
    """
    vector = as_node(x2)
    return wrap(
        _dropped(matmul(wrap(as_node(x1)), wrap(permuted(vector, (*range(vector.ndim), -1)))).__node__, -1)
    )


@chunked(np.vecmat)
def vecmat(x1: Any, x2: Any, /) -> Array:
    """Vectors (conjugated) times matrices, the last axes.

    Parameters
    ----------
    x1 : array_like; vectors in the last axis
    x2 : array_like; matrices in the last two axes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.vecmat([1, 10], [[1, 2], [3, 4]]).compute()
    array([31, 42])
    """
    vector = as_node(x1)
    if vector.dtype.kind == "c":
        vector = apply(np.conjugate, wrap(vector)).__node__
    lead = vector.ndim - 1
    row = permuted(vector, (*range(lead), -1, lead))
    return wrap(_dropped(matmul(wrap(row), wrap(as_node(x2))).__node__, -2))


def _dropped(node: Node, axis: int) -> Node:
    return permuted(node, tuple(k for k in range(node.ndim) if k != node.ndim + axis))


def _matmul_operator(self: Any, other: Any) -> Array:
    other = taken(other)
    return other if other is NotImplemented else _product_of(self, other)


def _matmul_reversed(self: Any, other: Any) -> Array:
    other = taken(other)
    return other if other is NotImplemented else _product_of(other, self)


def _product_of(x1: Any, x2: Any) -> Any:
    """`x1 @ x2`; of arrays in one tile at once, where that takes no longer than going through one of them."""
    if type(x1) is ArrayBase._public and type(x2) is ArrayBase._public:
        a, b = x1._node, x2._node
        if 0 < a.ndim <= 2 and 0 < b.ndim <= 2:
            columns = b.shape[1] if b.ndim == 2 else 1
            few = math.prod(a.shape) * columns <= _FEW_PRODUCTS
            if few and is_small(a, chunking.LINEAR) and is_small(b, chunking.LINEAR):
                return wrapped(np.matmul(a.data, b.data))  # type: ignore[attr-defined]
    return matmul(x1, x2)


def _matmul_inplace(self: Any, other: Any) -> Array:
    return matmul(self, other, out=self)


METHODS: dict[str, Any] = {
    "__matmul__": _matmul_operator,
    "__rmatmul__": _matmul_reversed,
    "__imatmul__": _matmul_inplace,
    "dot": dot,
}
__all__ = ["dot", "inner", "matmul", "matvec", "outer", "tensordot", "vdot", "vecdot", "vecmat"]
