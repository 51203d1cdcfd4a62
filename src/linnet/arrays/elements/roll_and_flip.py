"""Elements in other places: rolled, flipped, repeated, inserted, deleted."""

from __future__ import annotations

import itertools
import math
import operator
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, axes_of, axis_of, chunked, listed, names_nothing, wrap
from linnet.arrays.elements.creation import shape_of
from linnet.arrays.elements.filled import zeros
from linnet.arrays.elements.join_and_split import joined, part_of
from linnet.arrays.elements.outcomes import sample
from linnet.arrays.elements.repeat_and_tile import again, stretched
from linnet.arrays.elements.reshape import run_edges
from linnet.arrays.elements.shapes import ravel, reshape, transpose
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, concatenated, filled, mapped, permuted, sliced
from linnet.arrays.expression.nodes import Along, Node, Operand, Piece, Source
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.arrays.array import Array

# ---- other places


@chunked(np.roll, times=chunking.LINEAR)
def roll(a: Any, shift: Any, axis: Any = None) -> Array:
    """Elements moved along an axis; those that leave at one end come in at the other.

    Parameters
    ----------
    a : array_like
    shift : int or tuple of int; by how many places
    axis : int or tuple of int, optional; None: all elements in row-major order

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> roll(asarray(np.arange(5), chunks=2), 2).compute()
    array([3, 4, 0, 1, 2])
    """
    node = as_node(a)
    if axis is None:
        return reshape(roll(ravel(wrap(node)), shift, 0), node.shape)
    shifts, axes = (listed(each) for each in (shift, axis))
    if len(shifts) != len(axes) and 1 not in (len(shifts), len(axes)):
        raise ValueError(f"'shift' and 'axis' should be scalars or of one length, got {shift} and {axis}")
    if len(shifts) == 1:
        shifts *= len(axes)
    elif len(axes) == 1:
        axes *= len(shifts)
    for each, where in zip(shifts, axes, strict=True):
        node = _rolled(node, operator.index(each), axis_of(where, node.ndim))
    return wrap(node)


def _rolled(node: Node, shift: int, axis: int) -> Node:
    length = node.shape[axis]
    if not length or not shift % length:
        return node
    cut = length - shift % length
    # In the tiles it had: rolled again and again, an array must not fall to pieces.
    parts = [part_of(node, axis, cut, None), part_of(node, axis, 0, cut)]
    return joined(parts, axis, node.layout.boundaries[axis])


@chunked(np.flip, times=chunking.LINEAR)
def flip(m: Any, axis: Any = None) -> Array:
    """The order of elements reversed along axes, or along all.

    Parameters
    ----------
    m : array_like
    axis : int or tuple of int, optional; None: all axes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.flip([[1, 2], [3, 4]]).compute()
    array([[4, 3],
           [2, 1]])
    """
    node = as_node(m)
    axes = axes_of(axis, node.ndim)
    return wrap(sliced(node, [slice(None, None, -1 if a in axes else 1) for a in range(node.ndim)]))


@chunked(np.flipud, times=chunking.LINEAR)
def flipud(m: Any) -> Array:
    """The rows in reverse order.

    Parameters
    ----------
    m : array_like with at least one axis

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.flipud([[1, 2], [3, 4]]).compute()
    array([[3, 4],
           [1, 2]])
    """
    if as_node(m).ndim < 1:
        raise ValueError("Input must be >= 1-d.")
    return flip(wrap(as_node(m)), 0)


@chunked(np.fliplr, times=chunking.LINEAR)
def fliplr(m: Any) -> Array:
    """The columns in reverse order.

    Parameters
    ----------
    m : array_like with at least two axes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.fliplr([[1, 2], [3, 4]]).compute()
    array([[2, 1],
           [4, 3]])
    """
    if as_node(m).ndim < 2:
        raise ValueError("Input must be >= 2-d.")
    return flip(wrap(as_node(m)), 1)


@chunked(np.rot90, times=chunking.LINEAR)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Array:
    """The plane of two axes turned by right angles, from the first axis to the second.

    Parameters
    ----------
    m : array_like with at least two axes
    k : int; how many right angles
    axes : two int; the plane that is turned

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.rot90([[1, 2], [3, 4]]).compute()
    array([[2, 4],
           [1, 3]])
    """
    array = wrap(as_node(m))
    if len(axes) != 2:
        raise ValueError("len(axes) must be 2.")
    if not all(-array.ndim <= axis < array.ndim for axis in axes):
        raise ValueError(f"Axes={tuple(axes)} out of range for array of ndim={array.ndim}.")
    one, other = axis_of(axes[0], array.ndim), axis_of(axes[1], array.ndim)
    if one == other:
        raise ValueError("Axes must be different.")
    order = list(range(array.ndim))
    order[one], order[other] = order[other], order[one]
    turns = k % 4
    if turns == 0:
        return array
    if turns == 2:
        return flip(array, (one, other))
    if turns == 1:
        return transpose(flip(array, other), order)
    return flip(transpose(array, order), other)


# ---- more of the same


@chunked(np.tile)
def tile(A: Any, reps: Any) -> Array:
    """The array so many times along each axis.

    Parameters
    ----------
    A : array_like
    reps : int or tuple of int; how often along each axis

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> tile(asarray([1, 2], chunks=1), 3).compute()
    array([1, 2, 1, 2, 1, 2])
    """
    node = as_node(A)
    counts = (reps,) if hasattr(reps, "__index__") else tuple(reps)
    counts = tuple(operator.index(each) for each in counts)
    if any(each < 0 for each in counts):
        raise ValueError(f"negative dimensions are not allowed: reps={counts}")
    counts = (1,) * (node.ndim - len(counts)) + counts
    node = permuted(node, (*(-1,) * (len(counts) - node.ndim), *range(node.ndim)))
    if 0 in counts or 0 in node.shape:
        return wrap(
            Source(np.empty([n * each for n, each in zip(node.shape, counts, strict=True)], node.dtype))
        )
    return wrap(again(node, counts))


