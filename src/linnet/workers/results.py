"""The outputs of a job, as they lie in its store."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import copy
from types import MappingProxyType
from typing import Any

import numpy as np

from linnet.errors import DamagedTileError, MissingTileError
from linnet.programs import Out, Task
from linnet.programs.outputs import Outputs
from linnet.tiles import Index, Tile, TiledArray, TileKey
from linnet.tiles.codec import decoded
from linnet.workers.array_specs import tile_key
from linnet.workers.job_parts import Parts
from linnet.workers.names import name_of
from linnet.workers.result_types import as_array, named_tuple
from linnet.workers.spec import JobSpec
from linnet.workers.store import Store

_PAGE = 1000
_ATTEMPTED = re.compile(r"[^/]+/([^/]+)/(-|[0-9]+(?:\.[0-9]+)*)=([0-9]+)")
"""A key as `tile_key` makes it for an attempt."""


class StoredTiles(Mapping[Index, Tile]):
    """The tiles of one output, from the part of the job that counts; each is read when it is asked for.

    They stay until the job is deleted. Those that are `filled` with one value take no room and lie nowhere.
    """

    filled: Mapping[Index, Tile] = MappingProxyType({})
    """The tiles of one value."""

    def __init__(self, parts: Parts, spec: JobSpec, array: str) -> None:
        if spec.gate is not None and second_counts(parts, spec):
            array = spec.gate.instead.get(array, array)
        self.store: Store = parts.store
        """Where they are."""
        self.folder: str = parts.folder
        """That of the job that wrote them."""
        self.array = array
        """What it calls the output."""
        tiles = written(spec, array)
        tokens = published(parts, map(name_of, tiles.values()))
        missing = [key for key, token in zip(tiles, tokens, strict=True) if not token]
        if missing:
            raise MissingTileError(f"{missing[0]} was not written: the job is not finished")
        self.tokens: Mapping[Index, int] = {
            key.index: token for key, token in zip(tiles, tokens, strict=True)
        }
        """Of the attempt that wrote each tile."""

    def with_filled(self, filled: Mapping[Index, Tile]) -> StoredTiles:
        """The same tiles, and others that have one value."""
        made = copy(self)
        made.filled = {**self.filled, **filled}
        return made

    def __getitem__(self, index: Index) -> Tile:
        if index in self.filled:
            return self.filled[index]
        key = self._key(index)
        return decoded(self.store.get(key), key)

    def _key(self, index: Index) -> str:
        return tile_key(self.folder, TileKey(self.array, index), self.tokens[index])

    def stored_keys(self) -> Iterator[str]:
        """Where each of them is in the store."""
        return map(self._key, self.tokens)

    def __contains__(self, index: object) -> bool:
        return index in self.tokens or index in self.filled  # without reading it

    def __iter__(self) -> Iterator[Index]:
        yield from self.tokens
        yield from self.filled

    def __len__(self) -> int:
        return len(self.tokens) + len(self.filled)


def tiles_so_far(parts: Parts, spec: JobSpec, array: str, without: Collection[Index]) -> dict[Index, Tile]:
    """Those tiles of an output that are there, whether the job runs or not, but for some that are known."""
    tiles = {key: task for key, task in written(spec, array).items() if key.index not in without}
    tokens = published(parts, map(name_of, tiles.values()))
    found = {
        key: tile_key(parts.folder, key, token) for key, token in zip(tiles, tokens, strict=True) if token
    }
    return {key.index: decoded(parts.store.get(stored), stored) for key, stored in found.items()}


class InputTiles(Mapping[Index, Tile]):
    """The tiles of an input of a job, as they lie in its store."""

    def __init__(self, parts: Parts, spec: JobSpec, array: str) -> None:
        self._store, self._folder = parts.store, parts.folder
        self._array, self._given = array, spec.inputs[array]

    def __getitem__(self, index: Index) -> Tile:
        given = self._given
        if index in given.absent:
            return np.full(given.layout.tile_shape(index), given.fill, given.dtype, order="F")
        key = given.key(self._folder, TileKey(self._array, index))
        try:
            return decoded(self._store.get(key), key)
        except (MissingTileError, DamagedTileError):
            raise MissingTileError(
                f"{key} is missing or damaged, and is an input, which no task computes; submit the job again"
            ) from None

    def __contains__(self, index: object) -> bool:
        return index in self._given.layout  # without reading it

    def __iter__(self) -> Iterator[Index]:
        return self._given.layout.indices()

    def __len__(self) -> int:
        return math.prod(self._given.layout.grid)


class JobOutputs(Outputs):
    """The `Out` arrays of a finished job; tiles of one value are stored nowhere."""

    def _with(self, tiles: Mapping[Index, Tile], filled: Mapping[Index, Tile]) -> Mapping[Index, Tile]:
        return tiles.with_filled(filled) if isinstance(tiles, StoredTiles) else super()._with(tiles, filled)


# ---- what was asked for, put together again


def asked_for(parts: Parts, spec: JobSpec, wanted: Any) -> Any:
    """The results of a finished job, in the tuples and lists in which they were asked for."""
    kind, *rest = wanted
    if kind == "plain":
        return rest[0]
    if kind == "array":
        made = _array(parts, spec, rest[0])
        return as_array(made)
    inside = [asked_for(parts, spec, each) for each in rest[-1]]
    if kind == "list":
        return inside
    return tuple(inside) if kind == "tuple" else named_tuple(rest[0], rest[1])(*inside)


def _array(parts: Parts, spec: JobSpec, name: str) -> TiledArray:
    if name in spec.inputs:
        given = spec.inputs[name]
        return TiledArray(given.layout, given.dtype, InputTiles(parts, spec, name))
    each = spec.arrays[name]
    return JobOutputs(spec.bound, {name: StoredTiles(parts, spec, name)}).left(name, each.layout, each.dtype)


def output_names(spec: JobSpec) -> list[str]:
    """The `Out` arrays of a job, as those who asked for them call them."""
    if spec.gate is not None:
        return list(spec.gate.instead)
    return [name for name, role in spec.program.arrays.items() if isinstance(role, Out)]


def kept_names(spec: JobSpec, *, second: bool) -> list[str]:
    """The arrays that a job writes and keeps, if its second part counts or if not.

    What decides is one of the results of the first part, and not needed any more when the second counts.
    """
    if spec.gate is None:
        return output_names(spec)
    return list(spec.gate.instead.values()) if second else [*spec.gate.instead, spec.gate.tile.array]


def second_counts(parts: Parts, spec: JobSpec) -> bool:
    """Whether it was decided that the second part of a job is run: then its results count."""
    return spec.gate is not None and parts.ledger.status().total > spec.first_total


def written(spec: JobSpec, *arrays: str) -> dict[TileKey, Task]:
    """The tiles of arrays that are written at all, and the task that writes each."""
    keys = (
        TileKey(array, index)
        for array in arrays
        for index in itertools.product(*map(range, spec.bound.grid(array)))
    )
    return {key: writer for key in keys if (writer := spec.bound.writer(key)) is not None}


def published(parts: Parts, names: Iterable[str]) -> list[int]:
    """The published token of each task, however many there are."""
    found: list[int] = []
    names = iter(names)
    while page := list(itertools.islice(names, _PAGE)):
        found += parts.ledger.published(page)
    return found


def stored(parts: Parts, spec: JobSpec) -> dict[str, StoredTiles]:
    """The tiles of every `Out` array of a finished job."""
    return {name: StoredTiles(parts, spec, name) for name in output_names(spec)}


def outputs(parts: Parts, spec: JobSpec) -> Outputs:
    """The `Out` arrays of a finished job."""
    return JobOutputs(spec.bound, stored(parts, spec))


def sweep(parts: Parts, spec: JobSpec) -> None:
    """Delete what a finished job left in its store beside inputs and outputs.

    These are temporary tiles, and those of attempts that were not the first.
    """
    wanted = written(spec, *kept_names(spec, second=second_counts(parts, spec)))
    if spec.gate is not None:
        wanted[spec.gate.tile] = spec.gate.decider(spec.bound)
    tokens = dict(zip(wanted, published(parts, map(name_of, wanted.values())), strict=True))
    parts.store.delete([key for key, tile, token in attempted(parts) if tokens.get(tile) != token])


def attempted(parts: Parts) -> Iterator[tuple[str, TileKey, int]]:
    """Keys in the store that belong to attempts at tasks, each with its tile and token."""
    for key, _ in parts.store.list(f"{parts.folder}/"):
        if found := _ATTEMPTED.fullmatch(key):
            array, place, token = found.groups()
            index = () if place == "-" else tuple(map(int, place.split(".")))
            yield key, TileKey(array, index), int(token)
