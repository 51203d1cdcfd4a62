"""Arrays that lie in files: nothing is read but what a computation needs, tile by tile.

A tile is one kernel call with numbers and words for arguments, so that any worker can make it.
Tiles follow the chunks of the file: several small ones together, and never a part of one that is
compressed. Where a user asks for others, whole chunks are read and cut afterwards.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import checked, wrap, wrapped
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, part, recut
from linnet.arrays.expression.nodes import Entry, Node, Number, Piece
from linnet.arrays.lowering.evaluate import computed
from linnet.errors import InputError
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, from_sizes

if TYPE_CHECKING:
    from linnet.arrays.array import Array
    from linnet.io import csv
    from linnet.io.cuts import Described
    from linnet.io.places import Place


def from_npy(path: Any, *, chunks: Any = "auto", storage_options: Mapping[str, Any] | None = None) -> Array:
    """The array in an `.npy` file or object; a local file is mapped into memory as it is read.

    Parameters
    ----------
    path : str, path or file object
        The file, or the address of an object.
    chunks : optional
        How the array is cut, as for `ln.asarray`; "auto": in tiles of a usual size.
    storage_options : mapping, optional
        Options of the object store (`endpoint`, `region`, `access_key_id`, …); others from the environment.

    Returns
    -------
    Array

    Examples
    --------
    >>> import os, tempfile, numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(os.path.join(folder, "x.npy"), np.arange(6.0))
    ...     from_npy(os.path.join(folder, "x.npy")).sum().compute()
    np.float64(15.0)
    """
    from linnet.io import npy
    from linnet.io.places import Place

    return _array("load_npy", npy.describe(Place.of(path, storage_options)), chunks)


def from_npz(
    path: Any,
    name: str | None = None,
    *,
    chunks: Any = "auto",
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """The array of a name in an `.npz` file; without a name, a dict of all of them.

    Parameters
    ----------
    path : str, path or file object
        The file, or the address of an object.
    name : str, optional
        Which array.
    chunks : optional
        How the array is cut, as for `ln.asarray`; "auto": in tiles of a usual size.
    storage_options : mapping, optional
        Options of the object store (`endpoint`, `region`, `access_key_id`, …); others from the environment.

    Returns
    -------
    Array; without `name`, a dict of them

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.savez(f"{folder}/x.npz", a=ln.arange(4))
    ...     ln.from_npz(f"{folder}/x.npz", "a").sum().compute()
    np.int64(6)
    """
    from linnet.io import npy
    from linnet.io.places import Place

    place = Place.of(path, storage_options)
    if name is None:
        return {each: from_npz(place, each, chunks=chunks) for each in npy.members(place)}
    return _array("load_npy", npy.describe(place, name), chunks)


def from_zarr(
    url: Any, path: str = "", *, chunks: Any = "auto", storage_options: Mapping[str, Any] | None = None
) -> Array:
    """The Zarr array at a path or URL; `path` names an array inside a group.

    `storage_options` are those of the object store (`endpoint`, `region`, `access_key_id`, …); what is
    not given comes from the environment.

    Parameters
    ----------
    url : str or path
        The array, or the group it is in.
    path : str
        The array inside a group.
    chunks : optional
        How the array is cut, as for `ln.asarray`; "auto": in tiles of a usual size.
    storage_options : mapping, optional
        Options of the object store (`endpoint`, `region`, `access_key_id`, …); others from the environment.

    Returns
    -------
    Array

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.to_zarr(ln.arange(4), f"{folder}/x.zarr")
    ...     ln.from_zarr(f"{folder}/x.zarr").sum().compute()
    np.int64(6)
    """
    from linnet.io import zarr
    from linnet.io.places import Place

    place = Place.of(url, storage_options) / path.strip("/")
    return _array("load_zarr", zarr.describe(place), chunks)


def read_csv(
    path: Any,
    *,
    columns: Any = None,
    dtype: Any = None,
    header: bool = True,
    delimiter: str = ",",
    quote: str = '"',
    decimal: str = ".",
    na_values: Sequence[str] = (),
    skip_rows: int = 0,
    compression: str | None = "infer",
    separate: bool = False,
    chunks: Any = "auto",
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Rows and columns of text as an array: of two axes, or of one if `columns` is a single name.

    `columns` are names, or numbers; None: all, which must hold numbers. With `separate=True` the result
    is a dict with an array for each column, in a dtype of its own. Types are judged by the first rows;
    `dtype` sets them, for all columns or by name in a dict. Missing values (nothing, NA, NaN, null, …, and
    `na_values`) become NaN, or NaT, and are errors among integers.

    The file is read once here, to count its rows. A compressed one (.gz, .bz2, .xz, .zst) is
    unpacked into the system's folder for temporary files.

    Parameters
    ----------
    path : str, path or file object
        The file, or the address of an object.
    columns : optional
        Names or numbers of columns; a single one gives an array of one axis; None: all.
    dtype : optional
        Of all columns, or a dict by column.
    header : bool
        Whether the first row has the names.
    delimiter, quote, decimal : str
        What separates fields, encloses text, and stands before decimals.
    na_values : sequence of str
        More words for missing values.
    skip_rows : int
        Rows to pass over at the beginning.
    compression : str, optional
        "infer" judges by the name; None: not compressed.
    separate : bool
        Whether to give an array for each column.
    chunks : optional
        How the array is cut, as for `ln.asarray`; "auto": in tiles of a usual size.
    storage_options : mapping, optional
        Options of the object store (`endpoint`, `region`, `access_key_id`, …); others from the environment.

    Returns
    -------
    Array; with `separate`, a dict of them

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.to_csv(ln.asarray([[1, 2], [3, 4]]), f"{folder}/x.csv", header=["a", "b"])
    ...     ln.read_csv(f"{folder}/x.csv", columns="b").compute()
    array([2, 4])
    """
    from linnet.io import csv
    from linnet.io.csv_columns import Dialect
    from linnet.io.places import Place

    dialect = Dialect(delimiter, quote, decimal, tuple(na_values))
    place = Place.of(path, storage_options)
    head = csv.head(place, dialect, header=header, skip=skip_rows, compression=compression)
    chosen = csv.positions(head, columns)
    dtypes = _column_dtypes(csv.natural_dtypes(head, chosen), [head.names[k] for k in chosen], dtype)
    flat = isinstance(columns, str | int) and not separate
    if not separate:
        dtypes = [_common(dtypes, place)] * len(chosen)
    found = _row_ranges(head, sum(each.itemsize for each in dtypes))
    where = _place_attributes(head)
    where |= {"dialect": dialect.values(), "width": len(head.names), "columns": chosen}
    where |= {"types": csv.settled_types(head, chosen, dtypes), "flat": flat}
    names = [head.names[k] for k in chosen] if separate else None
    return _table("load_csv", found, where, dtypes, flat, names, chunks)


