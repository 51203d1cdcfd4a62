"""Files under NumPy's names: `save`, `savez`, `savetxt`, `load`, `fromfile`, and the readers of text.

Writers compute an array, which stays in tiles, and go through it slab by slab; `ln.to_npy` and the like write
tiles side by side as they come. Readers of text are NumPy's, and what they read lies in memory: `ln.read_csv`
reads in tiles.
"""

from __future__ import annotations

import itertools
import os
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import NUMPY, as_node, wrap
from linnet.arrays.elements.creation import asarray
from linnet.arrays.elements.whole_axes import whole_along
from linnet.arrays.files.read import from_npy, from_npz
from linnet.arrays.files.write import to_npy
from linnet.arrays.lowering.evaluate import persisted

if TYPE_CHECKING:
    from linnet.arrays.array import Array

# ---- into files


def _slabs(a: Any) -> Iterator[NDArray[Any]]:
    """The rows of an array, so many at a time as its tiles have."""
    node = as_node(a)
    if not node.ndim:
        yield np.asarray(a)
        return
    (kept,) = persisted([node])
    rows = wrap(whole_along(kept, tuple(range(1, node.ndim))))
    for start, stop in itertools.pairwise(rows.__node__.layout.boundaries[0]):
        yield np.asarray(rows[start:stop])


def _written(file: Any, a: Any) -> None:
    """An array in the format of `.npy`."""
    from linnet.io import npy

    node = as_node(a)
    file.write(npy.header(node.shape, node.dtype))
    for slab in _slabs(a):
        file.write(np.ascontiguousarray(slab).tobytes())


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to an `.npy` file, in place of one that is there; to a path or an open file.

    Parameters
    ----------
    file : str, path or file object
    arr : array_like
    allow_pickle : bool
        As for `np.save`.

    Examples
    --------
    >>> import io
    >>> file = io.BytesIO()
    >>> save(file, asarray(np.arange(3), chunks=2))
    >>> np.load(io.BytesIO(file.getvalue()))
    array([0, 1, 2])
    """
    if hasattr(file, "write"):
        _written(file, arr)
        return
    path = os.fspath(file)
    to_npy(arr, path if path.endswith(".npy") else f"{path}.npy", overwrite=True)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to an `.npz` file, under names or as arr_0, arr_1, …

    Parameters
    ----------
    file : str, path or file object
    args, kwds : array_like
        The arrays; those without a name are called arr_0, arr_1, …
    allow_pickle : bool
        As for NumPy's function.

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.savez(f"{folder}/x.npz", a=ln.arange(4), b=ln.ones(2))
    ...     sorted(np.load(f"{folder}/x.npz"))
    ['a', 'b']
    """
    _zipped(file, args, kwds, zipfile.ZIP_STORED)


