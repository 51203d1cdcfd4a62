"""Text in rows and columns, against Python's own csv module and pandas."""

from __future__ import annotations

import bz2
import csv
import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import linnet as ln
from linnet.arrays.expression import chunking

pytest.importorskip("pyarrow")


@pytest.fixture
def small_tiles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunking, "TARGET", 40_000)  # bytes of a tile


@pytest.fixture(params=[pytest.param("compiled", marks=pytest.mark.needs("cc")), "arrow"])
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A test runs twice: with the compiled parser, and as if there were none."""
    if request.param == "arrow":
        monkeypatch.setattr("linnet.io.compiled.library", lambda: None)


def write(path: Path, text: str) -> Path:
    path.write_bytes(text.encode())
    return path


FLOATS = st.floats(allow_nan=False) | st.integers(-9, 9).map(float)


@pytest.mark.slow
@given(st.data())
def test_numbers_both_ways(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    rows, width = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 4))
    values = np.array(data.draw(st.lists(FLOATS, min_size=rows * width, max_size=rows * width)))
    values = values.reshape(rows, width)
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    names = [f"c{k}" for k in range(width)]
    ln.to_csv(ln.asarray(values, chunks=data.draw(st.integers(1, 5))), path, header=names)
    np.testing.assert_array_equal(np.loadtxt(path, delimiter=",", skiprows=1, ndmin=2), values)
    found = ln.read_csv(path, dtype=float)
    assert found.shape == values.shape
    np.testing.assert_array_equal(found.compute(), values)


FIELDS = st.text(st.sampled_from('ab,;"\n\r \t1'), max_size=6)


@given(st.lists(st.tuples(FIELDS, st.integers(-999, 999)), min_size=1, max_size=30), st.integers(1, 60))
def test_rows_are_found_among_quotes_and_line_ends(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, int]], step: int
):
    """Ranges of any length, cut anywhere: every row is in one of them, whatever stands in quotes."""
    from linnet.io.csv import ranges, survey
    from linnet.io.places import Place
    from linnet.io.stores import size_and_version

    path = tmp_path_factory.mktemp("csv") / "x.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_NONNUMERIC).writerows(rows)
    place = Place.of(path)
    size, version = size_and_version(place)
    where: dict[str, Any] = {"url": place.url, "options": (), "version": version, "compression": None}
    edges = [*range(0, size, step), size]
    starts = [-1, *edges[1:-1]]
    surveys = [survey(a, b, **where, quote='"') for a, b in zip(starts, edges[1:], strict=True)]
    found = ranges(np.concatenate(surveys), size)
    assert sum(count for *_, count in found) == len(rows)
    text = path.read_bytes().decode()
    read: list[list[str]] = []
    for start, stop, first, count in found:
        assert first == len(read)
        part = list(filter(None, csv.reader(text[start:stop].splitlines(keepends=True))))
        assert len(part) == count
        read += part
    assert read == list(filter(None, csv.reader(text.splitlines(keepends=True))))


@pytest.mark.slow
def test_mixed_columns_each_in_its_dtype(tmp_path: Path, small_tiles: None):
    rows = [
        f'{i},"a\n""{i},b",{"" if i % 5 == 0 else i / 3},{"true" if i % 2 else "false"},2020-01-01T00:00:{i % 60:02}\r\n'
        for i in range(9000)
    ]
    path = write(tmp_path / "m.csv", "\ufeffid,name,v,ok,when\r\n" + "\r\n".join(rows))
    with pytest.raises(
        ln.FormatError, match=r"column 'name' holds text, .*columns=\['id', 'v', 'ok', 'when'\]"
    ):
        ln.read_csv(path)
    table = ln.read_csv(path, columns=["id", "v", "ok", "when"], separate=True)
    assert len(table["id"].chunks[0]) > 1
    found = dict(zip(table, ln.compute(*table.values()), strict=True))
    number = np.arange(9000)
    assert {name: str(each.dtype) for name, each in found.items()} == {
        "id": "int64", "v": "float64", "ok": "bool", "when": "datetime64[s]",
    }  # fmt: skip
    np.testing.assert_array_equal(found["id"], number)
    np.testing.assert_allclose(found["v"], np.where(number % 5, number / 3, np.nan), rtol=1e-15)
    np.testing.assert_array_equal(found["ok"], number % 2 == 1)
    np.testing.assert_array_equal(found["when"], np.datetime64("2020-01-01T00:00:00") + number % 60)
    both = ln.read_csv(path, columns=["id", "v"])
    assert (both.dtype, both.shape) == (np.float64, (9000, 2))
    assert ln.read_csv(path, columns="id").sum().compute() == number.sum()
    assert ln.read_csv(path, columns=[0, -3], dtype="f4").dtype == np.float32
    with pytest.raises(ln.InputError, match=r"columns hold int64, datetime64\[s\], which is no one array"):
        ln.read_csv(path, columns=["id", "when"])


@pytest.mark.slow
@pytest.mark.parametrize("end", ["gz", "bz2", "xz", "zst"])
def test_compressed_files(tmp_path: Path, small_tiles: None, end: str):
    import pyarrow as pa

    values = np.random.default_rng(0).random((9000, 3))
    ln.to_csv(ln.asarray(values), tmp_path / "x.csv")
    text = (tmp_path / "x.csv").read_bytes()
    packed = {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": lambda data: pa.compress(data, "zstd", asbytes=True),
    }[end](text)
    path = tmp_path / f"x.csv.{end}"
    path.write_bytes(packed)
    found = ln.read_csv(path, header=False)
    assert len(found.chunks[0]) > 1
    np.testing.assert_array_equal(found.compute(), values)
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ln.FormatError, match=rf"x.csv.{end} is not \w+, or is truncated, after"):
        ln.read_csv(path, header=False)


def test_other_dialects(tmp_path: Path):
    path = write(tmp_path / "x.csv", "# made by hand\n\nx;y\n1,5;-\n'2,25';4\n")
    found = ln.read_csv(path, delimiter=";", decimal=",", quote="'", na_values=["-"], skip_rows=1)
    np.testing.assert_array_equal(found.compute(), [[1.5, np.nan], [2.25, 4.0]])
    with pytest.raises(ln.InputError, match="delimiter='::': give one ASCII character"):
        ln.read_csv(path, delimiter="::")
    with pytest.raises(ln.InputError, match="compression='rar' is not known; use gzip, bz2"):
        ln.read_csv(path, compression="rar")


@pytest.mark.needs("pandas")
def test_pandas_agrees(tmp_path: Path, small_tiles: None, parser: None):
    import pandas

    rng = np.random.default_rng(1)
    frame = pandas.DataFrame({"a": rng.integers(0, 9, 20_000), "b": rng.random(20_000)})
    frame.loc[rng.integers(0, 20_000, 500), "b"] = np.nan
    frame.to_csv(tmp_path / "x.csv", index=False)
    found = ln.read_csv(tmp_path / "x.csv")
    np.testing.assert_array_equal(found.compute(), pandas.read_csv(tmp_path / "x.csv").to_numpy(float))
    assert np.isclose(found[:, 0].mean().compute(), frame["a"].mean())


@pytest.mark.parametrize("text", ["a,b\n", "a,b", "a,b\n\r\n\n"])
def test_header_without_rows(tmp_path: Path, text: str):
    path = write(tmp_path / "x.csv", text)
    assert ln.read_csv(path).shape == (0, 2)
    assert {name: x.shape for name, x in ln.read_csv(path, separate=True).items()} == {"a": (0,), "b": (0,)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", r"x.csv holds no rows: there is nothing to tell its columns from"),
        ("a,b\n1,2\n3\n", r"x.csv: row 2 has 1 columns, the first one has 2: '3'"),
        ("a,b\n1,2\n3,4,5\n", r"x.csv: row 2 has 3 columns, the first one has 2: '3,4,5'"),
        ("a,b\n1,x\n", r"x.csv: column 'b' holds text, which arrays cannot; leave it out: columns=\['a'\]"),
        ("a\rb\rc", r"x.csv: its lines end with CR alone; end them with LF"),
    ],
)
def test_bad_files_say_what_and_where(tmp_path: Path, text: str, words: str):
    with pytest.raises(ln.FormatError, match=words):
        ln.read_csv(write(tmp_path / "x.csv", text)).compute()


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("1,2.5", r"row 60,001, column 2: '2.5' is not of type int64; give dtype=\.\.\., or na_values"),
        (",2", r"row 60,001, column 1: '' is not of type int64"),
        ("1,two", r"row 60,001, column 2: 'two' is not of type int64"),
        ("1", r"row 60,001 has 1 columns, the first one has 2"),
    ],
)
def test_a_bad_row_far_down_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, row: str, words: str):
    monkeypatch.setattr("linnet.io.csv._SAMPLE", 1 << 12)  # what is further down is not looked at before
    path = write(tmp_path / "x.csv", "a,b\n" + "1,2\n" * 60_000 + row + "\n" + "1,2\n" * 1000)
    with pytest.raises(ln.FormatError, match=words):
        ln.read_csv(path).compute()
    if row == "1,2.5":
        assert ln.read_csv(path, dtype=float).max().compute() == 2.5


def test_columns_that_are_not_there(tmp_path: Path):
    path = write(tmp_path / "x.csv", "a,a,b\n1,2,3\n")
    with pytest.raises(ln.InputError, match=r"column 'c' is not there in .*; it has 'a', 'a', 'b'"):
        ln.read_csv(path, columns=["c"])
    with pytest.raises(ln.InputError, match=r"column 'a' occurs several times; give its number"):
        ln.read_csv(path, columns=["a"])
    with pytest.raises(ln.InputError, match=r"dtype= names column 'c'; the columns read are b"):
        ln.read_csv(path, columns=["b"], dtype={"c": float})
    with pytest.raises(ln.InputError, match="columns of text cannot become complex128"):
        ln.read_csv(path, dtype=complex)


def test_a_file_that_changes_is_not_read_as_it_was(tmp_path: Path):
    path = write(tmp_path / "x.csv", "a\n1\n2\n")
    x = ln.read_csv(path)
    write(path, "a\n1\n2\n3\n")
    with pytest.raises(ln.FileError, match="has changed since it was opened"):
        x.compute()


def test_writing_formats_and_going_on(tmp_path: Path):
    x = ln.asarray(np.arange(6.0).reshape(3, 2) / 3, chunks=1)
    ln.to_csv(x, tmp_path / "x.csv", fmt="%.2f", delimiter=";")
    assert (tmp_path / "x.csv").read_text() == "0.00;0.33\n0.67;1.00\n1.33;1.67\n"
    ln.to_csv(ln.asarray(np.arange(3)), tmp_path / "y.csv", header=["n"])
    assert (tmp_path / "y.csv").read_text() == "n\n0\n1\n2\n"
    with pytest.raises(ln.FileError, match="exists; give overwrite=True"):
        ln.to_csv(x, tmp_path / "x.csv")
    with pytest.raises(ln.InputError, match=r"header=\['a'\] names 1 columns, the array has 2"):
        ln.to_csv(x, tmp_path / "z.csv", header=["a"])
    with pytest.raises(ln.InputError, match="give an array of one or two axes, not 3"):
        ln.to_csv(ln.zeros((2, 2, 2)), tmp_path / "z.csv")

    def broken(tile: Any) -> Any:
        raise ArithmeticError("broken off")

    with pytest.raises(ln.KernelError):
        ln.to_csv(ln.map_blocks(broken, x, dtype=float), tmp_path / "z.csv")
    assert not (tmp_path / "z.csv").exists()
    ln.to_csv(x, tmp_path / "z.csv", resume=True)
    assert len((tmp_path / "z.csv").read_text().splitlines()) == 3
