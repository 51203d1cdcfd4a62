"""Arrays made of positions: identities, triangles, diagonals, coordinates.

Whether an element lies on a diagonal is a comparison of its row with its column: two short
arrays of positions, compared and spread tile by tile.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import NUMPY, as_node, chunked, wrap
from linnet.arrays.elements.creation import check_device, made, positions, shape_of
from linnet.arrays.elements.elementwise import cast, chosen, spread
from linnet.arrays.elements.join_and_split import stack
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, concatenated, constant, filled, mapped, permuted, recut
from linnet.arrays.expression.nodes import Along, Node, Operand, Piece
from linnet.arrays.functions.spaced_numbers import arange
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array


def _compared(op: str, layout: Layout, k: int) -> Node:
    """Row plus `k` compared with column, over the last two axes of a layout."""
    rows, columns = layout.boundaries[-2:]
    row = permuted(positions(rows, k), (0, -1))
    return mapped(op, [row, permuted(positions(columns), (-1, 0))], bool, layout=Layout((rows, columns)))


def eye(
    N: Any,
    M: Any = None,
    k: int = 0,
    dtype: Any = float,
    order: Any = "C",
    *,
    device: Any = None,
    chunks: Any = "auto",
) -> Array:
    """Ones on the k-th diagonal, zeros elsewhere.

    Parameters
    ----------
    N : int; how many rows
    M : int, optional; how many columns; None: as many
    k : int; which diagonal
    dtype : optional; the type of the elements
    order : without meaning here
    device : optional; "cpu" is the only one
    chunks : length of the tiles

    Returns
    -------
    Array with two axes

    Examples
    --------
    >>> eye(2, 3, k=1).compute()
    array([[0., 1., 0.],
           [0., 0., 1.]])
    """
    check_device(device)
    shape = shape_of((N, N if M is None else M))
    kind, k = np.dtype(dtype), operator.index(k)
    return made(
        shape,
        kind,
        chunks,
        lambda: np.eye(shape[0], shape[1], k, kind),
        lambda cut: cast(_compared("equal", cut, k), kind),
    )


def identity(n: Any, dtype: Any = None, *, chunks: Any = "auto") -> Array:
    """The square array with ones on its diagonal.

    Parameters
    ----------
    n : int; length of the sides
    dtype : optional
    chunks : length of the tiles

    Returns
    -------
    Array with two axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.identity(2).compute()
    array([[1., 0.],
           [0., 1.]])
    """
    return eye(n, dtype=dtype, chunks=chunks)


def tri(N: Any, M: Any = None, k: int = 0, dtype: Any = float, *, chunks: Any = "auto") -> Array:
    """Ones on and below the k-th diagonal, zeros above.

    Parameters
    ----------
    N : int; how many rows
    M : int, optional; how many columns; None: as many
    k : int; which diagonal; 0 is the main one, those above are positive
    dtype : optional
    chunks : length of the tiles

    Returns
    -------
    Array with two axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.tri(2, 3).compute()
    array([[1., 0., 0.],
           [1., 1., 0.]])
    """
    shape = shape_of((N, N if M is None else M))
    kind, k = np.dtype(dtype), operator.index(k)
    return made(
        shape,
        kind,
        chunks,
        lambda: np.tri(shape[0], shape[1], k, kind),
        lambda cut: cast(_compared("greater_equal", cut, k), kind),
    )


def _triangle(m: Any, op: str, k: int) -> Any:
    node = as_node(m)
    if node.ndim < 1:
        raise ValueError("tril and triu need an array with at least one axis")
    if node.ndim == 1:
        node = spread(node, node.shape * 2)
    mask = _compared(op, node.layout, operator.index(k))
    return wrap(chosen(mask, node, constant(0, node.dtype), node.dtype))


@chunked(np.tril, times=chunking.LINEAR)
def tril(m: Any, k: int = 0) -> Array:
    """The array with zeros above the k-th diagonal.

    Parameters
    ----------
    m : array_like with at least two axes
    k : int; which diagonal; 0 is the main one, those above are positive

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.tril([[1, 2], [3, 4]]).compute()
    array([[1, 0],
           [3, 4]])
    """
    return _triangle(m, "greater_equal", k)


@chunked(np.triu, times=chunking.LINEAR)
def triu(m: Any, k: int = 0) -> Array:
    """The array with zeros below the k-th diagonal.

    Parameters
    ----------
    m : array_like with at least two axes
    k : int; which diagonal; 0 is the main one, those above are positive

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.triu([[1, 2], [3, 4]]).compute()
    array([[1, 2],
           [0, 4]])
    """
    return _triangle(m, "less_equal", k)


@chunked(np.diag)
def diag(v: Any, k: int = 0) -> Array:
    """The k-th diagonal of a matrix, or the matrix that has a vector for its k-th diagonal.

    Parameters
    ----------
    v : array_like with one or two axes
    k : int; which diagonal; 0 is the main one, those above are positive

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.diag([1, 2]).compute()
    array([[1, 0],
           [0, 2]])
    """
    node = as_node(v)
    if node.ndim == 2:
        return NUMPY[np.diagonal](wrap(node), k)
    if node.ndim != 1:
        raise ValueError(f"Input must be 1- or 2-d; this array has shape {node.shape}")
    k = operator.index(k)
    if not node.shape[0]:
        return wrap(filled((abs(k), abs(k)), 0, node.dtype))
    if k:
        # Row i of an upper diagonal holds v[i] in column i + k, column j of a lower one v[j] in row j - k.
        edges = (0, abs(k))
        node = concatenated([node, filled(edges[1:], 0, node.dtype, Layout((edges,)))], 0, node.dtype)
    edges = node.layout.boundaries[0]
    mask = _compared("equal", Layout((edges, edges)), k)
    values = permuted(node, (0, -1) if k >= 0 else (-1, 0))
    return wrap(mapped("where", [mask, values, constant(0, node.dtype)], node.dtype, layout=mask.layout))


@chunked(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Array:
    """The matrix that has the elements of an array for its k-th diagonal.

    Parameters
    ----------
    v : array_like; it is flattened
    k : int; which diagonal; 0 is the main one, those above are positive

    Returns
    -------
    Array with two axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.diagflat([[1, 2]]).compute()
    array([[1, 0],
           [0, 2]])
    """
    return diag(NUMPY[np.ravel](v), k)


@chunked(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Array:
    """Powers of the elements of a vector: a row for each.

    Parameters
    ----------
    x : vector
    N : int, optional; how many columns; None: as many as elements
    increasing : whether powers rise from left to right

    Returns
    -------
    Array with two axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.vander([2, 3], 3).compute()
    array([[4, 2, 1],
           [9, 3, 1]])
    """
    node = as_node(x)
    if node.ndim != 1:
        raise ValueError(f"x must be a one-dimensional array or sequence; this array has shape {node.shape}")
    columns = node.shape[0] if N is None else operator.index(N)
    kind = np.promote_types(node.dtype, int)
    if node.dtype.kind in "mM":
        raise TypeError(f"dates have no powers; got an array of {node.dtype}")
    widened = cast(node, kind)
    longest = max(1, chunking.target() // max(1, columns * kind.itemsize))
    if longest < max(np.diff(widened.layout.boundaries[0])):
        widened = recut(widened, Layout.regular(node.shape, longest))
    layout = Layout((widened.layout.boundaries[0], (0, columns)))
    attributes = (("columns", columns), ("increasing", bool(increasing)))
    piece = Piece("vander", (Operand(0, (Along(0),)),), attributes)
    return wrap(blocks((widened,), (piece,), layout, kind))


# ---- coordinates


@chunked(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> tuple[Array, ...]:
    """Coordinate arrays of a grid whose axes these vectors are.

    Parameters
    ----------
    xi : vectors
    copy : without meaning here
    sparse : whether each array has one long axis only
    indexing : "xy" (the first two axes swapped, as in plots) or "ij"

    Returns
    -------
    tuple of Arrays, one for each vector

    Examples
    --------
    >>> rows, columns = meshgrid(np.arange(2), np.arange(3), indexing="ij")
    >>> columns.compute()
    array([[0, 1, 2],
           [0, 1, 2]])
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for `indexing` are 'xy' and 'ij'; got {indexing!r}")
    nodes = [as_node(x) for x in xi]
    nodes = [permuted(n, (-1,)) if n.ndim == 0 else NUMPY[np.ravel](wrap(n)).__node__ for n in nodes]
    rank = len(nodes)
    shape = [n.shape[0] for n in nodes]
    if indexing == "xy" and rank > 1:
        shape[0], shape[1] = shape[1], shape[0]
    turned: list[Node] = []
    for number, node in enumerate(nodes):
        axis = 1 - number if indexing == "xy" and rank > 1 and number < 2 else number
        turned.append(permuted(node, tuple(0 if a == axis else -1 for a in range(rank))))
    return tuple(wrap(n if sparse else spread(n, tuple(shape))) for n in turned)


