"""Zarr arrays, formats 2 and 3: what they hold, and how new ones begin and end.

Metadata is read and made by zarr-python. A new array gets its metadata last: until then its chunks
are no array to any reader. Tasks find the metadata in the plan of the write meanwhile.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from linnet.errors import FileError, FormatError, InputError
from linnet.io import stores
from linnet.io.cuts import Described
from linnet.io.journal import Journal, refuse_unfinished
from linnet.io.places import Options, Place
from linnet.io.zarr_chunks import Chunks

_FILES = {2: ".zarray", 3: "zarr.json"}


def library() -> Any:
    """zarr-python, or the error that says how to get it."""
    try:
        import zarr
    except ImportError as error:
        raise stores.extra("zarr", "reading and writing Zarr arrays") from error
    return zarr


# ---- reading


def describe(place: Place) -> Described:
    """What the array at a place is, and what tasks need to read it."""
    library()
    text = metadata_text(place)
    chunks = parsed(place, text)
    attributes = {"url": place.url, "options": place.options, "version": version(text)}
    return Described(chunks.shape, chunks.dtype.newbyteorder("="), chunks.unit, attributes)


def metadata_text(place: Place, finished: bool = True) -> str:
    """The metadata of an array, as it is stored; an error if a write to it has not ended."""
    if place.is_local and os.path.isfile(place.url):
        raise FormatError(
            f"{place} is a file, and a Zarr array is a folder; files are read by ln.read_csv, "
            "ln.read_parquet, ln.from_npy, ln.from_npz and ln.from_hdf5"
        )
    if finished:
        refuse_unfinished(place)
    for name in reversed(_FILES.values()):
        stored = stores.read_if_there(place / name)
        if stored is not None:
            return _checked(place, name, bytes(stored))
    if stores.read_if_there(place / ".zgroup") is not None:
        raise FileError(_group(place))
    names = stores.children(place)
    if not names and not (place.is_local and stores.exists(place)):
        stores.read(place / "zarr.json")  # raises, and says what is not there
    shown = f"it holds {', '.join(names[:4])}{' …' if len(names) > 4 else ''}" if names else "it is empty"
    raise FormatError(
        f"{place} is no Zarr array: there is neither {' nor '.join(_FILES.values())} in it, and {shown}"
    )


def _checked(place: Place, name: str, data: bytes) -> str:
    try:
        metadata = json.loads(data)
    except ValueError as error:
        raise FormatError(f"{place / name} is damaged: {error}") from error
    if not isinstance(metadata, dict):
        raise FormatError(f"{place / name} is damaged: it holds {type(metadata).__name__}, not an object")
    if metadata.get("node_type") == "group":
        raise FileError(_group(place))
    return data.decode()


def _group(place: Place) -> str:
    names = [
        name
        for name in stores.children(place)
        if any(stores.exists(place / name / file) for file in _FILES.values())
    ]
    inside = f"it holds {', '.join(names)}; give path={names[0]!r}" if names else "it holds no array"
    return f"{place} is a group of Zarr arrays, not an array: {inside}"


def version(text: str) -> str:
    """A text that changes when the metadata does; what people say of an array does not count."""
    metadata = json.loads(text)
    metadata.pop("attributes", None)
    return hashlib.sha256(json.dumps(metadata, sort_keys=True).encode()).hexdigest()[:16]


def parsed(place: Place, text: str) -> Chunks:
    """The chunks of an array with this metadata, as zarr-python understands it."""
    library()
    from zarr.core.metadata.v2 import ArrayV2Metadata
    from zarr.core.metadata.v3 import ArrayV3Metadata

    stored = json.loads(text)
    try:
        kind = ArrayV2Metadata if stored.get("zarr_format") == 2 else ArrayV3Metadata
        metadata = kind.from_dict(stored)
        chunks = Chunks.of(place, metadata)
    except (ValueError, TypeError, KeyError) as error:
        raise FormatError(f"the metadata of {place} is not what Zarr asks for: {error}") from error
    if chunks.dtype.kind in "OVSUT":
        raise FormatError(
            f"{place} holds {chunks.dtype}, which arrays here cannot; they hold booleans, numbers and times"
        )
    return chunks


def opened(url: str, options: Options, known: str) -> Chunks:
    """The chunks of an array as it was when its metadata had this version."""
    place = Place(url, options)
    stamp = ""
    if place.is_local:  # for objects that would be a request for each tile
        name = next((name for name in _FILES.values() if stores.exists(place / name)), "zarr.json")
        stamp = stores.size_and_version(place / name)[1]
    return _opened(place, known, stamp)


@lru_cache(maxsize=256)
def _opened(place: Place, known: str, stamp: str) -> Chunks:
    text = metadata_text(place, finished=False)
    if version(text) != known:
        raise FileError(f"{place} has changed since it was opened; open it again to read what it holds now")
    return parsed(place, text)


@lru_cache(maxsize=256)
def being_written(url: str, options: Options, known: str) -> Chunks:
    """The chunks of an array whose metadata is still in the plan of its write."""
    place = Place(url, options)
    plan = Journal(place).plan() or {}
    text = plan.get("metadata", "{}")
    if version(text) != known:
        raise FileError(f"{place} is being written by somebody else; write it again when that has ended")
    return parsed(place, text)


# ---- writing


def planned(
    place: Place,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    chunks: tuple[int, ...],
    keywords: Mapping[str, Any],
) -> tuple[str, dict[str, str]]:
    """The metadata of a new array, and the other files it comes with; made by zarr-python in memory."""
    zarr = library()
    from zarr.storage import MemoryStore

    settings = {name: value for name, value in keywords.items() if value is not None}
    store = MemoryStore({})
    try:
        zarr.create_array(store, shape=shape, dtype=dtype, chunks=chunks, **settings)
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"zarr cannot make an array of shape {shape} and {dtype} with "
            f"{', '.join(f'{k}={v!r}' for k, v in {'chunks': chunks, **settings}.items())}: {error}"
        ) from error
    files = {name: bytes(buffer.to_bytes()).decode() for name, buffer in store._store_dict.items()}
    name = next(file for file in _FILES.values() if file in files)
    return files.pop(name), files


def begin(place: Place, text: str, tiles: str, overwrite: bool, resume: bool) -> frozenset[int] | None:
    """Make ready for chunks; returns what is done already, or None if the array is complete as it is."""
    plan = {"metadata": text, "tiles": tiles}
    record = Journal(place)
    unfinished = record.plan() is not None
    if not unfinished and stores.children(place):
        if not any(stores.exists(place / name) for name in _FILES.values()) or _is_group(place):
            # Whatever it is, it is not ours to delete.
            raise FileError(f"{place} exists and is no Zarr array; remove it, or give another name")
        if resume and not overwrite:
            _refuse_other(place, text)
            return None
        if not overwrite:
            raise FileError(
                f"{place} exists; give overwrite=True to replace it, region=... to write into it, or "
                "another name"
            )
    if not (unfinished and resume):
        stores.remove(place)
    return record.begin(plan, resume)


def _is_group(place: Place) -> bool:
    stored = stores.read_if_there(place / "zarr.json")
    return stored is not None and b'"group"' in bytes(stored)


def _refuse_other(place: Place, text: str) -> None:
    known = metadata_text(place)
    if version(known) != version(text):
        raise InputError(
            f"{place} is complete, but not the array that resume=True would write: its shape, dtype, chunks "
            "or codecs differ; give overwrite=True to replace it"
        )


def end(place: Place, text: str, files: Mapping[str, str], root: Place) -> None:
    """Everything is written: make it an array, and the folders above it groups."""
    metadata = json.loads(text)
    for name, content in files.items():
        stores.write(place / name, content.encode())
    inner = place.url.removeprefix(root.url).strip("/").split("/")[:-1]
    for depth in range(len(inner) + 1 if place != root else 0):
        _make_group(root / "/".join(inner[:depth]), metadata["zarr_format"])
    stores.write(place / _FILES[metadata["zarr_format"]], text.encode())
    Journal(place).end()


def _make_group(place: Place, zarr_format: int) -> None:
    if zarr_format == 2:
        if stores.read_if_there(place / ".zgroup") is None:
            stores.write(place / ".zgroup", b'{"zarr_format": 2}')
    elif stores.read_if_there(place / "zarr.json") is None:
        stores.write(place / "zarr.json", b'{"zarr_format": 3, "node_type": "group", "attributes": {}}')
