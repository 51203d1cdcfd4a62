"""Shapes and dtypes of tiles before they are written, from what kernels declare.

Needed where a task reads a tile of an `Out(fill=...)` array that nobody writes: the tile
has to be made, and its neighbours that tell its size may not be there yet.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, cast

import numpy as np

from linnet.errors import InputError, KernelDeclarationError
from linnet.kernels import Kernel
from linnet.kernels import get as get_kernel
from linnet.programs.bound import BoundProgram
from linnet.programs.compiled import Call
from linnet.tiles import TiledArray, TileKey


class Description(NamedTuple):
    """What is known of a tile before it is there."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        """Bytes of its elements.

        >>> Description((3, 5), np.dtype(np.float32)).nbytes
        60
        """
        return math.prod(self.shape) * self.dtype.itemsize


class Shapes:
    """Describes tiles of a bound program, each once."""

    def __init__(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> None:
        self._bound = bound
        self._inputs = inputs
        self._known: dict[TileKey, Description] = {}

    def filled(self, key: TileKey) -> Description:
        """A tile that nobody writes: along each axis as long as the tiles that somebody does write."""
        lengths: list[int] = []
        dtype: np.dtype[Any] | None = None
        for axis in range(len(key.index)):
            neighbour = self._neighbour(key, axis)
            described = self.describe(neighbour)
            if len(described.shape) != len(key.index):
                raise InputError(
                    f"the shape of {key} is unknown: its neighbour {neighbour} has "
                    f"{len(described.shape)} axes but {len(key.index)} indices"
                )
            lengths.append(described.shape[axis])
            dtype = described.dtype
        assert dtype is not None
        return Description(tuple(lengths), dtype)

    def _neighbour(self, key: TileKey, axis: int) -> TileKey:
        """A tile that is written, at the same place along one axis."""
        extents = [range(n) for n in self._bound.grid(key.array)]
        extents[axis] = range(key.index[axis], key.index[axis] + 1)
        for index in itertools.product(*extents):
            candidate = TileKey(key.array, index)
            if self._bound.writer(candidate) is not None:
                return candidate
        raise InputError(
            f"the shape of {key} is unknown: no tile of {key.array} at position {key.index[axis]} "
            f"along axis {axis} is written"
        )

    def describe(self, key: TileKey) -> Description:
        """A tile of an input, or one that some task writes."""
        pending = [key]
        while pending:
            current = pending[-1]
            if current in self._known:
                pending.pop()
                continue
            if current.array in self._inputs:
                array = self._inputs[current.array]
                self._known[current] = Description(array.layout.tile_shape(current.index), array.dtype)
                continue
            task = self._bound.writer(current)
            if task is None:
                self._known[current] = self.filled(current)
                continue
            call = self._bound.call(task)
            unknown = [operand for operand in operands(call.args) if operand not in self._known]
            if unknown:
                pending.extend(unknown)
            else:
                self._declare(call)
        return self._known[key]

    def _declare(self, call: Call) -> None:
        described = {operand: self._known[operand] for operand in operands(call.args)}
        results = declared(call, described)
        if results is None:
            raise InputError(
                f"the shapes of {', '.join(map(repr, call.outputs))} are needed before the tiles are there, "
                f"but kernel {call.kernel!r} declares none; give it shape=..."
            )
        self._known.update(results)


def declared(call: Call, described: Mapping[TileKey, Description]) -> dict[TileKey, Description] | None:
    """The results of a call, in their order, from its operands; None if its kernel declares no shapes."""
    kernel = get_kernel(call.kernel)
    if kernel.shape is None:
        return None
    try:
        shapes = kernel.shape(*mapped(call.args, lambda key: described[key].shape), **call.attributes)
        dtypes = _dtypes(kernel, call, described)
    except Exception as error:
        raise KernelDeclarationError(
            f"what kernel {call.kernel!r} declares of its results (shape=, dtype=) fails on "
            f"{call.args!r}: {type(error).__name__}: {error}"
        ) from error
    found: dict[TileKey, Description] = {}
    for keys, shape, dtype in zip(
        call.outputs, shapes if kernel.outputs > 1 else (shapes,), dtypes, strict=True
    ):
        for key, one, kind in _paired(keys, shape, dtype):
            found[key] = Description(tuple(one), np.dtype(kind))
    return found


def _dtypes(kernel: Kernel, call: Call, described: Mapping[TileKey, Description]) -> tuple[Any, ...]:
    if kernel.dtype is None:
        kinds = {each.dtype for each in described.values()}
        common = np.result_type(*kinds) if kinds else np.dtype(np.float64)
        return (common,) * kernel.outputs
    dtypes = kernel.dtype(*mapped(call.args, lambda key: described[key].dtype), **call.attributes)
    return tuple(dtypes) if kernel.outputs > 1 else (dtypes,)


def _paired(keys: Any, shape: Any, dtype: Any) -> Iterator[tuple[TileKey, Any, Any]]:
    """Each key of a result with its shape; a range of results has a list of shapes."""
    if isinstance(keys, TileKey):
        yield keys, shape, dtype
        return
    kinds = cast("list[Any]", dtype) if isinstance(dtype, list) else [dtype] * len(keys)
    for key, one, kind in zip(keys, shape, kinds, strict=True):
        yield from _paired(key, one, kind)


def mapped(item: Any, take: Callable[[TileKey], Any], gather: Callable[..., Any] = list) -> Any:
    """The arguments of a call with something else in the place of each tile."""
    if isinstance(item, TileKey):
        return take(item)
    if isinstance(item, tuple | list):
        return gather(mapped(each, take, gather) for each in cast("list[Any]", item))
    return item


def operands(item: Any) -> Iterator[TileKey]:
    """All tiles in the arguments of a call, ranges of tiles included."""
    if isinstance(item, TileKey):
        yield item
    elif isinstance(item, tuple | list):
        for each in cast("list[Any]", item):
            yield from operands(each)
