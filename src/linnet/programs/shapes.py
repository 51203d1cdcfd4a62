"""Shapes and dtypes of tiles before they are written, from what kernels declare.

Needed where a task reads a tile that nobody writes, of an array with a fill: the tile has to be
made, and its neighbours that tell its size may not be there yet, or not any more.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np

from linnet.errors import InputError, KernelDeclarationError
from linnet.kernels import Kernel
from linnet.kernels import get as get_kernel
from linnet.programs.bound import BoundProgram
from linnet.programs.generated import Call
from linnet.programs.grammar import fill_of
from linnet.tiles import Tile, TiledArray, TileKey


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

    def __init__(
        self, bound: BoundProgram, inputs: Mapping[str, TiledArray], *, try_dtypes: bool = False
    ) -> None:
        """With `try_dtypes`, kernels that declare shapes alone are asked for dtypes with small tiles."""
        self._bound = bound
        self._tried: dict[Any, list[np.dtype[Any]]] | None = {} if try_dtypes else None
        self._inputs = inputs
        self._known: dict[TileKey, Description] = {}
        self._beside: dict[tuple[str, int, int], TileKey] = {}
        """Tiles that are written, by their array, an axis, and their place along it."""

    def is_filled(self, key: TileKey) -> bool:
        """Whether a tile is one that nobody writes, of an array with a fill."""
        filled = fill_of(self._bound.program.arrays[key.array]) is not None
        return filled and self._bound.writer(key) is None

    def fill(self, key: TileKey) -> Tile | None:
        """A tile that nobody writes, of the fill value of its array; None if that has no fill."""
        if not self.is_filled(key):
            return None
        shape, dtype = self.describe(key)
        tile = np.full(shape, fill_of(self._bound.program.arrays[key.array]), dtype, order="F")
        tile.setflags(write=False)
        return tile

    def describe(self, key: TileKey) -> Description:
        """A tile of an input, one that some task writes, or one that is filled.

        One that nobody writes is along each axis as long as the tiles that somebody does write.
        """
        pending = [key]
        opened: set[TileKey] = set()
        """Tiles that wait for others to be described."""
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
            call = None if task is None else self._bound.call(task)
            asked = self._neighbours(current) if call is None else list(operands(call.args))
            unknown = [each for each in asked if each not in self._known]
            for each in unknown:
                if each in opened:
                    raise InputError(
                        f"the shapes of {current} and {each} are unknown: each follows from the other; "
                        "a tile that nobody writes needs one beside it that is not made from it"
                    )
            if unknown:
                opened.add(current)
                pending.extend(unknown)
            elif call is None:
                self._known[current] = self._like(current, asked)
            else:
                self._declare(call)
        return self._known[key]

    def _like(self, key: TileKey, neighbours: Sequence[TileKey]) -> Description:
        """A tile that nobody writes, from those beside it."""
        if not neighbours:
            raise InputError(f"the shape of {key} is unknown: nobody writes it, and it is the only tile")
        described = [self._known[each] for each in neighbours]
        for neighbour, each in zip(neighbours, described, strict=True):
            if len(each.shape) != len(key.index):
                raise InputError(
                    f"the shape of {key} is unknown: its neighbour {neighbour} has "
                    f"{len(each.shape)} axes but {len(key.index)} indices"
                )
        lengths = tuple(each.shape[axis] for axis, each in enumerate(described))
        return Description(lengths, described[-1].dtype)

    def _neighbours(self, key: TileKey) -> list[TileKey]:
        """For each axis a tile that is written, at the same place along it."""
        return [self._neighbour(key, axis) for axis in range(len(key.index))]

    def _neighbour(self, key: TileKey, axis: int) -> TileKey:
        place = (key.array, axis, key.index[axis])
        neighbour = self._beside.get(place)
        if neighbour is None:
            neighbour = self._beside[place] = self._found(key, axis)
        return neighbour

    def _found(self, key: TileKey, axis: int) -> TileKey:
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

    def _declare(self, call: Call) -> None:
        described = {operand: self._known[operand] for operand in operands(call.args)}
        try:
            descriptions = declared(call, described) or inferred(call, described)
        except _NotTold as reason:
            raise InputError(
                f"the shapes of {', '.join(map(repr, call.outputs))} are needed before the tiles are there, "
                f"but kernel {call.kernel!r} declares none, and they could not be found out by trying it on "
                f"small tiles ({reason}); give it shape=..."
            ) from reason
        kernel = get_kernel(call.kernel)
        if self._tried is not None and kernel.shape is not None and kernel.dtype is None:
            descriptions = self._in_tried_dtypes(call, described, descriptions)
        self._known.update(descriptions)

    def _in_tried_dtypes(
        self, call: Call, described: Mapping[TileKey, Description], descriptions: dict[TileKey, Description]
    ) -> dict[TileKey, Description]:
        """Results in the dtypes that their kernel gives of small tiles; as they are if it refuses these."""
        assert self._tried is not None
        kinds = tuple(dict.fromkeys(each.dtype for each in described.values()))
        asked = (call.kernel, kinds, repr(call.attributes), len(descriptions))
        if asked not in self._tried:
            try:
                self._tried[asked] = [tile.dtype for _, tile, _ in _tried(call, described, _SMALL_LENGTHS)]
            except _NotTold:
                self._tried[asked] = [each.dtype for each in descriptions.values()]
        dtypes = zip(descriptions.items(), self._tried[asked], strict=True)
        return {key: Description(each.shape, dtype) for (key, each), dtype in dtypes}


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
    descriptions: dict[TileKey, Description] = {}
    for keys, shape, dtype in zip(
        call.outputs, shapes if kernel.outputs > 1 else (shapes,), dtypes, strict=True
    ):
        for key, one, kind in _paired(keys, shape, dtype):
            descriptions[key] = Description(tuple(one), np.dtype(kind))
    return descriptions


class _NotTold(Exception):
    """Why small tiles do not tell what a kernel makes of large ones."""


def inferred(call: Call, described: Mapping[TileKey, Description]) -> dict[TileKey, Description]:
    """The results of a call from what its kernel makes of small tiles.

    Each length is replaced by a small one of its own, twice: what follows the operands is told from what
    is always so long.
    """
    first, second = (_tried(call, described, lengths) for lengths in (_SMALL_LENGTHS, _OTHER_LENGTHS))
    descriptions: dict[TileKey, Description] = {}
    for (key, tile, large), (_, other, large_again) in zip(first, second, strict=True):
        if tile.ndim != other.ndim:
            raise _NotTold(f"it makes {tile.ndim} axes of some and {other.ndim} of others")
        lengths: list[int] = []
        for short, again in zip(tile.shape, other.shape, strict=True):
            if large.get(short) is not None and large.get(short) == large_again.get(again):
                lengths.append(large[short])
            elif short == again:
                lengths.append(short)
            else:
                raise _NotTold("the lengths of its results are not those of its operands")
        descriptions[key] = Description(tuple(lengths), tile.dtype)
    return descriptions


_SMALL_LENGTHS = (5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
_OTHER_LENGTHS = (6, 9, 14, 16, 21, 25, 27, 32, 34, 39)


def _tried(
    call: Call, described: Mapping[TileKey, Description], lengths: Sequence[int]
) -> list[tuple[TileKey, Tile, dict[int, int]]]:
    """What a kernel makes of small tiles, each result with its key and what each length stands for."""
    from linnet.programs.results import matched

    known = sorted({length for each in described.values() for length in each.shape if length > 1})
    if len(known) > len(lengths):
        raise _NotTold(f"its operands have {len(known)} different lengths")
    short = dict(zip(known, lengths, strict=False)) | {0: 0, 1: 1}
    rng = np.random.default_rng(0)

    def tile(key: TileKey) -> Tile:
        shape = tuple(short[length] for length in described[key].shape)
        matrix = np.asarray(rng.random(shape))
        if len(shape) == 2 and shape[0] == shape[1]:
            matrix = matrix + matrix.T + 4 * shape[0] * np.eye(shape[0])  # one that can be factored
        return matrix.astype(described[key].dtype)

    kernel = get_kernel(call.kernel)
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = kernel.function(*mapped(call.args, tile), **call.attributes)
        pairs = matched(result, kernel.outputs, call)
    except Exception as error:  # whatever it says of these tiles, it may take the real ones
        tried = ", ".join("×".join(str(short[n]) for n in each.shape) for each in described.values())
        raise _NotTold(f"of {tried} it raised {type(error).__name__}: {error}") from error
    back = {few: many for many, few in short.items() if many > 1}
    return [(key, each, back) for key, each in pairs]


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
