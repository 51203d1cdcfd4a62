"""Rows of arrays written as text and as Parquet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import as_node, checked
from linnet.arrays.elements.whole_axes import whole_along
from linnet.arrays.expression.nodes import Node
from linnet.arrays.expression.operands import borrowed
from linnet.errors import InputError

if TYPE_CHECKING:
    pass
from linnet.arrays.files.write import begin_writing, write_tiles


def to_csv(
    x: Any,
    path: Any,
    *,
    header: Sequence[str] | None = None,
    delimiter: str = ",",
    fmt: str | None = None,
    overwrite: bool = False,
    resume: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    r"""Write rows of an array as text; an array of one axis becomes one column.

    `header` names the columns. Numbers are as short as reads back to the same ones, or as a format
    such as "%.3f" says. Tiles are written side by side and strung together in the end.

    Parameters
    ----------
    x : array_like
        Of one or two axes.
    path : str or path
        The file, or the address of an object.
    header : sequence of str, optional
        Names of the columns.
    delimiter : str
    fmt : str, optional
        A format for numbers, such as "%.3f".
    overwrite : bool
        Replace what is there; otherwise that is an error.
    resume : bool
        After a failure, write only what is missing.
    storage_options : mapping, optional
        Options of the object store (`endpoint`, `region`, `access_key_id`, …); others from the environment.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.to_csv(ln.asarray([[1, 2], [3, 4]]), f"{folder}/x.csv", header=["a", "b"])
    ...     pathlib.Path(f"{folder}/x.csv").read_text()
    'a,b\n1,2\n3,4\n'
    """
    from linnet.io import parts
    from linnet.io.csv_columns import Dialect, header_of
    from linnet.io.journal import Journal
    from linnet.io.places import Place

    node = _rows(x, "to_csv")
    width = 1 if node.ndim == 1 else node.shape[1]
    if header is not None and len(header) != width:
        raise InputError(f"header={list(header)!r} names {len(header)} columns, the array has {width}")
    dialect = Dialect(delimiter)
    place = Place.of(path, storage_options)
    head = b"" if header is None else header_of([str(name) for name in header], dialect.delimiter)
    how = {"delimiter": dialect.delimiter, "fmt": fmt}
    done = begin_writing(place, "csv", node, overwrite, resume, {"header": head.decode(), **how})
    if done is None:
        return
    write_tiles("save_part", node, {"url": place.url, "options": place.options, "form": "text", **how}, done)
    parts.join(Journal(place), head, math.prod(node.grid))


def to_parquet(
    x: Any,
    path: Any,
    *,
    columns: Sequence[str] | None = None,
    compression: str | None = "snappy",
    overwrite: bool = False,
    resume: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> None:
    """Write rows of an array as Parquet; an array of one axis becomes one column.

    A path that ends with .parquet becomes one file, put together in the end from what the tasks wrote;
    any other a folder with a file for each tile, which needs no such step. `columns` are their names
    (default: their numbers).

    Parameters
    ----------
    x : array_like
        Of one or two axes.
    path : str or path
        A file that ends with .parquet, or a folder.
    columns : sequence of str, optional
        Their names.
    compression : str, optional
        As pyarrow knows it.
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
    ...     ln.to_parquet(ln.arange(4), f"{folder}/x.parquet", columns=["a"])
    ...     ln.read_parquet(f"{folder}/x.parquet", columns="a").compute()
    array([0, 1, 2, 3])
    """
    from linnet.io import parquet, parts, stores
    from linnet.io.journal import Journal
    from linnet.io.places import Place

    parquet.library()
    node = _rows(x, "to_parquet")
    width = 1 if node.ndim == 1 else node.shape[1]
    names = tuple(map(str, range(width) if columns is None else columns))
    if len(names) != width or len(set(names)) != width:
        raise InputError(f"columns={list(names)!r}: name each of the {width} columns once")
    place = Place.of(path, storage_options)
    how = {"names": names, "compression": compression}
    done = begin_writing(place, "parquet", node, overwrite, resume, how)
    if done is None:
        return
    write_tiles(
        "save_part", node, {"url": place.url, "options": place.options, "form": "parquet", **how}, done
    )
    journal = Journal(place)
    if place.name.endswith((".parquet", ".pq")):
        written = [parts.place_of(journal, k, ".parquet") for k in range(math.prod(node.grid))]
        parquet.joined(journal, written, compression)
        return
    if overwrite:
        parquet.remove(place)
    stores.rename(journal.folder / "parts", place)
    journal.end()


def _rows(x: Any, name: str) -> Node:
    """An array of rows, each of them in one tile."""
    with borrowed():
        node = as_node(x)
    checked(np.empty(0, node.dtype))
    if node.ndim not in (1, 2):
        raise InputError(f"{name} writes rows of columns: give an array of one or two axes, not {node.ndim}")
    return node if node.ndim == 1 else whole_along(node, (1,))


METHODS: dict[str, Any] = {"to_csv": to_csv, "to_parquet": to_parquet}
__all__ = ["to_csv", "to_parquet"]
