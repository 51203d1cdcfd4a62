"""HDF5 files: a data set is read and written in boxes.

The library works under one lock and refuses a file that is open for reading elsewhere, in the same
process too: so no handle is kept, a file is open only while a tile is read or written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.errors import FileError, FileMissingError, FormatError, InputError
from linnet.io import stores
from linnet.io.cuts import Box, Described
from linnet.io.journal import Journal
from linnet.io.places import Options, Place

Tile = NDArray[Any]
_PATIENCE = 60.0
"""Seconds to wait for others who have the file open."""
_one = threading.RLock()
"""A process cannot have a file open for reading and for writing at once."""


def library() -> Any:
    """h5py, or the error that says how to get it."""
    try:
        import h5py
    except ImportError as error:
        raise stores.extra("h5py", "reading and writing HDF5 files") from error
    return h5py


@contextmanager
def _opened(place: Place, mode: str) -> Iterator[Any]:
    h5py = library()
    stores.size_and_version(place)  # missing and forbidden files get their own errors
    source = place.url if place.is_local else stores.Seekable(place)
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            file = h5py.File(source, mode)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                raise FileError(
                    f"{place} has been open elsewhere for {_PATIENCE:.0f} s; close it there"
                ) from None
            time.sleep(0.01)
        except OSError as error:
            if "unable to lock" in str(error) and time.monotonic() < until:
                time.sleep(0.01)
                continue
            raise FormatError(f"{place} is no HDF5 file, or is damaged or truncated: {error}") from error
    with file:
        yield file


@contextmanager
def _alone(place: Place, mode: str) -> Iterator[Any]:
    with _one, _opened(place, mode) as file:
        yield file


def _data_set(file: Any, place: Place, name: str) -> Any:
    h5py = library()
    data_set = file.get(name)
    if not isinstance(data_set, h5py.Dataset):
        held: list[str] = []
        file.visititems(lambda path, item: held.append(path) if isinstance(item, h5py.Dataset) else None)
        what = "is a group" if data_set is not None else "is not there"
        raise FileMissingError(
            f"data set {name!r} {what} in {place}; it holds {', '.join(held[:20]) or 'no data set'}"
        )
    return data_set


def _version(data: Any) -> str:
    """A text that changes when a data set is replaced; others in the same file may come and go."""
    return f"{data.shape} {data.dtype.str} {data.chunks} {library().h5o.get_info(data.id).addr}"


def describe(place: Place, name: str) -> Described:
    """What a data set holds."""
    with _alone(place, "r") as file:
        data = _data_set(file, place, name)
        if data.dtype.kind in "OVSUT":
            raise FormatError(f"{place}[{name!r}] holds {data.dtype}, which arrays here cannot")
        if data.shape is None:
            raise FormatError(f"{place}[{name!r}] holds nothing")
        attributes = {"url": place.url, "options": place.options, "version": _version(data), "name": name}
        return Described(data.shape, data.dtype.newbyteorder("="), data.chunks, attributes)


def read(box: Box, into: Tile, *, url: str, options: Options, version: str, name: str) -> None:
    """Fill a tile with the elements of a box."""
    place = Place(url, options)
    with _alone(place, "r") as file:
        data = _data_set(file, place, name)
        if _version(data) != version:
            raise FileError(f"{place}[{name!r}] has changed since it was opened; open it again")
        try:
            into[...] = data[box]
        except OSError as error:
            where = ", ".join(f"{part.start}:{part.stop}" for part in box)
            raise FormatError(f"{place}[{name!r}]: [{where}] is damaged or truncated: {error}") from error


# ---- writing


def target_file(journal: Journal) -> Place:
    """The file that tiles are put into: the target if it exists, else one beside it."""
    return journal.target if stores.exists(journal.target) else journal.folder / "data"


def prepare(
    journal: Journal, name: str, shape: tuple[int, ...], dtype: np.dtype[Any], keywords: dict[str, Any]
) -> None:
    """A data set under another name, with room for the elements."""
    h5py = library()
    place = target_file(journal)
    with _one, stores.translated(place, "write"), h5py.File(place.url, "a") as file:
        file.pop(f"{name}.unfinished", None)
        try:
            file.create_dataset(f"{name}.unfinished", shape, dtype, **keywords)
        except (ValueError, TypeError) as error:
            raise InputError(f"h5py cannot make a data set of shape {shape} and {dtype}: {error}") from error


def write(box: Box, tile: Tile, journal: Journal, name: str) -> None:
    """Put a tile into a data set that was prepared."""
    with _alone(target_file(journal), "r+") as file:
        file[f"{name}.unfinished"][box] = tile


def end(journal: Journal, name: str) -> None:
    """Give the data set, and the file, its name."""
    place = target_file(journal)
    with _alone(place, "r+") as file:
        file.pop(name, None)
        file.move(f"{name}.unfinished", name)
    if place != journal.target:
        stores.rename(place, journal.target)
    journal.end()


def has(place: Place, name: str) -> bool:
    """Whether there is a file with something of this name in it."""
    if not stores.exists(place):
        return False
    with _alone(place, "r") as file:
        return name in file