def read_parquet(
    path: Any,
    *,
    columns: Any = None,
    dtype: Any = None,
    separate: bool = False,
    chunks: Any = "auto",
    storage_options: Mapping[str, Any] | None = None,
) -> Any:
    """Rows and columns of a Parquet file, of several, or of a folder of them.

    `columns`, `dtype` and `separate` are as in `read_csv`; only the columns asked for are read. Tiles
    are whole row groups. Missing values become NaN, or NaT, and are errors among integers where the
    file's statistics do not tell of them beforehand.

    Parameters
    ----------
    path : str, path or sequence of these
        The file, files, or folder.
    columns : optional
        Names or numbers of columns; a single one gives an array of one axis; None: all.
    dtype : optional
        Of all columns, or a dict by column.
    separate : bool
        Whether to give an array for each column.
    chunks : optional
        How the array is cut, as for `ln.asarray`; "auto": in tiles of a usual size.
    storage_options : mapping, optional
        Options of the object store (`endpoint`, `region`, `access_key_id`, …); others from the environment.

    Returns
    -------
    Array; with `separate`, a dict of them

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.to_parquet(ln.asarray([[1, 2], [3, 4]]), f"{folder}/x.parquet", columns=["a", "b"])
    ...     ln.read_parquet(f"{folder}/x.parquet", columns="b").compute()
    array([2, 4])
    """
    from linnet.io import parquet
    from linnet.io.places import Place

    given = [path] if isinstance(path, str | os.PathLike | Place) else list(path)
    table = parquet.describe([Place.of(each, storage_options) for each in given])
    chosen = parquet.positions(table, columns)
    names = [table.names[k] for k in chosen]
    dtypes = _column_dtypes([table.dtypes[k] for k in chosen], names, dtype)
    flat = isinstance(columns, str) and not separate
    if not separate:
        dtypes = [_common(dtypes, table.places[0])] * len(chosen)
    for each in dtypes:
        checked(np.empty(0, each))
    found = parquet.ranges(table, sum(each.itemsize for each in dtypes), chunking.target())
    where = {"urls": tuple(each.url for each in table.places), "options": table.places[0].options}
    where |= {"versions": table.versions, "columns": tuple(names), "flat": flat}
    return _table("load_parquet", found, where, dtypes, flat, names if separate else None, chunks)


def from_hdf5(
    path: Any, name: str, *, chunks: Any = "auto", storage_options: Mapping[str, Any] | None = None
) -> Array:
    """The data set of a name in an HDF5 file or object.

    Parameters
    ----------
    path : str, path or file object
        The file, or the address of an object.
    name : str
        The data set.
    chunks : optional
        How the array is cut, as for `ln.asarray`; "auto": in tiles of a usual size.
    storage_options : mapping, optional
        Options of the object store (`endpoint`, `region`, `access_key_id`, …); others from the environment.

    Returns
    -------
    Array

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.to_hdf5(ln.arange(4), f"{folder}/x.h5", "x")
    ...     ln.from_hdf5(f"{folder}/x.h5", "x").sum().compute()
    np.int64(6)
    """
    from linnet.io import hdf5
    from linnet.io.places import Place

    return _array("load_hdf5", hdf5.describe(Place.of(path, storage_options), name), chunks)


