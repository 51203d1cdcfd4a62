"""Python's whole numbers have no end, those of arrays 64 bits: what does not fit is refused, never wrapped.

Each array that stands for Python's whole numbers has a limit, which none of them exceeds in size. Most often
the dtypes tell that results fit. Where they do not, the values are looked at: they are computed there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.arrays.expression.builders import mapped

if TYPE_CHECKING:
    from linnet.loopnests.vectors import Vector

LONGEST = 2**63 - 1
"""The largest number that is kept."""
_UNKNOWN = 2**63


class Overflow(Exception):
    """Whole numbers of Python's would not fit 64 bits, or those of an array's dtype."""


def limit_of_dtype(dtype: np.dtype[Any]) -> int:
    """What no number of a dtype exceeds in size, as whole numbers that were converted to 64 bits.

    >>> limit_of_dtype(np.dtype(np.int8)), limit_of_dtype(np.dtype(bool))
    (128, 1)
    """
    if dtype.kind == "b":
        return 1
    return -int(np.iinfo(dtype).min) or int(np.iinfo(dtype).max) if dtype.kind in "iu" else _UNKNOWN


def limit(vector: Vector) -> int:
    """What no value exceeds in size, as far as is known without computing anything."""
    data: Any = vector.data
    if isinstance(data, ArrayBase):
        return vector.limit or (1 if vector.dtype.kind == "b" else _UNKNOWN)
    return max(map(abs, _ends(data)), default=0)


def _ends(data: Any) -> tuple[int, ...]:
    """The least and the largest number of some."""
    if isinstance(data, ArrayBase):
        from linnet.loopnests.vectors import functions

        if 0 in data.__node__.shape:
            return ()
        least, most = functions().compute(functions().min(data), functions().max(data))
        return int(least), int(most)
    data = np.asarray(data)
    return (int(data.min()), int(data.max())) if data.size else ()


def looked_at(vector: Vector) -> int:
    """The same, after a look at the values."""
    return max(map(abs, _ends(vector.data)), default=0)


def result_limit(op: str, left: Vector, right: Vector) -> int:
    """The limit of a result; Overflow if it may be beyond 64 bits."""
    found = _result_limit(op, limit(left), limit(right))
    if found > LONGEST:
        found = _result_limit(op, looked_at(left), looked_at(right))
    if found > LONGEST:
        raise Overflow
    return found


def _result_limit(op: str, one: int, other: int) -> int:
    match op:
        case "+" | "-":
            return one + other
        case "*":
            return one * other
        case "**":
            return one**other if one < 2 or other < 64 else _UNKNOWN
        case "<<":
            return one << other if other < 64 else _UNKNOWN if one else 0
        case "%":
            return other
        case "&" | "|" | "^":
            return (1 << max(one, other).bit_length()) if min(one, other) < _UNKNOWN else LONGEST
        case _:
            return min(one, LONGEST) if one < _UNKNOWN else LONGEST


def check_fits(vector: Vector, dtype: np.dtype[Any]) -> None:
    """Overflow if a dtype of whole numbers cannot hold all values."""
    limits = np.iinfo(dtype)
    if limits.min < 0 and limit(vector) <= limits.max:
        return
    if any(not limits.min <= each <= limits.max for each in _ends(vector.data)):
        raise Overflow


def check_fold(monoid: str, vector: Vector, count: int) -> int:
    """The limit of sums or products of so many values; Overflow if one may be beyond 64 bits."""
    if monoid not in "+*":
        return limit(vector)
    for largest in (limit, looked_at):
        one = largest(vector)
        found = one * count if monoid == "+" else one**count if one < 2 or count < 64 else _UNKNOWN
        if found <= LONGEST:
            return found
    if _total(monoid, vector.data) >= 62.999999:  # it is rounded
        raise Overflow
    return LONGEST


def _total(monoid: str, data: Any) -> float:
    """The logarithm of the size that the sum, or product, of all values has at most."""
    from linnet.loopnests.vectors import functions

    lazy = isinstance(data, ArrayBase)
    xp: Any = functions() if lazy else np
    sizes = xp.abs(xp.astype(data, float) if lazy else np.asarray(data, float))
    found = xp.sum(sizes) if monoid == "+" else xp.sum(xp.log2(xp.maximum(sizes, 1.0)))
    return float(np.log2(max(float(found), 1.0))) if monoid == "+" else float(found)


def whole(data: Any) -> Any:
    """Numbers with their fractions cut off, as 64-bit integers; what is too long, or no number, is an error
    (of arrays in tiles when they are computed)."""
    if isinstance(data, ArrayBase):
        return wrap(mapped("whole_number", [data.__node__], np.int64))
    from linnet.kernels.arrays.operations import operation

    try:
        return operation("whole_number").function(np.asarray(data))
    except (OverflowError, ValueError):
        raise Overflow from None
