"""Zarr: what zarr-python writes we read, what we write it reads; regions, resumption, bad files."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.expression import chunking

zarr = pytest.importorskip("zarr")

DTYPES = ["?", "i1", "u2", "i4", "u8", "f2", "f4", "f8", "c8", "c16", ">f8", ">i4", "M8[s]", "m8[ms]"]


def sample(shape: tuple[int, ...], dtype: str = "f8") -> Any:
    values = np.random.default_rng(sum(shape)).integers(0, 120, shape)
    return values.astype("i8").astype(dtype) if dtype[-1] == "]" else values.astype(dtype)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Elements, how they are cut into tiles, how into chunks, and keywords for zarr."""
    shape = tuple(draw(st.lists(st.integers(1, 13), min_size=0, max_size=3)))
    kind = draw(st.sampled_from(DTYPES))
    tiles = tuple(draw(st.integers(1, n)) for n in shape)
    chunks = tuple(draw(st.integers(1, n)) for n in shape)
    keywords: dict[str, Any] = {"zarr_format": draw(st.sampled_from([2, 3]))}
    if keywords["zarr_format"] == 3:
        codecs = zarr.codecs
        keywords["compressors"] = draw(
            st.sampled_from(
                [
                    None,
                    "auto",
                    codecs.BloscCodec(),
                    codecs.GzipCodec(),
                    [codecs.ZstdCodec(), codecs.Crc32cCodec()],
                ]
            )
        )
        if draw(st.booleans()) and shape:
            keywords["shards"] = tuple(c * draw(st.integers(1, 3)) for c in chunks)
        elif draw(st.booleans()) and len(shape) > 1:
            keywords["filters"] = [codecs.TransposeCodec(order=tuple(reversed(range(len(shape)))))]
    elif draw(st.booleans()):
        keywords["order"] = "F"
    return sample(shape, kind), tiles, chunks, keywords


@given(cases())
def test_what_zarr_wrote_we_read(tmp_path_factory: pytest.TempPathFactory, case: Any):
    values, tiles, chunks, keywords = case
    path = tmp_path_factory.mktemp("z") / "x.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        zarr.create_array(str(path), data=values, chunks=chunks, **keywords)
        found = ln.from_zarr(path)
        assert found.dtype == values.dtype.newbyteorder("=")
        assert np.array_equal(found.compute(), values)
        assert np.array_equal(ln.from_zarr(path, chunks=tiles or None).compute(), values)


@pytest.mark.slow
@given(cases())
def test_what_we_wrote_zarr_reads(tmp_path_factory: pytest.TempPathFactory, case: Any):
    values, tiles, chunks, keywords = case
    values = values.astype(values.dtype.newbyteorder("="))
    path = tmp_path_factory.mktemp("z") / "x.zarr"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ln.to_zarr(ln.asarray(values, chunks=tiles or None), path, chunks=chunks or None, **keywords)
        found = zarr.open_array(str(path), mode="r")
        assert found.dtype == values.dtype
        assert np.array_equal(found[...], values)
        assert np.array_equal(ln.from_zarr(path).compute(), values)


def test_tiles_follow_chunks_and_never_split_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chunking, "TARGET", 8 * 600)
    zarr.create_array(str(tmp_path / "x"), data=sample((100, 60)), chunks=(7, 20))
    assert ln.from_zarr(tmp_path / "x").chunks[1] == (20, 20, 20)
    assert set(ln.from_zarr(tmp_path / "x").chunks[0][:-1]) == {28}
    other = ln.from_zarr(tmp_path / "x", chunks=(10, 10))
    assert other.chunks[0][0] == 10
    assert np.array_equal(other.compute(), sample((100, 60)))


def test_reading_is_lazy_and_reads_what_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(chunking, "TARGET", 1)
    zarr.create_array(str(tmp_path / "x"), data=sample((40, 40)), chunks=(10, 10))
    x = ln.from_zarr(tmp_path / "x")
    for chunk in (tmp_path / "x/c").glob("*/*"):
        if chunk.relative_to(tmp_path / "x/c").parts != ("1", "2"):
            chunk.write_bytes(b"not a chunk")
    assert np.array_equal(x[10:20, 20:30].compute(), sample((40, 40))[10:20, 20:30])


