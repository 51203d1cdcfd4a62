"""Sorting, partitioning, the largest: tile by tile where a tile holds the axis, else between tiles."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, axis_of, chunked, names_nothing, refuse_keywords, wrap
from linnet.arrays.elements.elementwise import cast
from linnet.arrays.elements.outcomes import sample
from linnet.arrays.elements.whole_axes import fits_whole, whole_along
from linnet.arrays.expression import chunking
from linnet.arrays.expression.argument_names import named_as
from linnet.arrays.expression.builders import (
    blocks,
    concatenated,
    constant,
    each_tile,
    filled,
    mapped,
    part,
    permuted,
    sliced,
)
from linnet.arrays.expression.nodes import Along, Entry, Node, Operand, Piece
from linnet.arrays.expression.traced import traceable
from linnet.arrays.functions.sample_sort import sample_argsorted, sample_sorted
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array

ONE_TILE = 1.0
"""Usual tiles up to which an array with one axis is sorted in one."""


def _along(x: Any, axis: Any) -> tuple[Node, int]:
    node = as_node(x)
    if axis is None:
        return (node if node.ndim == 1 else wrap(node).reshape((-1,)).__node__), 0
    return node, axis_of(axis, node.ndim)


def ordered(
    node: Node, axis: int, kernel: str, between: Callable[[Node], Node], dtype: Any, **attributes: Any
) -> Node:
    """A kernel on tiles that hold the axis; what goes between tiles for lines too long for that."""
    if 0 in node.shape:
        return cast(node, dtype)
    one = node.ndim == 1 and node.shape[0] * node.dtype.itemsize > ONE_TILE * chunking.target()
    if node.grid[axis] == 1 or (not one and fits_whole(node, (axis,))):
        return each_tile(kernel, whole_along(node, (axis,)), dtype, axis=axis, **attributes)
    if node.ndim == 1:
        return between(node)
    # Lines that do not fit into memory are few: each is sorted by itself.
    others = [range(n) if a != axis else range(1) for a, n in enumerate(node.shape)]
    lines = [between(_line(node, axis, place)) for place in itertools.product(*others)]
    return _stacked(lines, node.shape, axis, dtype)


def _line(node: Node, axis: int, place: tuple[int, ...]) -> Node:
    cut = sliced(node, [slice(None) if a == axis else slice(i, i + 1) for a, i in enumerate(place)])
    return permuted(cut, (axis,))


def _stacked(lines: Sequence[Node], shape: tuple[int, ...], axis: int, dtype: Any) -> Node:
    """Lines along an axis as one array again."""
    ndim = len(shape)
    parts = [permuted(line, tuple(0 if a == axis else -1 for a in range(ndim))) for line in lines]
    for a in reversed([a for a in range(ndim) if a != axis]):
        length = shape[a]
        parts = [concatenated(parts[k : k + length], a, dtype) for k in range(0, len(parts), length)]
    return parts[0]


def sorted_node(node: Node, axis: int, stable: bool = False) -> Node:
    """`np.sort` of a node."""
    return ordered(node, axis, "sort_tile", sample_sorted, node.dtype, stable=stable)


def argsorted_node(node: Node, axis: int) -> Node:
    """`np.argsort` of a node; stable."""
    return ordered(node, axis, "argsort_tile", sample_argsorted, np.intp, stable=True)


def _flipped(node: Node, axis: int) -> Node:
    return sliced(node, [slice(None, None, -1 if a == axis else 1) for a in range(node.ndim)])


# ---- the standard's


def _small_sort(
    x: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: bool = True,
) -> Any:
    made = np.sort(x, axis, order=order, stable=_is_stable(kind, stable))
    return np.flip(made, axis) if descending else made


def _small_argsort(
    x: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: bool = True,
) -> Any:
    stable = _is_stable(kind, stable)
    if not descending:
        return np.argsort(x, axis, order=order, stable=stable)
    x, axis = (np.ravel(x), 0) if axis is None else (np.asarray(x), axis)
    backwards = np.flip(np.argsort(np.flip(x, axis), axis, order=order, stable=stable), axis)
    return x.shape[axis] - 1 - backwards


def _is_stable(kind: Any, stable: bool) -> bool:
    """Whether equals are to keep their order: as `kind` says, if it is given, or else `stable`."""
    if kind is None:
        return bool(stable)
    np.sort(np.empty(0), kind=kind)  # refuses what it does not know
    return kind in ("stable", "mergesort")


@named_as(np.sort)
@chunked(small=_small_sort)
def sort(
    x: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: bool = True,
) -> Array:
    """The elements in ascending order along an axis, NaN last.

    Parameters
    ----------
    x : array_like
    axis : int, optional; None: the array is flattened
    kind, order : as for NumPy; the kind does not matter
    descending : whether the largest comes first
    stable : whether equal elements keep their order

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> sort(asarray([3, 1, 2], chunks=1), descending=True).compute()
    array([3, 2, 1])
    """
    refuse_keywords("sort", order=(order, None))
    node, along = _along(x, axis)
    made = sorted_node(node, along, _is_stable(kind, stable))
    return wrap(_flipped(made, along) if descending else made)


@named_as(np.argsort)
@chunked(small=_small_argsort)
def argsort(
    x: Any,
    axis: Any = -1,
    kind: Any = None,
    order: Any = None,
    *,
    descending: bool = False,
    stable: bool = True,
) -> Array:
    """Where the elements in ascending order are; of equals the first comes first, also if descending.

    Parameters
    ----------
    x : array_like
    axis : int, optional; None: the array is flattened
    kind, order : as for NumPy; the kind does not matter
    descending : whether the largest comes first
    stable : whether equal elements keep their order

    Returns
    -------
    Array of positions

    Examples
    --------
    >>> import linnet as ln
    >>> ln.argsort([3, 1, 2]).compute()
    array([1, 2, 0])
    """
    refuse_keywords("argsort", order=(order, None))
    _is_stable(kind, stable)
    node, along = _along(x, axis)
    if not descending:
        return wrap(argsorted_node(node, along))
    backwards = _flipped(argsorted_node(_flipped(node, along), along), along)
    return wrap(mapped("subtract", [constant(node.shape[along] - 1, np.intp), backwards], np.intp))


# ---- NumPy's


@chunked(np.sort)
def numpy_sort(a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None) -> Any:
    """`np.sort` of an array in tiles."""
    refuse_keywords("sort", order=(order, None))
    node, along = _along(a, axis)
    return wrap(sorted_node(node, along, bool(stable) or kind in ("stable", "mergesort")))


@chunked(np.argsort)
def numpy_argsort(
    a: Any, axis: Any = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> Array:
    """`np.argsort` of an array in tiles; always stable."""
    refuse_keywords("argsort", order=(order, None))
    node, along = _along(a, None if names_nothing(axis, as_node(a).ndim) else axis)
    return wrap(argsorted_node(node, along))


@chunked(np.sort_complex)
def sort_complex(a: Any) -> Array:
    """The elements as complex numbers, sorted by real part, then by imaginary part.

    Parameters
    ----------
    a : array_like

    Returns
    -------
    Array of complex numbers

    Examples
    --------
    >>> import linnet as ln
    >>> ln.sort_complex([2, 1j, 1]).compute()
    array([0.+1.j, 1.+0.j, 2.+0.j])
    """
    node = as_node(a)
    made = sorted_node(node, axis_of(-1, node.ndim))
    return wrap(cast(made, np.sort_complex(sample(made.dtype)).dtype))


def _kths(kth: Any, length: int) -> tuple[int, ...]:
    found = np.atleast_1d(np.asarray(kth))
    if found.dtype.kind not in "iu":
        raise TypeError(f"Partition index must be integer, not {found.dtype}")
    for each in found if length else ():  # of nothing, any element is where it belongs
        if not -length <= each < length:
            raise ValueError(f"kth(={each}) out of bounds ({length})")
    return tuple(int(each) % length for each in found) if length else ()


@chunked(np.partition)
def partition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Array:
    """The elements with those at `kth` where sorting would put them, smaller ones before, larger behind.

    Parameters
    ----------
    a : array_like
    kth : int or sequence of int; positions
    axis : int, optional; None: the array is flattened
    kind, order : as for NumPy; the kind does not matter

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.partition([3, 1, 2], 1).compute()[1]
    np.int64(2)
    """
    refuse_keywords("partition", order=(order, None))
    node, along = _along(a, axis)
    places = _kths(kth, node.shape[along])
    return wrap(ordered(node, along, "partition_tile", sample_sorted, node.dtype, kth=places))


@chunked(np.argpartition)
def argpartition(a: Any, kth: Any, axis: Any = -1, kind: str = "introselect", order: Any = None) -> Array:
    """Where the elements of `partition` are.

    Parameters
    ----------
    a : array_like
    kth : int or sequence of int; positions
    axis : int, optional; None: the array is flattened
    kind, order : as for NumPy; the kind does not matter

    Returns
    -------
    Array of positions

    Examples
    --------
    >>> import linnet as ln
    >>> ln.argpartition([3, 1, 2], 0).compute()[0]
    np.int64(1)
    """
    refuse_keywords("argpartition", order=(order, None))
    node, along = _along(a, axis)
    places = _kths(kth, node.shape[along])
    return wrap(ordered(node, along, "argpartition_tile", sample_argsorted, np.intp, kth=places))


@chunked(np.lexsort)
def lexsort(keys: Any, axis: int = -1) -> Array:
    """The order by several keys, the last one first.

    Parameters
    ----------
    keys : sequence of arrays of one shape; the last one counts most
    axis : int

    Returns
    -------
    Array of positions

    Examples
    --------
    >>> import linnet as ln
    >>> ln.lexsort(([2, 1, 3], [1, 1, 0])).compute()
    array([2, 1, 0])
    """
    nodes = [as_node(key) for key in keys]
    if not nodes:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if any(node.shape != nodes[0].shape for node in nodes):
        raise ValueError("all keys need to be the same shape")
    if not nodes[0].ndim:  # a line of keys: each is a number, and there is one place
        np.lexsort(np.zeros((1,)), axis=axis)
        return wrap(filled((), 0, np.intp))
    along = axis_of(axis, nodes[0].ndim)
    longest = max(nodes, key=lambda node: node.dtype.itemsize)
    if fits_whole(longest, (along,), 8 * len(nodes)):
        layout = whole_along(longest, (along,)).layout
        own = tuple(Along(a) for a in range(longest.ndim))
        piece = Piece("lexsort_tiles", tuple(Operand(k, own) for k in range(len(nodes))), (("axis", along),))
        recut = [wrap(node).rechunk(chunking.sizes(layout)).__node__ for node in nodes]
        return wrap(blocks(recut, (piece,), layout, np.intp))
    order: Any = wrap(argsorted_node(nodes[0], along))
    for node in nodes[1:]:
        again = wrap(argsorted_node(as_node(np.take_along_axis(wrap(node), order, along)), along))
        order = np.take_along_axis(order, again, along)
    return order


# ---- the largest


@traceable
def topk(a: Any, k: int, axis: int = -1) -> Array:
    """The k largest elements along an axis, largest first; with -k the smallest, smallest first.

    Parameters
    ----------
    a : array_like
    k : int; how many; negative: of the smallest
    axis : int

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> topk(asarray([5, 1, 9, 7], chunks=2), 2).compute()
    array([9, 7])
    """
    return wrap(_top(as_node(a), k, axis)[0])


@traceable
def argtopk(a: Any, k: int, axis: int = -1) -> Array:
    """Where the elements of `topk` are.

    Parameters
    ----------
    a : array_like
    k : int; how many; negative: of the smallest
    axis : int

    Returns
    -------
    Array of positions

    Examples
    --------
    >>> import linnet as ln
    >>> ln.argtopk([3, 1, 2], 2).compute()
    array([0, 2])
    """
    return wrap(_top(as_node(a), k, axis)[1])


def _top(node: Node, k: int, axis: int) -> tuple[Node, Node]:
    """The best of each tile, together, and the best of these."""
    along = axis_of(axis, node.ndim)
    if not isinstance(k, int | np.integer) or k == 0:
        raise ValueError(f"k={k!r}: give how many of the largest, or -k for so many of the smallest")
    k = int(k)
    edges = node.layout.boundaries
    lengths = [min(abs(k), b - a) for a, b in itertools.pairwise(edges[along])]
    short = Layout((*edges[:along], tuple(itertools.accumulate(lengths, initial=0)), *edges[along + 1 :]))
    own = tuple(Along(a) for a in range(node.ndim))
    attributes = (("k", k), ("axis", along))
    piece = Piece("top_tile", (Operand(0, own), Entry(along, edges[along][:-1])), attributes)
    best = blocks((node,), (piece,), node.layout, node.dtype, 2)
    values = whole_along(part(best, 0, node.dtype, short), (along,))
    places = wrap(part(best, 1, np.intp, short)).rechunk(chunking.sizes(values.layout)).__node__
    final = Layout(
        tuple(
            (0, min(abs(k), node.shape[a])) if a == along else e
            for a, e in enumerate(values.layout.boundaries)
        )
    )
    joined = blocks(
        (values, places),
        (Piece("top_join", (Operand(0, own), Operand(1, own)), attributes),),
        values.layout,
        node.dtype,
        2,
    )
    return part(joined, 0, node.dtype, final), part(joined, 1, np.intp, final)


# ---- in place, as ndarray's methods


def _sort_in_place(
    self: Any, axis: int = -1, kind: Any = None, order: Any = None, *, stable: Any = None
) -> None:
    """Sort the array itself."""
    self._node = numpy_sort(self, axis, kind, order, stable=stable).__node__


def _partition_in_place(
    self: Any, kth: Any, axis: int = -1, kind: str = "introselect", order: Any = None
) -> None:
    """Partition the array itself."""
    self._node = partition(self, kth, axis, kind, order).__node__


METHODS: dict[str, Any] = {
    "argpartition": argpartition,
    "argsort": numpy_argsort,
    "argtopk": argtopk,
    "partition": _partition_in_place,
    "sort": _sort_in_place,
    "topk": topk,
}
__all__ = [
    "argpartition",
    "argsort",
    "argtopk",
    "lexsort",
    "partition",
    "sort",
    "sort_complex",
    "topk",
]
