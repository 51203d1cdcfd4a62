"""Where xarray knows Dask's arrays by name: indices, times, blocks. Ours are taken by tiles there, and lazily."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import linnet as ln

xr = pytest.importorskip("xarray")
pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.needs("xarray")


def in_tiles(obj: Any, **chunks: Any) -> Any:
    return obj.chunk(chunks, chunked_array_type="linnet")


@pytest.fixture
def plain() -> Any:
    values = np.random.default_rng(0).standard_normal((7, 6, 5))
    values[2, 3], values[:, 1, 1] = np.nan, np.nan
    days = pd.date_range("2000-01-01", periods=7, freq="36h")
    return xr.DataArray(values, dims=("t", "y", "x"), coords={"t": days, "y": np.arange(6) * 10}, name="v")


@pytest.fixture
def lazy(plain: Any) -> Any:
    return in_tiles(plain, t=3, y=2, x=5)


def along(dims: Any, *indices: Any) -> Any:
    return tuple(xr.DataArray(np.asarray(each), dims=dims) for each in indices)


Y, X = along("p", [0, 3, 5], [4, 0, 4])
FIRST, LAST = along(("p", "q"), [[0, 1], [6, 2]], [[0, 1], [2, 4]])


def assigned(x: Any, key: dict[str, Any], value: Any) -> Any:
    found = x.copy()
    found[key] = value
    return found


INDEXING: dict[str, Callable[[Any], Any]] = {
    "points": lambda x: x.isel(y=Y, x=X),
    "points of two axes": lambda x: x.isel(t=FIRST, x=LAST),
    "one index of two axes": lambda x: x.isel(y=LAST),
    "points by label": lambda x: x.sel(y=Y * 10, t=xr.DataArray(x.t.values[[1, 1, 4]], dims="p")),
    "nearest points": lambda x: x.sel(y=Y * 10 + 1, method="nearest").isel(x=X),
    "idxmax": lambda x: x.idxmax("y"),
    "idxmin of times": lambda x: x.fillna(0).idxmin("t"),
    "idxmax of all NaN": lambda x: x.where(x.y > 10).idxmax("t", fill_value=np.datetime64("NaT")),
    "assigned where indices cross": lambda x: assigned(x, {"t": [0, 4], "x": [1, 3]}, -1.0),
    "assigned an array where indices cross": lambda x: assigned(
        x, {"t": [0, 4], "x": [3, 1]}, xr.DataArray(np.arange(24.0).reshape(2, 6, 2), dims=("t", "y", "x"))
    ),
    "assigned at points": lambda x: assigned(x, {"y": Y, "x": X}, -1.0),
    "assigned along points": lambda x: assigned(
        x, {"y": Y, "x": X[::-1]}, xr.DataArray([1.0, 2, 3], dims="p")
    ),
}


@pytest.mark.parametrize("name", INDEXING)
def test_fancy_indices(name: str, plain: Any, lazy: Any):
    found = INDEXING[name](lazy)
    assert isinstance(found.data, ln.Array)
    xr.testing.assert_identical(found.compute(), INDEXING[name](plain))
    xr.testing.assert_identical(lazy.compute(), plain)


def test_indices_at_points_are_lazy(lazy: Any, runs: list[Any]):
    for name in ("points", "points of two axes", "one index of two axes", "assigned at points"):
        INDEXING[name](lazy)
    assert not runs


@pytest.mark.parametrize("dims", ["x", "p"])
def test_lazy_indices(dims: str, plain: Any, lazy: Any):
    index = in_tiles(xr.DataArray([3, 0, 3], dims=dims), **{dims: 2})
    found = lazy.isel(x=index)
    assert isinstance(found.data, ln.Array)
    xr.testing.assert_identical(found.compute(), plain.isel(x=index.compute()))
    xr.testing.assert_identical(lazy.isel(x=index, y=1).compute(), plain.isel(x=index.compute(), y=1))


def test_lazy_indices_without_axes(plain: Any, lazy: Any):
    index = in_tiles(xr.DataArray([4, 1], dims="i"), i=1)[1]
    assert isinstance(index.data, ln.Array)
    for axis in ("x", "t"):
        xr.testing.assert_identical(lazy.isel({axis: index}).compute(), plain.isel({axis: 1}))
    xr.testing.assert_identical(lazy.isel(x=index, y=[2, 0]).compute(), plain.isel(x=1, y=[2, 0]))


def test_labels_under_a_lazy_index_are_lazy(plain: Any, runs: list[Any]):
    lazy = in_tiles(plain.fillna(0).astype(int), t=3, y=2, x=2)
    found = lazy.idxmax("y")
    assert not runs
    assert found.chunksizes == {"t": (3, 3, 1), "x": (2, 2, 1)}
    xr.testing.assert_identical(found.compute(), plain.fillna(0).astype(int).idxmax("y"))


# ---- weights


def test_weights_are_looked_at_when_they_are_computed(plain: Any, lazy: Any, runs: list[Any]):
    weights = in_tiles(xr.DataArray(np.arange(6.0), dims="y"), y=2)
    found = lazy.weighted(weights).mean("y")
    wrong = lazy.weighted(weights.where(weights > 0)).mean("y")
    assert not runs
    xr.testing.assert_allclose(found.compute(), plain.weighted(weights.compute()).mean("y"))
    with pytest.raises(ValueError, match="cannot contain missing values"):
        wrong.compute()


# ---- rolling


def test_rolling_sums_of_durations(times: Any):
    lengths = times - times[1, 1]
    found = in_tiles(lengths, a=2, b=1).rolling(a=2).sum()
    assert isinstance(found.data, ln.Array)
    xr.testing.assert_identical(found.compute(), lengths.rolling(a=2).sum())


# ---- times


FIELDS = [
    "year", "month", "day", "hour", "minute", "second", "microsecond", "nanosecond", "day_of_week", "dayofyear",
    "quarter", "days_in_month", "is_month_start", "is_month_end", "is_quarter_start", "is_year_end", "is_leap_year",
]  # fmt: skip


@pytest.fixture
def times() -> Any:
    days = pd.date_range("1999-12-30 01:02:03.000004005", periods=10, freq="30h")
    return xr.DataArray(days.values.reshape(5, 2), dims=("a", "b"))


@pytest.mark.parametrize("name", FIELDS)
def test_fields_of_times(name: str, times: Any, runs: list[Any]):
    found = getattr(in_tiles(times, a=2, b=1).dt, name)
    assert isinstance(found.data, ln.Array)
    assert not runs
    xr.testing.assert_identical(found.compute(), getattr(times.dt, name))


@pytest.mark.parametrize("name", ["days", "seconds", "microseconds", "nanoseconds", "total_seconds"])
def test_fields_of_durations(name: str, times: Any, runs: list[Any]):
    lengths = times - times[1, 1]
    found, expected = (getattr(x.dt, name) for x in (in_tiles(lengths, a=2), lengths))
    if name == "total_seconds":
        found, expected = found(), expected()
    assert isinstance(found.data, ln.Array)
    assert not runs
    xr.testing.assert_identical(found.compute(), expected)


def test_calendar_weeks_and_rounded_times(times: Any, runs: list[Any]):
    tiled = in_tiles(times, a=2, b=1)
    weeks, rounded = (
        tiled.dt.isocalendar(),
        [getattr(tiled.dt, name)("D") for name in ("floor", "ceil", "round")],
    )
    assert not runs
    assert all(isinstance(each.data, ln.Array) for each in (weeks.week, *rounded))
    xr.testing.assert_identical(weeks.compute(), times.dt.isocalendar())
    for name, found in zip(("floor", "ceil", "round"), rounded, strict=True):
        xr.testing.assert_identical(found.compute(), getattr(times.dt, name)("D"))


@pytest.mark.parametrize("name", ["season", "date", "time"])
def test_text_of_times_is_computed(name: str, times: Any):
    tiled = in_tiles(times, a=2)
    xr.testing.assert_identical(getattr(tiled.dt, name), getattr(times.dt, name))
    xr.testing.assert_identical(tiled.dt.strftime("%Y-%j"), times.dt.strftime("%Y-%j"))


def test_a_missing_time_has_no_year(times: Any):
    """Its field would be NaN, in an array of integers."""
    tiled = in_tiles(times.where(times.dt.day != 1), a=2)
    assert not tiled.dt.is_leap_year.where(tiled.isnull(), False).any()
    with pytest.raises(ln.KernelError, match=r"hold NaT, for which there is no year.*fillna"):
        tiled.dt.year.compute()


# ---- blocks


def centred(block: Any) -> Any:
    arrays = [block] if isinstance(block, xr.DataArray) else block.data_vars.values()
    assert all(isinstance(each.data, np.ndarray) for each in arrays)
    return block - block.mean("x")


def test_map_blocks_goes_by_blocks(plain: Any, lazy: Any, runs: list[Any]):
    sizes: list[Any] = []

    def seen(block: Any) -> Any:
        sizes.append(dict(block.sizes))
        return centred(block)

    found = xr.map_blocks(seen, lazy, template=lazy)
    assert isinstance(found.data, ln.Array)
    assert not sizes
    assert not runs
    xr.testing.assert_allclose(found.compute(), centred(plain))
    assert len(sizes) == 9
    assert {each["y"] for each in sizes} == {2}
    assert found.chunksizes == lazy.chunksizes


@pytest.mark.slow
def test_map_blocks_of_datasets_with_arguments(plain: Any, lazy: Any):
    def shifted(block: Any, other: Any, *, by: float) -> Any:
        return (block + other + by).assign(z=block.v * 2)

    dataset, expected = lazy.to_dataset(), plain.to_dataset()
    found = xr.map_blocks(shifted, dataset, [lazy.isel(x=0)], {"by": 2.0})
    assert isinstance(found.z.data, ln.Array)
    xr.testing.assert_allclose(found.compute(), shifted(expected, plain.isel(x=0), by=2.0))
    xr.testing.assert_allclose(lazy.map_blocks(centred).compute(), centred(plain))
    with xr.set_options(chunk_manager="linnet"):
        xr.testing.assert_allclose(dataset.map_blocks(centred).compute(), centred(expected))
    with pytest.raises(TypeError, match="give 'by' in args"):
        xr.map_blocks(shifted, dataset, [lazy], {"by": lazy})


def test_map_blocks_leaves_other_arrays_to_xarray(plain: Any):
    xr.testing.assert_identical(xr.map_blocks(centred, plain), centred(plain))
    found = xr.map_blocks(centred, plain.chunk(t=3, chunked_array_type="dask"))
    assert type(found.data).__module__.startswith("dask")
    xr.testing.assert_allclose(found.compute(), centred(plain))


@pytest.mark.parametrize("dtype", ["i2", "u1", "i8", "f4", None])
@pytest.mark.parametrize("kind", ["m8[ns]", "M8[ns]"])
def test_missing_times_are_written_as_the_fill_value(kind: str, dtype: str | None):
    encoding: dict[str, Any] = {}
    if dtype is not None:
        encoding["units"] = "days" if kind[0] == "m" else "days since 1970-01-01"
        encoding |= {"dtype": np.dtype(dtype), "_FillValue": np.dtype(dtype).type(99)}
    values = np.array([1, 2, "NaT", 4], kind.replace("ns", "D")).astype(kind)
    plain = xr.Variable(["t"], values, encoding=encoding)
    found = xr.conventions.encode_cf_variable(in_tiles(plain, t=1))
    wanted = xr.conventions.encode_cf_variable(plain)
    assert isinstance(found.data, ln.Array)
    if dtype is None:  # NumPy's go to floats then, and lazy ones cannot know that they should
        assert found.dtype == np.int64
        assert found.values[2] == np.iinfo(np.int64).min
        return
    assert (found.dtype, found.attrs) == (wanted.dtype, wanted.attrs)
    assert found.values.tolist() == wanted.values.tolist()
    assert found.values[2] == 99
