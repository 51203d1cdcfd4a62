"""Products over other operations than + and *: (min, +), (max, +), (max, min), (min, max), (or, and).

Compiled where a compiler was there (`compiled/semiring.c`); the NumPy here gives the same, row by row. Values
that are no numbers are passed over, as Python's `min` does, or make the result no number, as NumPy's does.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels import compiled
from linnet.kernels.registry import kernel
from linnet.machine.libraries import loaded

Tile = NDArray[Any]
OPERATIONS = (("min", "add"), ("max", "add"), ("max", "minimum"), ("min", "maximum"))
"""⊕ and ⊗, in the order in which `semiring.c` numbers them."""
_TYPES = {"d": 0, "f": 1, "q": 2, "l": 2, "i": 3, "B": 4, "?": 4}
_LIBRARY = Path(compiled.__file__).with_name("semiring.so")
_PIECE = 1 << 16
"""Elements of the result that NumPy works on at a time, so that they stay in the cache."""


@functools.cache
def _library() -> ctypes.CDLL | None:
    found = loaded(_LIBRARY)
    if found is not None:
        found.linnet_semiring.argtypes = (ctypes.c_int64, ctypes.c_int64, *(ctypes.c_void_p,) * 4)
        found.linnet_semiring.restype = ctypes.c_int
    return found


def identity(plus: str, dtype: np.dtype[Any]) -> Any:
    """What changes nothing under min or max.

    >>> identity("min", np.dtype("i2")), identity("max", np.dtype(bool))
    (np.int16(32767), np.False_)
    """
    if dtype.kind == "f":
        return dtype.type(np.inf if plus == "min" else -np.inf)
    if dtype.kind == "b":
        return np.bool_(plus == "min")
    limits = np.iinfo(dtype)
    return dtype.type(limits.max if plus == "min" else limits.min)


def _shape(lefts: Any, rights: Any, **_: Any) -> tuple[int, ...]:
    one, other = (each[0] if isinstance(each, list) else each for each in (lefts, rights))
    return (one[0], other[1])


def _work(lefts: Any, rights: Any, **_: Any) -> float:
    tiles = lefts if isinstance(lefts, list) else [lefts]
    return 2.0 * sum(each[0] * each[1] for each in tiles) * _shape(lefts, rights)[1]


@kernel("semiring_product", shape=_shape, flops=_work)
def semiring_product(
    lefts: list[Tile] | Tile, rights: list[Tile] | Tile, *, plus: str, times: str, skip: bool
) -> Tile:
    """One tile of a product: a row of tiles by a column of tiles. `skip` passes over what is no number.

    >>> d = np.array([[0.0, 1.0], [5.0, 0.0]])
    >>> semiring_product(d, d, plus="min", times="add", skip=True)
    array([[0., 1.],
           [5., 0.]])
    """
    first, second = (each if isinstance(each, list) else [each] for each in (lefts, rights))
    dtype = np.result_type(first[0], second[0])
    total = np.full((first[0].shape[0], second[0].shape[1]), identity(plus, dtype), dtype)
    for one, other in zip(first, second, strict=True):
        a, b = one.astype(dtype, copy=False), other.astype(dtype, copy=False)
        if not (skip or _all_numbers(a, b, times)) or not _compiled(total, a, b, plus, times):
            in_numpy(total, a, b, plus, times, skip)
    return total


def _all_numbers(a: Tile, b: Tile, times: str) -> bool:
    """Whether no pair can give what is no number."""
    if a.dtype.kind != "f":
        return True
    with np.errstate(invalid="ignore"):
        ends = [each.sum() for each in (a, b)]  # no number or infinite, if an element is
    if all(map(np.isfinite, ends)):
        return True
    if np.isnan(a).any() or np.isnan(b).any():
        return False
    return times != "add" or not any(
        (one == np.inf).any() and (other == -np.inf).any() for one, other in ((a, b), (b, a))
    )


def _compiled(total: Tile, a: Tile, b: Tile, plus: str, times: str) -> bool:
    """Do it in C; False if that is not possible."""
    library = _library()
    item = total.itemsize
    if library is None or total.dtype.char not in _TYPES or not total.size:
        return False
    if any(stride % item for each in (a, b) for stride in each.strides):
        return False
    numbers = [*total.shape, a.shape[1], *(s // item for s in (*a.strides, *b.strides, total.strides[0]))]
    size = np.array(numbers, np.int64)
    operation = OPERATIONS.index((plus, times))
    pointers = [each.ctypes.data for each in (size, a, b, total)]
    return bool(library.linnet_semiring(operation, _TYPES[total.dtype.char], *pointers))


def in_numpy(total: Tile, a: Tile, b: Tile, plus: str, times: str, skip: bool) -> None:
    """The same without a compiler.

    >>> total = np.zeros((1, 1))
    >>> in_numpy(total, np.array([[1.0, np.nan]]), np.array([[2.0], [3.0]]), "max", "add", True), total
    (None, array([[3.]]))
    """
    join: np.ufunc = {
        ("min", True): np.fmin, ("min", False): np.minimum,
        ("max", True): np.fmax, ("max", False): np.maximum,
    }[plus, skip]  # fmt: skip
    pair = getattr(np, times) if times == "add" or not skip else _first_unless(times == "minimum")
    rows = max(1, _PIECE // max(1, total.shape[1]))
    with np.errstate(all="ignore"):
        for start in range(0, total.shape[0], rows):
            part = total[start : start + rows]
            for k in range(a.shape[1]):
                join(part, pair(a[start : start + rows, k, None], b[k]), out=part)


def _first_unless(less: bool) -> Callable[[Tile, Tile], Tile]:
    """Python's `min` (or `max`) of two: the first, unless the second is smaller (larger)."""
    better = np.less if less else np.greater
    return lambda x, y: np.where(better(y, x), y, x)
