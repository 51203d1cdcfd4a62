"""Text in rows and columns: what it holds, where its rows begin, and rows as numbers.

A file is cut into ranges of bytes; a first pass over each counts the rows that begin in it. Line
ends within quotes end no row, and whether a range begins within quotes is known only when all before
it have been counted: so each is counted for both cases. The rows of a range are then
parsed by the compiled parser if they are plain numbers (`csv_plain`), else by Arrow, in pieces that fit
the cache on their way from columns to rows.
"""

from __future__ import annotations

import csv as reader
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import FormatError, InputError
from linnet.io import stores
from linnet.io.csv_columns import WITH_MISSING, Dialect, arrow, arrow_type, diagnosis, parsed_batches
from linnet.io.csv_plain import counted, filled
from linnet.io.places import Options, Place
from linnet.io.unpacked import Bytes, compression_of

Tile = NDArray[Any]
_SAMPLE = 1 << 20
"""Bytes from which the types of columns are judged."""
_PIECE = 1 << 18
"""Bytes that are searched for line ends at once: what is made on the way stays in the cache."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the beginning of a file tells."""

    place: Place
    version: str
    compression: str | None
    dialect: Dialect
    names: tuple[str, ...]
    """Of all columns; numbers where there is no header."""
    begin: int
    """Where the first row begins."""
    size: int
    """Bytes in all."""
    row: float
    """Bytes of a row, roughly."""
    types: tuple[str, ...]
    """What the first rows of each column hold, in Arrow's words."""


def head(place: Place, dialect: Dialect, *, header: bool, skip: int, compression: str | None) -> Head:
    """Read the beginning of a file: names of columns, and what they hold."""
    arrow()
    compression = compression_of(place, compression)
    version = stores.size_and_version(place)[1]
    source = Bytes(place, version, compression)
    size = source.size()
    sample = bytes(source.read(0, min(size, _SAMPLE)))
    begin = 3 if sample.startswith(b"\xef\xbb\xbf") else 0
    for _ in range(skip):
        begin = _line_end(sample, begin, place, "skip_rows")
    while begin < len(sample) and sample[begin] in b"\r\n":
        begin += 1
    first = _line_end(sample, begin, place, "its first row") if begin < len(sample) else begin
    fields = _fields(sample[begin:first], dialect)
    if not fields:
        raise FormatError(f"{place} holds no rows: there is nothing to tell its columns from")
    names = tuple(fields) if header else tuple(map(str, range(len(fields))))
    if header:
        begin = first
    whole = sample if size == len(sample) else sample[: sample.rfind(b"\n") + 1]
    types, rows = _sampled(whole[begin:], dialect, len(fields), place)
    row = max(1.0, (len(whole) - begin) / max(1, rows))
    return Head(place, version, compression, dialect, names, begin, size, row, types)


def _line_end(sample: bytes, start: int, place: Place, what: str) -> int:
    end = sample.find(b"\n", start)
    if end < 0 and len(sample) == _SAMPLE:
        raise FormatError(f"{place}: {what} has no line end within {_SAMPLE:,} bytes; is it text in rows?")
    if end < 0 and b"\r" in sample[start:].rstrip(b"\r"):
        raise FormatError(f"{place}: its lines end with CR alone; end them with LF")
    return len(sample) if end < 0 else end + 1


def _fields(line: bytes, dialect: Dialect) -> list[str]:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        text = line.decode("latin-1")
    rows = reader.reader(io.StringIO(text), delimiter=dialect.delimiter, quotechar=dialect.quote)
    return next(rows, [])


def _sampled(text: bytes, dialect: Dialect, width: int, place: Place) -> tuple[tuple[str, ...], int]:
    """What Arrow takes the columns of the first rows for, and how many rows these are."""
    if not text.strip():
        return ("null",) * width, 0
    try:
        batches = list(parsed_batches(text, dialect, width, tuple(range(width)), None))
    except arrow().ArrowInvalid as error:
        raise diagnosis(text, dialect, width, {}, place, 0, error) from error
    types = [str(field.type) for field in batches[0].schema]
    for column, word in enumerate(types):
        if word == "int64" and any(batch.column(column).null_count for batch in batches):
            types[column] = "double"  # integers have no value for what is missing
    return tuple(types), sum(batch.num_rows for batch in batches)


