"""HDF5, against h5py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import NUMBERS, arrays, chunkings

import linnet as ln

h5py = pytest.importorskip("h5py")


@pytest.mark.slow
@given(st.data())
def test_numbers_both_ways(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    values = data.draw(arrays(NUMBERS))
    path = tmp_path_factory.mktemp("hdf5") / "x.h5"
    tiles = data.draw(chunkings(values.shape)) or None
    ln.to_hdf5(
        ln.asarray(values, chunks=tiles), path, "group/x", chunks=data.draw(chunkings(values.shape)) or None
    )
    with h5py.File(path) as file:
        np.testing.assert_array_equal(file["group/x"][()], values)
    found = ln.from_hdf5(path, "group/x", chunks=tiles or "auto")
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found.compute(), values)


def test_a_file_holds_several_and_is_read_chunk_by_chunk(tmp_path: Path):
    values = np.random.default_rng(0).random((60, 40))
    ln.to_hdf5(ln.asarray(values), tmp_path / "x.h5", "a", chunks=(20, 40), compression="gzip", shuffle=True)
    ln.to_hdf5(ln.asarray(values) + 1, tmp_path / "x.h5", "b")
    with h5py.File(tmp_path / "x.h5") as file:
        assert (file["a"].chunks, file["a"].compression, sorted(file)) == ((20, 40), "gzip", ["a", "b"])
    assert np.array_equal(ln.from_hdf5(tmp_path / "x.h5", "a")[5:25].compute(), values[5:25])
    assert [each.name for each in tmp_path.iterdir()] == ["x.h5"]
    with pytest.raises(ln.FileError, match=r"x.h5 holds 'a'; give overwrite=True"):
        ln.to_hdf5(ln.ones(3), tmp_path / "x.h5", "a")
    ln.to_hdf5(ln.ones(3), tmp_path / "x.h5", "a", overwrite=True)
    assert ln.from_hdf5(tmp_path / "x.h5", "a").sum().compute() == 3


def test_a_write_that_fails_leaves_no_data_set_and_goes_on(tmp_path: Path):
    def broken(tile: Any) -> Any:
        if tile.flat[0] >= 60:
            raise ArithmeticError("broken off")
        return tile

    x = ln.asarray(np.arange(100.0), chunks=10)
    with pytest.raises(ln.KernelError):
        ln.to_hdf5(ln.map_blocks(broken, x, dtype=float), tmp_path / "x.h5", "x")
    assert not (tmp_path / "x.h5").exists()
    ln.to_hdf5(x, tmp_path / "x.h5", "x", resume=True)
    assert np.array_equal(ln.from_hdf5(tmp_path / "x.h5", "x").compute(), np.arange(100.0))


def test_one_data_set_is_computed_from_another_of_the_same_file(tmp_path: Path):
    ln.to_hdf5(ln.asarray(np.arange(100.0), chunks=10), tmp_path / "x.h5", "a")
    ln.to_hdf5(ln.from_hdf5(tmp_path / "x.h5", "a", chunks=20) * 2, tmp_path / "x.h5", "b")
    assert np.array_equal(ln.from_hdf5(tmp_path / "x.h5", "b").compute(), np.arange(100.0) * 2)


def test_bad_files(tmp_path: Path):
    ln.to_hdf5(ln.ones(1000), tmp_path / "x.h5", "a/b")
    with pytest.raises(ln.FileMissingError, match=r"data set 'c' is not there in .*x.h5; it holds a/b"):
        ln.from_hdf5(tmp_path / "x.h5", "c")
    with pytest.raises(ln.FileMissingError, match=r"data set 'a' is a group in .*x.h5"):
        ln.from_hdf5(tmp_path / "x.h5", "a")
    (tmp_path / "cut.h5").write_bytes((tmp_path / "x.h5").read_bytes()[:-4000])
    with pytest.raises(ln.FormatError, match=r"cut.h5 is no HDF5 file, or is damaged or truncated"):
        ln.from_hdf5(tmp_path / "cut.h5", "a/b")
    with pytest.raises(ln.FileMissingError, match=r"no.h5: there is no such file"):
        ln.from_hdf5(tmp_path / "no.h5", "x")
    with h5py.File(tmp_path / "x.h5", "a") as file:
        file["s"] = "text"
    with pytest.raises(ln.FormatError, match=r"x.h5\['s'\] holds object, which arrays here cannot"):
        ln.from_hdf5(tmp_path / "x.h5", "s")
    with pytest.raises(ln.InputError, match="HDF5 is written to files of this machine, not to s3://b/x.h5"):
        ln.to_hdf5(ln.ones(3), "s3://b/x.h5", "x")
