"""The part of reading text that is compiled, where a C compiler was there when the package was built.

Only numbers in plain rows: parsed one after the other, each goes straight to its place in the tile. Arrow
gives columns, which have to be turned into rows, and takes twice the time. The library is plain C and
knows nothing of Python, so calling it lets go of the interpreter lock. What it does not take (quotes,
words, dates, whatever is wrong) it leaves to Arrow, as everything is where it is missing.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.machine.libraries import loaded

LIBRARY = Path(__file__).with_name("fields.so")
"""Where the build puts the library; it is not there if no compiler was."""
BEHIND = 16
"""Bytes that must be there behind a text; they may hold anything but digits."""
KINDS = {"double": 1, "int64": 2}
"""Arrow's words for the types of columns that are parsed; 0 is a column that is skipped."""
_LOWEST, _HIGHEST = -342, 308
"""Powers of ten that doubles of up to 19 digits have."""


class Fields(ctypes.Structure):
    """What rows look like and where their numbers go, as `fields.c` describes it."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("width", "delimiter", "quote", "decimal")),
        *((name, ctypes.c_void_p) for name in ("kinds", "places", "strides", "powers")),
        *((name, ctypes.c_char_p) for name in ("numbers", "words")),
    )


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled library, or None where it was not built or cannot be loaded."""
    compiled = loaded(LIBRARY)
    if compiled is not None:
        number, address = ctypes.c_int64, ctypes.c_void_p
        compiled.linnet_fields.argtypes = (
            ctypes.POINTER(Fields),
            address,
            *(number,) * 4,
            ctypes.POINTER(number),
        )
        compiled.linnet_fields.restype = number
        compiled.linnet_rows.argtypes = (address, *(number,) * 3, ctypes.POINTER(number))
        compiled.linnet_rows.restype = number
    return compiled


@functools.cache
def powers() -> NDArray[np.uint64]:
    """For each power of ten q, the first 128 bits of 5^q, in two halves; those below 1 are rounded up.

    >>> [f"{half:x}" for half in powers()[1 - _LOWEST].tolist()]
    ['a000000000000000', '0']
    """
    halves: list[tuple[int, int]] = []
    for q in range(_LOWEST, _HIGHEST + 1):
        five = 5 ** abs(q)
        length = five.bit_length()
        if q < 0:
            bits = (1 << (length + 127)) // five + 1
        else:
            bits = five << 128 - length if length <= 128 else five >> length - 128
        halves.append((bits >> 64, bits & (1 << 64) - 1))
    return np.array(halves, np.uint64)


class Parser:
    """Rows of text that become numbers of tiles: one tile, or one for each column."""

    def __init__(
        self,
        compiled: ctypes.CDLL,
        marks: tuple[str, str, str],
        missing: Sequence[str],
        width: int,
        columns: dict[int, str],
        into: Sequence[NDArray[Any]],
    ) -> None:
        """`marks` are delimiter, quote and decimal point; `columns` says what those that are read hold."""
        self._compiled = compiled
        kinds = np.zeros(width, np.int64)
        places = np.zeros(width, np.uint64)
        strides = np.zeros(width, np.int64)
        for place, (column, word) in enumerate(columns.items()):
            kinds[column] = KINDS[word]
            tile = into[0][:, place] if into[0].ndim == 2 else into[place]
            places[column] = tile.ctypes.data
            strides[column] = tile.strides[0]
        delimiter, quote, decimal = marks
        numbers = [each for each in missing if _is_number(each, decimal)]
        others = [each for each in missing if each not in numbers]
        self._kept = (kinds, places, strides, into)  # what is pointed to must stay
        self._fields = Fields(
            width,
            *map(ord, (delimiter, quote, decimal)),
            *(each.ctypes.data for each in (kinds, places, strides, powers())),
            _counted(numbers),
            _counted(others),
        )

    def parse(self, text: NDArray[np.uint8], last: bool, row: int, rows: int) -> tuple[int, int]:
        """Put the rows of a text where they belong, from row `row` on and up to `rows`.

        Returns the row after, -1 if something is not plain; and how many bytes these rows have. A row
        that is cut off is left, unless it is the last. There are `BEHIND` bytes behind the text.
        """
        taken = ctypes.c_int64()
        after = self._compiled.linnet_fields(
            self._fields, text.ctypes.data, len(text), last, row, rows, taken
        )
        return after, taken.value


def rows_of(compiled: ctypes.CDLL, text: NDArray[np.uint8], body: int, quote: str) -> tuple[int, int]:
    """Rows that begin behind line ends among the first bytes of a text, and where the first one does.

    -1 rows if there is a quote among these bytes, -1 where no row begins.
    """
    first = ctypes.c_int64()
    count = compiled.linnet_rows(text.ctypes.data, body, len(text), ord(quote), first)
    return count, first.value


def _is_number(word: str, decimal: str) -> bool:
    try:
        return math.isfinite(float(word.replace(decimal, ".")))
    except ValueError:
        return False


def _counted(words: Sequence[str]) -> bytes:
    """Words one behind another, each after its length plus one; 0 ends them."""
    encoded = [each.encode() for each in words]
    return b"".join(bytes([len(each) + 1]) + each for each in encoded if len(each) < 255) + b"\0"
