"""Arrow's arrays and tables. Missing values become NaN, or NaT on the way in."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import ArrayBase, recut_as, wrap
from linnet.bridges.columns import NUMBERS, Column, line, matrix, refused, with_missing
from linnet.errors import InputError, missing_extra

# ---- in


def converted(obj: Any, chunks: Any) -> Any:
    """An Array, a ChunkedArray, a RecordBatch or a Table as an array; None if it is none of these."""
    import pyarrow as pa

    if isinstance(obj, pa.Table | pa.RecordBatch):
        columns = [_column(name, obj.column(place)) for place, name in enumerate(obj.schema.names)]
        return matrix(columns, obj.num_rows, chunks)
    if isinstance(obj, pa.Tensor):
        return obj.to_numpy()
    if isinstance(obj, pa.ChunkedArray) and obj.num_chunks == 1:
        obj = obj.chunk(0)
    if isinstance(obj, pa.Array):
        column = _column("", obj)
        numeric = pa.types.is_integer(obj.type) or pa.types.is_floating(obj.type)
        shared = numeric and not obj.null_count
        return obj.to_numpy(zero_copy_only=True) if shared else line(column, len(obj), chunks)
    if isinstance(obj, pa.ChunkedArray):
        return line(_column("", obj), len(obj), chunks)
    return None


def _column(name: str, values: Any) -> Column:
    import pyarrow as pa

    kind = values.type
    try:
        plain = np.dtype(kind.to_pandas_dtype())
    except NotImplementedError:
        plain = np.dtype(object)
    if pa.types.is_date(kind):
        plain = np.dtype("datetime64[D]" if pa.types.is_date32(kind) else "datetime64[ms]")
    if pa.types.is_timestamp(kind):
        plain = np.dtype(f"datetime64[{kind.unit}]")  # of all zones the same moments, told in UTC
    if plain.kind not in NUMBERS or pa.types.is_decimal(kind):
        raise refused(name, kind)
    dtype = with_missing(plain) if values.null_count else plain
    if dtype != plain:
        values = values.cast(pa.float64(), safe=False)
    return Column(name, dtype, functools.partial(_rows, values, dtype))


def _rows(values: Any, dtype: np.dtype[Any], start: int, stop: int) -> NDArray[Any]:
    import pyarrow as pa

    part = values.slice(start, stop - start)
    rows = part.to_numpy() if isinstance(part, pa.ChunkedArray) else part.to_numpy(zero_copy_only=False)
    return rows.astype(dtype, copy=False)


# ---- out


def to_arrow(x: Any, names: Sequence[str] | None = None) -> Any:
    """An array with one axis as a ChunkedArray, a chunk for each tile; a matrix as a Table.

    A table needs `names` for its columns; it has a batch of rows for each row of tiles.

    Parameters
    ----------
    x : array_like
        Of one or two axes.
    names : sequence of str, optional
        Names of the columns of a matrix.

    Returns
    -------
    pyarrow.ChunkedArray, or pyarrow.Table

    Examples
    --------
    >>> import linnet as ln
    >>> ln.to_arrow(ln.asarray(np.arange(6), chunks=4)).num_chunks
    2
    """
    try:
        import pyarrow as pa
    except ImportError as error:
        raise missing_extra("to_arrow", "pyarrow", "io") from error
    if not isinstance(x, ArrayBase):
        raise TypeError(f"to_arrow takes an array of linnet's, not {type(x).__name__}; use ln.asarray first")
    array = wrap(x.__node__)
    if array.ndim == 1 and names is None:
        kind = pa.from_numpy_dtype(array.dtype)
        return pa.chunked_array([pa.array(tile, kind) for tile in _tiles(array)], kind)
    if array.ndim != 2 or names is None:
        raise InputError(
            f"an array of shape {array.shape} with names={names!r} cannot become Arrow's; give an array with "
            "one axis without names, or a matrix with names for its columns"
        )
    if len(names) != array.shape[1]:
        raise InputError(f"{len(names)} names for {array.shape[1]} columns")
    schema = pa.schema([(name, pa.from_numpy_dtype(array.dtype)) for name in names])
    rows = wrap(recut_as(array.__node__, (array.chunks[0], -1)))
    batches = [pa.record_batch([pa.array(c) for c in tile.T], schema=schema) for tile in _tiles(rows)]
    return pa.Table.from_batches(batches, schema)


def _tiles(array: Any) -> list[NDArray[Any]]:
    """All tiles, computed in one run, each in memory of its own."""
    from linnet.arrays.namespace import compute

    values = compute(*array.blocks.ravel())
    return [values] if isinstance(values, np.ndarray) else list(values)


def whole(x: Any, kind: Any) -> Any:
    """An array with one axis as a single Array of Arrow's."""
    import pyarrow as pa

    return pa.array(np.asarray(x), kind)
