"""Series, indexes and frames of pandas. Missing values become NaN, or NaT."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.bridges.columns import NUMBERS, Column, line, matrix, refused, with_missing


def converted(obj: Any, chunks: Any) -> Any:
    """A Series, an Index, an extension array or a DataFrame as an array; None if it is none of these."""
    import pandas as pd

    if isinstance(obj, pd.DataFrame):
        columns = [_column(str(name), _values(obj.iloc[:, place])) for place, name in enumerate(obj.columns)]
        return matrix(columns, len(obj), chunks)
    if isinstance(obj, pd.MultiIndex):
        raise TypeError("a MultiIndex holds tuples; give one of its levels: index.get_level_values(name)")
    if isinstance(obj, pd.Series | pd.Index):
        name, values = str(obj.name), _values(obj)
    elif isinstance(obj, pd.api.extensions.ExtensionArray):
        name, values = "", obj
    else:
        return None
    column = _column(name, values)
    return values if isinstance(values, np.ndarray) else line(column, len(values), chunks)


def _values(obj: Any) -> Any:
    """The values of a series: the memory of NumPy's array if it is one, else pandas' own array."""
    return obj.to_numpy() if isinstance(obj.dtype, np.dtype) else obj.array


def _column(name: str, values: Any) -> Column:
    dtype = _dtype(name, values)
    return Column(name, dtype, functools.partial(_rows, values, dtype))


def _rows(values: Any, dtype: np.dtype[Any], start: int, stop: int) -> NDArray[Any]:
    part = values[start:stop]
    if isinstance(part, np.ndarray):
        return part
    if dtype.kind in "fc":
        return part.to_numpy(dtype=dtype, na_value=np.nan)
    return np.asarray(part.to_numpy(dtype=dtype))


def _dtype(name: str, values: Any) -> np.dtype[Any]:
    import pandas as pd

    dtype = values.dtype
    if isinstance(dtype, pd.DatetimeTZDtype):
        return np.dtype(f"datetime64[{dtype.unit}]")  # the same moments, told in UTC
    if isinstance(dtype, pd.SparseDtype):
        dtype = dtype.subtype
    plain = dtype if isinstance(dtype, np.dtype) else getattr(dtype, "numpy_dtype", np.dtype(object))
    if plain.kind not in NUMBERS:
        raise refused(name, values.dtype)
    masked = not isinstance(dtype, np.dtype) and bool(values.isna().any())
    return with_missing(plain) if masked else plain