# ---- where rows begin


def survey(
    start: int, stop: int, *, url: str, options: Options, version: str, compression: str | None, quote: str
) -> Tile:
    """What a range of bytes holds: quotes; then rows that begin in it, and where the first one does.

    The last two come twice: for a range that begins outside quotes, and for one that begins inside.
    A row begins at `start` itself if the byte before is a line end, or if `start` is negative: then
    it is the beginning of all rows, -1 - start. Where no row begins, the first one is -1.
    """
    source = Bytes(Place(url, options), version, compression)
    begins, start = start < 0, -1 - start if start < 0 else start
    plain = counted(source, start, stop, quote, begins=begins)
    if plain is not None:
        return np.array([[0, *plain, 0, -1]], np.int64)
    # The byte before tells whether the first one begins a row, two behind whether the last row is empty.
    if begins:
        text = b"\n" + bytes(source.read(start, stop + 2))
    else:
        text = bytes(source.read(start - 1, stop + 2))
    data = np.frombuffer(text, np.uint8)
    body = min(stop - start, len(data))
    if quote.encode() not in text:
        return np.array([[0, *_plain_rows(data, body, start, b"\r" in text), 0, -1]], np.int64)
    quotes = 0
    counts, firsts = [0, 0], [-1, -1]
    for low in range(0, body, _PIECE):
        piece = data[low : min(low + _PIECE, body)]  # bytes before the places where rows may begin
        ends = np.flatnonzero(piece == 10) + low
        inside = np.zeros(len(ends), bool)
        marks = np.flatnonzero(piece == ord(quote)) + low
        if len(marks):
            inside = (np.searchsorted(marks, ends) + quotes) % 2 == 1
        elif quotes % 2:
            inside = ~inside
        quotes += len(marks)
        begins = ends + 1
        after = data[np.minimum(begins, len(data) - 1)]
        then = data[np.minimum(begins + 1, len(data) - 1)]
        empty = (after == 10) | ((after == 13) & (then == 10)) | (begins >= len(data))
        for state in (0, 1):
            starts = begins[(inside == bool(state)) & ~empty]
            counts[state] += len(starts)
            if firsts[state] < 0 and len(starts):
                firsts[state] = start - 1 + int(starts[0])
    return np.array([[quotes, counts[0], firsts[0], counts[1], firsts[1]]], np.int64)


def _plain_rows(data: Tile, body: int, start: int, returns: bool) -> tuple[int, int]:
    """Rows that begin in bytes without quotes, from that at `start - 1` on, and where the first one does."""
    count, first = 0, -1
    for low in range(0, min(body, len(data) - 1), _PIECE):
        high = min(low + _PIECE, body, len(data) - 1)
        after = data[low + 1 : high + 1]
        begins = (data[low:high] == 10) & (after != 10)
        if returns:
            then = data[low + 2 : high + 2]
            begins[: len(then)] &= (after[: len(then)] != 13) | (then != 10)
        rows = int(np.count_nonzero(begins))
        if rows and first < 0:
            first = start + low + int(begins.argmax())
        count += rows
    return count, first


def ranges(surveys: Tile, size: int) -> list[tuple[int, int, int, int]]:
    """The rows of each range: bytes from and to, the number of the first row, and how many there are."""
    quotes, starts, total = 0, [], 0
    for marks, outer, outer_first, inner, inner_first in surveys.tolist():
        count, first = (inner, inner_first) if quotes % 2 else (outer, outer_first)
        if count:
            starts.append((first, total, count))
            total += count
        quotes += marks
    ends = [*(first for first, _, _ in starts), size][1:]
    return [(first, end, row, count) for (first, row, count), end in zip(starts, ends, strict=True)]


# ---- rows


