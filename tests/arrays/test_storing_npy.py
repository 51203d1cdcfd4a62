"""NumPy's own files: NumPy writes what we read, and reads what we write."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import DATES, NUMBERS, arrays, chunkings

import linnet as ln


@given(st.data())
def test_npy_both_ways(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    values = data.draw(arrays((*NUMBERS, *DATES, ">f8", ">i4")))
    folder = tmp_path_factory.mktemp("npy")
    np.save(folder / "x.npy", np.asfortranarray(values) if data.draw(st.booleans()) else values)
    x = ln.from_npy(folder / "x.npy", chunks=data.draw(chunkings(values.shape)) or None)
    assert x.dtype == values.dtype.newbyteorder("=")
    np.testing.assert_array_equal(x.compute(), values)
    ln.to_npy(x, folder / "y.npy")
    found = np.load(folder / "y.npy", allow_pickle=False)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, values)


@pytest.mark.slow
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, save: Any):
    values = {"a": np.arange(60.0).reshape(6, 10), "b": np.arange(3, dtype="i2"), "c": np.array(5)}
    save(tmp_path / "x.npz", **values)
    found = ln.from_npz(tmp_path / "x.npz", chunks=2)
    assert found.keys() == values.keys()
    for name, x in found.items():
        np.testing.assert_array_equal(x.compute(), values[name])
    one = ln.from_npz(tmp_path / "x.npz", "a")
    assert np.array_equal(one[2:4, 3].compute(), values["a"][2:4, 3])
    with pytest.raises(ln.FileMissingError, match=r"there is no array 'd' in .*x.npz; it holds a, b, c"):
        ln.from_npz(tmp_path / "x.npz", "d")


def test_a_truncated_file_says_by_how_much(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.zeros((10, 10)))
    data = (tmp_path / "x.npy").read_bytes()
    (tmp_path / "x.npy").write_bytes(data[:500])
    with pytest.raises(ln.FormatError, match=r"x.npy is truncated: 10×10 float64 take 928 bytes.*has 500"):
        ln.from_npy(tmp_path / "x.npy")
    (tmp_path / "x.npy").write_bytes(data[:20])
    with pytest.raises(ln.FormatError, match=r"x.npy is no .npy file, or its header is damaged"):
        ln.from_npy(tmp_path / "x.npy")
    np.savez(tmp_path / "x.npz", a=np.zeros(100))
    (tmp_path / "x.npz").write_bytes((tmp_path / "x.npz").read_bytes()[:300])
    with pytest.raises(ln.FormatError, match=r"x.npz is no .npz file, or is truncated"):
        ln.from_npz(tmp_path / "x.npz", "a")


def test_nothing_is_unpickled(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.array([object()]), allow_pickle=True)
    with pytest.raises(ln.FormatError, match=r"holds object, which is refused: reading objects can run code"):
        ln.from_npy(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.array(["text"]))
    with pytest.raises(ln.FormatError, match=r"holds <U4, which is refused"):
        ln.from_npy(tmp_path / "x.npy")


def test_a_file_that_changes_is_not_read_as_it_was(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.zeros(10))
    x = ln.from_npy(tmp_path / "x.npy")
    np.save(tmp_path / "x.npy", np.ones(10))
    with pytest.raises(ln.FileError, match=r"x.npy has changed since it was opened"):
        x.compute()
    assert ln.from_npy(tmp_path / "x.npy").sum().compute() == 10


def test_a_write_that_fails_leaves_no_file_and_goes_on(tmp_path: Path):
    path, calls, broken = tmp_path / "x.npy", [0], [True]

    def function(tile: Any) -> Any:
        calls[0] += 1
        if broken[0] and tile.flat[0] == 80:
            raise ArithmeticError("broken off")
        return tile + 1

    lazy = ln.map_blocks(function, ln.asarray(np.arange(100.0), chunks=10), dtype=float)
    with ln.init(workers=1), pytest.raises(ln.KernelError, match="broken off"):
        ln.to_npy(lazy, path)
    assert not path.exists()
    done = len(list((tmp_path / "x.npy.unfinished/done").iterdir()))
    assert 1 <= done <= 8
    broken[0], calls[0] = False, 0
    ln.to_npy(lazy, path, resume=True)
    assert calls[0] == 10 - done
    assert np.array_equal(np.load(path), np.arange(100.0) + 1)
    assert [each.name for each in tmp_path.iterdir()] == ["x.npy"]
    with pytest.raises(ln.FileError, match=r"x.npy exists; give overwrite=True"):
        ln.to_npy(lazy, path)
    ln.to_npy(lazy * 2, path, overwrite=True)
    assert np.array_equal(np.load(path), np.arange(100.0) * 2 + 2)


def test_folders_that_are_not_there_and_files_that_are_not(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"no.npy: there is no such file or folder; there is"):
        ln.from_npy(tmp_path / "no.npy")
    with pytest.raises(ln.FileError, match="cannot be read: Is a directory"):
        ln.from_npy(tmp_path)
    ln.to_npy(ln.ones(3), tmp_path / "new/folder/x.npy")
    assert np.load(tmp_path / "new/folder/x.npy").sum() == 3


def test_a_memory_budget_holds_for_what_is_read_and_written(tmp_path: Path):
    with ln.init(memory="4 MB"):
        x = ln.random.default_rng(0).random((1000, 1000), chunks=(100, 1000))
        ln.to_npy(x, tmp_path / "x.npy")
        ln.to_npy(ln.from_npy(tmp_path / "x.npy", chunks=(100, 1000)) * 2, tmp_path / "y.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.load(tmp_path / "x.npy") * 2)


@contextmanager
def as_nobody() -> Iterator[None]:
    """As a user who owns nothing, where the tests run as root, whom nobody forbids anything."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_files_that_one_may_not_read_or_write(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.zeros(3))
    (tmp_path / "x.npy").chmod(0)
    tmp_path.chmod(0o500)
    try:
        with (
            as_nobody(),
            pytest.raises(
                PermissionError, match=r"x.npy may not be \w+: Permission denied; change its permissions"
            ),
        ):
            ln.from_npy(tmp_path / "x.npy")
        with (
            as_nobody(),
            pytest.raises(ln.FileDeniedError, match=r"y.npy.* may not be \w+: Permission denied"),
        ):
            ln.to_npy(ln.zeros(3), tmp_path / "y.npy")
    finally:
        tmp_path.chmod(0o700)