def savez_compressed(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to an `.npz` file, compressed.

    Parameters
    ----------
    file : str, path or file object
    args, kwds : array_like
        The arrays; those without a name are called arr_0, arr_1, …
    allow_pickle : bool
        As for NumPy's function.

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.savez_compressed(f"{folder}/x.npz", a=ln.arange(4), b=ln.ones(2))
    ...     sorted(np.load(f"{folder}/x.npz"))
    ['a', 'b']
    """
    _zipped(file, args, kwds, zipfile.ZIP_DEFLATED)


def _zipped(file: Any, args: tuple[Any, ...], kwds: dict[str, Any], compression: int) -> None:
    named = dict(kwds)
    for number, each in enumerate(args):
        if f"arr_{number}" in named:
            raise ValueError(f"Cannot use un-named variables and keyword arr_{number}")
        named[f"arr_{number}"] = each
    if not hasattr(file, "write"):
        path = os.fspath(file)
        file = path if path.endswith(".npz") else f"{path}.npz"
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, each in named.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                _written(member, each)


def savetxt(
    fname: Any,
    X: Any,
    fmt: Any = "%.18e",
    delimiter: str = " ",
    newline: str = "\n",
    header: str = "",
    footer: str = "",
    comments: str = "# ",
    encoding: str | None = None,
) -> None:
    r"""Write the rows of an array as text, as `np.savetxt` does; `ln.to_csv` writes tiles side by side.

    Parameters
    ----------
    fname : str, path or file object
    X : array_like
        Of one or two axes.
    fmt, delimiter, newline, header, footer, comments, encoding
        As for `np.savetxt`.

    Examples
    --------
    >>> import io
    >>> import linnet as ln
    >>> text = io.StringIO()
    >>> ln.savetxt(text, ln.asarray([[1, 2], [3, 4]], chunks=1), fmt="%d")
    >>> text.getvalue()
    '1 2\n3 4\n'
    """
    if as_node(X).ndim not in (1, 2):
        raise ValueError(f"Expected 1D or 2D array, got {as_node(X).ndim}D array instead")
    if not hasattr(fname, "write"):
        with open(os.fspath(fname), "w", encoding=encoding or "latin1", newline="") as file:
            savetxt(file, X, fmt, delimiter, newline, header, footer, comments)
        return
    nothing = np.empty((0, 1))
    how: dict[str, Any] = {"fmt": "%s", "newline": newline, "comments": comments}
    if header:
        np.savetxt(fname, nothing, header=header, **how)
    for slab in _slabs(X):
        np.savetxt(fname, slab, fmt, delimiter, newline)
    if footer:
        np.savetxt(fname, nothing, footer=footer, **how)


# ---- from files


def load(file: Any, *, chunks: Any = "auto") -> Any:
    """The array in an `.npy` file, lazily; a dict of those in an `.npz` file.

    Parameters
    ----------
    file : str, path or file object
    chunks : optional
        How the array is cut, as for `ln.asarray`; "auto": in tiles of a usual size.

    Returns
    -------
    Array; of an `.npz` file a dict of them

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ln.save(f"{folder}/x.npy", ln.arange(4))
    ...     ln.load(f"{folder}/x.npy").sum().compute()
    np.int64(6)
    """
    return (from_npz if str(file).endswith(".npz") else from_npy)(file, chunks=chunks)


def fromfile(
    file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0, *, chunks: Any = None
) -> Array:
    """The numbers in a binary file, which is mapped into memory; those in a text are read with `sep`.

    Parameters
    ----------
    file : str, path or file object
    dtype : dtype
        Of the numbers in the file.
    count : int
        How many; -1: all.
    sep : str
        What stands between numbers in a text; "" for a binary file.
    offset : int
        Bytes to pass over.
    chunks : optional
        How the array is cut, as for `ln.asarray`.

    Returns
    -------
    Array

    Examples
    --------
    >>> import tempfile
    >>> import linnet as ln
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.arange(4.0).tofile(f"{folder}/x.bin")
    ...     ln.fromfile(f"{folder}/x.bin").sum().compute()
    np.float64(6.0)
    """
    if sep or hasattr(file, "read"):
        return asarray(np.fromfile(file, dtype, count, sep, offset=offset), chunks=chunks)
    kind = np.dtype(dtype)
    there = (os.path.getsize(file) - offset) // kind.itemsize
    length = there if count < 0 else min(count, there)
    if not length:
        return asarray(np.empty(0, kind), chunks=chunks)
    return asarray(np.memmap(file, kind, "r", offset, (length,)), chunks=chunks)


def loadtxt(fname: Any, dtype: Any = float, *args: Any, chunks: Any = None, **kwargs: Any) -> Array:
    """The rows of a text as `np.loadtxt` reads them; they lie in memory. `ln.read_csv` reads in tiles.

    Parameters
    ----------
    fname : str, path, file object or list of lines
    dtype : dtype
    args, kwargs
        As for NumPy's function.
    chunks : optional
        How the array is cut, as for `ln.asarray`.

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.loadtxt(["1 2", "3 4"]).compute()
    array([[1., 2.],
           [3., 4.]])
    """
    return asarray(np.loadtxt(fname, dtype, *args, **kwargs), chunks=chunks)


def genfromtxt(fname: Any, dtype: Any = float, *args: Any, chunks: Any = None, **kwargs: Any) -> Array:
    """The rows of a text with gaps as `np.genfromtxt` reads them; they lie in memory.

    Parameters
    ----------
    fname : str, path, file object or list of lines
    dtype : dtype
    args, kwargs
        As for NumPy's function.
    chunks : optional
        How the array is cut, as for `ln.asarray`.

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.genfromtxt(["1,2", "3,"], delimiter=",").compute()
    array([[ 1.,  2.],
           [ 3., nan]])
    """
    return asarray(np.genfromtxt(fname, dtype, *args, **kwargs), chunks=chunks)


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str, chunks: Any = None) -> Array:
    """The numbers in a text.

    Parameters
    ----------
    string : str
    dtype : dtype
    count : int
        How many; -1: all.
    sep : str
        What stands between the numbers.
    chunks : optional
        How the array is cut, as for `ln.asarray`.

    Returns
    -------
    Array

    Examples
    --------
    >>> fromstring("1 2 3", int, sep=" ").compute()
    array([1, 2, 3])
    """
    return asarray(np.fromstring(string, dtype, count, sep=sep), chunks=chunks)


NUMPY.update({np.save: save, np.savez: savez, np.savez_compressed: savez_compressed, np.savetxt: savetxt})
METHODS: dict[str, Any] = {}
__all__ = [
    "fromfile",
    "fromstring",
    "genfromtxt",
    "load",
    "loadtxt",
    "save",
    "savetxt",
    "savez",
    "savez_compressed",
]
