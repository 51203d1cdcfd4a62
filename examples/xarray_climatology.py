"""xarray on Linnet: a data set in the manner of CMIP6, its climatology and anomalies, within a budget.

The store is made first, in a folder of its own: ten years of daily temperatures, packed as CF says, with
a calendar without leap days. Everything after that is plain xarray; nothing is read but labels until
`compute`, and the data are never in memory at once.

python examples/xarray_climatology.py
"""

import tempfile
from pathlib import Path

import numpy as np
import xarray as xr

import linnet as ln

YEARS, ROWS, COLUMNS = 10, 48, 96
WARMING = 0.05  # degrees a year


def write(path: Path) -> None:
    """Daily temperatures: colder towards the poles, a yearly cycle, a trend, and weather."""
    days = YEARS * 365
    weather = ln.random.default_rng(0).normal(0, 2, (days, ROWS, COLUMNS), chunks=(365, -1, -1))
    latitude = np.linspace(-87, 87, ROWS)
    day = np.arange(days)[:, None, None]
    cycle = -10 * np.sin(np.radians(latitude))[:, None] * np.cos(2 * np.pi * day / 365)
    tas = 298 - 0.4 * abs(latitude)[:, None] + cycle + WARMING * day / 365 + weather
    data = xr.Dataset(
        {"tas": (("time", "lat", "lon"), tas, {"units": "K"})},
        coords={
            "time": xr.date_range("1850-01-01", periods=days, calendar="noleap", use_cftime=True),
            "lat": latitude,
            "lon": np.arange(COLUMNS) * 360 / COLUMNS,
        },
    )
    packed = {"dtype": "int16", "scale_factor": 0.01, "add_offset": 273.15, "_FillValue": -32768}
    data.to_zarr(path, encoding={"tas": packed}, consolidated=False)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, ln.init(memory="60 MB"):
        path = Path(folder) / "tas.zarr"
        write(path)
        tas = xr.open_zarr(path, chunked_array_type="linnet", chunks={}, consolidated=False).tas
        print(
            f"{tas.nbytes / 1e6:.0f} MB, {tas.chunks[0][0]} days to a chunk, calendar {tas.time.dt.calendar}"
        )
        months = tas.groupby("time.month")
        normal = months.mean("time")
        weights = np.cos(np.radians(tas.lat))
        anomaly = (months - normal).weighted(weights).mean(("lat", "lon"))
        yearly = anomaly.groupby("time.year").mean()
        found = xr.Dataset({"normal": normal, "yearly": yearly}).compute()  # the first time anything is read
    slope = np.polyfit(np.arange(YEARS), found.yearly, 1)[0]
    north = found.normal.sel(lat=slice(0, 90)).mean(("lat", "lon")).values
    print(f"north of the equator: January {north[0]:.1f} K, July {north[6]:.1f} K")
    print(f"warming found: {slope:.3f} degrees a year (put in: {WARMING})")
    assert abs(slope - WARMING) < 5e-3


if __name__ == "__main__":
    main()
