"""Series and frames of polars. Missing values become NaN, or NaT."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.bridges.columns import NUMBERS, Column, line, matrix, refused, with_missing
from linnet.errors import InputError


def converted(obj: Any, chunks: Any) -> Any:
    """A Series or a DataFrame as an array; None if it is neither."""
    import polars as pl

    if isinstance(obj, pl.LazyFrame):
        raise InputError("a LazyFrame does not know its rows yet; collect() it first")
    if isinstance(obj, pl.DataFrame):
        return matrix([_column(each) for each in obj.get_columns()], obj.height, chunks)
    if not isinstance(obj, pl.Series):
        return None
    column = _column(obj)
    if not obj.null_count() and obj.n_chunks() == 1 and obj.dtype.is_numeric():
        return obj.to_numpy()  # the memory of the series itself
    return line(column, len(obj), chunks)


def _column(series: Any) -> Column:
    import polars as pl

    plain = np.dtype(object) if series.dtype.is_decimal() else series.clear().to_numpy().dtype
    if plain.kind not in NUMBERS:
        raise refused(series.name, series.dtype)
    dtype = with_missing(plain) if series.null_count() else plain
    if dtype != plain:
        series = series.cast(pl.Float64)
    return Column(series.name, dtype, functools.partial(_rows, series))


def _rows(series: Any, start: int, stop: int) -> NDArray[Any]:
    return series.slice(start, stop - start).to_numpy()