def resident(path: Path) -> int:
    """Bytes of a mapped file that count as memory of this process."""
    found = 0
    for part in Path("/proc/self/smaps").read_text().split("\n"):
        fields = part.split()
        if fields and "-" in fields[0]:
            mine = fields[-1] == str(path)
        elif fields and fields[0] == "Rss:" and mine:  # type: ignore[possibly-undefined]
            found += int(fields[1]) * 1024
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux tells what is resident")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("chunks", [(250, -1), (-1, 50), (300, 170)])
def test_pages_of_a_file_that_was_read_are_not_kept(tmp_path: Path, chunks: Any, order: Any):
    values = np.asarray(np.random.default_rng(0).standard_normal((2000, 1000)), order=order)
    path = tmp_path / "x.npy"
    np.save(path, values)
    x = ln.from_npy(path, chunks=chunks)
    np.testing.assert_array_equal((x + 1).compute(), values + 1)
    assert resident(path) <= 2**20


def test_boxes_of_every_kind_of_file(tmp_path: Path):
    rng = np.random.default_rng(1)
    for dtype in ("f8", ">f8", "c16", "i2", "?", "M8[s]"):
        values = rng.integers(0, 2**12, (70, 30, 80)).astype(dtype)
        for order in ("C", "F"):
            np.save(tmp_path / "x.npy", np.asarray(values, order=order))
            x = ln.from_npy(tmp_path / "x.npy", chunks=(16, 30, 33))
            for box in (np.s_[5:60, 3, 7:71:4], np.s_[:, 29:, 40:], np.s_[69, ::-1], np.s_[:0]):
                np.testing.assert_array_equal(x[box].compute(), values[box])


def test_a_file_that_is_cut_off_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    from linnet.io import stores

    np.save(tmp_path / "x.npy", np.zeros((100, 1000)))
    x = ln.from_npy(tmp_path / "x.npy", chunks=(10, -1))
    os.truncate(tmp_path / "x.npy", 1000)
    monkeypatch.setattr(stores, "same_version", lambda *_: None)  # it happened just after the look
    with pytest.raises(ValueError, match="ended early: .* bytes were asked for from byte"):
        x.sum().compute()
