"""Where xarray asks whether an array is Dask's and means: is it in chunks?

Most of xarray goes through its chunk managers. In a few places it does not, and an array of another library
is computed, refused, or given whole to a function that expects a block. Each of these places is one function
here: it takes arrays of ours, and leaves all others to xarray's own.

    fancy indices (`isel` with several arrays, `idxmax`, assignment)   tile by tile, as our own indexing
    indices without axes that are lazy                                 drop their axis
    `.dt` fields that are numbers, `.dt.floor` and the like            tile by tile
    times as numbers of a file                                         tile by tile, with NaT among integers
    the look at weights for NaN                                        tile by tile, when they are computed
    `xr.map_blocks`                                                    block by block, through Dask's blocks
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import xarray
from numpy.typing import NDArray
from xarray.coding import times
from xarray.computation import weighted
from xarray.core import accessor_dt, indexing, parallel, variable
from xarray.core.nputils import NumpyVIndexAdapter

from linnet.arrays.elements.computed_indices import known
from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.elements.creation import asarray
from linnet.arrays.expression.nodes import Source
from linnet.arrays.functions.map_blocks import map_blocks as on_tiles
from linnet.bridges.columns import NUMBERS
from linnet.bridges.dask_arrays import to_dask

_TEXT = ("season", "date", "time")
"""Fields of times that are no numbers."""


def install() -> None:
    """Put the functions of this module where xarray looks; a second time changes nothing."""
    if _installed:
        return
    _installed.append(True)
    adapter: Any = indexing.ArrayApiIndexingAdapter
    for name, ours in _INDEXING.items():
        setattr(adapter, name, _for_our_arrays(getattr(adapter, name), ours, lambda self: self.array))
    labels: Any = indexing.PandasIndexingAdapter
    labels._oindex_get = _with_known_indices(labels._oindex_get)
    places: list[tuple[Any, str, Callable[..., Any]]] = [
        (variable, "is_0d_dask_array", _is_without_axes),
        (accessor_dt, "_get_date_field", _date_field),
        (accessor_dt, "_round_field", _rounded),
        (weighted, "is_duck_dask_array", _is_in_tiles),
    ]
    for module, name, ours in places:
        setattr(module, name, _for_our_arrays(getattr(module, name), ours, lambda first: first))
    for coder in (times.CFDatetimeCoder, times.CFTimedeltaCoder):
        coder.encode = _with_room_for_nat(coder.encode)
    by_blocks = _by_blocks(parallel.map_blocks)
    parallel.map_blocks = xarray.map_blocks = by_blocks  # pyright: ignore[reportPrivateImportUsage]


_installed: list[bool] = []


def _for_our_arrays(theirs: Any, ours: Any, array_of: Callable[[Any], Any]) -> Any:
    """xarray's function, and ours where its first argument is, or holds, an array of ours."""

    @functools.wraps(theirs)
    def either(first: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(array_of(first), ArrayBase):
            result = ours(first, *args, **kwargs)
            if result is not NotImplemented:
                return result
        return theirs(first, *args, **kwargs)

    return either


# ---- indexing


def _taken(adapter: Any, indexer: Any) -> Any:
    """Elements at points; the axes of the indices come first.

    Labels, which lie in memory, stay lazy under a lazy index (`idxmax`): each of its tiles is looked up.
    """
    array, key = adapter.array, indexer.tuple
    if len(key) == 1 and isinstance(key[0], ArrayBase) and isinstance(array.__node__, Source):
        return on_tiles(_looked_up, key[0], array.__node__.data, dtype=array.dtype)
    return NumpyVIndexAdapter(array)[key]


def _looked_up(positions: NDArray[Any], values: NDArray[Any]) -> Any:
    return values[positions]


def _put(adapter: Any, indexer: Any, value: Any) -> None:
    NumpyVIndexAdapter(adapter.array)[indexer.tuple] = value


def _put_outer(adapter: Any, indexer: Any, value: Any) -> None:
    """Assign where indices along each axis cross."""
    key = indexing._outer_to_numpy_indexer(indexer, adapter.array.shape)
    adapter.array[key] = value


def _with_known_indices(theirs: Any) -> Any:
    """Labels lie in memory, and pandas takes numbers for indices: lazy ones are computed."""

    @functools.wraps(theirs)
    def taken(adapter: Any, indexer: Any) -> Any:
        if any(isinstance(each, ArrayBase) for each in indexer.tuple):
            key = [known(each) if isinstance(each, ArrayBase) else each for each in indexer.tuple]
            indexer = indexing.OuterIndexer(tuple(each if np.ndim(each) else int(each) for each in key))
        return theirs(adapter, indexer)

    return taken


_INDEXING = {"_vindex_get": _taken, "_vindex_set": _put, "_oindex_set": _put_outer}


def _is_without_axes(index: Any) -> bool:
    return not index.ndim


def _is_in_tiles(array: Any) -> bool:
    """Yes: weights are looked through for NaN tile by tile, when they are computed."""
    return True


# ---- times


def _with_room_for_nat(theirs: Any) -> Any:
    """Times become int64 first, where NaT is the smallest; xarray fills what is missing, then casts."""

    @functools.wraps(theirs)
    def encoded(coder: Any, values: Any, name: Any = None) -> Any:
        wanted = values.encoding.get("dtype")
        in_tiles = isinstance(values._data, ArrayBase) and values.dtype.kind in "mM"
        if not in_tiles or wanted is None or np.dtype(wanted).kind not in "iu":
            return theirs(coder, values, name)
        wide = values._replace(encoding={**values.encoding, "dtype": np.dtype(np.int64)})
        numbers = theirs(coder, wide, name)
        numbers.encoding["dtype"] = wanted
        return numbers

    return encoded


def _date_field(values: Any, name: str, dtype: Any) -> Any:
    if name in _TEXT:
        return NotImplemented  # arrays hold no text: computed, as xarray does it
    numbers = functools.partial(_numbers, name=name, dtype=np.dtype(dtype))
    if name != "isocalendar":
        return on_tiles(numbers, values, dtype=dtype)
    return on_tiles(numbers, values, dtype=dtype, new_axis=0, chunks=((3,), *values.chunks))


def _numbers(tile: NDArray[Any], name: str, dtype: np.dtype[Any]) -> Any:
    """A field of the times in a tile."""
    numbers = accessor_dt._access_through_series(tile, name)
    if dtype.kind in "iu" and numbers.dtype.kind == "f":
        raise ValueError(
            f"the times hold NaT, for which there is no {name}: where() and fillna() give them one, or "
            "load() the times first, and their fields are NaN there"
        )
    return numbers.astype(dtype, copy=False)


def _rounded(values: Any, name: str, freq: str) -> Any:
    return on_tiles(accessor_dt._round_through_series_or_index, values, name, freq=freq, dtype=values.dtype)


# ---- blocks


def _by_blocks(theirs: Callable[..., Any]) -> Callable[..., Any]:
    """`xr.map_blocks` for objects that hold arrays of ours: their tiles are the blocks."""

    @functools.wraps(theirs)
    def map_blocks(func: Any, obj: Any, args: Any = (), kwargs: Any = None, template: Any = None) -> Any:
        arguments = (obj, *args) if isinstance(args, tuple | list) else (obj,)
        if not any(map(_holds_ours, arguments)):
            return theirs(func, obj, args, kwargs, template)
        for name, value in kwargs.items() if isinstance(kwargs, Mapping) else ():
            if _holds_ours(value):
                raise TypeError(
                    f"map_blocks cuts its args into blocks, not its kwargs: give {name!r} in args"
                )
        blocks = [_with_arrays(each, _to_dask) for each in arguments]
        like = _with_arrays(template, _to_dask)
        with xarray.set_options(chunk_manager="dask"):  # what is not in blocks yet is cut by Dask, too
            result = theirs(func, blocks[0], blocks[1:] or args, kwargs, like)
        return _with_arrays(result, _from_dask)

    return map_blocks


def _holds_ours(obj: Any) -> bool:
    if isinstance(obj, xarray.DataArray):
        obj = obj._to_temp_dataset()
    if isinstance(obj, xarray.Dataset):
        return any(isinstance(each._data, ArrayBase) for each in obj.variables.values())
    return isinstance(obj, ArrayBase)


def _with_arrays(obj: Any, change: Callable[[Any], Any]) -> Any:
    """An object of xarray's with its arrays changed, or a bare array."""
    if isinstance(obj, xarray.DataArray):
        return obj._from_temp_dataset(_with_arrays(obj._to_temp_dataset(), change))
    if not isinstance(obj, xarray.Dataset):
        return change(obj)
    variables = {
        name: each._replace(data=data)
        for name, each in obj.variables.items()
        if (data := change(each._data)) is not each._data
    }
    return obj._replace(variables={**obj.variables, **variables})


def _to_dask(data: Any) -> Any:
    return to_dask(data) if isinstance(data, ArrayBase) else data


def _from_dask(data: Any) -> Any:
    import dask.array as da

    return asarray(data) if isinstance(data, da.Array) and data.dtype.kind in NUMBERS else data
