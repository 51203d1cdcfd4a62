"""Distinct elements and sets. How many there are depends on the values, so these functions compute.

Each tile gives its own distinct elements; these are shuffled so that equal ones meet in one
bucket (`shuffle`), and the buckets, one behind another, are the result.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from linnet.arrays.elements.core import as_node, chunked, wrap, wrapped
from linnet.arrays.elements.elementwise import apply, cast
from linnet.arrays.elements.whole_axes import gathered
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, concatenated, each_tile, part, recut
from linnet.arrays.expression.nodes import (
    Along,
    At,
    Blocks,
    Entry,
    Node,
    Operand,
    Piece,
    Source,
    Span,
    Stored,
)
from linnet.arrays.functions.sample_sort import buckets_for, in_runs, merged, shuffle, stored_as_they_are
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array

ONE_TILE = 1.0
"""Usual tiles up to which the distinct elements of an array are found in one."""


class UniqueAll(NamedTuple):
    """What the array API standard calls the result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def _flat(x: Any) -> Node:
    node = as_node(x)
    return node if node.ndim == 1 else wrap(node).reshape((-1,)).__node__


def _is_short(node: Node) -> bool:
    return node.grid == (1,) or math.prod(node.shape) * node.dtype.itemsize <= ONE_TILE * chunking.target()


def _distinct(
    x: Any, *, first: bool = False, inverse: bool = False, counts: bool = False, equal_nan: bool = True
) -> tuple[Any, Any, Any, Any]:
    """Values, first places, inverse, counts; None for what is not asked for."""
    node = _flat(x)
    shape = as_node(x).shape
    if _is_short(node):
        (whole,) = computed([recut(node, chunking.whole(node.shape))])
        found = np.unique(
            whole, return_index=True, return_inverse=True, return_counts=True, equal_nan=equal_nan
        )
        values, begins, places, often = map(wrapped, found)
        return values, begins, places.reshape(shape), often
    columns = tuple(name for name, asked in (("first", first), ("counts", counts)) if asked)
    if not columns and not inverse:
        return wrap(_values_alone(in_runs(node), equal_nan)), None, None, None
    node = in_runs(node, 2)
    split, layout, places = _shuffled(node, columns, inverse, equal_nan)
    bucket = merged("unique_bucket", split, layout, node.dtype, equal_nan=equal_nan, columns=columns)
    several = Blocks(bucket.inputs, bucket.pieces, bucket.shape, bucket.dtype, layout, 1 + len(columns))
    dtypes = (node.dtype, *(np.intp for _ in columns))
    values, *others = stored_as_they_are([part(several, k, d) for k, d in enumerate(dtypes)])
    made = {name: wrap(each) for name, each in zip(columns, others, strict=True)}
    if places is not None:
        made["inverse"] = wrap(_inverse(split[0], values, layout, places, equal_nan)).reshape(shape)
    return wrap(values), made.get("first"), made.get("inverse"), made.get("counts")


def _values_alone(node: Node, equal_nan: bool) -> Stored:
    """The distinct values, sorted: one column moves instead of several, and positions are not sorted."""
    count = buckets_for(node)
    (runs,) = stored_as_they_are([each_tile("distinct_tile", node, node.dtype, equal_nan=equal_nan)])
    split, _, layout = shuffle([runs], count, divide_equals=False)
    bucket = merged("distinct_bucket", split, layout, node.dtype, equal_nan=equal_nan)
    return stored_as_they_are([bucket])[0]


def _shuffled(
    node: Node, columns: tuple[str, ...], inverse: bool, equal_nan: bool
) -> tuple[list[Blocks], Layout, Node | None]:
    """The columns of each tile in pieces for each bucket, the buckets, and the inverse of each tile."""
    asked = (*columns, "inverse") if inverse else columns
    starts = Entry(0, node.layout.boundaries[0][:-1])
    attributes = (("equal_nan", equal_nan), ("columns", asked))
    piece = Piece("unique_tile", (Operand(0, (Along(0),)), starts), attributes)
    tiles = blocks((node,), (piece,), node.layout, node.dtype, 1 + len(asked))
    dtypes = (node.dtype, *(np.intp for _ in asked))
    kept = persisted([part(tiles, k, d) for k, d in enumerate(dtypes)])
    moving = stored_as_they_are(kept[: 1 + len(columns)])
    split, _, layout = shuffle(moving, buckets_for(moving[0]), divide_equals=False)
    return split, layout, kept[-1] if inverse else None


def _inverse(split: Blocks, values: Stored, layout: Any, inverse: Node, equal_nan: bool) -> Node:
    """Ranks go back from the buckets to the tiles they came from."""
    runs, buckets = split.grid[0], layout.grid[0]
    pieces = Operand(0, (Span(0, runs), Along(0)))
    offset = Entry(0, values.layout.boundaries[0][:-1])
    rank = Piece("rank_bucket", (pieces, offset), (("equal_nan", equal_nan),))
    ranks = blocks((split,), (rank,), layout, np.intp, runs)
    back = Piece("inverse_tile", (Operand(0, (Span(0, buckets), Along(0))), Operand(1, (Along(0),))))
    return blocks((ranks, inverse), (back,), inverse.layout, np.intp)


