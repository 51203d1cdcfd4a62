"""Sweeps over matrices, several at a time: each cell is made of cells around it (heat, smoothing).

A tile is given with the rows around it that its cells will have been made of when all sweeps are done;
statement by statement fewer of these rows are right, until those of the tile are left. So a tile goes
through many sweeps while it is in the cache, and memory is read and written once for all of them. What is
computed is data: steps of element-wise operations, as in recurrences (`waves.py`). In C where these are all
known there (`compiled/sweeps.c`).
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.kernels import compiled
from linnet.kernels.arrays.operations import cast, operation
from linnet.kernels.arrays.waves_in_c import TYPES, numbered
from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly
from linnet.machine.libraries import loaded
from linnet.tiles.sparse_tile import scalar_of

Tile = NDArray[Any]
_LIBRARY = Path(compiled.__file__).with_name("sweeps.so")


class Statement(NamedTuple):
    """An assignment to a box of a matrix."""

    target: int
    """Which array is written."""
    box: tuple[int, int, int, int]
    """The first row and column that are written, and one past the last."""
    reads: tuple[tuple[int, int, int], ...]
    """Which array is read, and how many rows and columns further."""
    constants: tuple[str, ...]
    steps: tuple[tuple[Any, ...], ...]
    """Operations on values by number: two that are not used, reads, constants, steps."""
    result: int

    @property
    def around(self) -> tuple[int, int]:
        """How many rows above and below a cell it is made of."""
        down = [each[1] for each in self.reads]
        return max([0, *(-each for each in down)]), max([0, *down])


def _shapes(*given: Any, states: int, **_: Any) -> list[tuple[int, ...]]:
    first, last, columns = given[-3:]
    return [(last - first, columns)] * states


def _flops(*given: Any, statements: Any, times: int, **_: Any) -> float:
    first, last, columns = given[-3:]
    return float(times * (last - first) * columns * sum(len(each[4]) for each in statements))


@functools.cache
def _library() -> ctypes.CDLL | None:
    found = loaded(_LIBRARY)
    if found is not None:
        found.linnet_sweep.argtypes = (ctypes.c_void_p,) * 3
        found.linnet_sweep.restype = ctypes.c_int
    return found


def _dtypes(*given: Any, states: int, **_: Any) -> list[Any]:
    found: list[Any] = []
    for each in given[:states]:
        while isinstance(each, list):
            each = each[0]
        found.append(each)
    return found


@kernel("sweep", shape=_shapes, dtype=_dtypes, flops=_flops, scratch=1.5)
def sweep(*arguments: Any, statements: Sequence[tuple[Any, ...]], times: int, states: int) -> list[Tile]:
    """Some rows of matrices after statements were run on all of them, so many times.

    Arguments are, for each matrix (those that are written first), tiles of neighbouring rows; then the row at
    which these begin, how many rows there are in all, the first row that is wanted, one past the last, and
    how many columns. `statements` have the fields of `Statement`.

    >>> down = (0, (1, 0, 3, 4), ((0, -1, 0),), (), (), 2)  # from the second on, rows become those above them
    >>> sweep([np.arange(12).reshape(3, 4)], 0, 3, 1, 3, 4, statements=(down,), times=2, states=1)[0]
    array([[0, 1, 2, 3],
           [0, 1, 2, 3]])
    """
    start, rows, first, last, _ = arguments[-5:]
    arrays = [_together(tiles, number < states) for number, tiles in enumerate(arguments[:-5])]
    program = [Statement(*each) for each in statements] * times
    # Which rows must be right after each statement, from the last one back.
    wanted = [(first, last)]
    for each in reversed(program):
        up, down = each.around
        wanted.append((max(0, wanted[-1][0] - up), min(rows, wanted[-1][1] + down)))
    for each, (low, high) in zip(program, reversed(wanted[:-1]), strict=True):
        top, left, bottom, right = each.box
        low, high = max(low, top), min(high, bottom)
        if low < high and left < right:
            _run(arrays, each, slice(low - start, high - start), slice(left, right))
    return [each[first - start : last - start].copy() for each in arrays[:states]]


def _together(tiles: Any, own: bool) -> Tile:
    """Neighbouring tiles as one array; `own`: one that may be written to."""
    flat: list[Tile] = [each[0] if isinstance(each, list) else each for each in tiles]
    return np.concatenate(flat) if own or len(flat) > 1 else np.ascontiguousarray(flat[0])


def _run(arrays: list[Tile], each: Statement, rows: slice, columns: slice) -> None:
    target = arrays[each.target][rows, columns]
    moved = any(which == each.target and (down or right) for which, down, right in each.reads)
    made = np.empty_like(target, order="C") if moved else target
    values = [
        arrays[which][rows.start + down : rows.stop + down, columns.start + right : columns.stop + right]
        for which, down, right in each.reads
    ]
    constants = [scalar_of(text) for text in each.constants]
    if not _in_c(made, values, constants, each):
        quietly(_in_numpy, made, values, constants, each)
    if moved:
        target[...] = made


def _in_numpy(made: Tile, values: list[Any], constants: list[Any], each: Statement) -> None:
    known: list[Any] = [None, None, *values, *constants]
    for name, *places in each.steps:
        called = cast(places.pop()) if name == "cast" else operation(name)
        known.append(called.function(*(np.asarray(known[place]) for place in places)))
    made[...] = known[each.result]


def _in_c(made: Tile, values: list[Tile], constants: list[Any], each: Statement) -> bool:
    library = _library()
    unused = np.dtype(np.int64)
    dtypes = (*(one.dtype for one in values), *(np.asarray(one).dtype for one in constants))
    if library is None or any(one.char not in TYPES for one in (*dtypes, made.dtype)):
        return False
    steps = numbered((unused, unused, *dtypes), each.steps, (each.result,), (made.dtype,))
    if steps is None:
        return False
    # Rows lie equally far apart in all matrices; only what is made apart has its own distance.
    leading = {one.strides[0] // one.itemsize for one in values}
    apart = made.strides[0] // made.itemsize
    if any(one.strides[1] != one.itemsize for one in (*values, made)) or len(leading) > 1:
        return False
    numbers = [
        *made.shape,
        leading.pop() if leading else apart,
        apart,
        len(values),
        len(constants),
        len(steps),
    ]
    numbers += [2 + len(dtypes) + len(each.steps), each.result, TYPES[made.dtype.char]]
    numbers += [TYPES[one.char] for one in dtypes]
    kept = [np.asarray(one) for one in constants]
    places = [one.ctypes.data for one in (*values, *kept, made)]
    pointers = (ctypes.c_void_p * len(places))(*places)
    settled = np.array(numbers, np.int64)
    return bool(library.linnet_sweep(settled.ctypes.data, steps.ctypes.data, pointers))
