"""Arrays into files: every tile is written by a task of its own, next to the others.

Tiles are cut along the chunks of the target first, so that no two tasks write one chunk. A write that
has failed leaves nothing that reads as complete; with `resume=True` it goes on where it stopped.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, checked
from linnet.arrays.elements.elementwise import cast
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, recut
from linnet.arrays.expression.nodes import Along, Blocks, Entry, Node, Number, Operand, Piece, Spans
from linnet.arrays.expression.operands import borrowed
from linnet.arrays.lowering.evaluate import computed
from linnet.errors import FileError, InputError
from linnet.tiles import Layout

if TYPE_CHECKING:
    from linnet.io.places import Place

_LARGEST = 1 << 27
"""Bytes above which a tile is no chunk: codecs work on one in memory."""
_RUN = 1 << 12
"""Bytes that lie together below which writing to one file is all overhead."""


def to_zarr(
    x: Any,
    url: Any,
    path: str = "",
    *,
    chunks: Any = None,
    region: Sequence[slice] | None = None,
    overwrite: bool = False,
    resume: bool = False,
    storage_options: Mapping[str, Any] | None = None,
    **zarr_options: Any,
) -> None:
    """Write an array to a Zarr array at a path or URL; `path` names it inside a group.

    Chunks are the array's tiles, unless `chunks` says otherwise; further keywords are those of
    `zarr.create_array`: `shards`, `compressors`, `filters`, `fill_value`, `zarr_format`, `attributes`,
    `dimension_names`. `region` writes into a part of an array there is: a slice for each axis.

    The array is complete when the call returns, and no array before. After a failure,
    `resume=True` writes only what is missing.

    Parameters
    ----------
    x : array_like
    url : str or path
        The array, or the group it is in.
    path : str
        The array inside a group.
    chunks : optional
        Chunks in the store; None: the array's tiles.
    region : sequence of slices, optional
        The part of an array there is that is written.
    overwrite : bool
        Replace what is there; otherwise that is an error.
    resume : bool
        After a failure, write only what is missing.
    storage_options : mapping, optional
        Options of the object store (`endpoint`, `region`, `access_key_id`, …); others from the environment.
    zarr_options
        As for `zarr.create_array`.

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.to_zarr(ln.arange(4), f"{folder}/x.zarr")
    ...     ln.from_zarr(f"{folder}/x.zarr").compute()
    array([0, 1, 2, 3])
    """
    from linnet.io import zarr
    from linnet.io.places import Place

    with borrowed():
        node = as_node(x)
    checked(np.empty(0, node.dtype))
    root = Place.of(url, storage_options)
    place = root / path.strip("/")
    _refuse_own_source(node, place)
    if region is not None:
        if chunks is not None or zarr_options or overwrite:
            given = ", ".join(["chunks"] * (chunks is not None) + ["overwrite"] * overwrite + [*zarr_options])
            raise InputError(f"region= writes into an array there is, as it is: leave out {given}")
        _into_region(node, place, region, resume)
        return
    lengths = _chunk_lengths(node, chunks)
    text, files = zarr.planned(place, node.shape, node.dtype, lengths, zarr_options)
    stored = zarr.parsed(place, text).stored
    node = _along(node, stored)
    done = zarr.begin(place, text, _digest(node.layout), overwrite, resume)
    if done is None:
        return
    attributes = {"url": place.url, "options": place.options, "version": zarr.version(text), "region": ""}
    write_tiles("save_zarr", node, attributes, done)
    zarr.end(place, text, files, root)


def _refuse_own_source(node: Node, place: Place) -> None:
    """An array that is computed from a Zarr array cannot take its place: what is read would be gone."""
    seen: set[int] = set()
    pending = [node]
    while pending:
        current = pending.pop()
        if id(current) in seen:
            continue
        seen.add(id(current))
        pending.extend(current.operands)
        if isinstance(current, Blocks) and any(
            ("url", place.url) in each.attributes for each in current.pieces
        ):
            raise InputError(
                f"the array is computed from {place}, and would be written over it; "
                "persist() it first, or write to another name"
            )


def _into_region(node: Node, place: Place, region: Sequence[slice], resume: bool) -> None:
    from linnet.io import zarr
    from linnet.io.journal import Journal

    text = zarr.metadata_text(place, finished=False)
    chunks = zarr.parsed(place, text)
    box = _box(region, chunks.shape, place)
    lengths = tuple(part.stop - part.start for part in box)
    if lengths != node.shape:
        raise InputError(
            f"an array of shape {node.shape} for a region of shape {lengths} of {place}; they must be equal"
        )
    native = chunks.dtype.newbyteorder("=")
    if not np.can_cast(node.dtype, native, "same_kind"):
        raise InputError(f"{place} holds {native}, and {node.dtype} cannot become that; cast the array first")
    starts = tuple(part.start for part in box)
    node = _along(cast(node, native), chunks.stored, starts)
    name = "_".join(f"{part.start}-{part.stop}" for part in box) or "all"
    record = Journal(place, name)
    plan = {"metadata": zarr.version(text), "tiles": _digest(node.layout)}
    done = record.begin(plan, resume)
    attributes = {"url": place.url, "options": place.options, "version": zarr.version(text), "region": name}
    write_tiles("save_zarr", node, attributes, done, starts)
    record.end()


def _box(region: Sequence[slice], shape: tuple[int, ...], place: Place) -> list[slice]:
    given = (region,) if isinstance(region, slice) else tuple(region)
    if len(given) != len(shape) or not all(isinstance(part, slice) for part in given):
        raise InputError(f"region={region!r}: give a slice for each of the {len(shape)} axes of {place}")
    box: list[slice] = []
    for axis, (part, length) in enumerate(zip(given, shape, strict=True)):
        start, stop, step = part.indices(length)
        beyond = any(each is not None and not -length <= each <= length for each in (part.start, part.stop))
        if step != 1 or beyond:
            raise InputError(
                f"region={region!r}: along axis {axis} of {place} give a slice of step 1 within 0:{length}"
            )
        box.append(slice(start, max(start, stop)))
    return box


def to_npy(
    x: Any,
    path: Any,
    *,
    overwrite: bool = False,
    resume: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write an array to an `.npy` file or object, in C order.

    A local file gets its name when all of it is written; an object is put together from parts.

    Parameters
    ----------
    x : array_like
    path : str or path
        The file, or the address of an object.
    overwrite : bool
        Replace what is there; otherwise that is an error.
    resume : bool
        After a failure, write only what is missing.
    storage_options : mapping, optional
        Options of the object store (`endpoint`, `region`, `access_key_id`, …); others from the environment.

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.to_npy(ln.arange(4), f"{folder}/x.npy")
    ...     np.load(f"{folder}/x.npy")
    array([0, 1, 2, 3])
    """
    from linnet.io import npy, parts, stores
    from linnet.io.journal import Journal
    from linnet.io.places import Place

    with borrowed():
        node = as_node(x)
    checked(np.empty(0, node.dtype))
    place = Place.of(path, storage_options)
    head = npy.header(node.shape, node.dtype)
    node = _in_slabs(node) if not place.is_local or _short_runs(node) else node
    done = begin_writing(place, "npy", node, overwrite, resume, {"header": head.decode("latin1")})
    if done is None:
        return
    journal = Journal(place)
    if place.is_local:
        if not done:
            npy.prepare(journal.folder / "data", node.shape, node.dtype)
        write_tiles("save_npy", node, {"url": place.url, "shape": node.shape, "offset": len(head)}, done)
        stores.rename(journal.folder / "data", place)
        journal.end()
        return
    write_tiles("save_part", node, {"url": place.url, "options": place.options, "form": "raw"}, done)
    parts.join(journal, head, math.prod(node.grid))


