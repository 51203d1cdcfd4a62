"""Formats whose library is not installed say what to install."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import linnet as ln

CASES: dict[str, Callable[[Path], Any]] = {
    "zarr": lambda folder: ln.from_zarr(folder / "x"),
    "h5py": lambda folder: ln.from_hdf5(folder / "x", "x"),
    "pyarrow": lambda folder: ln.read_csv(folder / "x"),
    "obstore": lambda folder: ln.from_npy("s3://bucket/x"),
}


@pytest.mark.parametrize("package", CASES)
def test_a_missing_package_is_named_with_its_extra(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "x").write_text("1")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        ln.MissingExtraError, match=rf'needs {package}; install it with: pip install "linnet-array\[io\]"'
    ):
        CASES[package](tmp_path)


def test_what_needs_the_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for ask in (ln.read_parquet, lambda path: ln.to_parquet(ln.ones((2, 2)), path)):
        with pytest.raises(ln.MissingExtraError, match="^reading and writing Parquet files needs pyarrow;"):
            ask(tmp_path / "x.parquet")
