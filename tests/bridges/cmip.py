"""A small data set as climate models write them: packed integers, missing values, calendars, bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import xarray as xr

DAYS, LATITUDES, LONGITUDES = 730, 6, 8


def dataset(calendar: str = "standard") -> xr.Dataset:
    """Two years of daily temperature and rain, as decoded values."""
    rng = np.random.default_rng(0)
    time = xr.date_range("2000-01-01", periods=DAYS, calendar=calendar, use_cftime=calendar != "standard")
    shape = (DAYS, LATITUDES, LONGITUDES)
    day = np.arange(DAYS)[:, None, None]
    tas = 280 + 10 * np.sin(2 * np.pi * day / 365) + rng.normal(0, 2, shape)
    rain = rng.gamma(1, 2e-5, shape)
    tas[40:45, 2, 3] = np.nan  # a station that failed
    return xr.Dataset(
        {
            "tas": (("time", "lat", "lon"), tas, {"units": "K", "standard_name": "air_temperature"}),
            "pr": (("time", "lat", "lon"), rain, {"units": "kg m-2 s-1"}),
        },
        coords={
            "time": ("time", time),
            "lat": ("lat", np.linspace(-75, 75, LATITUDES), {"units": "degrees_north"}),
            "lon": ("lon", np.arange(LONGITUDES) * 45.0, {"units": "degrees_east"}),
        },
        attrs={"Conventions": "CF-1.8", "mip_era": "CMIP6"},
    )


def write(path: Path, calendar: str = "standard") -> None:
    """The data set in a Zarr store, packed as CF says."""
    packed = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    chunks = {"chunks": (100, LATITUDES, LONGITUDES)}
    encoding = {
        "tas": packed | chunks,
        "pr": {"dtype": "float32", "_FillValue": 1e20} | chunks,
        "time": {"units": "days since 1850-01-01"},
    }
    dataset(calendar).to_zarr(path, encoding=encoding, consolidated=False)