def to_hdf5(
    x: Any,
    path: Any,
    name: str,
    *,
    chunks: Any = None,
    overwrite: bool = False,
    resume: bool = False,
    **hdf5_options: Any,
) -> None:
    """Write an array to a data set of an HDF5 file, which may hold others already.

    Chunks are the array's tiles, unless `chunks` says otherwise; further keywords are those of
    h5py's `create_dataset`: `compression`, `shuffle`, `fletcher32`, … Only one task writes at a time: HDF5
    allows no more.

    Parameters
    ----------
    x : array_like
    path : str or path
    name : str
        The data set.
    chunks : optional
        Chunks in the file; None: the array's tiles.
    overwrite : bool
        Replace what is there; otherwise that is an error.
    resume : bool
        After a failure, write only what is missing.
    hdf5_options
        As for h5py's `create_dataset`.

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.to_hdf5(ln.arange(4), f"{folder}/x.h5", "x")
    ...     ln.from_hdf5(f"{folder}/x.h5", "x").compute()
    array([0, 1, 2, 3])
    """
    from linnet.io import hdf5
    from linnet.io.journal import Journal
    from linnet.io.places import Place

    with borrowed():
        node = as_node(x)
    checked(np.empty(0, node.dtype))
    place = Place.of(path)
    if not place.is_local:
        raise InputError(f"HDF5 is written to files of this machine, not to {place}; use to_zarr there")
    journal = Journal(place, name)
    if journal.plan() is None and hdf5.has(place, name):
        if resume and not overwrite:
            return
        if not overwrite:
            raise FileError(f"{place} holds {name!r}; give overwrite=True to replace it, or another name")
    lengths = _chunk_lengths(node, chunks)
    node = _along(node, lengths)
    options = {"chunks": lengths if node.ndim and 0 not in node.shape else None, **hdf5_options}
    plan = {"shape": node.shape, "dtype": node.dtype.str, "options": repr(sorted(options.items()))}
    done = journal.begin({**plan, "tiles": _digest(node.layout)}, resume)
    if not done:
        hdf5.prepare(journal, name, node.shape, node.dtype, options)
    write_tiles("save_hdf5", node, {"url": place.url, "name": name}, done)
    hdf5.end(journal, name)


# ---- what writers share


