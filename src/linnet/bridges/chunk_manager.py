"""Linnet below xarray: `chunked_array_type="linnet"`, or `xr.set_options(chunk_manager="linnet")`.

xarray finds the class through the entry point group `xarray.chunkmanagers`, and calls its methods
where it would call Dask's functions. They take the same arguments, and give arrays of Linnet's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from xarray.core.indexing import ImplicitToExplicitIndexingAdapter
from xarray.namedarray.parallelcompat import ChunkManagerEntrypoint

from linnet.arrays.elements.core import ArrayBase, axis_of, recut_as, wrap
from linnet.arrays.elements.creation import asarray
from linnet.arrays.elements.take_and_put import take
from linnet.arrays.expression import chunking
from linnet.arrays.functions.gufuncs import apply_gufunc
from linnet.arrays.functions.map_blocks import map_blocks
from linnet.arrays.functions.named_axes import blockwise, unified
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.bridges.block_functions import accumulated, reduced
from linnet.bridges.chunk_sizes import grouped, normalized
from linnet.bridges.columns import NUMBERS
from linnet.bridges.parts import from_boxes
from linnet.bridges.writing import store
from linnet.bridges.xarray_hooks import install

_DASKS = ("meta", "name", "token")
"""Arguments that only Dask has a use for."""


class LinnetManager(ChunkManagerEntrypoint[Any]):
    """What xarray asks of arrays in chunks."""

    array_cls: type[Any]

    def __init__(self) -> None:
        self.array_cls = ArrayBase._public
        install()

    # ---- arrays in chunks

    def chunks(self, data: Any) -> tuple[tuple[int, ...], ...]:
        """Lengths of the tiles along each axis."""
        return data.chunks

    def normalize_chunks(
        self,
        chunks: Any,
        shape: Any = None,
        limit: int | None = None,
        dtype: Any = None,
        previous_chunks: Any = None,
    ) -> tuple[tuple[int, ...], ...]:
        """All the lengths that `chunks` stands for; those left to us are multiples of the file's own."""
        return normalized(chunks, shape, limit, dtype, previous_chunks)

    def from_array(self, data: Any, chunks: Any, **kwargs: Any) -> Any:
        """An array of something that can be sliced. What holds no numbers stays as it is."""
        if np.dtype(data.dtype).kind not in NUMBERS:
            return data.array if isinstance(data, ImplicitToExplicitIndexingAdapter) else data
        sizes = self.normalize_chunks(chunks, data.shape, None, data.dtype)
        if not isinstance(data, ImplicitToExplicitIndexingAdapter):
            return asarray(data, chunks=sizes)
        layout = chunking.normalized(sizes, data.shape, data.dtype)
        return from_boxes(data.__getitem__, layout, data.dtype)

    def rechunk(self, data: Any, chunks: Any, **kwargs: Any) -> Any:
        """The same array in other tiles; axes that are not named, or named with None, stay as they are."""
        if isinstance(chunks, Mapping):
            chunks = tuple(chunks.get(axis) for axis in range(data.ndim))
        if isinstance(chunks, Sequence) and not isinstance(chunks, str):
            chunks = tuple(old if new is None else new for old, new in zip(data.chunks, chunks, strict=True))
        return wrap(recut_as(data.__node__, self.normalize_chunks(chunks, data.shape, None, data.dtype)))

    def get_auto_chunk_size(self) -> int:
        """Bytes of a tile that is cut automatically."""
        return chunking.TARGET

    def unify_chunks(self, *args: Any, **kwargs: Any) -> tuple[dict[Any, Any], list[Any]]:
        """Arrays cut alike along axes of the same name: cut wherever one of them is."""
        return unified(args)

    @property
    def array_api(self) -> Any:
        """Functions on arrays."""
        return asarray(0).__array_namespace__()

    # ---- values

    def compute(self, *data: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The values of all arrays among the arguments, computed in one run; other arguments as they are."""
        places = [place for place, each in enumerate(data) if isinstance(each, ArrayBase)]
        results = list(data)
        for place, value in zip(places, computed([data[place].__node__ for place in places]), strict=True):
            results[place] = value.copy() if value.base is not None or not value.flags.writeable else value
        return tuple(results)

    def persist(self, *data: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The arrays among the arguments computed and kept in tiles; other arguments as they are."""
        places = [place for place, each in enumerate(data) if isinstance(each, ArrayBase)]
        results = list(data)
        for place, node in zip(places, persisted([data[place].__node__ for place in places]), strict=True):
            results[place] = wrap(node)
        return tuple(results)

    def store(self, sources: Any, targets: Any, **kwargs: Any) -> Any:
        """Write arrays into objects that take `target[slices] = tile`, a tile at a time."""
        return store(sources, targets, **kwargs)

    # ---- functions on tiles

    def reduction(
        self,
        arr: Any,
        func: Callable[..., Any],
        combine_func: Callable[..., Any] | None = None,
        aggregate_func: Callable[..., Any] | None = None,
        axis: Any = None,
        dtype: Any = None,
        keepdims: bool = False,
    ) -> Any:
        """A function on each tile, then on what it gave for several of them, until one is left."""
        last = aggregate_func or func
        return reduced(arr, func, combine_func or last, last, axis, dtype, keepdims)

    def scan(
        self,
        func: Callable[..., Any],
        binop: Callable[..., Any],
        ident: float,
        arr: Any,
        axis: int | None = None,
        dtype: Any = None,
        **kwargs: Any,
    ) -> Any:
        """A cumulative function on each tile, then joined with what came before it."""
        if axis is None:
            raise ValueError("scan needs an axis; flatten the array first")
        kind = arr.dtype if dtype is None else np.dtype(dtype)
        return accumulated(arr, func, binop, ident, axis_of(axis, arr.ndim), kind, kwargs.get("preop"))

    def map_blocks(
        self,
        func: Callable[..., Any],
        *args: Any,
        dtype: Any = None,
        chunks: Any = None,
        drop_axis: Any = None,
        new_axis: Any = None,
        **kwargs: Any,
    ) -> Any:
        """A function on each tile."""
        dropped, added = (() if each is None else each for each in (drop_axis, new_axis))
        keywords = {name: value for name, value in kwargs.items() if name not in _DASKS}
        return map_blocks(
            func, *args, dtype=dtype, chunks=chunks, drop_axis=dropped, new_axis=added, **keywords
        )

    def blockwise(self, func: Callable[..., Any], out_ind: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        """A function on tiles whose axes are named."""
        keywords = {name: value for name, value in kwargs.items() if name not in ("name", "token")}
        return blockwise(func, out_ind, *args, **keywords)

    def apply_gufunc(
        self, func: Callable[..., Any], signature: str, *args: Any, allow_rechunk: bool = False, **kwargs: Any
    ) -> Any:
        """A function on some axes of arrays, repeated over the others; cores must lie in one tile."""
        return apply_gufunc(func, signature, *args, allow_rechunk=allow_rechunk, **kwargs)

    def shuffle(self, x: Any, indexer: Sequence[Sequence[int]], axis: int, chunks: Any) -> Any:
        """Slices along an axis in the order of some groups; no group lies in two tiles."""
        place = axis_of(axis, x.ndim)
        order = np.asarray([each for group in indexer for each in group], np.intp)
        taken = take(x, order, axis=place)
        if chunks in (None, "auto"):
            chunks = grouped([len(group) for group in indexer], max(x.chunks[place], default=1))
        return self.rechunk(taken, {place: chunks})