def indices(dimensions: Any, dtype: Any = int, sparse: bool = False, *, chunks: Any = "auto") -> Any:
    """Coordinates of the elements of a grid: along a new first axis, or one array an axis if `sparse`.

    Parameters
    ----------
    dimensions : sequence of int; the shape of the grid
    dtype : a type of integers
    sparse : whether each array has one long axis only
    chunks : length of the tiles

    Returns
    -------
    Array, or a tuple of them with `sparse`

    Examples
    --------
    >>> import linnet as ln
    >>> ln.indices((2, 2)).compute()[1]
    array([[0, 1],
           [0, 1]])
    """
    shape = shape_of(dimensions)
    kind = np.dtype(dtype)
    layout = chunking.normalized(chunks, shape, kind)
    rank = len(shape)
    found: list[Node] = []
    for axis, edges in enumerate(layout.boundaries):
        index = cast(positions(edges), kind)
        found.append(permuted(index, tuple(0 if a == axis else -1 for a in range(rank))))
    if sparse:
        return tuple(wrap(node) for node in found)
    if not found:
        return wrap(filled((0,), 0, kind))
    layers = [permuted(spread(node, shape, layout), (-1, *range(rank))) for node in found]
    return wrap(concatenated(layers, 0, kind))


class _Grid:
    """What `mgrid` and `ogrid` are: coordinates, for slices between brackets."""

    def __init__(self, name: str, sparse: bool) -> None:
        self.__name__ = name
        self._sparse = sparse

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._along((key,))[0]
        found = self._along(key)
        rank = len(found)
        if self._sparse:
            orders = (tuple(0 if a == axis else -1 for a in range(rank)) for axis in range(rank))
            return tuple(wrap(permuted(x.__node__, order)) for x, order in zip(found, orders, strict=True))
        if not found:
            return wrap(filled((0,), 0, np.dtype(int)))
        kind = np.result_type(*(x.dtype for x in found))
        return stack(meshgrid(*(wrap(cast(x.__node__, kind)) for x in found), indexing="ij"))

    def _along(self, key: tuple[slice, ...]) -> list[Any]:
        """The coordinates along each axis; a step of `5j` means five of them, the last one included."""
        numbers: list[Any] = [0]
        spans: list[tuple[int, Any, Any]] = []
        for each in key:
            start, step = 0 if each.start is None else each.start, 1 if each.step is None else each.step
            if isinstance(step, complex | np.complexfloating):
                length = int(abs(step))
                numbers += [start, each.stop, abs(step)]
                step = (each.stop - start) / float(length - 1) if length != 1 else 1
            else:
                length = max(0, math.ceil((each.stop - start) / step))
                numbers += [start, each.stop, step]
            spans.append((length, step, start))
        kind = np.result_type(*numbers)
        return [
            arange(length, dtype=kind) * kind.type(step) + kind.type(start) for length, step, start in spans
        ]

    def __repr__(self) -> str:
        return f"<{self.__name__}: coordinates, such as {self.__name__}[0:3, 0:1:5j]>"