def _small_unique(*args: Any, gather: bool = False, **kwargs: Any) -> Any:
    return np.unique(*args, **kwargs)


@overload
def unique(  # pyright: ignore[reportOverlappingOverload] # with an option it is a tuple
    ar: Any,
    return_index: Literal[False] = ...,
    return_inverse: Literal[False] = ...,
    return_counts: Literal[False] = ...,
    axis: int | None = ...,
    *,
    equal_nan: bool = ...,
    sorted: bool = ...,
    gather: bool = ...,
) -> Array: ...
@overload
def unique(
    ar: Any,
    return_index: bool = ...,
    return_inverse: bool = ...,
    return_counts: bool = ...,
    axis: int | None = ...,
    *,
    equal_nan: bool = ...,
    sorted: bool = ...,
    gather: bool = ...,
) -> tuple[Array, ...]: ...
@chunked(np.unique, small=_small_unique)
def unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    gather: bool = False,
) -> Any:
    """The distinct elements in order, as `np.unique`; along an axis the array is gathered.

    Parameters
    ----------
    ar : array_like
    return_index, return_inverse, return_counts : whether to say where each is first, which of them each
        element is, and how often each occurs
    axis : int, optional; the axis along which whole slices are compared; None: the array is flattened
    equal_nan : whether NaN equals NaN
    sorted : whether the result is sorted

    Returns
    -------
    Array; a tuple if more is asked for

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> unique(asarray([3, 1, 3], chunks=1)).compute()
    array([1, 3])
    """
    if axis is not None:
        options: Any = {
            "return_index": return_index,
            "return_inverse": return_inverse,
            "return_counts": return_counts,
            "equal_nan": equal_nan,
        }
        made = gathered(
            lambda a: np.unique(a, axis=axis, **options), [as_node(ar)], "unique with axis=", gather
        )
        return tuple(map(wrapped, made)) if isinstance(made, tuple) else wrapped(made)
    values, first, inverse, counts = _distinct(
        ar, first=return_index, inverse=return_inverse, counts=return_counts, equal_nan=equal_nan
    )
    wanted = [(first, return_index), (inverse, return_inverse), (counts, return_counts)]
    chosen = [each for each, asked in wanted if asked]
    return (values, *chosen) if chosen else values


@chunked(np.unique_all)
def unique_all(x: Any) -> UniqueAll:
    """Distinct elements, where each is first, which of them each element is, and how often each occurs.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    named tuple of Arrays: `values`, `indices`, `inverse_indices` and `counts`

    Examples
    --------
    >>> import linnet as ln
    >>> ln.unique_all([3, 1, 3]).indices.compute()
    array([1, 0])
    """
    values, first, inverse, counts = _distinct(x, first=True, inverse=True, counts=True, equal_nan=False)
    return UniqueAll(values, first, inverse, counts)


@chunked(np.unique_counts)
def unique_counts(x: Any) -> UniqueCounts:
    """Distinct elements, and how often each occurs.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    named tuple of Arrays: `values` and `counts`

    Examples
    --------
    >>> import linnet as ln
    >>> ln.unique_counts([3, 1, 3]).counts.compute()
    array([1, 2])
    """
    values, _, _, counts = _distinct(x, counts=True, equal_nan=False)
    return UniqueCounts(values, counts)


@chunked(np.unique_inverse)
def unique_inverse(x: Any) -> UniqueInverse:
    """Distinct elements, and for each element which of them it is.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    named tuple of Arrays: `values` and `inverse_indices`

    Examples
    --------
    >>> import linnet as ln
    >>> ln.unique_inverse([3, 1, 3]).inverse_indices.compute()
    array([1, 0, 1])
    """
    values, _, inverse, _ = _distinct(x, inverse=True, equal_nan=False)
    return UniqueInverse(values, inverse)


@chunked(np.unique_values, small=lambda x: np.unique(x, equal_nan=False))
def unique_values(x: Any) -> Array:
    """Distinct elements, in order: NumPy leaves the order open, but it must not depend on the size.

    Parameters
    ----------
    x : array_like

    Returns
    -------
    Array, sorted

    Examples
    --------
    >>> import linnet as ln
    >>> ln.unique_values([3, 1, 3]).compute()
    array([1, 3])
    """
    return _distinct(x, equal_nan=False)[0]


# ---- two sets


