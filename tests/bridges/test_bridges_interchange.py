"""Arrays, columns and tables of other libraries: in through `ln.asarray`, out again."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.errors import InputError


@st.composite
def chunked_arrays(draw: Any) -> tuple[np.ndarray, tuple[tuple[int, ...], ...]]:
    """An array and a cut of it into chunks of any length."""
    chunks = draw(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=0, max_size=3))
    shape = tuple(sum(each) for each in chunks)
    dtype = draw(st.sampled_from(["f8", "f4", "i4", "?", "c16", "M8[s]"]))
    values = np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
    return values.astype(dtype), tuple(tuple(each) for each in chunks)


# ---- Dask


@pytest.mark.needs("dask")
@pytest.mark.slow
@given(chunked_arrays())
def test_dask_there_and_back(case: tuple[np.ndarray, tuple[tuple[int, ...], ...]]) -> None:
    import dask.array as da

    values, chunks = case
    ours = ln.asarray(da.from_array(values, chunks=chunks) if values.ndim else da.asarray(values))
    assert ours.dtype == values.dtype
    assert ours.chunks == tuple(tuple(n for n in each if n) or (0,) for each in chunks)
    np.testing.assert_array_equal(np.asarray(ours), values)
    theirs = ln.to_dask(ours)
    assert theirs.chunks == ours.chunks
    found = theirs.compute(scheduler="sync")
    assert isinstance(found, np.ndarray | np.generic)
    np.testing.assert_array_equal(found, values)


@pytest.mark.needs("dask")
def test_a_dask_array_is_computed_block_by_block_when_tiles_are_asked_for() -> None:
    import dask.array as da

    asked: list[Any] = []

    def block(block_info: Any = None) -> np.ndarray:
        asked.append(block_info[None]["chunk-location"])
        return np.full((10, 10), len(asked))

    theirs = da.map_blocks(block, chunks=((10, 10), (10, 10)), dtype=int, meta=np.empty((0, 0), int))
    ours = ln.asarray(theirs) + 1
    assert not asked
    assert ours[:10, 10:].sum().compute() == 200
    assert asked == [(0, 1)]
    assert ours.rechunk((20, 5)).sum().compute() > 0
    assert sorted(asked[1:]) == [(0, 0), (0, 1), (1, 0), (1, 1)]


MIXED: list[Any] = [
    lambda x, d: x + d,
    lambda x, d: d + x,
    lambda x, d: d >= x,
    lambda x, d: x @ d,
    lambda x, d: np.subtract(d, x),
    lambda x, d: np.concatenate([x, d]),
    lambda x, d: np.where(x > 2, d, x),
]


@pytest.mark.needs("dask")
@pytest.mark.parametrize("function", MIXED)
@pytest.mark.parametrize("chunks", [2, -1])
def test_arrays_of_dask_are_operands_and_stay_lazy(function: Any, chunks: int) -> None:
    import dask.array as da

    computed: list[int] = []

    def noted(block: Any) -> Any:
        computed.append(len(block))
        return block

    numbers = np.arange(6.0)
    blocks = da.from_array(numbers * 2, chunks=3).map_blocks(noted, meta=numbers[:0])
    made = function(ln.asarray(numbers, chunks=chunks), blocks)
    assert isinstance(made, ln.Array)
    assert not computed
    np.testing.assert_array_equal(made.compute(), function(numbers, numbers * 2))
    assert computed


@pytest.mark.needs("dask")
def test_dask_blocks_of_unknown_length_are_learnt() -> None:
    import dask.array as da

    x = da.arange(20, chunks=7)
    theirs = x[x % 3 == 0]
    np.testing.assert_array_equal(ln.asarray(theirs), np.arange(0, 20, 3))
    assert np.isnan(theirs.shape[0]), "the user's own array is left alone"


@pytest.mark.needs("dask")
def test_to_dask_computes_a_tile_for_its_block_only() -> None:
    made: list[int] = []

    def tile(x: np.ndarray) -> np.ndarray:
        made.append(int(x[0]))
        return x * 2

    lazy = ln.map_blocks(tile, ln.asarray(np.arange(12), chunks=4), dtype=int)
    theirs = ln.to_dask(lazy)
    assert not made
    np.testing.assert_array_equal(theirs[4:8].compute(scheduler="sync"), [8, 10, 12, 14])
    assert made == [4]


@pytest.mark.needs("dask")
def test_assignment_after_handing_over_is_not_seen() -> None:
    x = ln.asarray(np.zeros(4), chunks=2, copy=True)
    theirs = ln.to_dask(x)
    x[0] = 9
    assert theirs.sum().compute(scheduler="sync") == 0


# ---- Cubed


@pytest.mark.needs("cubed")
@pytest.mark.slow
def test_cubed_there_and_back(tmp_path: Any) -> None:
    import cubed
    import cubed.array_api as xp

    spec = cubed.Spec(work_dir=str(tmp_path), allowed_mem="100MB")
    values = np.arange(35.0).reshape(5, 7)
    theirs = xp.asarray(values, chunks=(2, 3), spec=spec) + 1
    ours = ln.asarray(theirs)
    assert ours.chunks == ((2, 2, 1), (3, 3, 1))
    assert not list(tmp_path.iterdir()), "nothing runs before a tile is asked for"
    np.testing.assert_array_equal(ours.compute(), values + 1)
    back = ln.to_cubed(ours.rechunk(((1, 2, 2), (7,))), spec=spec)
    assert back.chunks == ((2, 2, 1), (7,)), "Cubed's chunks are of one length"
    np.testing.assert_array_equal((back * 2).compute(), 2 * (values + 1))


# ---- sparse ones


@st.composite
def coordinates(draw: Any) -> tuple[tuple[int, ...], list[np.ndarray], np.ndarray]:
    shape = tuple(draw(st.lists(st.integers(1, 9), min_size=2, max_size=2)))
    count = draw(st.integers(0, 20))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    places = [rng.integers(0, length, count) for length in shape]
    return shape, places, rng.integers(1, 9, count).astype(draw(st.sampled_from(["f8", "i4", "c8"])))


@given(coordinates(), st.integers(1, 5), st.sampled_from(["coo", "csr", "csc", "lil", "dok", "bsr", "dia"]))
def test_sparse_arrays_are_made_dense_tile_by_tile(case: Any, chunks: int, kind: str) -> None:
    from scipy import sparse

    shape, places, data = case
    theirs = sparse.coo_array((data, places), shape=shape)  # with elements named twice
    if kind == "dok" and data.dtype.kind == "c":
        theirs = theirs.astype("f8")
    theirs = theirs.asformat(kind)
    found = ln.asarray(theirs, chunks=chunks)
    assert found.dtype == theirs.dtype
    np.testing.assert_array_equal(np.asarray(found), theirs.toarray())


def test_a_sparse_matrix_larger_than_memory_is_never_whole() -> None:
    from scipy import sparse

    side = 400_000  # 1.3 TB if it were dense
    rows = np.arange(0, side, 1000)
    theirs = sparse.csr_array((np.ones(len(rows)), (rows, rows)), shape=(side, side))
    ours = ln.asarray(theirs, chunks=1000)
    corner = ours[side - 2000 :, side - 2000 :]
    assert corner.sum().compute() == 2


@pytest.mark.slow
@pytest.mark.needs("sparse")
def test_pydata_sparse_keeps_its_fill_value() -> None:
    import sparse

    theirs = sparse.COO(np.array([[0, 2], [1, 3], [0, 1]]), np.array([5.0, 6.0]), (3, 4, 2), fill_value=-1.0)
    np.testing.assert_array_equal(np.asarray(ln.asarray(theirs, chunks=2)), theirs.todense())


# ---- columns and tables


@pytest.mark.needs("pandas")
def test_pandas() -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {
            "whole": np.arange(100_000),
            "real": np.linspace(0, 1, 100_000, dtype="f4"),
            "missing": pd.array([1, None] * 50_000, dtype="Int64"),
            "flag": pd.array([True, False] * 50_000, dtype="boolean"),
        }
    )
    found = ln.asarray(frame, chunks=(30_000, 3))
    assert found.dtype == np.float64
    assert found.grid == (4, 2)
    expected = frame.astype("float64").to_numpy()
    np.testing.assert_array_equal(found.compute(), expected)
    np.testing.assert_array_equal(ln.asarray(frame["flag"]), frame["flag"].to_numpy(dtype=bool))
    np.testing.assert_array_equal(ln.asarray(frame.index), np.arange(100_000))
    assert ln.shares_memory(ln.asarray(frame["whole"]), frame["whole"].to_numpy())
    times = pd.Series(pd.date_range("2000-01-01", periods=3, tz="Europe/Paris"))
    assert ln.asarray(times).compute()[0] == np.datetime64("1999-12-31T23:00")
    assert np.isnat(ln.asarray(pd.Series([pd.Timestamp("2000"), None])).compute()[1])
    pd.testing.assert_series_equal(pd.Series(ln.asarray([1, 2])), pd.Series([1, 2]))


@pytest.mark.needs("pandas")
def test_pandas_mistakes_name_the_column() -> None:
    import pandas as pd

    with pytest.raises(TypeError, match="column 'city' has dtype str, which arrays do not work with"):
        ln.asarray(pd.DataFrame({"n": [1], "city": ["Oslo"]}))
    mixed = pd.DataFrame({"t": pd.to_datetime(["2000"]), "x": [1.0]})
    with pytest.raises(TypeError, match=r"columns 't' \(datetime64.*\) and 'x' \(float64\) have no dtype"):
        ln.asarray(mixed)
    with pytest.raises(TypeError, match="MultiIndex holds tuples"):
        ln.asarray(pd.MultiIndex.from_tuples([(1, 2)]))
    with pytest.raises(InputError, match="without columns"):
        ln.asarray(pd.DataFrame())
    with pytest.raises(ValueError, match="without a copy"):
        ln.asarray(pd.DataFrame({"a": [1], "b": [2.0]}), copy=False)


@pytest.mark.needs("polars")
def test_polars() -> None:
    import polars as pl

    frame = pl.DataFrame({"a": [1, None, 3], "b": [0.5, 1.5, 2.5], "c": [True, False, None]})
    expected = [[1, 0.5, 1], [np.nan, 1.5, 0], [3, 2.5, np.nan]]
    np.testing.assert_array_equal(ln.asarray(frame), expected)
    np.testing.assert_array_equal(ln.asarray(frame, chunks=2), expected)
    np.testing.assert_array_equal(ln.asarray(frame["b"]), [0.5, 1.5, 2.5])
    np.testing.assert_array_equal(ln.asarray(frame["c"]), [1, 0, np.nan])
    assert pl.Series(ln.asarray(np.arange(5), chunks=2)).to_list() == [0, 1, 2, 3, 4]
    with pytest.raises(TypeError, match="column 'name' has dtype String"):
        ln.asarray(pl.DataFrame({"name": ["x"]}))
    with pytest.raises(InputError, match=r"collect\(\) it first"):
        ln.asarray(frame.lazy())


@pytest.mark.needs("pyarrow")
def test_arrow() -> None:
    import pyarrow as pa

    table = pa.table({"a": [1, None, 3], "b": [0.5, 1.5, 2.5]})
    np.testing.assert_array_equal(ln.asarray(table), [[1, 0.5], [np.nan, 1.5], [3, 2.5]])
    np.testing.assert_array_equal(ln.asarray(table["a"]), [1, np.nan, 3])
    np.testing.assert_array_equal(ln.asarray(pa.array([True, None])), [1, np.nan])
    np.testing.assert_array_equal(ln.asarray(pa.chunked_array([[1, 2], [3]])), [1, 2, 3])
    when = ln.asarray(pa.array([0, None], pa.timestamp("s"))).compute()
    assert when.dtype == np.dtype("M8[s]")
    assert np.isnat(when[1])
    values = pa.array(np.arange(4.0))
    assert ln.shares_memory(ln.asarray(values), values.to_numpy())
    with pytest.raises(TypeError, match="column 'n' has dtype string"):
        ln.asarray(pa.table({"n": ["x"]}))


@pytest.mark.needs("pyarrow")
@given(st.integers(1, 9), st.integers(1, 4), st.sampled_from(["f8", "i2", "?", "M8[ms]"]))
def test_to_arrow_has_a_chunk_for_each_tile(length: int, chunk: int, dtype: str) -> None:
    import pyarrow as pa

    values = np.arange(length).astype(dtype)
    ours = ln.asarray(values, chunks=chunk)
    made = ln.to_arrow(ours)
    assert [len(each) for each in made.chunks] == list(ours.chunks[0])
    np.testing.assert_array_equal(made.to_numpy(), values)
    assert pa.array(ours).equals(pa.array(values))
    assert pa.chunked_array(ours).equals(made)
    table = ln.to_arrow(ln.stack([ours, ours], axis=1), names=["a", "b"])
    np.testing.assert_array_equal(table["b"].to_numpy(), values)


@pytest.mark.needs("pyarrow")
def test_to_arrow_mistakes() -> None:
    with pytest.raises(InputError, match=r"shape \(2, 2\) with names=None cannot become Arrow's"):
        ln.to_arrow(ln.asarray(np.eye(2)))
    with pytest.raises(InputError, match="1 names for 2 columns"):
        ln.to_arrow(ln.asarray(np.eye(2)), names=["a"])


@pytest.mark.slow
@pytest.mark.parametrize("function", ["to_dask", "to_cubed", "to_arrow"])
def test_functions_out_take_our_arrays(function: str) -> None:
    with pytest.raises(TypeError, match=f"{function} takes an array of linnet's, not ndarray"):
        getattr(ln, function)(np.zeros(3))


# ---- protocols


def test_dlpack_both_ways() -> None:
    data = np.arange(6.0).reshape(2, 3)
    assert ln.shares_memory(ln.from_dlpack(data), data)
    lazy = ln.asarray(data, chunks=1) * 2
    np.testing.assert_array_equal(np.from_dlpack(lazy), data * 2)


@pytest.mark.needs("xarray")
def test_labelled_arrays_give_the_array_inside() -> None:
    import xarray as xr

    x = ln.asarray(np.arange(6.0), chunks=2)
    assert ln.asarray(xr.DataArray(x, dims="i")).__node__ is x.__node__
    np.testing.assert_array_equal(ln.asarray(xr.DataArray([1, 2], dims="i")), [1, 2])


@pytest.mark.slow
def test_importing_linnet_imports_none_of_them() -> None:
    import subprocess
    import sys

    code = (
        "import sys, linnet as ln; ln.asarray([1]); "
        "print([m for m in ('dask', 'cubed', 'pandas', 'polars', 'pyarrow', 'xarray', 'sparse') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stdout.strip() == "[]"