def test_an_array_inside_a_group_makes_the_groups_above_it(tmp_path: Path):
    for form in (2, 3):
        root = tmp_path / f"g{form}"
        ln.to_zarr(ln.asarray(sample((6,))), root, "a/b", zarr_format=form)
        assert np.array_equal(zarr.open_group(str(root), mode="r")["a/b"][...], sample((6,)))
        with pytest.raises(
            ln.FileError, match=r"is a group of Zarr arrays, not an array: it holds b; give path='b'"
        ):
            ln.from_zarr(root, "a")


def test_attributes_and_names_are_written(tmp_path: Path):
    ln.to_zarr(ln.asarray(sample((6,))), tmp_path / "x", attributes={"units": "K"}, dimension_names=["time"])
    found = zarr.open_array(str(tmp_path / "x"), mode="r")
    assert dict(found.attrs) == {"units": "K"}
    assert found.metadata.dimension_names == ("time",)


# ---- regions


@pytest.mark.slow
@given(st.data())
def test_a_region_is_written_and_nothing_else(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    path = tmp_path_factory.mktemp("z") / "x.zarr"
    shape = (data.draw(st.integers(1, 12)), data.draw(st.integers(1, 12)))
    chunks = tuple(data.draw(st.integers(1, n)) for n in shape)
    before = sample(shape)
    zarr.create_array(str(path), data=before, chunks=chunks)
    box = tuple(
        slice(low, data.draw(st.integers(low + 1, n)))
        for n in shape
        for low in [data.draw(st.integers(0, n - 1))]
    )
    part = -1.0 - sample(before[box].shape)
    ln.to_zarr(ln.asarray(part, chunks=data.draw(st.integers(1, 5))), path, region=box)
    before[box] = part
    assert np.array_equal(zarr.open_array(str(path), mode="r")[...], before)
    assert np.array_equal(ln.from_zarr(path).compute(), before)


def test_regions_that_do_not_fit(tmp_path: Path):
    x = ln.asarray(sample((4, 4)))
    ln.to_zarr(x, tmp_path / "x")
    with pytest.raises(ln.InputError, match=r"shape \(4, 4\) for a region of shape \(2, 4\)"):
        ln.to_zarr(x, tmp_path / "x", region=(slice(0, 2), slice(0, 4)))
    with pytest.raises(ln.InputError, match="give a slice for each of the 2 axes"):
        ln.to_zarr(x, tmp_path / "x", region=(slice(0, 4),))
    with pytest.raises(ln.InputError, match=r"along axis 0 .* give a slice of step 1 within 0:4"):
        ln.to_zarr(x, tmp_path / "x", region=(slice(0, 8), slice(0, 4)))
    with pytest.raises(ln.InputError, match=r"holds float64, and complex128 cannot become that"):
        ln.to_zarr(x + 1j, tmp_path / "x", region=(slice(0, 4), slice(0, 4)))
    with pytest.raises(ln.InputError, match="leave out chunks, overwrite, shards"):
        ln.to_zarr(x, tmp_path / "x", region=(slice(0, 4),) * 2, chunks=2, overwrite=True, shards=(4, 4))


# ---- what fails, and goes on


class Failing:
    """A function on tiles that fails on one of them, until it is mended."""

    def __init__(self, bad: float) -> None:
        self.bad: float | None = bad
        self.seen: list[float] = []

    def __call__(self, tile: Any) -> Any:
        if self.bad is not None and (tile == self.bad).any():
            raise ArithmeticError("broken off")
        self.seen.append(float(tile.flat[0]))
        return tile * 2


def test_a_write_that_fails_leaves_no_array_and_goes_on(tmp_path: Path):
    path, values, function = tmp_path / "x.zarr", np.arange(100.0), Failing(95)
    lazy = ln.map_blocks(function, ln.asarray(values, chunks=10), dtype=float)
    with ln.init(workers=1), pytest.raises(ln.KernelError, match="broken off"):
        ln.to_zarr(lazy, path)
    assert not (path / "zarr.json").exists()
    with pytest.raises(
        ln.FileError, match=rf"{path} is not complete: a write to it was broken off.*resume=True"
    ):
        ln.from_zarr(path)
    with pytest.raises(FileNotFoundError):
        zarr.open_array(str(path), mode="r")
    done = len(list((tmp_path / "x.zarr.unfinished/done").iterdir()))
    assert 1 <= done <= 9
    function.bad = None
    function.seen.clear()
    ln.to_zarr(lazy, path, resume=True)
    assert len(function.seen) == 10 - done
    assert np.array_equal(zarr.open_array(str(path), mode="r")[...], values * 2)
    assert [each.name for each in tmp_path.iterdir()] == ["x.zarr"]
    ln.to_zarr(lazy, path, resume=True)  # there is nothing left to do
    assert len(function.seen) == 10 - done


def test_going_on_with_another_array_is_refused(tmp_path: Path):
    path, function = tmp_path / "x.zarr", Failing(95)
    lazy = ln.map_blocks(function, ln.asarray(np.arange(100.0), chunks=10), dtype=float)
    with pytest.raises(ln.KernelError):
        ln.to_zarr(lazy, path)
    with pytest.raises(ln.InputError, match="was begun with another metadata and tiles"):
        ln.to_zarr(ln.zeros(50), path, resume=True)
    ln.to_zarr(ln.zeros(50), path)  # begins anew, and leaves nothing of the old one
    assert np.array_equal(ln.from_zarr(path).compute(), np.zeros(50))
    assert len(list((path / "c").iterdir())) == 1


def test_a_region_that_fails_is_told_to_readers(tmp_path: Path):
    path, function = tmp_path / "x.zarr", Failing(15)
    ln.to_zarr(ln.asarray(np.zeros(40), chunks=10), path)
    lazy = ln.map_blocks(function, ln.asarray(np.arange(20.0), chunks=10), dtype=float)
    with ln.init(workers=1), pytest.raises(ln.KernelError):
        ln.to_zarr(lazy, path, region=(slice(5, 25),))
    with pytest.raises(ln.FileError, match=r"a write to its region \[5-25\] was broken off"):
        ln.from_zarr(path)
    function.bad = None
    ln.to_zarr(lazy, path, region=(slice(5, 25),), resume=True)
    assert np.array_equal(ln.from_zarr(path).compute()[5:25], np.arange(20.0) * 2)
    assert [each.name for each in tmp_path.iterdir()] == ["x.zarr"]


def test_an_array_there_is_not_overwritten_unasked(tmp_path: Path):
    ln.to_zarr(ln.zeros(5), tmp_path / "x")
    with pytest.raises(ln.FileError, match="exists; give overwrite=True to replace it, region="):
        ln.to_zarr(ln.ones(5), tmp_path / "x")
    with pytest.raises(ln.InputError, match="is complete, but not the array that resume=True would write"):
        ln.to_zarr(ln.ones(6), tmp_path / "x", resume=True)
    ln.to_zarr(ln.ones(6), tmp_path / "x", overwrite=True)
    assert np.array_equal(ln.from_zarr(tmp_path / "x").compute(), np.ones(6))


def test_what_is_no_array_is_not_replaced(tmp_path: Path):
    (tmp_path / "x").mkdir()
    (tmp_path / "x/thesis.tex").write_text("years of work")
    ln.to_zarr(ln.ones(3), tmp_path / "group", "a")
    for name in ("x", "group"):
        with pytest.raises(
            ln.FileError, match="exists and is no Zarr array; remove it, or give another name"
        ):
            ln.to_zarr(ln.ones(3), tmp_path / name, overwrite=True)
    assert (tmp_path / "x/thesis.tex").exists()


def test_an_array_does_not_replace_what_it_is_computed_from(tmp_path: Path):
    ln.to_zarr(ln.asarray(np.arange(10.0), chunks=5), tmp_path / "x")
    x = ln.from_zarr(tmp_path / "x")
    for keywords in ({"overwrite": True}, {"region": (slice(0, 10),)}):
        with pytest.raises(
            ln.InputError, match=r"computed from .*x, and would be written over it; persist\(\) it"
        ):
            ln.to_zarr(x + 1, tmp_path / "x", **keywords)
    ln.to_zarr((x + 1).persist(), tmp_path / "x", overwrite=True)
    assert np.array_equal(ln.from_zarr(tmp_path / "x").compute(), np.arange(10.0) + 1)


def test_arrays_without_elements(tmp_path: Path):
    for shape in ((0,), (0, 5), (3, 0)):
        ln.to_zarr(ln.zeros(shape), tmp_path / "x", overwrite=True)
        assert ln.from_zarr(tmp_path / "x").compute().shape == shape


# ---- bad files


def test_a_truncated_chunk_is_named(tmp_path: Path):
    for name, keywords in (
        ("zstd", {}),
        ("plain", {"compressors": None}),
        ("sharded", {"shards": (20,)}),
        ("gzip", {"compressors": zarr.codecs.GzipCodec()}),
    ):
        path = tmp_path / name
        ln.to_zarr(ln.asarray(sample((40,)), chunks=10), path, chunks=10, **keywords)
        chunk = sorted((path / "c").iterdir())[1]
        chunk.write_bytes(chunk.read_bytes()[:-5])
        with pytest.raises(ln.FormatError, match=r"chunk.*\(1,\).*is damaged or truncated|chunks from"):
            ln.from_zarr(path).compute()


def test_a_chunk_of_another_size_is_no_chunk(tmp_path: Path):
    ln.to_zarr(ln.asarray(sample((40,)), chunks=20), tmp_path / "x")
    ln.to_zarr(ln.asarray(sample((20,)), chunks=10), tmp_path / "y")
    (tmp_path / "x/c/0").write_bytes((tmp_path / "y/c/0").read_bytes())
    with pytest.raises(ln.FormatError, match=r"x/c/0: chunk \(0,\) is damaged.*the 160 bytes of 20 float64"):
        ln.from_zarr(tmp_path / "x").compute()


def test_missing_chunks_are_the_fill_value(tmp_path: Path):
    ln.to_zarr(ln.asarray(sample((40,)), chunks=20), tmp_path / "x", fill_value=7.0)
    (tmp_path / "x/c/1").unlink()
    assert np.array_equal(ln.from_zarr(tmp_path / "x").compute()[20:], np.full(20, 7.0))


def test_places_that_hold_no_array(tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/notes.txt").write_text("x")
    with pytest.raises(ln.FormatError, match=r"folder is no Zarr array: .*and it holds notes.txt"):
        ln.from_zarr(tmp_path / "folder")
    with pytest.raises(ln.FileMissingError, match=r"nothing.*there is no such file or folder"):
        ln.from_zarr(tmp_path / "nothing")
    ln.to_zarr(ln.zeros(5), tmp_path / "x")
    (tmp_path / "x/zarr.json").write_text("{")
    with pytest.raises(ln.FormatError, match=r"zarr.json is damaged"):
        ln.from_zarr(tmp_path / "x")
    (tmp_path / "x/zarr.json").write_text('{"zarr_format": 3, "node_type": "array"}')
    with pytest.raises(ln.FormatError, match=r"the metadata of .*x is not what Zarr asks for"):
        ln.from_zarr(tmp_path / "x")


@pytest.mark.filterwarnings("ignore")
def test_text_and_objects_are_refused(tmp_path: Path):
    zarr.create_array(str(tmp_path / "s"), data=np.array(["a", "bc"]))
    with pytest.raises(ln.FormatError, match=r"holds <U2, which arrays here cannot"):
        ln.from_zarr(tmp_path / "s")


def test_an_array_that_changed_is_not_read_as_it_was(tmp_path: Path):
    ln.to_zarr(ln.zeros(5), tmp_path / "x")
    old = ln.from_zarr(tmp_path / "x")
    ln.to_zarr(ln.ones(9), tmp_path / "x", overwrite=True)
    with pytest.raises(ln.FileError, match="has changed since it was opened; open it again"):
        old.compute()
    assert np.array_equal(ln.from_zarr(tmp_path / "x").compute(), np.ones(9))


def test_chunks_of_several_lengths_are_refused(tmp_path: Path):
    with pytest.raises(ln.InputError, match="have one length along an axis, these have several along axis 0"):
        ln.to_zarr(ln.zeros(10), tmp_path / "x", chunks=((3, 4, 3),))
    ln.to_zarr(
        ln.asarray(np.arange(10.0), chunks=((3, 5, 2),)), tmp_path / "x"
    )  # cut anew where tiles are so
    assert zarr.open_array(str(tmp_path / "x"), mode="r").chunks == (5,)
    assert json.loads((tmp_path / "x/zarr.json").read_text())["shape"] == [10]


def test_a_file_is_no_zarr_array(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(
        ln.FormatError, match=r"x\.csv is a file, and a Zarr array is a folder; .* ln\.read_csv"
    ):
        ln.from_zarr(tmp_path / "x.csv")