def _repeat_small(a: Any, repeats: Any, axis: Any = None) -> Any:
    """NumPy's, also for the counts in an array."""
    return np.repeat(a, _counts(repeats), axis)


def _counts(repeats: Any) -> Any:
    """How often, as lengths: the standard allows any integers, NumPy takes no uint64."""
    counts = np.asarray(repeats)
    if counts.dtype.kind not in "biu" and (counts.size or hasattr(repeats, "dtype")):
        raise TypeError(f"Cannot cast repeats of {counts.dtype} to integers according to the rule 'safe'")
    if counts.size and counts.min() < 0:
        raise ValueError("repeats may not contain negative values.")
    return counts.astype(np.intp)


@chunked(np.repeat, small=_repeat_small)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Array:
    """Each element along an axis so many times: one number for all, or one for each.

    Parameters
    ----------
    a : array_like
    repeats : int, or one for each element along the axis
    axis : int, optional; None: the array is flattened

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> repeat(asarray([1, 2, 3], chunks=2), [0, 2, 1]).compute()
    array([2, 2, 3])
    """
    node = as_node(a)
    if axis is None or names_nothing(axis, node.ndim):
        node, axis = ravel(wrap(node)).__node__, 0
    place = axis_of(axis, node.ndim)
    counts = _counts(repeats)
    if counts.size == 1:
        return wrap(stretched(node, place, int(counts.reshape(()))))
    if counts.shape != (node.shape[place],):
        raise ValueError(
            f"operands could not be broadcast together: counts of shape {counts.shape} "
            f"for axis {place} of an array of shape {node.shape}"
        )
    edges = node.layout.boundaries[place]
    ends = np.concatenate([[0], np.cumsum(counts)])[list(edges)]
    if not ends[-1]:
        return wrap(part_of(node, place, 0, 0))
    old = node.layout.boundaries
    layout = Layout((*old[:place], tuple(ends.tolist()), *old[place + 1 :]))
    access = tuple(Along(each) for each in range(node.ndim))
    arguments = (Operand(0, access), Operand(1, (Along(place),)))
    piece = Piece("repeat", arguments, (("axis", place),))
    times = Source(counts, Layout((edges,)))
    return wrap(blocks((node, times), (piece,), layout, node.dtype))


@chunked(np.resize)
def resize(a: Any, new_shape: Any) -> Array:
    """The elements under another shape, begun again when they run out.

    Parameters
    ----------
    a : array_like
    new_shape : int or tuple of int

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.resize([1, 2, 3], (2, 2)).compute()
    array([[1, 2],
           [3, 1]])
    """
    shape = shape_of(new_shape)
    flat = ravel(wrap(as_node(a)))
    wanted = math.prod(shape)
    if not flat.size or not wanted:
        return zeros(shape, flat.dtype)
    times = -(-wanted // flat.size)
    return reshape(wrap(part_of(tile(flat, times).__node__, 0, 0, wanted)), shape)


def _resize_in_place(self: Any, *new_shape: Any, refcheck: bool = True) -> None:
    """Give the array itself another shape; elements that are new are 0."""
    shape = shape_of(new_shape[0] if len(new_shape) == 1 else new_shape)
    flat, wanted = ravel(self), math.prod(shape)
    missing = wanted - flat.shape[0]
    if missing > 0:
        flat = wrap(concatenated([flat.__node__, filled((missing,), 0, flat.dtype)], 0, flat.dtype))
    self._node = reshape(wrap(part_of(flat.__node__, 0, 0, wanted)), shape).__node__


@chunked(np.kron)
def kron(a: Any, b: Any) -> Array:
    """The Kronecker product: each element of one array times all of another.

    Parameters
    ----------
    a, b : array_like

    Returns
    -------
    Array; along each axis as long as the product of the lengths

    Examples
    --------
    >>> import linnet as ln
    >>> ln.kron([1, 10], [1, 2, 3]).compute()
    array([ 1,  2,  3, 10, 20, 30])
    """
    one, other = as_node(a), as_node(b)
    rank = max(one.ndim, other.ndim)
    one, other = (permuted(n, (*(-1,) * (rank - n.ndim), *range(n.ndim))) for n in (one, other))
    shape = tuple(x * y for x, y in zip(one.shape, other.shape, strict=True))
    dtype = np.multiply(sample(one.dtype), sample(other.dtype)).dtype
    if not math.prod(shape):
        return zeros(shape, dtype)
    target = chunking.automatic(shape, dtype.itemsize).boundaries
    pairs = [
        run_edges(pair, max(b - a for a, b in itertools.pairwise(edges)))
        for pair, edges in zip(zip(one.shape, other.shape, strict=True), target, strict=True)
    ]
    layout = Layout(tuple(itertools.chain.from_iterable(pairs)))
    first = permuted(one, tuple(x for axis in range(rank) for x in (axis, -1)))
    second = permuted(other, tuple(x for axis in range(rank) for x in (-1, axis)))
    return reshape(wrap(mapped("multiply", [first, second], dtype, layout=layout)), shape)


# ---- more, and less


METHODS: dict[str, Any] = {"repeat": repeat, "resize": _resize_in_place}
__all__ = [
    "flip",
    "fliplr",
    "flipud",
    "kron",
    "repeat",
    "resize",
    "roll",
    "rot90",
    "tile",
]
