"""Parquet files: columns in row groups, one file or a folder of them.

A row group is read whole or not at all, so tiles are made of whole ones. Columns come in batches
that fit the cache on their way into rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import FileError, FileMissingError, FormatError, InputError
from linnet.io import stores
from linnet.io.csv_columns import arrow
from linnet.io.journal import Journal, refuse_unfinished
from linnet.io.places import Options, Place

Tile = NDArray[Any]
_BATCH = 1 << 14
"""Rows that are moved from columns to rows at once."""


def library() -> Any:
    """pyarrow, or the error that says how to get it."""
    return arrow("reading and writing Parquet files")


@dataclass(frozen=True, slots=True)
class Table:
    """What several files of the same columns hold."""

    places: tuple[Place, ...]
    versions: tuple[str, ...]
    names: tuple[str, ...]
    """Of all columns that arrays can hold."""
    dtypes: tuple[np.dtype[Any], ...]
    """Of each of these; integers of which some are missing count as floats."""
    other: tuple[str, ...]
    """Names of columns that arrays cannot hold."""
    groups: tuple[tuple[int, ...], ...]
    """Rows of each row group of each file."""


def describe(given: Sequence[Place]) -> Table:
    """What files hold, or folders of files."""
    library()
    places = tuple(file for place in given for file in _files(place))
    versions = tuple(stores.size_and_version(place)[1] for place in places)
    groups: list[tuple[int, ...]] = []
    first: Any = None
    missing: set[str] = set()
    for place, version in zip(places, versions, strict=True):
        metadata = _metadata(place, version)
        schema = metadata.schema.to_arrow_schema()
        first = schema if first is None else first
        if [(f.name, f.type) for f in schema] != [(f.name, f.type) for f in first]:
            raise FormatError(f"{place} has other columns than {places[0]}: {', '.join(schema.names)}")
        groups.append(tuple(metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)))
        missing |= set(_with_missing(metadata))
    kinds = {field.name: _dtype(field.type, field.name in missing) for field in first}
    known = {name: dtype for name, dtype in kinds.items() if dtype is not None}
    other = tuple(name for name in kinds if name not in known)
    return Table(places, versions, tuple(known), tuple(known.values()), other, tuple(groups))


def _files(place: Place) -> list[Place]:
    refuse_unfinished(place)
    if place.name.endswith((".parquet", ".pq")) or not stores.children(place):
        stores.size_and_version(place)
        if not place.is_local or not stores.children(place):
            return [place]
    names = [
        name
        for name in stores.listing(place)
        if name.endswith((".parquet", ".pq")) and not name.rpartition("/")[2].startswith(("_", "."))
    ]
    if not names:
        raise FileMissingError(f"{place}: there is no file in it that ends with .parquet")
    return [place / name for name in names]


@lru_cache(maxsize=1024)
def _metadata(place: Place, version: str) -> Any:
    with _opened(place, None) as file:
        return file.metadata


@contextmanager
def _opened(place: Place, metadata: Any) -> Iterator[Any]:
    pa = library()
    import pyarrow.parquet as pq

    try:
        with stores.translated(place):
            source = place.url if place.is_local else pa.PythonFile(stores.Seekable(place), mode="r")
            with pq.ParquetFile(source, metadata=metadata) as file:
                yield file
    except (pa.ArrowInvalid, pa.ArrowException) as error:
        raise FormatError(f"{place} is no Parquet file, or is damaged or truncated: {error}") from error


def _with_missing(metadata: Any) -> Iterator[str]:
    """Names of columns whose statistics tell of missing values."""
    for group in range(metadata.num_row_groups):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            if chunk.is_stats_set and chunk.statistics.null_count:
                yield chunk.path_in_schema


def _dtype(kind: Any, missing: bool) -> np.dtype[Any] | None:
    """The dtype of a column, or None if arrays cannot hold it."""
    types = library().types
    if types.is_timestamp(kind):
        return np.dtype(f"M8[{kind.unit}]")
    if types.is_date(kind):
        return np.dtype("M8[D]")
    if not (types.is_floating(kind) or types.is_integer(kind) or types.is_boolean(kind)):
        return None
    dtype = np.dtype(kind.to_pandas_dtype())
    return np.dtype(float) if missing and dtype.kind in "iu" else dtype


def positions(table: Table, columns: Any) -> tuple[int, ...]:
    """Columns that a user names, or counts; None: all of them, if arrays can hold them."""
    if columns is None:
        if table.other:
            raise FormatError(
                f"{table.places[0]}: column {table.other[0]!r} holds what arrays cannot; leave it out: "
                f"columns={list(table.names)!r}"
            )
        return tuple(range(len(table.names)))
    numbers: list[int] = []
    for each in [columns] if isinstance(columns, str) else list(columns):
        if each not in table.names:
            held = "holds what arrays cannot" if each in table.other else "is not there"
            raise InputError(
                f"column {each!r} {held} in {table.places[0]}; it has {', '.join(map(repr, table.names))}"
            )
        numbers.append(table.names.index(each))
    return tuple(numbers)


def ranges(table: Table, row_bytes: int, target: float) -> list[tuple[int, int, int, int]]:
    """Row groups of each tile, up to a number of bytes: the file, groups from and to, and their rows."""
    row_groups: list[tuple[int, int, int, int]] = []
    for file, groups in enumerate(table.groups):
        start, rows = 0, 0
        for group, count in enumerate(groups):
            if rows and (rows + count) * row_bytes > target:
                row_groups.append((file, start, group, rows))
                start, rows = group, 0
            rows += count
        if rows:
            row_groups.append((file, start, len(groups), rows))
    return row_groups


def read(
    file: int,
    start: int,
    stop: int,
    rows: int,
    *,
    urls: tuple[str, ...],
    options: Options,
    versions: tuple[str, ...],
    columns: tuple[str, ...],
    into: Sequence[Tile],
) -> None:
    """Fill a tile, or one for each column, with the rows of some row groups of a file."""
    place = Place(urls[file], options)
    if place.is_local:
        stores.same_version(place, versions[file])
    done = 0
    with _opened(place, _metadata(place, versions[file])) as opened:
        batches = opened.iter_batches(_BATCH, list(range(start, stop)), list(columns), use_threads=False)
        for batch in batches:
            part = slice(done, done + batch.num_rows)
            for number, name in enumerate(columns):
                values = _values(batch.column(name), into[number if len(into) > 1 else 0].dtype)
                if values is None:
                    raise FormatError(
                        f"{place}: column {name!r} has missing values in row groups {start} to {stop - 1}, "
                        f"and {into[0].dtype} has none; give dtype=float"
                    )
                if len(into) > 1 or into[0].ndim == 1:
                    into[number][part] = values
                else:
                    into[0][part, number] = values
            done += batch.num_rows
    if done != rows:
        raise FormatError(f"{place}: row groups {start} to {stop - 1} have {done:,} rows, not {rows:,}")


def _values(column: Any, dtype: np.dtype[Any]) -> Any | None:
    """A column as NumPy's; None if values are missing that the dtype has none for."""
    if column.null_count and dtype.kind not in "fM":
        return None
    if column.null_count and library().types.is_boolean(column.type):
        column = column.cast("float64")
    return column.to_numpy(zero_copy_only=False)