def _place_attributes(head: csv.Head) -> dict[str, Any]:
    return {
        "url": head.place.url,
        "options": head.place.options,
        "version": head.version,
        "compression": head.compression,
    }


def _row_ranges(head: csv.Head, row_bytes: int) -> list[tuple[int, int, int, int]]:
    """Where the rows of each tile are: counted in parallel, in ranges that become tiles."""
    from linnet.io import csv

    step = max(1 << 16, int(chunking.target() / max(1, row_bytes) * head.row))
    edges = [*range(head.begin, max(head.size, head.begin + 1), step), head.size]
    if head.begin >= head.size:
        return []
    starts = (-1 - head.begin, *edges[1:-1])
    piece = Piece(
        "survey_csv",
        (Entry(0, starts), Entry(0, tuple(edges[1:]))),
        (*_place_attributes(head).items(), ("quote", head.dialect.quote)),
    )
    layout = Layout((tuple(range(len(edges))), (0, 5)))
    (surveys,) = computed([blocks((), (piece,), layout, np.int64)])
    return csv.ranges(surveys, head.size)


def _column_dtypes(natural: list[np.dtype[Any]], names: list[str], given: Any) -> list[np.dtype[Any]]:
    if given is None:
        return natural
    if not isinstance(given, Mapping):
        return [np.dtype(given)] * len(natural)
    unknown = [name for name in given if name not in names]
    if unknown:
        raise InputError(f"dtype= names column {unknown[0]!r}; the columns read are {', '.join(names)}")
    return [np.dtype(given.get(name, kind)) for name, kind in zip(names, natural, strict=True)]


def _common(dtypes: list[np.dtype[Any]], place: Place) -> np.dtype[Any]:
    try:
        return np.result_type(*dtypes)
    except TypeError:
        kinds = ", ".join(dict.fromkeys(str(each) for each in dtypes))
        raise InputError(
            f"{place}: its columns hold {kinds}, which is no one array; choose some with columns=, "
            "or read them with separate=True"
        ) from None


# ---- nodes


def _table(
    kernel: str,
    found: list[tuple[int, ...]],
    where: Mapping[str, Any],
    dtypes: list[np.dtype[Any]],
    flat: bool,
    names: list[str] | None,
    chunks: Any,
) -> Any:
    """The array of rows of several tiles, each with numbers of its own, the last of them its rows."""
    width = len(dtypes)
    sizes = [each[-1] for each in found]
    edges: Boundaries = from_sizes(sizes) if sizes else (0, 0)
    numbers = tuple(Entry(0, tuple(each[k] for each in found)) for k in range(len(found[0]) if found else 0))
    if not found:
        empty = [np.empty(0 if flat or names else (0, width), kind) for kind in dtypes]
        return dict(zip(names, map(wrapped, empty), strict=True)) if names else wrapped(empty[0])
    if names is None:
        layout = Layout((edges,) if flat else (edges, (0, width)))
        piece = Piece(kernel, numbers, (*where.items(), ("dtype", dtypes[0].str)))
        return wrap(_as_asked(blocks((), (piece,), layout, dtypes[0]), chunks))
    piece = Piece(kernel, numbers, (*where.items(), ("dtype", tuple(each.str for each in dtypes))))
    whole = blocks((), (piece,), Layout((edges,)), dtypes[0], parts=width)
    columns = [part(whole, place, dtype) for place, dtype in enumerate(dtypes)]
    return {name: wrap(_as_asked(node, chunks)) for name, node in zip(names, columns, strict=True)}


def _as_asked(node: Node, chunks: Any) -> Node:
    if chunks is None or (isinstance(chunks, str) and chunks == "auto"):
        return node
    return recut(node, chunking.normalized(chunks, node.shape, node.dtype))


def _array(kernel: str, described: Described, chunks: Any) -> Any:
    """The lazy array of a file that is read in boxes."""
    from linnet.io.cuts import merged

    shape, dtype = described.shape, described.dtype
    automatic = chunks is None or (isinstance(chunks, str) and chunks == "auto")
    wanted = None if automatic else chunking.normalized(chunks, shape, dtype)
    if described.unit is None:
        layout = wanted or chunking.automatic(shape, dtype.itemsize)
    elif wanted is not None and _whole_units(wanted, described.unit):
        layout = wanted
    else:
        lengths = merged(described.unit, shape, dtype.itemsize, chunking.target())
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
__all__ = ["from_hdf5", "from_npy", "from_npz", "from_zarr", "read_csv", "read_parquet"]
