"""Tables as matrices: columns, each of a dtype, that give any range of their rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.bridges.parts import Box, in_memory
from linnet.errors import InputError

NUMBERS = "biufcmM"
"""Kinds of dtypes that arrays can have."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table."""

    name: str
    dtype: np.dtype[Any]
    """That of its values, missing ones included."""
    values: Callable[[int, int], NDArray[Any]]
    """Rows from the first to one before the second number."""


def matrix(columns: Sequence[Column], rows: int, chunks: Any) -> Any:
    """The columns of a table side by side, in the dtype that holds them all."""
    if not columns:
        raise InputError("a table without columns cannot become an array")
    dtype = _common(columns)
    return in_memory(_SideBySide(tuple(columns), dtype), (rows, len(columns)), dtype, chunks)


@dataclass(frozen=True, eq=False)
class _SideBySide:
    """Gives parts of a matrix of columns."""

    columns: tuple[Column, ...]
    dtype: np.dtype[Any]

    def __call__(self, box: Box) -> NDArray[Any]:
        down, across = box
        block = np.empty((down.stop - down.start, across.stop - across.start), self.dtype)
        for place, column in enumerate(self.columns[across]):
            block[:, place] = column.values(down.start, down.stop)
        return block


def line(column: Column, rows: int, chunks: Any) -> Any:
    """A single column."""
    return in_memory(_Alone(column), (rows,), column.dtype, chunks)


@dataclass(frozen=True, eq=False)
class _Alone:
    """Gives parts of one column."""

    column: Column

    def __call__(self, box: Box) -> NDArray[Any]:
        return self.column.values(box[0].start, box[0].stop)


def refused(name: str, dtype: Any) -> TypeError:
    """The error for a column that holds no numbers."""
    return TypeError(
        f"column {name!r} has dtype {dtype}, which arrays do not work with; leave it out, or turn it into "
        "booleans, numbers or times first"
    )


def with_missing(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype for values of which some are missing: integers and booleans have none for these.

    >>> with_missing(np.dtype("int32")), with_missing(np.dtype("float32"))
    (dtype('float64'), dtype('float32'))
    """
    return np.dtype(np.float64) if dtype.kind in "biu" else dtype


def _common(columns: Sequence[Column]) -> np.dtype[Any]:
    try:
        return np.result_type(*{column.dtype for column in columns})
    except TypeError as error:
        first = columns[0]
        other = next(c for c in columns if (c.dtype.kind in "mM") != (first.dtype.kind in "mM"))
        raise TypeError(
            f"columns {first.name!r} ({first.dtype}) and {other.name!r} ({other.dtype}) have no dtype in "
            "common; convert one of them, or leave it out"
        ) from error
