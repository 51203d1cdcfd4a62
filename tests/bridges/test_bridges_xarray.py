"""xarray's operations on arrays in tiles: the values that NumPy gives, and nothing computed before it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import linnet as ln

xr = pytest.importorskip("xarray")
pytest.importorskip("zarr")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("xarray"),
    pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::FutureWarning"),
]


def opened(store: Path, **keywords: Any) -> Any:
    return xr.open_zarr(store, chunked_array_type="linnet", chunks={}, consolidated=False, **keywords)


def area(x: Any) -> Any:
    return x.weighted(np.cos(np.radians(x.lat))).mean(("lat", "lon"))


def points(x: Any) -> dict[str, Any]:
    return {"lat": xr.DataArray([0.5, 10.0], dims="p"), "lon": xr.DataArray([3.0, 100.5], dims="p")}


def half_days(x: Any) -> Any:
    return xr.date_range("2000-02-01", periods=30, freq="36h")


def assigned(x: Any) -> Any:
    found = x.tas.copy()
    found[{"lat": 0}] = 0.0
    found.loc[{"lon": 0}] = 1
    return found


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    # groups
    "month": lambda x: x.groupby("time.month").mean(),
    "anomaly": lambda x: x.groupby("time.month") - x.groupby("time.month").mean("time"),
    "season std": lambda x: x.groupby("time.season").std(),
    "season median": lambda x: x.groupby("time.season").median(),
    "season quantile": lambda x: x.groupby("time.season").quantile(0.3),
    "first of month": lambda x: x.groupby("time.month").first(),
    "last of month": lambda x: x.groupby("time.month").last(),
    "groups mapped": lambda x: x.groupby("time.month").map(lambda g: g - g.mean("time")),
    "bins": lambda x: x.groupby_bins("lat", [-90, -30, 30, 90]).mean(),
    "groups shuffled": lambda x: x.groupby("time.month").shuffle_to_chunks(),
    # resampling
    "monthly": lambda x: x.resample(time="MS").mean(),
    "yearly max": lambda x: x.resample(time="YS").max(),
    "monthly first": lambda x: x.resample(time="MS").first(),
    "half days nearest": lambda x: x.isel(time=slice(60)).resample(time="12h").nearest(),
    "half days interpolated": lambda x: (
        x.isel(time=slice(60)).chunk(time=-1).resample(time="12h").interpolate("linear")
    ),
    # windows
    "rolling mean": lambda x: x.rolling(time=7).mean(),
    "rolling centred": lambda x: x.rolling(time=7, center=True, min_periods=3).max(),
    "rolling windows": lambda x: x.rolling(time=3).construct("w").sum("w"),
    "rolling in two axes": lambda x: x.rolling(lat=3, lon=3, center=True).mean(),
    "cumulative": lambda x: x.isel(time=slice(50)).cumulative("time").sum(),
    "coarsen": lambda x: x.coarsen(lat=3, lon=2).mean(),
    "coarsen trimmed": lambda x: x.coarsen(time=7, boundary="trim").max(),
    # means
    "area": area,
    "mean of all": lambda x: x.mean(),
    "std": lambda x: x.std("time"),
    "median": lambda x: x.median("lat"),
    "quantiles": lambda x: x.quantile([0.1, 0.9], dim="lat"),
    "count": lambda x: x.count("time"),
    "any": lambda x: (x > 300).any("time"),
    "cumsum": lambda x: x.cumsum("time"),
    "reduce": lambda x: x.reduce(np.mean, "time"),
    "dot": lambda x: xr.dot(x.tas, x.pr, dim="time"),
    "correlation": lambda x: xr.corr(x.tas, x.pr, dim="time"),
    # functions
    "parallelized": lambda x: xr.apply_ufunc(lambda a: a * 2, x, dask="parallelized", output_dtypes=[float]),
    "core dimension": lambda x: xr.apply_ufunc(
        lambda a: a.mean(-1), x, input_core_dims=[["lat"]], dask="parallelized", output_dtypes=[float]
    ),
    "two results": lambda x: xr.apply_ufunc(
        lambda a: (a.min(-1), a.max(-1)), x.tas, input_core_dims=[["lat"]], output_core_dims=[[], []],
        dask="parallelized", output_dtypes=[float, float],
    )[1],
    "vectorized": lambda x: xr.apply_ufunc(
        np.median, x.isel(time=slice(20)), input_core_dims=[["lat"]], vectorize=True, dask="parallelized",
        output_dtypes=[float],
    ),
    "allowed": lambda x: xr.apply_ufunc(np.sqrt, x, dask="allowed"),
    # interpolation
    "interp in time": lambda x: x.interp(time=half_days(x)),
    "interp on a grid": lambda x: x.interp(lat=[0.5, 10.0], lon=[3.0, 100.5]),
    "interp at points": lambda x: x.interp(points(x)),
    "interp nearest": lambda x: x.interp(points(x), method="nearest"),
    "interp cubic": lambda x: x.pr.interp(lat=[0.5, 10.0], method="cubic"),
    # selection
    "sel": lambda x: x.sel(time="2000-06").sel(lat=slice(-30, 30)),
    "sel nearest": lambda x: x.sel(lat=[10, 20], method="nearest"),
    "where": lambda x: x.where(x > 280),
    "where dropped": lambda x: x.where(x.lat > 0, drop=True),
    "assignment": assigned,
    "reindex": lambda x: x.reindex(lat=[-75.0, 0.0, 500.0]),
    "sortby": lambda x: x.sortby("lat", ascending=False),
    # shape
    "diff": lambda x: x.diff("time"),
    "shift": lambda x: x.shift(time=2),
    "roll": lambda x: x.roll(lon=3),
    "pad": lambda x: x.pad(lon=2, mode="wrap"),
    "stack": lambda x: x.stack(z=("lat", "lon")).mean("z"),
    "unstack": lambda x: x.stack(z=("lat", "lon")).unstack("z"),
    "transpose": lambda x: x.transpose("lon", "lat", "time"),
    "concat": lambda x: xr.concat([x.isel(time=slice(0, 300)), x.isel(time=slice(300, None))], dim="time"),
    "concat on a new axis": lambda x: xr.concat([x, x], dim="r"),
    "to one array": lambda x: x[["pr", "tas"]].to_dataarray(),  # stores list their arrays in any order
    # the rest
    "fillna": lambda x: x.fillna(0),
    "combine_first": lambda x: x.where(x > 280).combine_first(x),
    "clip": lambda x: x.clip(270, 290),
    "isin": lambda x: x.isin([1, 2]),
    "broadcast": lambda x: x + xr.DataArray(np.arange(6.0), dims="lat"),
    "differentiate": lambda x: x.differentiate("lat"),
    "integrate": lambda x: x.integrate("lat"),
    "ones_like": lambda x: xr.ones_like(x),
    "chunk": lambda x: x.chunk(time=50),
    "unify": lambda x: xr.unify_chunks(x.tas, x.pr.chunk(time=60))[1],
    "noleap": lambda x: x.convert_calendar("noleap"),
}  # fmt: skip
"""Of a data set with `tas` and `pr` in (time, lat, lon)."""


@pytest.fixture(scope="module")
def plain(store: Path) -> Any:
    return xr.open_zarr(store, chunks=None, consolidated=False).load()


def arrays_of(x: Any) -> list[Any]:
    return [x.data] if isinstance(x, xr.DataArray) else [each.data for each in x.data_vars.values()]


@pytest.mark.slow
@pytest.mark.parametrize("name", OPERATIONS)
def test_operation(name: str, store: Path, plain: Any, runs: list[Any]) -> None:
    operation = OPERATIONS[name]
    with xr.set_options(chunk_manager="linnet"):
        found = operation(opened(store))
        assert not runs, "nothing runs before values are asked for"
        assert all(isinstance(each, ln.Array) for each in arrays_of(found))
        values = found.compute()
    assert len(runs) <= 1, "one program computes it all; what is cheap needs none"
    with xr.set_options(chunk_manager="dask"):
        expected = operation(plain.copy())  # some of xarray's write labels into what they are given
    xr.testing.assert_allclose(values, expected.compute(), rtol=1e-6)


@pytest.mark.slow
def test_a_group_for_each_day_of_the_year(store: Path, plain: Any) -> None:
    found = opened(store).pr.groupby("time.dayofyear").mean()
    xr.testing.assert_allclose(found.compute(), plain.pr.groupby("time.dayofyear").mean(), rtol=1e-6)


# ---- opening


def test_opening_reads_labels_only(store: Path, runs: list[Any]) -> None:
    found = opened(store)
    assert found.tas.chunks[0] == (100,) * 7 + (30,)
    assert found.tas.dtype == np.float64  # packed integers, as CF unpacks them
    assert repr(found)
    assert not runs
    assert np.isnan(found.tas[42, 2, 3].compute())
    assert found.time.dtype.kind == "M"


def test_packed_values_missing_values_and_times_are_decoded(store: Path, plain: Any) -> None:
    from cmip import dataset

    expected = dataset()
    found = opened(store).compute()
    np.testing.assert_allclose(found.tas, expected.tas, atol=0.006)
    np.testing.assert_array_equal(np.isnan(found.tas), np.isnan(expected.tas))
    np.testing.assert_array_equal(found.time, expected.time)
    xr.testing.assert_identical(found, plain)


@pytest.mark.needs("cftime")
@pytest.mark.parametrize("calendar", ["noleap", "360_day"])
def test_calendars_of_models(tmp_path: Path, calendar: str, runs: list[Any]) -> None:
    from cmip import write

    write(tmp_path / "day.zarr", calendar)
    found = opened(tmp_path / "day.zarr")
    assert found.time.dt.calendar == calendar
    lazy = found.tas.groupby("time.month").mean("time")
    assert not runs
    with xr.set_options(use_flox=False):
        expected = found.tas.load().groupby("time.month").mean("time")
    xr.testing.assert_allclose(lazy.compute(), expected)


@pytest.mark.needs("cftime")
def test_times_that_are_objects_stay_as_they_are(store: Path) -> None:
    times = xr.DataArray(xr.date_range("2000", periods=4, calendar="noleap", use_cftime=True), dims="i")
    with xr.set_options(chunk_manager="linnet"):
        kept = times.to_dataset(name="when").assign(x=("i", np.arange(4.0))).chunk(i=2)
    assert isinstance(kept.x.data, ln.Array)
    assert kept.when.dtype == object
    assert kept.when.dt.year[0] == 2000


@pytest.mark.parametrize(
    ("chunks", "first"), [("auto", 730), ({"time": 300}, 300), ({"time": -1}, 730), ({"time": "60 kB"}, 300)]
)
def test_chunks_follow_the_file(store: Path, chunks: Any, first: int) -> None:
    found = xr.open_dataset(
        store,
        engine="zarr",
        chunked_array_type="linnet",
        chunks=chunks,
        backend_kwargs={"consolidated": False},
    )
    assert found.pr.chunks[0][0] == first


# ---- writing


def test_writing_goes_tile_by_tile(store: Path, plain: Any, tmp_path: Path, runs: list[Any]) -> None:
    lazy = opened(store)
    warmer = lazy.assign(tas=lazy.tas + 1).drop_encoding()
    assert not runs
    warmer.to_zarr(tmp_path / "out.zarr", consolidated=False)
    assert len(runs) == 1
    back = xr.open_zarr(tmp_path / "out.zarr", chunks=None, consolidated=False)
    np.testing.assert_allclose(back.tas, plain.tas + 1)
    assert back.tas.encoding["chunks"] == (100, 6, 8)


def test_writing_packs_as_it_was_packed(store: Path, plain: Any, tmp_path: Path, runs: list[Any]) -> None:
    lazy = opened(store)  # scale, offset and fill value are in its encoding
    lazy.to_zarr(tmp_path / "out.zarr", consolidated=False)
    assert len(runs) == 1
    raw = xr.open_zarr(tmp_path / "out.zarr", chunks=None, consolidated=False, mask_and_scale=False)
    assert raw.tas.dtype == np.int16
    assert raw.tas[42, 2, 3] == -32768
    back = xr.open_zarr(tmp_path / "out.zarr", chunks=None, consolidated=False)
    xr.testing.assert_allclose(back, plain)


def test_writing_a_region(store: Path, plain: Any, tmp_path: Path) -> None:
    lazy = opened(store)[["pr"]].drop_encoding()
    lazy.to_zarr(tmp_path / "out.zarr", consolidated=False)
    later = (lazy.isel(time=slice(100, 300)) * 2).drop_vars(["time", "lat", "lon"])
    later.to_zarr(tmp_path / "out.zarr", region={"time": slice(100, 300)}, consolidated=False)
    back = xr.open_zarr(tmp_path / "out.zarr", chunks=None, consolidated=False).pr.values
    np.testing.assert_allclose(back[100:300], 2 * plain.pr.values[100:300], rtol=1e-6)
    np.testing.assert_allclose(back[300:], plain.pr.values[300:], rtol=1e-6)


@pytest.mark.needs("dask")
def test_writing_later(store: Path, tmp_path: Path, runs: list[Any]) -> None:
    delayed = opened(store).drop_encoding().to_zarr(tmp_path / "out.zarr", compute=False, consolidated=False)
    assert not runs
    delayed.compute()
    back = xr.open_zarr(tmp_path / "out.zarr", chunks=None, consolidated=False)
    assert float(back.tas.mean()) > 270


def test_persist_gives_new_arrays(store: Path, runs: list[Any]) -> None:
    lazy = opened(store).tas.mean("time")
    kept = lazy.persist()
    assert len(runs) == 1
    assert isinstance(kept.data, ln.Array)
    np.testing.assert_allclose(kept, lazy.compute())
