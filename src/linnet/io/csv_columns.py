"""Columns of text, parsed and written by Arrow; and what is wrong with a row that it cannot parse."""

from __future__ import annotations

import csv as reader
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import FormatError, InputError
from linnet.io import stores
from linnet.io.places import Place

Tile = NDArray[Any]
_BLOCK = 1 << 21
"""Bytes that are parsed at once where rows may be long."""
_PIECE = 1 << 18
"""Bytes that are parsed at once where rows are short: text and numbers then stay in the cache."""
_INTEGER = re.compile(r"-?[0-9]{1,18}")
_NUMBER = re.compile(r"-?[0-9]+([.][0-9]+)?(e-?[0-9]+)?")
WITH_MISSING = ("timestamp", "double", "float", "halffloat")
"""Types that have a value for what is missing: NaN, NaT."""


def arrow(what: str = "reading and writing text in columns") -> Any:
    """pyarrow, or the error that says how to get it, and what needs it."""
    try:
        import pyarrow
        import pyarrow.csv
    except ImportError as error:
        raise stores.extra("pyarrow", what) from error
    return pyarrow


@dataclass(frozen=True, slots=True)
class Dialect:
    """How rows of text are written."""

    delimiter: str = ","
    quote: str = '"'
    decimal: str = "."
    missing: tuple[str, ...] = ()
    """Words for a missing value, besides the usual ones (nothing, NA, NaN, null, …)."""

    def __post_init__(self) -> None:
        for name in ("delimiter", "quote", "decimal"):
            character = getattr(self, name)
            if not isinstance(character, str) or len(character.encode()) != 1:
                raise InputError(f"{name}={character!r}: give one ASCII character")

    def values(self) -> tuple[Any, ...]:
        """As attributes of a kernel."""
        return astuple(self)


def arrow_type(dtype: np.dtype[Any]) -> str:
    """Arrow's word for a dtype that text can become."""
    words = {"?": "bool", "e": "halffloat", "f": "float", "d": "double"}
    if dtype.char in words:
        return words[dtype.char]
    if dtype.kind in "iu":
        return dtype.newbyteorder("=").name
    if dtype.kind == "M" and np.datetime_data(dtype)[0] in ("s", "ms", "us", "ns"):
        return f"timestamp[{np.datetime_data(dtype)[0]}]"
    raise InputError(
        f"columns of text cannot become {dtype}; "
        "use booleans, integers, floats, or datetime64 in s, ms, us or ns"
    )


def missing_words(dialect: Dialect) -> list[str]:
    """All words for a missing value: those that Arrow knows, and those of a dialect."""
    return [*arrow().csv.ConvertOptions().null_values, *dialect.missing]


def parsed_batches(
    text: Any,
    dialect: Dialect,
    width: int,
    columns: Sequence[int],
    types: Mapping[int, str] | None,
) -> Iterator[Any]:
    """Rows of text as batches of Arrow's columns; without types it judges these by itself.

    Columns have their numbers for names: names in files need not be unique.
    """
    pa = arrow()
    names = [str(number) for number in range(width)]
    convert = pa.csv.ConvertOptions(
        include_columns=[str(number) for number in columns],
        column_types={str(k): _type(word) for k, word in (types or {}).items()},
        decimal_point=dialect.decimal,
    )
    convert.null_values = missing_words(dialect)
    quoted = dialect.quote.encode() in bytes(text)
    parse = pa.csv.ParseOptions(
        delimiter=dialect.delimiter, quote_char=dialect.quote, newlines_in_values=quoted
    )
    # A row in quotes may be of any length; others are about as long as the first.
    piece = _BLOCK if types is None or quoted else max(_PIECE, 8 * bytes(text).find(b"\n"))
    read = pa.csv.ReadOptions(use_threads=False, column_names=names, block_size=piece)
    if not memoryview(text).nbytes:
        return
    if types is None:  # all rows are judged together
        yield from pa.csv.read_csv(pa.BufferReader(text), read, parse, convert).to_batches()
    else:
        yield from pa.csv.open_csv(pa.BufferReader(text), read, parse, convert)


def _type(word: str) -> Any:
    pa = arrow()
    if word.startswith("timestamp"):
        return pa.timestamp(word[10:-1])
    return {"bool": pa.bool_(), "halffloat": pa.float16(), "float": pa.float32(), "double": pa.float64()}.get(
        word
    ) or getattr(pa, word)()


# ---- what is wrong


def diagnosis(
    text: bytes,
    dialect: Dialect,
    width: int,
    types: Mapping[int, str],
    place: Place,
    first: int,
    error: Exception,
) -> FormatError:
    """The error for rows that Arrow refuses: the first row that is wrong, and why."""
    lines = io.StringIO(text.decode("utf-8", "replace"), newline="")
    rows = reader.reader(lines, delimiter=dialect.delimiter, quotechar=dialect.quote)
    number = first
    try:
        for fields in rows:
            if not fields:
                continue
            number += 1
            if len(fields) != width:
                return FormatError(
                    f"{place}: row {number:,} has {len(fields)} columns, the first one has {width}: "
                    f"{_shown(dialect.delimiter.join(fields))}"
                )
            for column, word in types.items():
                if not _parses(fields[column], word, dialect):
                    return FormatError(
                        f"{place}: row {number:,}, column {column + 1}: {_shown(fields[column])} is not "
                        f"{_said(word)}; give dtype=..., or na_values=[...] if it stands for a missing value"
                    )
    except reader.Error as problem:
        return FormatError(f"{place}: row {number + 1:,}: {problem}")
    return FormatError(f"{place}: rows from {first + 1:,} on cannot be parsed: {error}")


@lru_cache(maxsize=4096)
def _parses(field: str, word: str, dialect: Dialect) -> bool:
    """Whether Arrow takes one field for what its column must be."""
    if (word == "double" and _NUMBER.fullmatch(field)) or (word == "int64" and _INTEGER.fullmatch(field)):
        return True  # asking Arrow for each of a million fields would take minutes
    pa = arrow()
    line = io.StringIO()
    reader.writer(line, delimiter=dialect.delimiter, quotechar=dialect.quote).writerow([field, "0"])
    try:
        (batch,) = parsed_batches(line.getvalue().encode(), dialect, 2, (0,), {0: word})
    except pa.ArrowInvalid:
        return False
    return not batch.column(0).null_count or word.startswith(WITH_MISSING)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else f"{text[:57]}…")


def _said(word: str) -> str:
    return {"double": "a number", "float": "a number", "bool": "true or false"}.get(word, f"of type {word}")


# ---- writing


def text_of(tile: Tile, delimiter: str, fmt: str | None) -> bytes:
    """Rows of numbers as text; without a format as short as reads back to the same numbers."""
    rows = tile.reshape(len(tile), -1)
    if fmt is not None:
        file = io.StringIO()
        np.savetxt(file, rows, fmt=fmt, delimiter=delimiter)
        return file.getvalue().encode()
    pa = arrow()
    names = [str(number) for number in range(rows.shape[1])]
    table = pa.table([pa.array(np.ascontiguousarray(rows[:, k])) for k in range(rows.shape[1])], names=names)
    sink = pa.BufferOutputStream()
    how = pa.csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
    pa.csv.write_csv(table, sink, how)
    return sink.getvalue().to_pybytes()


def header_of(names: Sequence[str], delimiter: str) -> bytes:
    """The line of names above the rows."""
    line = io.StringIO()
    reader.writer(line, delimiter=delimiter, lineterminator="\n").writerow(names)
    return line.getvalue().encode()