def read(
    start: int,
    stop: int,
    first: int,
    rows: int,
    *,
    url: str,
    options: Options,
    version: str,
    compression: str | None,
    dialect: tuple[Any, ...],
    width: int,
    columns: tuple[int, ...],
    types: tuple[str, ...],
    into: Sequence[Tile],
) -> None:
    """Fill a tile, or one for each column, with the rows of a range."""
    place, how = Place(url, options), Dialect(*dialect)
    if place.is_local:
        stores.same_version(place, version)
    source = Bytes(place, version, compression)
    form: dict[str, Any] = {"dialect": how, "width": width, "columns": columns, "types": types}
    if filled(source, start, stop, rows, **form, into=into):
        return
    text = source.read(start, stop)
    wanted = dict(zip(columns, types, strict=True))
    done = 0
    try:
        for batch in parsed_batches(text, how, width, columns, wanted):
            count = batch.num_rows
            if done + count <= rows:
                _put(batch, done, columns, types, into)
            done += count
    except arrow().ArrowInvalid as error:
        raise diagnosis(bytes(text), how, width, wanted, place, first, error) from error
    if done != rows:
        raise FormatError(
            f"{place}: {rows:,} rows were counted from row {first + 1:,} on, and {done:,} were parsed; "
            f"is a quote ({how.quote}) open somewhere?"
        )


def _put(
    batch: Any, done: int, columns: tuple[int, ...], types: tuple[str, ...], into: Sequence[Tile]
) -> None:
    part = slice(done, done + batch.num_rows)
    if len(into) == 1 and into[0].ndim == 2 and {*types} == {"double"}:
        into[0][part] = batch.to_tensor(null_to_nan=True, row_major=True).to_numpy()
        return
    for place in range(len(columns)):
        column = batch.column(place)
        if column.null_count and not types[place].startswith(WITH_MISSING):
            raise arrow().ArrowInvalid("a missing value")
        values = column.to_numpy(zero_copy_only=False)
        if len(into) == 1:
            into[0][(part, place) if into[0].ndim == 2 else part] = values
        else:
            into[place][part] = values


_TEXT = ("string", "binary", "time32[s]")
"""What Arrow takes words for, and times of day."""


def settled_types(head: Head, columns: tuple[int, ...], dtypes: Sequence[np.dtype[Any]]) -> tuple[str, ...]:
    """What each column is parsed as, to become these dtypes."""
    return tuple(
        # Words such as "true" become numbers only after they were recognised.
        "bool" if head.types[column] == "bool" and dtype.kind in "fiu" else arrow_type(dtype)
        for column, dtype in zip(columns, dtypes, strict=True)
    )


def natural_dtypes(head: Head, columns: Sequence[int]) -> list[np.dtype[Any]]:
    """The dtype of each column, as its first rows tell; one that is empty there counts as floats."""
    known = {"int64": "i8", "bool": "?", "date32[day]": "M8[s]"}
    dtypes: list[np.dtype[Any]] = []
    for column in columns:
        kind = head.types[column]
        if kind in _TEXT:
            others = [n for n, t in zip(head.names, head.types, strict=True) if t not in _TEXT]
            raise FormatError(
                f"{head.place}: column {head.names[column]!r} holds text, which arrays cannot; "
                + (f"leave it out: columns={others!r}" if others else "and so do all others")
            )
        if kind.startswith("timestamp"):
            dtypes.append(np.dtype(f"M8[{kind[10:].split(']')[0].split(',')[0]}]"))
        else:
            dtypes.append(np.dtype(known.get(kind, "f8")))
    return dtypes


def positions(head: Head, columns: Any) -> tuple[int, ...]:
    """Columns that a user names, or counts."""
    if columns is None:
        return tuple(range(len(head.names)))
    numbers: list[int] = []
    for each in [columns] if isinstance(columns, str | int) else list(columns):
        if isinstance(each, str) and head.names.count(each) == 1:
            numbers.append(head.names.index(each))
        elif not isinstance(each, str) and -len(head.names) <= each < len(head.names):
            numbers.append(int(each) % len(head.names))
        else:
            twice = isinstance(each, str) and each in head.names
            problem = "occurs several times; give its number" if twice else "is not there"
            raise InputError(
                f"column {each!r} {problem} in {head.place}; it has {', '.join(map(repr, head.names[:20]))}"
            )
    return tuple(numbers)
