"""`x[...] = v`: a new version of the array underneath; whoever read the old one keeps it.

There are three ways. An array in memory is brought together in one piece, in whatever tiles it is, and NumPy
writes there, as long as nobody else holds it: a loop of assignments costs what it writes. Of an
array too long for that, tiles that are touched are copied once and then written in place. Otherwise the
assignment becomes a node that replaces parts of tiles when they are computed; a chain of these is computed
before it grows long, and when its values are asked for first: assigned values belong to the array.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from linnet.arrays.elements import in_place, put
from linnet.arrays.elements.core import SCALARS, ArrayBase, as_node
from linnet.arrays.elements.elementwise import call, cast
from linnet.arrays.elements.gather import Positions, counted, slabs, tiles_of
from linnet.arrays.elements.index_keys import Item, Mask, New, Points, Range, Take, common_shape, parsed
from linnet.arrays.elements.indexing import basic, expanded, placement, ranges
from linnet.arrays.elements.outcomes import sample
from linnet.arrays.expression.builders import constant, mapped, permuted, sliced
from linnet.arrays.expression.nodes import Node, Source, Stored
from linnet.arrays.expression.traced import Traced
from linnet.arrays.lowering.assigned_versions import assigned, latest
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.arrays.lowering.on_caller_thread import is_cheap
from linnet.tiles import Index, Tile, TiledArray

_LONGEST = 16
"""Assignments to what is not computed yet, before it is."""

_AT_ONCE = 1 << 26
"""Bytes that an assignment to tiles may copy and write at once."""

_lengths: WeakKeyDictionary[Node, int] = WeakKeyDictionary()
"""How many assignments in a row a node stands for."""


class _Owned(dict[Index, Tile]):
    """Tiles of an array, some of them copied for it and, while the array is `_fresh`, shown to nobody."""

    def __init__(self, tiles: Any, own: set[Index]) -> None:
        super().__init__(tiles)
        self.own = own


def setitem(x: Any, key: Any, value: Any) -> None:
    """`x[key] = value`.

    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.zeros(6), chunks=2)
    >>> y = x + 1
    >>> x[1:4] = 5
    >>> x.compute(), y.compute()
    (array([0., 5., 5., 5., 0., 0.]), array([1., 1., 1., 1., 1., 1.]))
    """
    if in_place.put_plainly(x, key, value):
        return
    x._node = latest(x._node)
    try:
        if in_place.put(x, key, value, sys.getrefcount(value) <= in_place.TEMPORARY):
            return
        items = parsed(key, x._node.shape)
        settled = _value(value, x._node.dtype)
        if settled.ndim and all(isinstance(item, Take) for item in items):
            # An element takes no sequence: NumPy says so itself.
            np.zeros((), settled.dtype)[()] = np.broadcast_to(np.zeros((), settled.dtype), settled.shape)
        _assigned(x, items, settled)
        return
    except Traced as found:
        traced = found
    traced.apply(setitem, (x, key, value), {})


def _value(value: Any, dtype: np.dtype[Any]) -> Node:
    """What is assigned, in the dtype of the array; NumPy refuses what it would refuse."""
    if isinstance(value, ArrayBase):
        node = value.__node__
        np.empty(0, dtype)[...] = sample(node.dtype)
        return cast(node, dtype)
    array = np.asarray(value)  # of dates and text, too: NumPy makes elements of them, or refuses
    settled = np.empty(array.shape, dtype)  # a copy: the user may change his own
    settled[...] = value if array.ndim == 0 else array
    return Source(settled)


def _assigned(x: Any, items: Sequence[Item], value: Node) -> None:
    masks = [item for item in items if isinstance(item, Mask)]
    if not masks and not any(isinstance(item, Points) for item in items):
        _put_basic(x, items, value)
    elif len(masks) == 1 and masks[0].node.ndim and _only_mask(items):
        _put_masked(x, items, masks[0], value)
    else:
        _put_points(x, expanded(items), value)


def _only_mask(items: Sequence[Item]) -> bool:
    """Whether a mask stands among full slices alone."""
    return all(isinstance(i, Mask) or (isinstance(i, Range) and i.part == slice(None)) for i in items)


def _fitted(value: Node, shape: tuple[int, ...], advanced: bool) -> Node:
    """A value with no more axes than what it is assigned to; an error if it cannot be broadcast to that."""
    extra = value.ndim - len(shape)
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        value = permuted(value, tuple(range(extra, value.ndim)))
    short = len(shape) - value.ndim
    if short < 0 or any(n not in (1, m) for n, m in zip(value.shape, shape[short:], strict=True)):
        if advanced:
            raise ValueError(
                f"shape mismatch: value array of shape {value.shape} could not be broadcast to indexing "
                f"result of shape {shape}"
            )
        raise ValueError(f"could not broadcast input array from shape {value.shape} into shape {shape}")
    return value


def _turned(value: Node, places: Sequence[int], ndim: int) -> Node:
    """A value under other axes: `places` are axes of what it is assigned to, which has `ndim`, or -1."""
    short = ndim - value.ndim
    return permuted(value, tuple(place - short if place >= short else -1 for place in places))


# ---- the array's own tiles


def _settle(x: Any, node: Node, before: Node) -> None:
    """Give an array its new version; a long chain of versions is computed."""
    length = _lengths.get(before, 0) + 1
    if length < _LONGEST:
        _lengths[node] = length
        assigned(node, before)
        x._node, x._fresh = node, False
        return
    (x._node,) = persisted([node])
    x._fresh = False


def _writable(x: Any, touched: Sequence[Index], written: int) -> Callable[[Index], Tile] | None:
    """Gives tiles of an array to write to, if it is in memory and not too much would be copied."""
    node = x._node
    if not isinstance(node, Source | Stored):
        return None
    tiles = node.tiles.tiles if isinstance(node, Stored) else None
    own = tiles.own if isinstance(tiles, _Owned) and getattr(x, "_fresh", False) else set[Index]()
    sizes = (math.prod(node.layout.tile_shape(index)) for index in touched if index not in own)
    if (sum(sizes) + written) * node.dtype.itemsize > _AT_ONCE:
        return None
    if tiles is None:
        assert isinstance(node, Source)
        tiles = {index: node.data[(*node.layout.slices(index), ...)] for index in node.layout.indices()}
    if not (isinstance(tiles, _Owned) and tiles.own is own):
        tiles = _Owned(tiles, own)
        x._node = Stored(TiledArray(node.layout, node.dtype, tiles))
    x._fresh = True

    def tile(index: Index) -> Tile:
        if index not in own:
            tiles[index] = np.array(tiles[index], order="K")
            own.add(index)
        return tiles[index]

    return tile


# ---- slices and integers


def _put_basic(x: Any, items: Sequence[Item], value: Node) -> None:
    node = x._node
    spans = [range(*part.indices(n)) for part, n in zip(ranges(items, node.ndim), node.shape, strict=True)]
    kept = [item for item in items if isinstance(item, Range | New)]
    shape = tuple(len(spans[item.axis]) if isinstance(item, Range) else 1 for item in kept)
    value = _fitted(value, shape, advanced=False)
    if 0 in (len(span) for span in spans):
        return
    where = {item.axis: place for place, item in enumerate(kept) if isinstance(item, Range)}
    value = _turned(value, [where.get(axis, -1) for axis in range(node.ndim)], len(shape))
    if any(span.step < 0 for span in spans):
        back = [
            slice(None, None, -1 if s.step < 0 and n > 1 else 1)
            for s, n in zip(spans, value.shape, strict=True)
        ]
        value = sliced(value, back)
        spans = [span if span.step > 0 else span[::-1] for span in spans]
    cuts = [put.cuts(edges, span) for edges, span in zip(node.layout.boundaries, spans, strict=True)]
    touched = list(itertools.product(*([cut.tile for cut in axis if cut.count] for axis in cuts)))
    tile = _writable(x, touched, math.prod(map(len, spans))) if is_cheap(value) else None
    if tile is None:
        _settle(x, put.boxed(node, cuts, value), node)
        return
    values = np.broadcast_to(computed([value])[0], tuple(map(len, spans)))
    for box in itertools.product(*([cut for cut in axis if cut.count] for axis in cuts)):
        index = tuple(cut.tile for cut in box)
        tile(index)[(*(cut.local for cut in box), ...)] = values[tuple(cut.taken for cut in box)]


# ---- masks


def _put_masked(x: Any, items: Sequence[Item], mask: Mask, value: Node) -> None:
    """A mask among full slices. Values that do not depend on how many elements are true need no stage."""
    node, depth = x._node, mask.node.ndim
    after = node.ndim - mask.axis - depth
    lead = value.ndim - after
    if lead > 0 and math.prod(value.shape[:lead]) == 1 and mask.axis == 0:
        value = permuted(value, tuple(range(lead, value.ndim)))
        lead = 0
    if lead <= 0 or value.shape[lead - 1] == 1:
        under = range(mask.axis, mask.axis + depth)
        shape = (*node.shape[: mask.axis], 1, *node.shape[mask.axis + depth :])
        value = _fitted(value, shape, advanced=True)
        places = [-1 if a in under else a if a < mask.axis else a - depth + 1 for a in range(node.ndim)]
        turned = _turned(value, places, len(shape))
        condition = permuted(mask.node, tuple(a - mask.axis if a in under else -1 for a in range(node.ndim)))
        made = mapped("where", [condition, turned, node], node.dtype, layout=node.layout)
        _settle(x, made, node)
    elif mask.axis:
        _put_points(x, expanded(items), value)
    else:
        found = counted(mask.node, slabs(node, depth, mask.node))
        if depth == node.ndim and value.shape != (found.total,):
            raise ValueError(
                f"NumPy boolean array indexing assignment cannot assign {math.prod(value.shape)} input "
                f"values to the {found.total} output values where the mask is true"
            )
        value = _fitted(value, (found.total, *node.shape[depth:]), advanced=True)
        _settle(x, put.under_mask(node, found, value), node)


# ---- index arrays


def _put_points(x: Any, items: Sequence[Item], value: Node, ufunc: str | None = None) -> None:
    """Replace elements at positions; with the name of a ufunc, by what it gives for them and the values."""
    node = x._node
    points = [item for item in items if isinstance(item, Points)]
    block = common_shape([item.positions for item in points])
    place = placement(items)
    spans = [range(*part.indices(n)) for part, n in zip(ranges(items, node.ndim), node.shape, strict=True)]
    kept = [item for item in items if isinstance(item, Range | New)]
    lengths = [len(spans[item.axis]) if isinstance(item, Range) else 1 for item in kept]
    shape = (*lengths[:place], *block, *lengths[place:])
    value = _fitted(value, shape, advanced=True)
    if 0 in shape:
        return
    real = [item for item in points if item.axis >= 0]
    rest = [axis for axis in range(node.ndim) if axis not in [item.axis for item in real]]
    where = {i.axis: k if k < place else k + len(block) for k, i in enumerate(kept) if isinstance(i, Range)}
    places = [*range(place, place + len(block)), *(where.get(axis, -1) for axis in rest)]
    value = _turned(value, places, len(shape))
    positions = [np.broadcast_to(item.positions, block).reshape(-1) for item in real]
    box = [Range(axis, put.as_slice(span)) for axis, span in enumerate(spans)]
    if not real and ufunc is None:  # truth values, all true
        _put_basic(x, box, permuted(value, tuple(range(len(block), value.ndim))))
        return
    axes = [item.axis for item in real]
    if ufunc is None and _put_points_at_once(x, axes, positions, spans, block, value):
        return
    part = basic(node, box)
    made = put.at_points(part, axes, positions, block, value, ufunc)
    if part is node:
        _settle(x, made, node)
    else:
        _put_basic(x, box, made)


def _put_points_at_once(
    x: Any,
    axes: list[int],
    positions: list[Positions],
    spans: list[range],
    block: tuple[int, ...],
    value: Node,
) -> bool:
    """Write to the tiles themselves, if that can be done."""
    node = x._node
    if not isinstance(node, Source | Stored) or not is_cheap(value):
        return False
    rest = [axis for axis in range(node.ndim) if axis not in axes]
    lengths = [len(spans[axis]) for axis in rest]
    turned = tuple(slice(None, None, -1 if spans[axis].step < 0 else 1) for axis in rest)
    spans = [span if span.step > 0 else span[::-1] for span in spans]
    edges = [node.layout.boundaries[axis] for axis in axes]
    tiles = np.stack(list(itertools.starmap(tiles_of, zip(positions, edges, strict=True))))
    groups, member = np.unique(tiles, axis=1, return_inverse=True)
    order = np.argsort(member.reshape(-1), kind="stable")
    ends = [0, *np.cumsum(np.bincount(member.reshape(-1))).tolist()]
    parts = [[c for c in put.cuts(node.layout.boundaries[a], spans[a]) if c.count] for a in rest]
    boxes = list(itertools.product(*parts))

    def index(group: int, box: Sequence[put.Cut]) -> Index:
        found = dict(zip(axes, groups[:, group].tolist(), strict=True))
        found |= {axis: cut.tile for axis, cut in zip(rest, box, strict=True)}
        return tuple(found[axis] for axis in range(node.ndim))

    touched = [index(group, box) for group in range(groups.shape[1]) for box in boxes]
    tile = _writable(x, touched, len(order) * math.prod(lengths))
    if tile is None:
        return False
    (values,) = computed([value])
    values = np.broadcast_to(values, (*block, *lengths)).reshape(len(order), *lengths)[(slice(None), *turned)]
    for group, (start, stop) in enumerate(itertools.pairwise(ends)):
        chosen_ones = order[start:stop]
        corner = [cut[t] for cut, t in zip(edges, groups[:, group], strict=True)]
        rows = [line[chosen_ones] - at for line, at in zip(positions, corner, strict=True)]
        for box in boxes:
            target = np.moveaxis(tile(index(group, box)), axes, range(len(axes)))
            target[(*rows, *(cut.local for cut in box))] = values[(chosen_ones, *(cut.taken for cut in box))]
    return True


def added_at(node: Node, key: Any, value: Any) -> Any:
    """A node with a value added at `[key]`, where it is zero, as an array; nothing is computed.

    What is named twice is added twice.
    """
    x, items = ArrayBase._public(node), parsed(key, node.shape)
    settled = cast(as_node(value), node.dtype)
    if any(isinstance(item, Points) for item in items):
        _put_points(x, expanded(items), settled, "add")
    else:
        _assigned(x, items, settled)
    return x


def update_at(x: Any, key: Any, ufunc: np.ufunc, *values: Any) -> None:
    """`ufunc.at(x, key, value)`: `x[key] = ufunc(x[key], value)`, but what is named twice changes twice.

    >>> from linnet.arrays.elements.creation import asarray
    >>> x = asarray(np.zeros(3), chunks=2)
    >>> update_at(x, [0, 0, 2], np.add, 1)
    >>> x.compute()
    array([2., 0., 1.])
    """
    dtype = x.__node__.dtype
    samples = [each if type(each) in SCALARS else np.ones(1, as_node(each).dtype) for each in values]
    ufunc.at(np.ones(1, dtype), [0], *samples)  # NumPy refuses what does not fit
    items = parsed(key, x.__node__.shape)
    if not any(isinstance(item, Points) for item in items):
        setitem(x, key, call(ufunc, (x[key], *values), {}))
        return
    other = as_node(values[0]) if values else constant(0, dtype)
    if values and type(values[0]) in SCALARS:
        other = cast(other, np.result_type(dtype, values[0]))
    _put_points(x, expanded(items), other, ufunc.__name__)


METHODS: dict[str, Any] = {"__setitem__": setitem}
__all__: list[str] = []
