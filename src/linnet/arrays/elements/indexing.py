"""`x[...]` as in NumPy: slices, integers, index arrays, masks, and all of these mixed.

What is known beforehand is planned without running anything; masks and lazy index arrays are a
stage: they are computed first, because shapes and tiles depend on them.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.along_axis import looked_up
from linnet.arrays.elements.computed_indices import known_nodes
from linnet.arrays.elements.core import ArrayBase, direct, wrap, wrapped
from linnet.arrays.elements.gather import compressed, counted, gathered, slabs
from linnet.arrays.elements.index_keys import Item, Mask, New, Points, Range, Take, common_shape, parsed
from linnet.arrays.elements.put import cuts
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import filled, folded, permuted, sliced, sliced_edges
from linnet.arrays.expression.nodes import Node, Source, Stored
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

if TYPE_CHECKING:
    from linnet.arrays.array import Array

_AT_ONCE = 1 << 16
"""Bytes of a slice that is read from tiles at once,"""

_FEW = 4
"""and how many tiles these may be."""

_POSITION = np.dtype(np.intp).itemsize
"""Bytes of a position."""


def getitem(x: Any, key: Any) -> Array:
    """`x[key]`.

    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.arange(12).reshape(3, 4), chunks=2)
    >>> x[::2, [3, 0]].compute()
    array([[ 3,  0],
           [11,  8]])
    """
    node = x._node
    if type(node) is Source:
        for each in key if type(key) is tuple else (key,):
            if type(each) not in _PLAIN:
                result = direct(operator.getitem, (x, key), {}, chunking.LINEAR)
                if result is NotImplemented:
                    break
                return result
        else:  # a view of it
            layout, data = node._layout, node.data
            if layout.is_whole if layout is not None else node.in_one_tile:
                return wrapped(data[key])
            return wrap(_cut_view(node, key))
    few = _few(node, key)
    if few is not None:
        return wrap(few)  # a copy: nobody has seen the array's own tiles
    return wrap(indexed(x.__node__, key))


def indexed(node: Node, key: Any) -> Node:
    """`node[key]`."""
    lazily = looked_up(node, key)
    if lazily is not None:
        return lazily
    items = parsed(key, node.shape)
    if not any(isinstance(item, Points | Mask) for item in items):
        return basic(node, items)
    masks = [item for item in items if isinstance(item, Mask)]
    alone = len(masks) == 1 and not any(isinstance(item, Points | Take) for item in items)
    if alone and masks[0].node.ndim and not _is_sparse(masks[0].node):
        return _masked(node, items, masks[0])
    return _pointed(node, expanded(items))


_PLAIN = frozenset([int, slice, type(None), type(Ellipsis), np.int64])
"""Types of keys that NumPy answers with a view, or a number."""


def _cut_view(node: Source, key: Any) -> Node:
    """A view of part of an array in several tiles, cut where the array is."""
    part = node.data[key]
    if type(part) is not np.ndarray:
        return Source(np.asarray(part))
    entries = key if type(key) is tuple else (key,)
    old, lengths = node.layout.boundaries, node.shape
    named = sum(each is not None and each is not Ellipsis for each in entries)
    edges: list[Boundaries] = []
    axis = 0
    for each in entries:
        if each is None:
            edges.append((0, 1))
        elif each is Ellipsis:
            edges += old[axis : axis + len(old) - named]
            axis += len(old) - named
        else:
            if type(each) is slice:
                edges.append(_edges(old[axis], *each.indices(lengths[axis])))
            axis += 1
    return Source(part, _layout((*edges, *old[axis:])))


@lru_cache(maxsize=4096)
def _edges(edges: Boundaries, start: int, stop: int, step: int) -> Boundaries:
    return sliced_edges(edges, range(start, stop, step))


@lru_cache(maxsize=4096)
def _layout(boundaries: tuple[Boundaries, ...]) -> Layout:
    return Layout(boundaries)


def _few(node: Node, key: Any) -> Node | None:
    """A few elements of tiles in memory, if a key of slices and integers asks for no more."""
    if not isinstance(node, Stored):
        return None
    entries = key if isinstance(key, tuple) else (key,)
    if not all(e is None or e is Ellipsis or type(e) in (int, slice) for e in entries):
        return None
    items = parsed(key, node.shape)
    read = _read(node, ranges(items, node.ndim))
    return None if read is None else permuted(read, _kept(items))


def basic(node: Node, items: Sequence[Item]) -> Node:
    """Slices, integers and new axes."""
    parts = ranges(items, node.ndim)
    read = _read(node, parts) if isinstance(node, Stored) else None
    found = permuted(sliced(node, parts) if read is None else read, _kept(items))
    # What has no elements reads nothing.
    return filled(found.shape, 0, found.dtype, found.layout) if 0 in found.shape else found


def _read(node: Stored, parts: Sequence[slice]) -> Source | None:
    """A few elements of tiles in memory, read at once: planning would take longer."""
    spans = [range(*part.indices(length)) for part, length in zip(parts, node.shape, strict=True)]
    shape = tuple(map(len, spans))
    if not 0 < math.prod(shape) * node.dtype.itemsize <= _AT_ONCE:
        return None
    rising = [span if span.step > 0 else span[::-1] for span in spans]
    found = [[c for c in cuts(e, s) if c.count] for e, s in zip(node.layout.boundaries, rising, strict=True)]
    if math.prod(map(len, found)) > _FEW:
        return None
    data = np.empty(shape, node.dtype)
    for box in itertools.product(*found):
        tile = node.tiles.tile(tuple(cut.tile for cut in box))
        data[tuple(cut.taken for cut in box)] = tile[(*(cut.local for cut in box), ...)]
    return Source(data[(*(slice(None, None, 1 if span.step > 0 else -1) for span in spans), ...)])


def ranges(items: Sequence[Item], ndim: int) -> list[slice]:
    """The slice along each axis; an integer is one of length 1, an index array leaves the axis whole."""
    found = [slice(None)] * ndim
    for item in items:
        if isinstance(item, Take):
            found[item.axis] = slice(item.position, item.position + 1)
        elif isinstance(item, Range):
            found[item.axis] = item.part
    return found


def _kept(items: Sequence[Item]) -> tuple[int, ...]:
    """Axes that slices leave, and new ones as -1."""
    return tuple(
        item.axis if isinstance(item, Range) else -1 for item in items if isinstance(item, Range | New)
    )


# ---- index arrays


def expanded(items: Sequence[Item]) -> list[Item]:
    """Masks as the positions where they are true. A single truth value has positions along no axis (-1)."""
    masks = [item for item in items if isinstance(item, Mask)]
    values = iter(known_nodes([mask.node for mask in masks]) if masks else [])
    found: list[Item] = []
    for item in items:
        if isinstance(item, Mask):
            value = next(values)
            if value.ndim:
                found += [Points(item.axis + k, where) for k, where in enumerate(np.nonzero(value))]
            else:
                found.append(Points(-1, np.arange(int(value))))
        else:
            found.append(item)
    return found


def placement(items: Sequence[Item]) -> int:
    """How many of the axes that are kept come before those of index arrays.

    Integers count as index arrays beside these; if all stand side by side their axes
    take this place, otherwise they come first.
    """
    advanced = [place for place, item in enumerate(items) if isinstance(item, Take | Points)]
    if advanced[-1] - advanced[0] + 1 != len(advanced):
        return 0
    return sum(isinstance(item, Range | New) for item in items[: advanced[0]])


def _pointed(node: Node, items: Sequence[Item]) -> Node:
    points = [item for item in items if isinstance(item, Points)]
    shape = common_shape([item.positions for item in points])
    place = placement(items)
    cut = sliced(node, ranges(items, node.ndim))
    if _is_outer(items, points):
        for item in points:
            cut = gathered(cut, [item.axis], [item.positions.reshape(-1)], item.axis)
        return cut
    real = [item for item in points if item.axis >= 0]
    axes = [item.axis for item in real]
    rest = [axis for axis in range(node.ndim) if axis not in axes]
    if real:
        before = [item.axis for item in items if isinstance(item, Range)]
        first = sum(isinstance(item, Range) for item in _kept_items(items)[:place])
        inner = rest.index(before[first]) if first < len(before) else len(rest)
        positions = [np.broadcast_to(item.positions, shape) for item in real]
        found = gathered(cut, axes, positions, inner)
    else:  # truth values alone: all or nothing
        inner = 0
        found = permuted(cut, (*(-1 for _ in shape), *range(cut.ndim)))
        if 0 in shape:
            found = filled((*shape, *cut.shape), 0, cut.dtype)
    where = {axis: number if number < inner else number + len(shape) for number, axis in enumerate(rest)}
    kept = [where[axis] if axis >= 0 else -1 for axis in _kept(items)]
    return permuted(found, (*kept[:place], *range(inner, inner + len(shape)), *kept[place:]))


def _is_outer(items: Sequence[Item], points: Sequence[Points]) -> bool:
    """Whether index arrays side by side each run along an axis of their own, as those of `ix_` do."""
    where = [place for place, item in enumerate(items) if isinstance(item, Points)]
    if len(where) < 2 or where[-1] - where[0] + 1 != len(where):
        return False
    if not all(isinstance(item, Range) or (isinstance(item, Points) and item.axis >= 0) for item in items):
        return False
    if any(item.positions.ndim != len(points) for item in points):
        return False
    # Beside an index without elements others may be out of bounds: they must not be looked up.
    return all(0 < p.positions.size == p.positions.shape[number] for number, p in enumerate(points))


def _kept_items(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if isinstance(item, Range | New)]


# ---- masks


def _is_sparse(mask: Node) -> bool:
    """Whether a mask in memory has so few true elements that their positions take less room than it does."""
    if not isinstance(mask, Source):
        return False
    return int(np.count_nonzero(mask.data)) * _POSITION * mask.ndim <= mask.data.size


def _masked(node: Node, items: Sequence[Item], mask: Mask) -> Node:
    """One mask, among slices."""
    depth = mask.node.ndim
    under = range(mask.axis, mask.axis + depth)
    parts = ranges(items, node.ndim)
    chosen = mask.node
    if isinstance(chosen, Source):  # what lies around all that is true need not be looked at
        parts[mask.axis : mask.axis + depth] = around = _around_true(chosen.data)
        chosen = sliced(chosen, around)
    cut = sliced(node, parts)
    rest = [axis for axis in range(node.ndim) if axis not in under]
    front = permuted(cut, (*under, *rest))
    if not isinstance(front, Source | Stored) and _reads(chosen, node):
        (front,) = persisted([front])  # it is computed for the mask anyway
    found = compressed(front, counted(chosen, slabs(front, depth, chosen)))
    before = sum(isinstance(item, Range | New) for item in items[: list(items).index(mask)])
    kept = [rest.index(axis) + 1 if axis >= 0 else -1 for axis in _kept(items)]
    return permuted(found, (*kept[:before], 0, *kept[before:]))


def _around_true(mask: NDArray[np.bool_]) -> list[slice]:
    """The smallest box that holds all true elements, of which there are some."""
    found: list[slice] = []
    for axis in range(mask.ndim):
        held = np.flatnonzero(mask.any(axis=tuple(a for a in range(mask.ndim) if a != axis)))
        found.append(slice(int(held[0]), int(held[-1]) + 1))
    return found


def _reads(reader: Node, node: Node) -> bool:
    """Whether a node is among those that another is made of."""
    seen: set[int] = set()
    pending = [reader]
    while pending:
        current = pending.pop()
        if current is node:
            return True
        if id(current) not in seen:
            seen.add(id(current))
            pending.extend(current.operands)
    return False


# ---- iteration


def iterate(x: Any) -> Iterator[Array]:
    """Over the first axis, computing tile by tile.

    >>> from linnet.arrays.elements.creation import asarray
    >>> [int(row.sum()) for row in asarray(np.arange(6).reshape(3, 2), chunks=1)]
    [1, 5, 9]
    """
    node = x.__node__
    if not node.shape:
        raise TypeError("iteration over a 0-d array")
    return _rows(node)


def _rows(node: Node) -> Iterator[Any]:
    edges = node.layout.boundaries[0]
    whole = [slice(None)] * (node.ndim - 1)
    for start, stop in itertools.pairwise(edges):
        (slab,) = persisted([sliced(node, [slice(start, stop), *whole])])
        for row in range(stop - start):
            yield wrap(indexed(slab, row))


def contains(x: Any, value: Any) -> bool:
    """`value in x`: whether some element equals it."""
    equal = x == value
    if not isinstance(equal, ArrayBase):
        return bool(equal)
    node = equal.__node__
    return bool(computed([folded(node, "any", tuple(range(node.ndim)), bool)])[0])


METHODS: dict[str, Any] = {"__contains__": contains, "__getitem__": getitem, "__iter__": iterate}
__all__: list[str] = []
