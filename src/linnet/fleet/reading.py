"""Files of lifetimes and of prices, read row by row; what is wrong with one is said with its line."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from math import isfinite
from os import PathLike, fspath

from linnet.errors import FileMissingError, FormatError, InputError


@dataclass(frozen=True, slots=True)
class Lifetime:
    """One server of a file."""

    hours: float
    """How long it lived."""
    preempted: bool
    """Whether it was taken away then."""
    type: str
    """Its machine type, or ''."""
    zone: str
    """Its zone, or ''."""
    launched: datetime | None
    """When it was launched, if known."""


def read_rows(path: str | PathLike[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line numbers and rows of a CSV file with a heading."""
    try:
        with open(path, newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, strict=True)
            if not reader.fieldnames:
                raise FormatError(f"{fspath(path)} is empty; a heading with the names of columns is expected")
            for row in reader:
                if None in row or None in row.values():
                    raise FormatError(
                        f"{fspath(path)}:{reader.line_num} has another number of fields than the heading's "
                        f"{len(reader.fieldnames)}"
                    )
                yield reader.line_num, {name.strip(): value.strip() for name, value in row.items()}
    except FileNotFoundError:
        raise FileMissingError(f"there is no file {fspath(path)}") from None
    except (csv.Error, UnicodeDecodeError) as error:
        raise FormatError(f"{fspath(path)} is no CSV file: {error}") from error


def number(row: Mapping[str, str], column: str, place: str) -> float:
    """A finite number of at least 0."""
    try:
        value = float(row[column])
    except ValueError:
        value = -1.0
    if not (isfinite(value) and value >= 0):
        raise FormatError(f"{place}: {column} is {row[column]!r}, a number of at least 0 is expected")
    return value


def moment(text: str, place: str) -> datetime:
    """A moment as ISO 8601; without a zone it is taken as UTC."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise FormatError(
            f"{place}: {text!r} is no time; something like 2026-11-18T06:30:00+00:00 is expected"
        ) from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _need(row: Mapping[str, str], path: str | PathLike[str], *columns: str) -> str:
    """The one of the columns that the file has."""
    for column in columns:
        if column in row:
            return column
    raise FormatError(
        f"{fspath(path)} has no column {' or '.join(columns)}; its columns are {', '.join(row)}"
    )


def read_lifetimes(path: str | PathLike[str]) -> list[Lifetime]:
    """The servers of a file; see `Lifetimes.from_csv` for its columns."""
    found: list[Lifetime] = []
    for line, row in read_rows(path):
        place = f"{fspath(path)}:{line}"
        length = _need(row, path, "lifetime_h", "lifetime_s")
        hours = number(row, length, place) / (3600 if length == "lifetime_s" else 1)
        if _need(row, path, "ended", "event") == "ended":
            preempted = row["ended"].lower() == "preempted"
        elif row["event"] in ("0", "1"):
            preempted = row["event"] == "1"
        else:
            raise FormatError(f"{place}: event is {row['event']!r}, 1 (preempted) or 0 is expected")
        launched = row.get("launch_time", "")
        found.append(
            Lifetime(
                hours,
                preempted,
                row.get("machine_type") or row.get("gpu") or "",
                row.get("zone", ""),
                moment(launched, place) if launched else None,
            )
        )
    if not found:
        raise FormatError(f"{fspath(path)} has a heading, but no server below it")
    return found


def read_price_spells(path: str | PathLike[str], bid: float | Mapping[str, float]) -> list[Lifetime]:
    """Servers that live while the price is at most the bid; see `Lifetimes.from_prices`."""
    histories: defaultdict[tuple[str, str, str], list[tuple[datetime, float]]] = defaultdict(list)
    for line, row in read_rows(path):
        place = f"{fspath(path)}:{line}"
        for column in ("timestamp", "zone", "instance_type", "usd_per_hour"):
            _need(row, path, column)
        key = row["instance_type"], row["zone"], row.get("product", "")
        histories[key].append((moment(row["timestamp"], place), number(row, "usd_per_hour", place)))
    found: list[Lifetime] = []
    for (kind, zone, _), history in sorted(histories.items()):
        limit = bid.get(kind) if isinstance(bid, Mapping) else bid
        if limit is not None:
            found += _spells(sorted(history), limit, kind, zone)
    if not found:
        raise InputError(
            f"no price in {fspath(path)} is at or below the bid of {bid}; no server would ever start"
        )
    return found


def _spells(history: list[tuple[datetime, float]], bid: float, kind: str, zone: str) -> Iterator[Lifetime]:
    began: datetime | None = None
    for at, price in history:
        if price <= bid and began is None:
            began = at
        elif price > bid and began is not None:
            yield Lifetime((at - began).total_seconds() / 3600, True, kind, zone, began)
            began = None
    end = history[-1][0]
    if began is not None and end > began:
        yield Lifetime((end - began).total_seconds() / 3600, False, kind, zone, began)