mgrid: _Grid = _Grid("mgrid", sparse=False)
"""Coordinates of a grid, along a new first axis: `mgrid[0:3, 0:1:5j]`."""
ogrid: _Grid = _Grid("ogrid", sparse=True)
"""Coordinates of a grid, an array for each axis, to be broadcast."""


def fromfunction(
    function: Callable[..., Any], shape: Any, *, dtype: Any = float, chunks: Any = "auto", **keywords: Any
) -> Any:
    """What a function gives for the coordinates of every element; it is called once, with lazy arrays.

    Parameters
    ----------
    function : of as many arrays of coordinates as there are axes
    shape : tuple of int
    dtype : the type of the coordinates
    keywords : further arguments of the function

    Returns
    -------
    what the function gives

    Examples
    --------
    >>> fromfunction(lambda i, j: 10 * i + j, (2, 3), dtype=int).compute()
    array([[ 0,  1,  2],
           [10, 11, 12]])
    """
    lengths = shape_of(shape)
    layout = chunking.normalized(chunks, lengths, np.dtype(dtype))
    axes = [each.__node__ for each in indices(lengths, dtype, sparse=True, chunks=chunks)]
    return function(*(wrap(spread(each, lengths, layout)) for each in axes), **keywords)


METHODS: dict[str, Any] = {}
__all__ = [
    "diag",
    "diagflat",
    "eye",
    "fromfunction",
    "identity",
    "indices",
    "meshgrid",
    "mgrid",
    "ogrid",
    "tri",
    "tril",
    "triu",
    "vander",
]
for _name in __all__:
    NUMPY.setdefault(getattr(np, _name), globals()[_name])