# ---- writing


def encoded(tile: Tile, names: Sequence[str], compression: str | None) -> bytes:
    """Rows as the bytes of a Parquet file with one row group."""
    pa = library()
    import pyarrow.parquet as pq

    rows = tile.reshape(len(tile), -1)
    columns = [pa.array(np.ascontiguousarray(rows[:, k])) for k in range(rows.shape[1])]
    sink = pa.BufferOutputStream()
    table = pa.table(columns, names=list(names))
    pq.write_table(table, sink, compression=compression or "none", row_group_size=max(1, len(rows)))
    return sink.getvalue().to_pybytes()


def remove(place: Place) -> None:
    """Delete a folder of Parquet files; any other is not ours to delete."""
    others = [name for name in stores.listing(place) if not name.endswith((".parquet", ".pq"))]
    if others:
        raise FileError(f"{place} exists and holds more than Parquet files ({others[0]}); give another name")
    stores.remove(place)


def joined(journal: Journal, parts: Sequence[Place], compression: str | None) -> None:
    """One file of several, a row group for each; the target from now on."""
    pa = library()
    import pyarrow.parquet as pq

    beside = journal.folder / "joined"
    local = beside.is_local
    sink: Any = beside.url if local else pa.BufferOutputStream()
    with stores.translated(journal.target, "write"):
        writer = None
        for part in parts:
            table = pq.read_table(pa.BufferReader(stores.read(part)))
            writer = writer or pq.ParquetWriter(sink, table.schema, compression=compression or "none")
            writer.write_table(table, row_group_size=max(1, table.num_rows))
        if writer is not None:
            writer.close()
    if local:
        stores.rename(beside, journal.target)
    else:
        stores.write(journal.target, sink.getvalue().to_pybytes())
    journal.end()
