"""The outputs of a job, as they lie in its store."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from linnet.errors import MissingTileError
from linnet.programs import Out, Task
from linnet.programs.outputs import Outputs
from linnet.tiles import Index, Tile, TileKey
from linnet.tiles.codec import decoded
from linnet.workers.names import name_of
from linnet.workers.parts import Parts
from linnet.workers.spec import JobSpec, tile_key

_PAGE = 1000
_ATTEMPTED = re.compile(r"[^/]+/([^/]+)/(-|[0-9]+(?:\.[0-9]+)*)=([0-9]+)")
"""A key as `tile_key` makes it for an attempt."""


class StoredTiles(Mapping[Index, Tile]):
    """The tiles of one output; each is read when it is asked for."""

    def __init__(self, parts: Parts, spec: JobSpec, array: str) -> None:
        self._store, self._job = parts.store, parts.address.job
        self._array = array
        tiles = written(spec, array)
        tokens = published(parts, map(name_of, tiles.values()))
        missing = [key for key, token in zip(tiles, tokens, strict=True) if not token]
        if missing:
            raise MissingTileError(f"{missing[0]} was not written: the job is not finished")
        self._tokens = {key.index: token for key, token in zip(tiles, tokens, strict=True)}

    def __getitem__(self, index: Index) -> Tile:
        key = tile_key(self._job, TileKey(self._array, index), self._tokens[index])
        return decoded(self._store.get(key), key)

    def __iter__(self) -> Iterator[Index]:
        return iter(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)


def output_names(spec: JobSpec) -> list[str]:
    """The `Out` arrays of a job."""
    return [name for name, role in spec.program.arrays.items() if isinstance(role, Out)]


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


def outputs(parts: Parts, spec: JobSpec) -> Outputs:
    """The `Out` arrays of a finished job."""
    return Outputs(spec.bound, {name: StoredTiles(parts, spec, name) for name in output_names(spec)})


def sweep(parts: Parts, spec: JobSpec) -> None:
    """Delete what a finished job left in its store beside inputs and outputs.

    These are temporary tiles, and those of attempts that were not the first.
    """
    wanted = written(spec, *output_names(spec))
    tokens = dict(zip(wanted, published(parts, map(name_of, wanted.values())), strict=True))
    parts.store.delete([key for key, tile, token in attempted(parts) if tokens.get(tile) != token])


def attempted(parts: Parts) -> Iterator[tuple[str, TileKey, int]]:
    """Keys in the store that belong to attempts at tasks, each with its tile and token."""
    for key, _ in parts.store.list(f"{parts.address.job}/"):
        if found := _ATTEMPTED.fullmatch(key):
            array, place, token = found.groups()
            index = () if place == "-" else tuple(map(int, place.split(".")))
            yield key, TileKey(array, index), int(token)
