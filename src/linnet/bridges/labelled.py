"""Labelled arrays of xarray: the array inside, without its labels."""

from __future__ import annotations

from typing import Any


def converted(obj: Any, chunks: Any) -> Any:
    """A DataArray or a Variable as an array; None if it is neither."""
    import xarray as xr

    if not isinstance(obj, xr.DataArray | xr.Variable):
        return None
    from linnet.arrays.elements.creation import asarray

    return asarray(obj.data, chunks=chunks)
