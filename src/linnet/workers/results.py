"""The outputs of a job, as they lie in its store."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from linnet.errors import MissingTileError
from linnet.programs import Out
from linnet.programs.outputs import Outputs
from linnet.tiles import Index, Tile, TileKey
from linnet.tiles.codec import decoded
from linnet.workers.names import name_of
from linnet.workers.parts import Parts
from linnet.workers.spec import JobSpec, tile_key

_PAGE = 1000


class StoredTiles(Mapping[Index, Tile]):
    """The tiles of one output; each is read when it is asked for."""

    def __init__(self, parts: Parts, spec: JobSpec, array: str) -> None:
        self._store, self._job = parts.store, parts.address.job
        self._array = array
        bound = spec.bound
        keys: list[TileKey] = []
        writers: list[str] = []
        for index in itertools.product(*map(range, bound.grid(array))):
            key = TileKey(array, index)
            writer = bound.writer(key)
            if writer is not None:
                keys.append(key)
                writers.append(name_of(writer))
        tokens = published(parts, writers)
        missing = [key for key, token in zip(keys, tokens, strict=True) if not token]
        if missing:
            raise MissingTileError(f"{missing[0]} was not written: the job is not finished")
        self._tokens = {key.index: token for key, token in zip(keys, tokens, strict=True)}

    def __getitem__(self, index: Index) -> Tile:
        key = tile_key(self._job, TileKey(self._array, index), self._tokens[index])
        return decoded(self._store.get(key), key)

    def __iter__(self) -> Iterator[Index]:
        return iter(self._tokens)

    def __len__(self) -> int:
        return len(self._tokens)


def published(parts: Parts, names: Sequence[str]) -> list[int]:
    """The published token of each task, however many there are."""
    found: list[int] = []
    for start in range(0, len(names), _PAGE):
        found += parts.ledger.published(names[start : start + _PAGE])
    return found


def outputs(parts: Parts, spec: JobSpec) -> Outputs:
    """The `Out` arrays of a finished job."""
    names = [name for name, role in spec.program.arrays.items() if isinstance(role, Out)]
    return Outputs(spec.bound, {name: StoredTiles(parts, spec, name) for name in names})


def sweep(parts: Parts, spec: JobSpec) -> int:
    """Delete what a finished job left in its store beside inputs and outputs; returns how many tiles.

    These are temporary tiles, and those of attempts that were not the first.
    """
    job, gone = parts.address.job, 0
    found = [(key, *parsed_key(key)) for key, _ in parts.store.list(f"{job}/")]
    tiles = [(key, tile, token) for key, tile, token in found if tile is not None and token is not None]
    unneeded: list[str] = []
    kept: list[tuple[str, str, int]] = []
    for key, tile, token in tiles:
        assert tile is not None
        role = spec.program.arrays.get(tile.array)
        writer = spec.bound.writer(tile) if isinstance(role, Out) else None
        if writer is None:
            unneeded.append(key)
        else:
            kept.append((key, name_of(writer), token))
    tokens = published(parts, [name for _, name, _ in kept])
    unneeded += [key for (key, _, token), known in zip(kept, tokens, strict=True) if known != token]
    parts.store.delete(unneeded)
    return gone + len(unneeded)


def parsed_key(key: str) -> tuple[TileKey | None, int | None]:
    """The tile and the token of a key; None for what is no tile of an attempt."""
    array, _, rest = key.partition("/")[2].partition("/")
    place, _, token = rest.partition("=")
    if not token.isdigit():
        return None, None
    index = () if place == "-" else tuple(map(int, place.split(".")))
    return TileKey(array, index), int(token)
