"""Parquet, against pyarrow and pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import REAL, arrays

import linnet as ln
from linnet.arrays.expression import chunking

pq = pytest.importorskip("pyarrow.parquet")
pandas = pytest.importorskip("pandas")


@pytest.mark.slow
@given(arrays([each for each in REAL if each != "f2"], min_dims=1, max_dims=2, min_side=1), st.integers(1, 5))
def test_numbers_both_ways(tmp_path_factory: pytest.TempPathFactory, values: Any, chunks: int):
    folder = tmp_path_factory.mktemp("parquet")
    x = ln.asarray(values, chunks=chunks)
    for name in ("one.parquet", "folder"):
        ln.to_parquet(x, folder / name)
        rows = values.reshape(len(values), -1)
        np.testing.assert_array_equal(pandas.read_parquet(folder / name).to_numpy(), rows)
        found = ln.read_parquet(folder / name)
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found.compute(), rows)


def test_row_groups_are_tiles_and_columns_are_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    frame = pandas.DataFrame({"a": np.arange(1000), "b": np.arange(1000) / 2, "s": "text"})
    frame.to_parquet(tmp_path / "x.parquet", row_group_size=100)
    monkeypatch.setattr(chunking, "TARGET", 16 * 250)
    x = ln.read_parquet(tmp_path / "x.parquet", columns=["b", "a"])
    assert x.chunks == ((200,) * 5, (2,))
    np.testing.assert_array_equal(x.compute(), frame[["b", "a"]].to_numpy())
    np.testing.assert_array_equal(x[450:460].compute(), frame[["b", "a"]].to_numpy()[450:460])
    assert ln.read_parquet(tmp_path / "x.parquet", columns="a").dtype == np.int64
    with pytest.raises(
        ln.FormatError, match=r"column 's' holds what arrays cannot; leave it out: columns=\['a', 'b'\]"
    ):
        ln.read_parquet(tmp_path / "x.parquet")
    with pytest.raises(ln.InputError, match=r"column 'q' is not there in .*; it has 'a', 'b'"):
        ln.read_parquet(tmp_path / "x.parquet", columns=["q"])


def test_missing_values_and_times(tmp_path: Path):
    frame = pandas.DataFrame(
        {
            "i": pandas.array([1, None, 3], dtype="Int64"),
            "f": [0.5, np.nan, 2.5],
            "b": [True, False, True],
            "t": np.array(["2020-01-01", "NaT", "2020-01-03"], "M8[us]"),
        }
    )
    frame.to_parquet(tmp_path / "x.parquet")
    table = ln.read_parquet(tmp_path / "x.parquet", separate=True)
    assert [str(x.dtype) for x in table.values()] == ["float64", "float64", "bool", "datetime64[us]"]
    np.testing.assert_array_equal(table["i"].compute(), [1, np.nan, 3])
    np.testing.assert_array_equal(table["t"].compute(), frame["t"].to_numpy())
    with pytest.raises(
        ln.FormatError, match=r"column 'i' has missing values in row groups 0 to 0, and int64 has none"
    ):
        ln.read_parquet(tmp_path / "x.parquet", columns="i", dtype=int).compute()


def test_bad_files(tmp_path: Path):
    ln.to_parquet(ln.ones((100, 2)), tmp_path / "x.parquet")
    data = (tmp_path / "x.parquet").read_bytes()
    (tmp_path / "cut.parquet").write_bytes(data[: len(data) // 2])
    with pytest.raises(ln.FormatError, match=r"cut.parquet is no Parquet file, or is damaged or truncated"):
        ln.read_parquet(tmp_path / "cut.parquet")
    with pytest.raises(ln.FileMissingError, match=r"no.parquet: there is no such file"):
        ln.read_parquet(tmp_path / "no.parquet")
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty/readme.txt").write_text("x")
    with pytest.raises(ln.FileMissingError, match=r"empty: there is no file in it that ends with .parquet"):
        ln.read_parquet(tmp_path / "empty")
    ln.to_parquet(ln.ones((5, 3)), tmp_path / "y.parquet")
    with pytest.raises(ln.FormatError, match=r"y.parquet has other columns than .*x.parquet: 0, 1, 2"):
        ln.read_parquet([tmp_path / "x.parquet", tmp_path / "y.parquet"])
    with pytest.raises(ln.InputError, match=r"columns=\['a', 'a'\]: name each of the 2 columns once"):
        ln.to_parquet(ln.ones((5, 2)), tmp_path / "z", columns=["a", "a"])


def test_a_folder_of_other_things_is_not_replaced(tmp_path: Path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x/thesis.tex").write_text("years of work")
    with pytest.raises(
        ln.FileError, match=r"holds more than Parquet files \(thesis.tex\); give another name"
    ):
        ln.to_parquet(ln.ones((3, 2)), tmp_path / "x", overwrite=True)
    assert (tmp_path / "x/thesis.tex").exists()


def test_a_folder_is_there_when_all_of_it_is(tmp_path: Path):
    def broken(tile: Any) -> Any:
        if tile.flat[0] >= 60:
            raise ArithmeticError("broken off")
        return tile

    x = ln.asarray(np.arange(100.0), chunks=10)
    with pytest.raises(ln.KernelError):
        ln.to_parquet(ln.map_blocks(broken, x, dtype=float), tmp_path / "x")
    assert not (tmp_path / "x").exists()
    with pytest.raises(ln.FileError, match=r"x is not complete: a write to it was broken off"):
        ln.read_parquet(tmp_path / "x")
    ln.to_parquet(x, tmp_path / "x", resume=True)
    np.testing.assert_array_equal(ln.read_parquet(tmp_path / "x").compute()[:, 0], np.arange(100.0))
    assert [each.name for each in tmp_path.iterdir()] == ["x"]