def begin_writing(
    place: Place, form: str, node: Node, overwrite: bool, resume: bool, plan: dict[str, Any]
) -> frozenset[int] | None:
    """Make ready for tiles; returns those done already, or None if the file is complete."""
    from linnet.io import stores
    from linnet.io.journal import Journal

    journal = Journal(place)
    if journal.plan() is None and stores.exists(place):
        if resume and not overwrite:
            return None
        if not overwrite:
            raise FileError(f"{place} exists; give overwrite=True to replace it, or another name")
    described = {"form": form, "shape": node.shape, "dtype": node.dtype.str, "tiles": _digest(node.layout)}
    return journal.begin({**described, **plan}, resume)


def write_tiles(
    kernel: str, node: Node, attributes: Mapping[str, Any], done: frozenset[int], starts: Sequence[int] = ()
) -> None:
    """Write every tile that is not done: a kernel call for each, computed now."""
    starts = tuple(starts) or (0,) * node.ndim
    named = tuple(attributes.items())
    if not done:
        numbers: list[Number] = []
        for axis, edges in enumerate(node.layout.boundaries):
            step = math.prod(node.grid[axis + 1 :])
            numbers.append(Entry(axis, tuple(place * step for place in range(node.grid[axis]))))
            numbers.append(Entry(axis, tuple(starts[axis] + edge for edge in edges[:-1])))
        access = tuple(Along(axis) for axis in range(node.ndim))
        piece = Piece(kernel, (Operand(0, access), *numbers), (("rank", node.ndim), *named))
        layout = Layout(tuple(tuple(range(n + 1)) for n in node.grid))
        computed([blocks((node,), (piece,), layout, np.int64)])
        return
    left = [index for number, index in enumerate(node.layout.indices()) if number not in done]
    if left:
        computed([_missing(kernel, node, left, named, starts)])


def _missing(
    kernel: str,
    node: Node,
    left: list[tuple[int, ...]],
    attributes: tuple[tuple[str, Any], ...],
    starts: Sequence[int],
) -> Node:
    """A kernel call for each of some tiles, named in tables."""
    numbers: list[Number] = []
    for axis, edges in enumerate(node.layout.boundaries):
        step = math.prod(node.grid[axis + 1 :])
        numbers.append(Entry(0, tuple(index[axis] * step for index in left)))
        numbers.append(Entry(0, tuple(starts[axis] + edges[index[axis]] for index in left)))
    access = tuple(
        Spans(0, tuple(index[axis] for index in left), tuple(index[axis] + 1 for index in left))
        for axis in range(node.ndim)
    )
    piece = Piece(kernel, (Operand(0, access), *numbers), (("rank", 1), *attributes))
    return blocks((node,), (piece,), Layout((tuple(range(len(left) + 1)),)), np.int64)


def _digest(layout: Layout) -> str:
    """The cut of an array in few letters: the same tiles have the same numbers."""
    return hashlib.sha256(repr(layout.boundaries).encode()).hexdigest()[:16]


def _chunk_lengths(node: Node, chunks: Any) -> tuple[int, ...]:
    """Lengths of the chunks of a new array: as asked for, or its tiles where these are of a good size."""
    if chunks is None:
        layout = node.layout
        lengths = tuple(max(b - a for a, b in itertools.pairwise(edges)) for edges in layout.boundaries)
        if math.prod(lengths) * node.dtype.itemsize > _LARGEST:
            layout = chunking.automatic(node.shape, node.dtype.itemsize)
    else:
        layout = chunking.normalized(chunks, node.shape, node.dtype)
        for axis, edges in enumerate(layout.boundaries):
            sizes = {b - a for a, b in itertools.pairwise(edges[:-1])}
            if len(sizes) > 1 or (sizes and edges[-1] - edges[-2] > max(sizes)):
                raise InputError(
                    f"chunks={chunks!r}: the chunks of a Zarr array have one length along an axis, "
                    f"these have several along axis {axis}"
                )
    return tuple(max(1, *(b - a for a, b in itertools.pairwise(edges))) for edges in layout.boundaries)


def _along(node: Node, lengths: Sequence[int], starts: Sequence[int] = ()) -> Node:
    """The node cut so that each chunk of a target, where it starts there, is in one tile."""
    from linnet.io.cuts import snapped

    starts = tuple(starts) or (0,) * node.ndim
    edges = tuple(
        snapped(old, step, start)
        for old, step, start in zip(node.layout.boundaries, lengths, starts, strict=True)
    )
    return recut(node, Layout(edges))


def _in_slabs(node: Node) -> Node:
    """The node in tiles that lie one behind another in C order: cut along the first axis alone."""
    if node.ndim < 2:
        return node
    entries = ("auto", *(-1,) * (node.ndim - 1))
    return recut(node, chunking.normalized(entries, node.shape, node.dtype))


def _short_runs(node: Node) -> bool:
    if node.ndim < 2 or node.grid[-1] == 1:
        return False
    edges = node.layout.boundaries[-1]
    return min(b - a for a, b in itertools.pairwise(edges)) * node.dtype.itemsize < _RUN


__all__ = ["to_hdf5", "to_npy", "to_zarr"]
METHODS: dict[str, Any] = {name: globals()[name] for name in __all__}
