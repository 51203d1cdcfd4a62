"""Plain rows of numbers, by the compiled parser, in pieces that stay in the cache and share their memory.

Both functions give up (None, False) where there is no compiled parser, and where something is not
plain: then Arrow reads it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.io import compiled
from linnet.io.csv_columns import Dialect, missing_words
from linnet.io.unpacked import Bytes

Tile = NDArray[Any]
_PIECE = 1 << 19
"""Bytes that are looked at together."""


class _Rooms(threading.local):
    """Memory for one piece in each thread: new pages cost more than the bytes that are put there."""

    def __init__(self) -> None:
        self.room = np.zeros(_PIECE + compiled.BEHIND, np.uint8)


_ROOMS = _Rooms()


def counted(source: Bytes, start: int, stop: int, quote: str, *, begins: bool) -> tuple[int, int] | None:
    """Rows that begin in a range of bytes, and where the first one does; None if there are quotes.

    A row begins at `start` if the byte before ends a line, or if all rows begin there.
    """
    library = compiled.library()
    if library is None:
        return None
    room = _ROOMS.room
    read = _reader(source, start - 1 + begins, stop + 2)
    piece = len(room) - compiled.BEHIND
    rows, first = 0, -1
    for at in range(start, stop, piece):
        body = min(piece, stop - at)
        own = int(begins and at == start)  # a line end of our own before the first row
        room[:own] = 10
        size = own + read(room[own : body + 2], at - 1 + own)
        rows_of_range, place = compiled.rows_of(library, room[:size], body, quote)
        if rows_of_range < 0:
            return None
        if rows_of_range and not rows:
            first = at - 1 + place
        rows += rows_of_range
    return rows, first


def filled(
    source: Bytes,
    start: int,
    stop: int,
    rows: int,
    *,
    dialect: Dialect,
    width: int,
    columns: tuple[int, ...],
    types: Sequence[str],
    into: Sequence[Tile],
) -> bool:
    """Put the numbers of all rows in a range of bytes into a tile, or one for each column."""
    library = compiled.library()
    wanted = dict(zip(columns, types, strict=True))
    if library is None or len(wanted) < len(columns) or not _fits(types, into):
        return False
    marks = (dialect.delimiter, dialect.quote, dialect.decimal)
    parser = compiled.Parser(library, marks, missing_words(dialect), width, wanted, into)
    room = _ROOMS.room
    read = _reader(source, start, stop)
    row = 0
    while start < stop:
        size = read(room[: min(len(room) - compiled.BEHIND, stop - start)], start)
        room[size : size + compiled.BEHIND] = 0
        row, taken = parser.parse(room[:size], start + size == stop, row, rows)
        if row < 0 or not taken:  # a row may be longer than a piece, or the file be cut off since
            return False
        start += taken
    return row == rows


def _fits(types: Sequence[str], into: Sequence[Tile]) -> bool:
    dtypes = {"double": np.dtype(np.float64), "int64": np.dtype(np.int64)}
    tiles = [into[0]] * len(types) if len(into) == 1 else into
    return all(dtypes.get(word) == tile.dtype for word, tile in zip(types, tiles, strict=True))


def _reader(source: Bytes, start: int, stop: int) -> Callable[[Tile, int], int]:
    """What fills memory with the bytes from a place on, and says how many there were."""
    if source.is_near:
        return source.fill
    text = np.frombuffer(source.read(start, stop), np.uint8)  # one request, however many pieces

    def taken(room: Tile, at: int) -> int:
        piece = text[at - start : at - start + len(room)]
        room[: len(piece)] = piece
        return len(piece)

    return taken
