"""`ln.sparse`: sparse arrays from what users have."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import recut
from linnet.errors import InputError
from linnet.sparse_arrays.array import SparseArray, form_of, sparse_array
from linnet.sparse_arrays.form import Form, by_number, entry, of_tiles, one_each
from linnet.sparse_arrays.operations import recut_form
from linnet.tiles import Layout, regular
from linnet.tiles.sparse_tile import KINDS, SparseTile, same, scalar_text

_STORED = 1 << 18
"""Stored elements of a block, about, where the user does not say how to cut."""


def sparse(obj: Any, chunks: Any = "auto", fill: Any = 0, *, shape: Sequence[int] | None = None) -> Any:
    """An array whose absent elements are `fill`, and whose absent blocks make no tasks.

    Parameters
    ----------
    obj
        A NumPy array or an `ln.Array` (elements equal to `fill` are absent), an array of scipy.sparse or of
        the `sparse` package, `(values, (rows, columns, ...))` with `shape=`, or the path of a file: `.npz` as
        `scipy.sparse.save_npz` writes it, `.mtx` (Matrix Market), `.npy`.
    chunks
        How it is cut into blocks, as for `ln.asarray`; "auto": by the number of stored elements.
    fill
        What absent elements are. Those of scipy.sparse are 0, those of `sparse` their `fill_value`.
    shape
        Of an array given by its elements.

    Returns
    -------
    SparseArray
        Lazy, as other arrays are.

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.sparse(([5.0, 7.0], ([0, 9], [3, 1])), shape=(10, 10))
    >>> (x @ np.ones(10)).compute()
    array([5., 0., 0., 0., 0., 0., 0., 0., 0., 7.])
    """
    if isinstance(obj, SparseArray):
        form = form_of(obj)
        return sparse_array(
            form if chunks == "auto" else recut_form(form, _cut(chunks, form.shape, form.dtype))
        )
    if isinstance(obj, str | os.PathLike):
        obj = _read(os.fspath(obj))
    if isinstance(obj, ArrayBase):
        return _of_array(obj, chunks, fill)
    stored = _coordinates(obj, fill, shape)
    if stored is None:
        array = np.asarray(obj)
        _check(array.dtype, array.shape)
        value = _as(fill, array.dtype)
        positions = np.nonzero(~same(array, value))
        stored = array.shape, positions, array[positions], value
    size, positions, values, absent = stored
    return sparse_array(_in_blocks(size, positions, values, absent, chunks))


def _as(fill: Any, dtype: np.dtype[Any]) -> Any:
    """The fill in the dtype of the elements, if that can hold it."""
    value = np.asarray(fill)
    if value.ndim:
        raise InputError(f"fill= is an array of shape {value.shape}; give one number")
    with np.errstate(all="ignore"):
        made = value.astype(dtype) if value.dtype.kind in KINDS else value
    if made.dtype != dtype or not (made == value or (value != value and made != made)):
        raise InputError(f"fill={fill!r} is no number that {dtype} can hold; give another, or cast the array")
    return made[()]


def _check(dtype: np.dtype[Any], shape: Sequence[int]) -> None:
    if dtype.kind not in KINDS:
        raise InputError(f"sparse arrays hold Booleans and numbers, not {dtype}")
    if not shape:
        raise InputError("a sparse array has at least one axis; this one has none")


def _read(path: str) -> Any:
    ending = os.path.splitext(path)[1]
    if ending == ".npy":
        return np.load(path, mmap_mode="r", allow_pickle=False)
    if ending == ".npz":
        from scipy.sparse import load_npz

        return load_npz(path)
    if ending == ".mtx":
        from scipy.io import mmread

        return mmread(path)
    raise InputError(f"{path!r}: sparse arrays are read from .npz (scipy.sparse), .mtx and .npy files")


def _coordinates(obj: Any, fill: Any, shape: Sequence[int] | None) -> Any:
    """Shape, positions, values, each once, and the fill; None if it is no array by its elements."""
    package = type(obj).__module__.partition(".")[0]
    if package in ("scipy", "sparse") and hasattr(obj, "nnz") and not isinstance(obj, np.ndarray):
        if package == "scipy":
            coo = obj.tocoo()
            value, known = coo.dtype.type(0), 0
        else:
            import sparse as pydata

            coo = pydata.COO(obj)
            value = known = coo.fill_value
        if fill not in (0, known) and not (fill != fill and known != known):
            raise InputError(f"fill={fill!r}: absent elements of this array are {known}; leave fill= out")
        return _once(coo.shape, tuple(coo.coords), np.asarray(coo.data), value)
    if isinstance(obj, tuple) and len(obj) == 2 and isinstance(obj[1], tuple | list):
        if shape is None:
            raise InputError("values and positions do not say how large the array is; give shape=")
        values = np.asarray(obj[0])
        lines = tuple(np.asarray(line) for line in obj[1])
        if len(lines) != len(shape):
            raise InputError(f"{len(lines)} lists of positions for an array of shape {tuple(shape)}")
        for axis, (line, length) in enumerate(zip(lines, shape, strict=True)):
            if line.shape != values.shape or line.ndim != 1 or (line.size and line.dtype.kind not in "iu"):
                raise InputError(
                    f"positions along axis {axis} are {line.dtype} of shape {line.shape}; there are values "
                    f"of shape {values.shape}: give a list of integers as long"
                )
            beyond = np.flatnonzero((line < 0) | (line >= length))
            if len(beyond):
                raise InputError(
                    f"position {line[beyond[0]]} along axis {axis}, where the array has {length} elements"
                )
        return _once(tuple(map(int, shape)), lines, values, _as(fill, values.dtype))
    if shape is not None:
        raise InputError("shape= is for arrays given by values and positions; this one has its own")
    return None


def _once(shape: tuple[int, ...], lines: Sequence[Any], values: NDArray[Any], fill: Any) -> Any:
    """Elements that are there several times are added up, as SciPy does it, if the fill is 0."""
    _check(values.dtype, shape)
    lines = [line.astype(np.int64, copy=False) for line in lines]
    order = np.lexsort(lines[::-1])
    lines, values = [line[order] for line in lines], values[order]
    again = np.ones(max(0, len(values) - 1), np.bool)
    for line in lines:
        again &= line[1:] == line[:-1]
    if again.any():
        if fill != 0:
            place = int(np.flatnonzero(again)[0])
            at = tuple(int(line[place]) for line in lines)
            raise InputError(
                f"the element at {at} is given twice; give each once (they are added for fill=0)"
            )
        first = np.flatnonzero(np.concatenate([[True], ~again]))
        values = np.add.reduceat(values, first, dtype=values.dtype)
        lines = [line[first] for line in lines]
    keep = ~same(values, fill)
    return shape, [line[keep] for line in lines], values[keep], fill


def _cut(chunks: Any, shape: tuple[int, ...], dtype: np.dtype[Any], stored: int | None = None) -> Layout:
    if not (isinstance(chunks, str) and chunks == "auto") or stored is None:
        return chunking.normalized(chunks, shape, dtype)
    count = max(1, stored // _STORED, min(16, stored // (1 << 14)))
    each = math.ceil(count ** (1 / len(shape)))
    return Layout(tuple(regular(length, max(1, -(-length // each))) for length in shape))


def _in_blocks(
    shape: tuple[int, ...], lines: Sequence[Any], values: NDArray[Any], fill: Any, chunks: Any
) -> Form:
    layout = _cut(chunks, shape, values.dtype, len(values))
    block = np.zeros(len(values), np.int64)
    inside = np.zeros(len(values), np.int64)
    for line, edges, count in zip(lines, layout.boundaries, layout.grid, strict=True):
        cut = np.asarray(edges, np.int64)
        number = np.searchsorted(cut, line, "right") - 1
        block = block * count + number
        inside = inside * np.diff(cut)[number] + (line - cut[number])
    order = np.lexsort((inside, block))
    block, inside, values = block[order], inside[order], values[order]
    found, first = np.unique(block, return_index=True)
    tiles: dict[tuple[int, ...], SparseTile] = {}
    for number, start, stop in zip(found, first, np.append(first[1:], len(block)), strict=False):
        place = tuple(map(int, np.unravel_index(number, layout.grid)))
        origin = [edges[at] for edges, at in zip(layout.boundaries, place, strict=True)]
        share = slice(start, stop)
        tiles[place] = SparseTile.at(layout.tile_shape(place), origin, fill, inside[share], values[share])
    return of_tiles(layout, values.dtype, fill, tiles)


def _of_array(array: Any, chunks: Any, fill: Any) -> Any:
    """A lazy dense array: every block is stored, since nobody knows yet what is in them."""
    node = array.__node__
    _check(node.dtype, node.shape)
    if not (isinstance(chunks, str) and chunks == "auto"):
        node = recut(node, chunking.normalized(chunks, node.shape, node.dtype))
    value = _as(fill, node.dtype)
    places = np.stack(np.unravel_index(np.arange(math.prod(node.grid)), node.grid), axis=1).astype(np.int64)
    numbers = [entry(np.asarray(edges)[places[:, axis]]) for axis, edges in enumerate(node.layout.boundaries)]
    access = tuple(one_each(places[:, axis]) for axis in range(node.ndim))
    sizes = np.full(len(places), max(1, math.prod(node.shape) * node.dtype.itemsize // len(places)))
    made = by_number("sparse_of_dense", [(node, access)], numbers, sizes, fill=scalar_text(value))
    return sparse_array(Form(node.layout, node.dtype, value, places, made))
