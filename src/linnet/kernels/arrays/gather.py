"""Kernels that take elements of tiles by position or by mask, and put elements there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.arrays.moves import room
from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

Tile = NDArray[Any]
Nested = Any
"""A tile, or a list of these, or a list of such lists, ..."""


def _leaf(nest: Nested) -> Tile:
    while isinstance(nest, list | tuple):
        nest = nest[0]
    return nest


def _nothing(*_: Any, **__: Any) -> float:
    return 0.0


def _first_shape(nest: Nested) -> tuple[int, ...]:
    """The shape of the first tile, from shapes nested as tiles are."""
    while isinstance(nest, list):
        nest = nest[0]
    return nest


# ---- by position

_CACHED = 1 << 18
"""Bytes that are taken at once, so that they are still in the cache."""


def _gathered_shape(
    tiles: Nested, rows: tuple[int, ...], axes: tuple[int, ...] = (0,), others: tuple[int, ...] = (),
    place: int = 0,
) -> tuple[int, ...]:  # fmt: skip
    rest = [n for axis, n in enumerate(_first_shape(tiles)) if axis not in axes]
    return _arranged_shape(rows[1], rest, others, place)


def _arranged_shape(rows: int, rest: Sequence[int], others: tuple[int, ...], place: int) -> tuple[int, ...]:
    return (*rest[:place], rows // max(1, math.prod(others)), *others, *rest[place:])


@kernel(
    "gather", shape=_gathered_shape, dtype=lambda tiles, rows, **_: _leaf(tiles), flops=_nothing, into=True
)
def gather(
    tiles: Nested,
    rows: Tile,
    *,
    axes: tuple[int, ...] = (0,),
    others: tuple[int, ...] = (),
    place: int = 0,
    into: Tile | None = None,
) -> Tile:
    """Elements of a block of tiles at given positions along some of its axes.

    `rows` has a line of positions for each of the axes (ascending), counted from the corner of the
    block. They are the new axis `place` of the result; with `others` they are so many axes as that
    has lengths, and one before.

    >>> gather([np.arange(3), np.arange(10, 13)], np.array([[4, 0, 5]]))
    array([11,  0, 12])
    """
    leaf = _leaf(tiles)
    if len(axes) == 1 and len(tiles) == 1 and not others and place == axes[0]:
        shape = (*leaf.shape[:place], rows.shape[1], *leaf.shape[place + 1 :])
        found = room(shape, leaf.dtype, into)
        _take(found, leaf, rows[0], place)
        return found
    rest = [n for axis, n in enumerate(leaf.shape) if axis not in axes]
    found = room((rows.shape[1], *rest), leaf.dtype, None if others or place else into)
    _collect(found, tiles, list(rows), axes, None)
    return _arranged(found, others, place)


def _take(found: Tile, x: Tile, positions: Tile, axis: int) -> None:
    """`np.take` into an array. Where one of both has gaps NumPy copies all of it, so a part at a time."""
    step = max(1, _CACHED // max(1, found[:1].nbytes))
    for start in range(0, len(found), step):
        part = slice(start, start + step)
        found[part] = np.take(x[part], positions, axis=axis) if axis else x[positions[part]]


def _arranged(found: Tile, others: tuple[int, ...], place: int) -> Tile:
    """Rows as one axis or several, and these moved behind `place` other axes."""
    if others:
        found = found.reshape((found.shape[0] // max(1, math.prod(others)), *others, *found.shape[1:]))
    count = 1 + len(others)
    return np.moveaxis(found, range(count), range(place, place + count)) if place else found


def _collect(
    found: Tile, nest: Nested, rows: list[Tile], axes: tuple[int, ...], places: Tile | None, level: int = 0
) -> None:
    """Put what `rows` ask of the tiles in a nest into `found`, at `places`."""
    if level == len(rows):
        tile = np.moveaxis(nest, axes, range(level))
        if places is not None:
            found[places] = tile[tuple(rows)]
        elif level == 1:
            _take(found, tile, rows[0], 0)
        else:
            found[...] = tile[tuple(rows)]
        return
    if len(nest) == 1:
        _collect(found, nest[0], rows, axes, places, level + 1)
        return
    position = 0
    for each in nest:
        size = _leaf(each).shape[axes[level]]
        inside = np.flatnonzero((rows[level] >= position) & (rows[level] < position + size))
        if len(inside):
            narrowed = [row[inside] for row in rows]
            narrowed[level] -= position
            _collect(found, each, narrowed, axes, inside if places is None else places[inside], level + 1)
        position += size


@kernel("split_rows", dtype=lambda tiles, rows, counts, **_: _leaf(tiles), flops=_nothing)
def split_rows(tiles: Nested, rows: Tile, counts: Tile, *, axes: tuple[int, ...] = (0,)) -> list[Tile]:
    """What each of several results takes of a tile: the first half of a shuffle.

    >>> split_rows([np.arange(5)], np.array([[4, 0, 3]]), np.array([[1, 2]]))
    [array([4]), array([0, 3])]
    """
    found = gather(tiles, rows, axes=axes)
    # Copies, so that a piece does not keep all others in memory.
    return [np.array(piece) for piece in np.split(found, np.cumsum(counts[0])[:-1])]


@kernel(
    "join_rows",
    shape=lambda pieces, places, others=(), place=0: _arranged_shape(places[0], pieces[0][1:], others, place),
    dtype=lambda pieces, places, **_: pieces[0],
    flops=_nothing,
    into=True,
)
def join_rows(
    pieces: list[Tile],
    places: Tile,
    *,
    others: tuple[int, ...] = (),
    place: int = 0,
    into: Tile | None = None,
) -> Tile:
    """Rows from several tiles, each put in its place: the second half of a shuffle.

    >>> join_rows([np.array([4]), np.array([0, 3])], np.array([2, 0, 1]))
    array([0, 3, 4])
    """
    shape = (len(places), *pieces[0].shape[1:])
    found = room(shape, pieces[0].dtype, None if others or place else into)
    position = 0
    for piece in pieces:
        found[places[position : position + len(piece)]] = piece
        position += len(piece)
    return _arranged(found, others, place)


def _taken_shape(x: tuple[int, ...], indices: tuple[int, ...], axis: int) -> tuple[int, ...]:
    along = axis % len(x)
    others = np.broadcast_shapes(
        *(tuple(1 if i == along else n for i, n in enumerate(s)) for s in (x, indices))
    )
    return tuple(indices[along] if i == along else n for i, n in enumerate(others))


@kernel("take_along", shape=_taken_shape, dtype=lambda x, indices, **_: x, flops=_nothing)
def take_along(x: Tile, indices: Tile, *, axis: int) -> Tile:
    """`np.take_along_axis` on tiles that hold the whole axis.

    >>> take_along(np.array([[5, 6], [7, 8]]), np.array([[1], [0]]), axis=1)
    array([[6],
           [7]])
    """
    return np.take_along_axis(x, indices, axis)


@kernel(
    "search", shape=lambda tile, values, **_: (1, *values), dtype=lambda *_, **__: "int64", flops=_nothing
)
def search(tile: Tile, values: Tile, *, side: str) -> Tile:
    """How many elements of a sorted tile come before each value, under a new first axis.

    >>> search(np.array([1, 3, 5]), np.array([0, 4]), side="left")
    array([[0, 2]])
    """
    return np.searchsorted(tile, values, side)[None].astype(np.int64, copy=False)  # pyright: ignore


# ---- by mask


@kernel("count_true", shape=lambda mask: (1,), dtype=lambda mask: "int64", flops=_nothing)
def count_true(mask: Tile) -> Tile:
    """How many elements of a tile are true.

    >>> count_true(np.array([[True, False], [True, True]]))
    array([3])
    """
    return np.array([np.count_nonzero(mask)])


@kernel(
    "compress",
    shape=lambda tiles, masks, count: (count, *tiles[0][len(masks[0]) :]),
    dtype=lambda tiles, *_: _leaf(tiles),
    flops=_nothing,
)
def compress(tiles: list[Tile], masks: list[Tile], count: int) -> Tile:
    """The elements of tiles under masks over their first axes, one after the other; `count` of them.

    >>> compress([np.arange(3)], [np.array([True, False, True])], 2)
    array([0, 2])
    """
    found = [_leaf(tile)[_leaf(mask)] for tile, mask in zip(tiles, masks, strict=True)]
    return found[0] if len(found) == 1 else np.concatenate(found)


@kernel(
    "true_positions",
    shape=lambda mask, offset, count: [(count,)] * len(mask),
    dtype=lambda *_: "int64",
    flops=_nothing,
)
def true_positions(mask: Tile, offset: int, count: int) -> list[Tile]:
    """Positions of the `count` true elements along each axis; along the first the tile begins at `offset`.

    >>> true_positions(np.array([False, True]), 10, 1)
    [array([11])]
    """
    first, *rest = np.nonzero(mask)
    return [first + offset, *map(np.ascontiguousarray, rest)]


# ---- putting


def _target(x: Tile, overwrite: Sequence[int]) -> Tile:
    return x if 0 in overwrite else np.array(x, order="K")


@kernel("put_box", shape=lambda x, *_, **__: x, dtype=lambda x, *_: x, flops=_nothing, inplace=0)
def put_box(
    x: Tile, values: Tile, *bounds: int, steps: tuple[int, ...], overwrite: Sequence[int] = ()
) -> Tile:
    """A tile with a box of it replaced: `bounds` holds start and stop along each axis.

    >>> put_box(np.zeros(5), np.array([7.0]), 1, 4, steps=(2,))
    array([0., 7., 0., 7., 0.])
    """
    target = _target(x, overwrite)
    box = tuple(slice(bounds[2 * a], bounds[2 * a + 1], step) for a, step in enumerate(steps))
    target[(*box, ...)] = values
    return target


@kernel("put_rows", shape=lambda x, *_, **__: x, dtype=lambda x, *_: x, flops=_nothing, inplace=0)
def put_rows(
    x: Tile,
    rows: Tile,
    values: Tile,
    *,
    axes: tuple[int, ...] = (0,),
    ufunc: str | None = None,
    overwrite: Sequence[int] = (),
) -> Tile:
    """A tile with elements replaced at given positions along some axes; the last of several wins.

    With the name of a ufunc they are replaced by what it gives for them and the values: all of several count.

    >>> put_rows(np.zeros(3), np.array([[2, 2]]), np.array([1.0, 5.0]))
    array([0., 0., 5.])
    >>> put_rows(np.zeros(3), np.array([[2, 2]]), np.array([1.0, 5.0]), ufunc="add")
    array([0., 0., 6.])
    """
    target = _target(x, overwrite)
    if rows.shape[1]:
        lines = np.moveaxis(target, axes, range(len(axes)))
        if ufunc is None:
            lines[tuple(rows)] = values
        else:
            quietly(_apply_at, ufunc, lines, tuple(rows), values)
    return target


def _apply_at(name: str, lines: Tile, rows: tuple[Tile, ...], values: Tile) -> None:
    ufunc = getattr(np, name, None)
    if not isinstance(ufunc, np.ufunc) or ufunc.nin > 2 or ufunc.nout != 1:
        raise ValueError(f"{name!r} is no universal function of one or two operands and one result")
    ufunc.at(lines, rows, *((values,) if ufunc.nin == 2 else ()))


@kernel("put_masked", shape=lambda x, *_: x, dtype=lambda x, *_: x, flops=_nothing, inplace=0)
def put_masked(x: Tile, mask: Tile, values: Tile, *, overwrite: Sequence[int] = ()) -> Tile:
    """A tile with the elements under a mask replaced by values, one for each.

    >>> put_masked(np.zeros(3), np.array([True, False, True]), np.array([1.0, 2.0]))
    array([1., 0., 2.])
    """
    target = _target(x, overwrite)
    target[mask] = values
    return target
