"""Recurrences in two loops in C (`compiled/waves.c`): the steps of a cell as numbers.

All that is not known there (a sine, complex numbers) is left to NumPy.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels import compiled
from linnet.kernels.arrays.operations import cast, operation
from linnet.machine.float_errors import quietly
from linnet.machine.libraries import loaded

Tile = NDArray[Any]
TYPES = {"d": 0, "f": 1, "q": 2, "l": 2, "i": 3, "?": 4}
_NAMES = (
    "add", "subtract", "multiply", "divide", "less", "less_equal", "greater", "greater_equal", "equal",
    "not_equal", "where", "least", "most", "negative", "logical_and", "logical_or", "logical_not", "cast",
)  # fmt: skip
"""In the order in which `waves.c` numbers them."""
_LIBRARY = Path(compiled.__file__).with_name("waves.so")


@functools.cache
def _library() -> ctypes.CDLL | None:
    found = loaded(_LIBRARY)
    if found is not None:
        found.linnet_wave.argtypes = (ctypes.c_void_p,) * 3
        found.linnet_wave.restype = ctypes.c_int
    return found


def in_c(
    tiles: Sequence[Tile], sides: Any, others: Any, first: tuple[int, int], halos: Any, kinds: Any,
    reads: Any, constants: Any, steps: Any, results: Any,
) -> bool:  # fmt: skip
    """Fill tiles; False if that must be done in NumPy."""
    library = _library()
    dtypes = [
        np.dtype(np.int64), np.dtype(np.int64), *(each.dtype for each in others),
        *(tiles[which].dtype for which, _, _ in reads), *(np.asarray(each).dtype for each in constants),
    ]  # fmt: skip
    if library is None or tiles[0].size == 0 or any(each.char not in TYPES for each in dtypes):
        return False
    made = numbered(
        tuple(dtypes), tuple(map(tuple, steps)), tuple(results), tuple(each.dtype for each in tiles)
    )
    if made is None:
        return False
    kept: list[Tile] = []
    for (top, left), tile in zip(sides, tiles, strict=True):
        kept += [np.ascontiguousarray(top), np.ascontiguousarray(left), tile]
    kept += [
        np.ascontiguousarray(each[::-1] if kind == "j" else each)
        for each, kind in zip(others, kinds, strict=True)
    ]
    kept += [np.asarray(each) for each in constants]
    numbers = [*tiles[0].shape, len(tiles), len(others), len(reads), len(constants), len(made), *first]
    numbers.append(len(dtypes) + len(steps))
    for (high, wide), tile, result in zip(halos, tiles, results, strict=True):
        numbers += [high, wide, TYPES[tile.dtype.char], result, tile.strides[0] // tile.itemsize]
    for each, kind in zip(others, kinds, strict=True):
        numbers += [("i", "j", "ij").index(kind), TYPES[each.dtype.char]]
    numbers += [number for each in reads for number in each]
    numbers += [TYPES[np.asarray(each).dtype.char] for each in constants]
    pointers = (ctypes.c_void_p * len(kept))(*(each.ctypes.data for each in kept))
    settled = np.array(numbers, np.int64)
    return bool(library.linnet_wave(settled.ctypes.data, made.ctypes.data, pointers))


@functools.lru_cache(maxsize=256)
def numbered(dtypes: Any, steps: Any, results: Any, wanted: Any) -> Tile | None:
    """Steps as `cell_steps.h` reads them; None if it does not know one of them."""
    known = list(dtypes)
    for name, *places in steps:
        called = cast(places.pop()) if name == "cast" else operation(name)
        known.append(quietly(called.function, *(np.zeros(0, known[place]) for place in places)).dtype)
    if any(each.char not in TYPES for each in known) or any(
        known[result] != dtype for result, dtype in zip(results, wanted, strict=True)
    ):
        return None
    rows: list[tuple[int, ...]] = []
    for number, (name, *places) in enumerate(steps, len(dtypes)):
        row = _row(name, places, known, number, steps, len(dtypes))
        if row is None:
            return None
        rows.append(row)
    needed = set(results)
    for row in reversed(rows):
        if row[6] in needed:
            needed |= set(row[3:6])
    # A step that nobody needs (the test of a least value) does nothing.
    return np.array([row for row in rows if row[6] in needed] or np.zeros((0, 7)), np.int32).reshape(-1, 7)


def _row(
    name: str, places: list[Any], known: list[Any], number: int, steps: Any, before: int
) -> tuple[int, ...] | None:
    """One step: operation, type, type it is converted to, three operands, result."""
    kind, to = known[places[0]], known[number]
    test = 0
    if name == "cast":
        places = places[:1]
        if kind.kind == "f" and to.kind != "f":
            return None
    elif name == "where":
        test, *places = places
        kind = known[places[0]]
        if known[test].kind != "b":
            return None
        how = steps[test - before] if test >= before else ("", 0, 0)
        if how[0] in ("less", "greater") and tuple(how[1:]) == tuple(places) and kind.kind != "b":
            name, test = "least" if how[0] == "less" else "most", 0
    if name not in _NAMES or any(known[place] != kind for place in places):
        return None
    if (name == "divide" and kind.kind != "f") or (name.startswith("logical") and kind.kind != "b"):
        return None
    if kind.kind == "b" and name not in ("cast", "where", "equal", "not_equal") and name[:7] != "logical":
        return None
    one, other = (*places, places[0])[:2]
    return _NAMES.index(name), TYPES[kind.char], TYPES[to.char], one, other, test, number
