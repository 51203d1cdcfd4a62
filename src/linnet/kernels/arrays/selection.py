"""Elements of one array where a condition holds, of another elsewhere: `np.where`, without branches.

NumPy's own takes a branch for every element. Where the condition goes back and forth the processor guesses
wrong half of the time, and a million elements take 4 ms; selecting their bits takes 1 ms, whatever the
condition. Where it seldom changes, NumPy's branches are foreseen and are faster.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Tile = NDArray[Any]

_FEW = 1 << 12
"""Elements up to which calls take longer than branches."""
_PIECE = 1 << 14
"""Elements whose bits are selected at a time, so that they stay in the cache."""
_SELDOM = 16
"""Elements between two changes of the condition from which on branches are foreseen."""
_WORDS = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64, 16: np.int64}
"""By the bytes of an element: integers that have its bits; two of them for the longest."""


def selected(condition: Any, x: Any, y: Any) -> Any:
    """`np.where(condition, x, y)`.

    >>> selected(np.array([True, False]), 1.5, np.array([7.0, 8.0]))
    array([1.5, 8. ])
    """
    if _goes_back_and_forth(condition) and all(_is_plain(each) for each in (x, y)):
        dtype = np.result_type(x, y)
        if dtype.kind in "fc" or (isinstance(x, np.ndarray) and isinstance(y, np.ndarray)):
            made = np.empty(condition.shape, dtype)
            operands = [each if isinstance(each, np.ndarray) else np.asarray(each, dtype) for each in (x, y)]
            if _by_bits(condition, operands[0], operands[1], made):
                return made
    return np.where(condition, x, y)


def selected_into(condition: Any, x: Any, y: Any, out: Tile) -> None:
    """The same into an array that is neither of the two; its dtype has been settled."""
    if condition.dtype != bool:
        condition = condition.astype(bool)
    if not (
        _goes_back_and_forth(condition) and condition.shape == out.shape and _by_bits(condition, x, y, out)
    ):
        np.copyto(out, y, casting="unsafe")  # durations among dates become dates
        np.copyto(out, x, casting="unsafe", where=condition)


def _is_plain(item: Any) -> bool:
    return type(item) in (np.ndarray, float, int, bool)


def _goes_back_and_forth(condition: Any) -> bool:
    if type(condition) is not np.ndarray or condition.dtype != bool or condition.size < _FEW:
        return False
    if not condition.flags.c_contiguous:
        return False
    flat = condition.reshape(-1)
    return bool(np.count_nonzero(flat[1:] != flat[:-1]) * _SELDOM > flat.size)


def _by_bits(condition: Tile, x: Tile, y: Tile, out: Tile) -> bool:
    """Select bits, and say whether that could be done."""
    word = _WORDS.get(out.dtype.itemsize)
    one, other, made = (_bits(each, out, word) for each in (x, y, out))
    if word is None or one is None or other is None or made is None or not out.flags.c_contiguous:
        return False
    holds = condition.reshape(-1).view(np.int8)
    width = out.dtype.itemsize // np.dtype(word).itemsize
    mask = np.empty((_PIECE, width), word)
    for start in range(0, len(holds), _PIECE):
        part = slice(start, start + _PIECE)
        place, second = made[part], other[part] if other.shape[0] > 1 else other
        chosen = mask[: len(place)]
        chosen[...] = holds[part, None]
        np.negative(chosen, out=chosen)  # no bits, or all
        np.bitwise_xor(one[part] if one.shape[0] > 1 else one, second, out=place)
        np.bitwise_and(place, chosen, out=place)
        np.bitwise_xor(place, second, out=place)
    return True


def _bits(operand: Tile, out: Tile, word: Any) -> Tile | None:
    """The elements of an operand as rows of integers: as many as the result has, or one for all of them."""
    if word is None or operand.dtype != out.dtype or not operand.dtype.isnative:
        return None
    if operand.size != 1 and (operand.shape != out.shape or not operand.flags.c_contiguous):
        return None
    return operand.reshape(-1, 1).view(word)
