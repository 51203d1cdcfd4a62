"""Arrays that lie in files: nothing is read but what a computation needs, tile by tile.

A tile is one kernel call with numbers and words for arguments, so that any worker can make it.
Tiles follow the chunks of the file: several small ones together, and never a part of one that is
compressed. Where a user asks for others, whole chunks are read and cut afterwards.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from linnet.arrays import chunking
from linnet.arrays.building import blocks, recut
from linnet.arrays.core import wrap
from linnet.arrays.expression import Entry, Node, Number, Piece
from linnet.io import npy, zarr
from linnet.io.cuts import Described, merged
from linnet.io.places import Place
from linnet.tiles import Layout


def from_npy(path: Any, *, chunks: Any = "auto", storage_options: Mapping[str, Any] | None = None) -> Any:
    """The array in an `.npy` file or object; a local file is mapped into memory as it is read.

    >>> import os, tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(os.path.join(folder, "x.npy"), np.arange(6.0))
    ...     from_npy(os.path.join(folder, "x.npy")).sum().compute()
    np.float64(15.0)
    """
    return _array("load_npy", npy.describe(Place.of(path, storage_options)), chunks)


def from_npz(
    path: Any,
    name: str | None = None,
    *,
    chunks: Any = "auto",
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """The array of a name in an `.npz` file; without a name, a dict of all of them."""
    place = Place.of(path, storage_options)
    if name is None:
        return {each: from_npz(place, each, chunks=chunks) for each in npy.members(place)}
    return _array("load_npy", npy.describe(place, name), chunks)


def from_zarr(
    url: Any, path: str = "", *, chunks: Any = "auto", storage_options: Mapping[str, Any] | None = None
) -> Any:
    """The Zarr array at a path or URL; `path` names an array inside a group.

    `storage_options` are those of the object store (`endpoint`, `region`, `access_key_id`, …); what is
    not given comes from the environment.
    """
    place = Place.of(url, storage_options) / path.strip("/")
    return _array("load_zarr", zarr.describe(place), chunks)


# ---- nodes


def _array(kernel: str, described: Described, chunks: Any) -> Any:
    """The lazy array of a file that is read in boxes."""
    shape, dtype = described.shape, described.dtype
    automatic = chunks is None or (isinstance(chunks, str) and chunks == "auto")
    wanted = None if automatic else chunking.normalized(chunks, shape, dtype)
    if described.unit is None:
        layout = wanted or chunking.automatic(shape, dtype.itemsize)
    elif wanted is not None and _whole_units(wanted, described.unit):
        layout = wanted
    else:
        lengths = merged(described.unit, shape, dtype.itemsize, chunking.TARGET)
        layout = Layout.regular(shape, lengths)
    node: Node = blocks((), (_piece(kernel, described, layout),), layout, dtype)
    return wrap(node if wanted is None else recut(node, wanted))


def _piece(kernel: str, described: Described, layout: Layout) -> Piece:
    numbers: list[Number] = []
    for axis, edges in enumerate(layout.boundaries):
        numbers.append(Entry(axis, tuple(edges[:-1])))
        numbers.append(Entry(axis, tuple(b - a for a, b in itertools.pairwise(edges))))
    attributes = (*described.attributes.items(), ("dtype", described.dtype.str))
    return Piece(kernel, tuple(numbers), attributes)


def _whole_units(layout: Layout, unit: tuple[int, ...]) -> bool:
    return all(
        edge % step == 0 for edges, step in zip(layout.boundaries, unit, strict=True) for edge in edges[1:-1]
    )


METHODS: dict[str, Any] = {}
__all__ = ["from_npy", "from_npz", "from_zarr"]