def _compared(one: Any, other: Any, keep: tuple[int, ...]) -> list[Any]:
    """Values by the sets they occur in, with their first places in both."""
    nodes = [_flat(one), _flat(other)]
    dtype = np.result_type(*(node.dtype for node in nodes))
    columns: list[list[Node]] = [[], [], []]
    for side, node in enumerate(nodes, 1):
        if not node.shape[0]:
            continue
        values, first, _, _ = _distinct(wrap(cast(node, dtype)), first=True)
        kept = values.__node__.layout
        columns[0].append(persisted([values.__node__])[0])
        columns[1].append(recut(first.__node__, kept))
        columns[2].append(Source(np.broadcast_to(np.intp(side), kept.shape), kept))
    if not columns[0]:
        empty = Source(np.empty((0,), np.intp))
        return [wrap(Source(np.empty((0,), dtype))), wrap(empty), wrap(empty)]
    joined = [
        concatenated(each, 0, kind) for each, kind in zip(columns, (dtype, np.intp, np.intp), strict=True)
    ]
    split, _, layout = shuffle(persisted(joined), buckets_for(joined[0]), divide_equals=False)
    bucket = merged("common_bucket", split, layout, dtype, keep=keep)
    several = Blocks(bucket.inputs, bucket.pieces, bucket.shape, bucket.dtype, layout, 3)
    made = stored_as_they_are([part(several, k, d) for k, d in enumerate((dtype, np.intp, np.intp))])
    return [wrap(each) for each in made]


@chunked(np.union1d)
def union1d(ar1: Any, ar2: Any) -> Array:
    """The distinct elements of both.

    Parameters
    ----------
    ar1, ar2 : array_like; they are flattened

    Returns
    -------
    Array, sorted

    Examples
    --------
    >>> import linnet as ln
    >>> ln.union1d([1, 3], [2, 3]).compute()
    array([1, 2, 3])
    """
    return _compared(ar1, ar2, (1, 2, 3))[0]


@chunked(np.intersect1d)
def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    """The distinct elements that occur in both, and with `return_indices` where they are first.

    Parameters
    ----------
    ar1, ar2 : array_like; they are flattened
    assume_unique : whether neither has an element twice, which saves looking
    return_indices : whether to say where they are first, too

    Returns
    -------
    Array, sorted; with `return_indices` a tuple of three

    Examples
    --------
    >>> import linnet as ln
    >>> ln.intersect1d([1, 3, 4], [4, 3, 5]).compute()
    array([3, 4])
    """
    found = _compared(ar1, ar2, (3,))
    return tuple(found) if return_indices else found[0]


@chunked(np.setxor1d)
def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """The distinct elements that occur in one of them only.

    Parameters
    ----------
    ar1, ar2 : array_like; they are flattened
    assume_unique : whether neither has an element twice, which saves looking

    Returns
    -------
    Array, sorted

    Examples
    --------
    >>> import linnet as ln
    >>> ln.setxor1d([1, 2, 3], [3, 4]).compute()
    array([1, 2, 4])
    """
    return _compared(ar1, ar2, (1, 2))[0]


@chunked(np.setdiff1d)
def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Array:
    """The distinct elements of the first that do not occur in the second.

    Parameters
    ----------
    ar1, ar2 : array_like; they are flattened
    assume_unique : whether neither has an element twice, which saves looking

    Returns
    -------
    Array, sorted

    Examples
    --------
    >>> import linnet as ln
    >>> ln.setdiff1d([1, 2, 3, 2], [2]).compute()
    array([1, 3])
    """
    if assume_unique:  # NumPy then keeps their order
        flat = wrap(_flat(ar1))
        return flat[isin(flat, ar2, invert=True)]
    if np.result_type(as_node(ar1).dtype, as_node(ar2).dtype) != as_node(ar1).dtype:
        # In a common dtype elements of the first might be rounded.
        return setdiff1d(unique(wrap(as_node(ar1))), ar2, assume_unique=True)
    return _compared(ar1, ar2, (1,))[0]


@chunked(np.isin)
def isin(
    element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: Any = None
) -> Array:
    """Which elements occur among `test_elements`.

    Parameters
    ----------
    element : array_like
    test_elements : array_like; those that are looked for
    assume_unique : whether neither has an element twice
    invert : whether to say which do not occur
    kind : without meaning here

    Returns
    -------
    Array of booleans, of the shape of `element`

    Examples
    --------
    >>> import linnet as ln
    >>> ln.isin([1, 2, 3], [2, 5]).compute()
    array([False,  True, False])
    """
    node, test = as_node(element), _flat(test_elements)
    if test.grid != (1,):
        test = unique(wrap(test)).__node__
    own = tuple(Along(a) for a in range(node.ndim))
    found: Any = None
    for tile in range(test.grid[0]):
        piece = Piece("isin_tile", (Operand(0, own), Operand(1, (At(tile),))))
        here = wrap(blocks((node, test), (piece,), node.layout, bool))
        found = here if found is None else apply(np.logical_or, found, here)
    return apply(np.logical_not, found) if invert else found


METHODS: dict[str, Any] = {}
__all__ = [
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]
