"""Kernels that read tiles from files, and write them there.

What such a kernel needs beside its tile are numbers and words: where the file is, and which part of
it. So a task can run in any process, here or elsewhere, and be repeated: whatever it writes, nobody
else does. Kernels that write return how many bytes the tile has.

Formats are imported when a kernel of theirs runs: most programs touch no file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.arrays.moves import room
from linnet.kernels.registry import kernel

if TYPE_CHECKING:
    from linnet.io.cuts import Box
    from linnet.io.journal import Journal
    from linnet.io.places import Options

Tile = NDArray[Any]


def _lengths(*numbers: int, **_: Any) -> tuple[int, ...]:
    return tuple(numbers[1::2])


def _dtype(*_: Any, dtype: str, **__: Any) -> np.dtype[Any]:
    return np.dtype(dtype)


def _box(numbers: tuple[int, ...]) -> Box:
    return tuple(
        slice(start, start + length) for start, length in zip(numbers[::2], numbers[1::2], strict=True)
    )


def _nothing(*_: Any, **__: Any) -> float:
    return 0.0


@kernel("load_npy", shape=_lengths, dtype=_dtype, flops=_nothing, into=True, streams=True)
def load_npy(*numbers: int, dtype: str, into: Tile | None = None, **where: Any) -> Tile:
    """A box of an array in an `.npy` or `.npz` file; numbers are start and length along each axis."""
    from linnet.io import npy

    tile = room(numbers[1::2], np.dtype(dtype), into)
    npy.read(_box(numbers), tile, **where)
    return tile


@kernel("load_zarr", shape=_lengths, dtype=_dtype, flops=_nothing, into=True, streams=True)
def load_zarr(
    *numbers: int, url: str, options: Options, version: str, dtype: str, into: Tile | None = None
) -> Tile:
    """A box of a Zarr array; numbers are start and length along each axis."""
    from linnet.io import zarr

    tile = room(numbers[1::2], np.dtype(dtype), into)
    zarr.opened(url, options, version).read(_box(numbers), tile)
    return tile


@kernel("load_hdf5", shape=_lengths, dtype=_dtype, flops=_nothing, into=True, streams=True)
def load_hdf5(*numbers: int, dtype: str, into: Tile | None = None, **where: Any) -> Tile:
    """A box of a data set in an HDF5 file; numbers are start and length along each axis."""
    from linnet.io import hdf5

    tile = room(numbers[1::2], np.dtype(dtype), into)
    hdf5.read(_box(numbers), tile, **where)
    return tile


# ---- rows


@kernel("survey_csv", shape=lambda *_, **__: (1, 5), dtype=lambda *_, **__: np.int64, flops=_nothing)
def survey_csv(start: int, stop: int, **where: Any) -> Tile:
    """What a range of bytes holds of rows; see `io.csv.survey`."""
    from linnet.io import csv

    return csv.survey(start, stop, **where)


def _rows(
    start: int,
    stop: int,
    first: int,
    rows: int,
    *,
    columns: tuple[int, ...],
    flat: bool,
    dtype: Any,
    **_: Any,
) -> Any:
    if not isinstance(dtype, str):
        return [(rows,)] * len(columns)
    return (rows,) if flat else (rows, len(columns))


def _kinds(*_: Any, dtype: Any, **__: Any) -> Any:
    return np.dtype(dtype) if isinstance(dtype, str) else [np.dtype(each) for each in dtype]


@kernel("load_csv", shape=_rows, dtype=_kinds, flops=_nothing, into=True, streams=True)
def load_csv(*numbers: int, into: Tile | None = None, **where: Any) -> Any:
    """Rows of a text in columns: one tile, or with several dtypes one for each column.

    Numbers are bytes from and to, the number of the first row, and how many rows there are.
    """
    from linnet.io import csv

    return _load_rows(csv.read, numbers, into, **where)


@kernel("load_parquet", shape=_rows, dtype=_kinds, flops=_nothing, into=True, streams=True)
def load_parquet(*numbers: int, into: Tile | None = None, **where: Any) -> Any:
    """Rows of a Parquet file: one tile, or with several dtypes one for each column.

    Numbers are the file, row groups from and to, and how many rows they have.
    """
    from linnet.io import parquet

    return _load_rows(parquet.read, numbers, into, **where)


def _load_rows(
    read: Callable[..., None],
    numbers: tuple[int, ...],
    into: Tile | None,
    *,
    columns: tuple[Any, ...],
    flat: bool,
    dtype: str | tuple[str, ...],
    **where: Any,
) -> Any:
    rows = numbers[-1]
    if isinstance(dtype, str):
        tile = room((rows,) if flat else (rows, len(columns)), np.dtype(dtype), into)
        read(*numbers, columns=columns, into=[tile], **where)
        return tile
    tiles = [np.empty(rows, each) for each in dtype]
    read(*numbers, columns=columns, into=tiles, **where)
    return tiles


# ---- writing


def _receipt(tile: Any, *numbers: int, rank: int, **_: Any) -> tuple[int, ...]:
    return (1,) * rank


def _count(*_: Any, **__: Any) -> np.dtype[Any]:
    return np.dtype(np.int64)


def _only(tiles: Any) -> Tile:
    """The tile in lists of lists: what a range of one tile reaches a kernel as."""
    while isinstance(tiles, list):
        (tiles,) = tiles
    return tiles


def _region(tile: Tile, numbers: tuple[int, ...]) -> Box:
    return tuple(slice(start, start + n) for start, n in zip(numbers[1::2], tile.shape, strict=True))


def _journal(url: str, options: Options = (), part: str = "") -> Journal:
    from linnet.io.journal import Journal
    from linnet.io.places import Place

    return Journal(Place(url, options), part)


def _written(tile: Tile, rank: int) -> Tile:
    return np.full((1,) * rank, tile.nbytes, np.int64)


@kernel("save_npy", shape=_receipt, dtype=_count, flops=_nothing, streams=True)
def save_npy(tiles: Any, *numbers: int, rank: int, url: str, shape: tuple[int, ...], offset: int) -> Tile:
    """Put a tile into the file that will be an `.npy` file.

    Numbers are, along each axis, what adds up to the number of the tile, and where it starts.
    """
    from linnet.io import npy

    tile = _only(tiles)
    journal = _journal(url)
    npy.write(_region(tile, numbers), tile, place=journal.folder / "data", offset=offset, shape=shape)
    journal.note(sum(numbers[::2]))
    return _written(tile, rank)


@kernel("save_zarr", shape=_receipt, dtype=_count, flops=_nothing, streams=True)
def save_zarr(
    tiles: Any, *numbers: int, rank: int, url: str, options: Options, version: str, region: str
) -> Tile:
    """Store the chunks of a tile; `region` names the part of a finished array that is written anew."""
    from linnet.io import zarr

    tile = _only(tiles)
    known = zarr.opened if region else zarr.being_written
    known(url, options, version).write(_region(tile, numbers), tile)
    _journal(url, options, region).note(sum(numbers[::2]))
    return _written(tile, rank)


@kernel("save_hdf5", shape=_receipt, dtype=_count, flops=_nothing, streams=True)
def save_hdf5(tiles: Any, *numbers: int, rank: int, url: str, name: str) -> Tile:
    """Put a tile into the data set that will have a name in the end."""
    from linnet.io import hdf5

    tile = _only(tiles)
    journal = _journal(url, part=name)
    hdf5.write(_region(tile, numbers), tile, journal, name)
    journal.note(sum(numbers[::2]))
    return _written(tile, rank)


@kernel("save_part", shape=_receipt, dtype=_count, flops=_nothing, streams=True)
def save_part(
    tiles: Any, *numbers: int, rank: int, url: str, options: Options, form: str, **how: Any
) -> Tile:
    """Write the part of a file that a tile is, in one of the forms of `parts`."""
    from linnet.io import parts

    tile, number = _only(tiles), sum(numbers[::2])
    journal = _journal(url, options)
    parts.save(form, tile, journal, number, **how)
    journal.note(number)
    return _written(tile, rank)
