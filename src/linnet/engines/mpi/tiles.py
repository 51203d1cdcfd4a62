"""The tiles of a run on one rank: its own, and copies of others', each until nobody here needs it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping

from linnet.engines.store import TileStore
from linnet.programs import BoundProgram
from linnet.tiles import Tile, TiledArray, TileKey


class RankTiles(TileStore):
    """Tiles by key, and how often each will still be read or sent.

    As in its parent, different threads may read and write different tiles at once, and `release` is for
    one thread at a time; so is `keep`.
    """

    def __init__(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
        uses: Callable[[TileKey], int],
        *,
        collects: bool,
    ) -> None:
        """`uses` says how often a tile is needed here; `collects` whether results stay here, on rank 0."""
        super().__init__(bound, inputs, out)
        self._uses = uses
        self._collects = collects
        self._counting = threading.Lock()
        self.held: int = 0
        """Bytes of tiles that were made here or came here."""
        self.peak = 0
        """The most they have been."""

    def put(self, key: TileKey, tile: Tile, readers: int) -> bool:
        """Keep a tile that was made here; False if nobody needs it."""
        if self._collects and key.array in self._outputs:
            self._count(tile.nbytes)
            return super().put(key, tile, self._uses(key))
        return self.keep(key, tile, self._uses(key))

    def keep(self, key: TileKey, tile: Tile, uses: int) -> bool:
        """Keep a tile until it was used so often."""
        if not uses:
            return False
        self._count(tile.nbytes)
        tile.setflags(write=False)
        self._readers[key] = uses
        self._tiles[key] = tile
        return True

    def collect(self, key: TileKey, tile: Tile) -> None:
        """A tile of an output that came from another rank, to where the caller wants it."""
        super().put(key, tile, 0)

    def borrow(self, key: TileKey, tile: Tile) -> None:
        """Have a tile that belongs to somebody else."""
        self._tiles[key] = tile

    def hold(self, key: TileKey) -> Tile | None:
        """The tile, for one more use; None if it is gone, or a kernel may overwrite it now."""
        with self._counting:
            tile = self._tiles.get(key)
            if tile is None or (key.array in self.temporary and tile.flags.writeable):
                return None
            if key in self._readers:
                self._readers[key] += 1
            return tile

    def lends(self, key: TileKey) -> bool:
        """Whether a tile may be a part of an input: not here, where that would keep all of the input."""
        return False

    def claim(self, key: TileKey, tile: Tile) -> bool:
        """Whether the task that reads this tile now is the last to need it; if so it may overwrite it."""
        with self._counting:
            return super().claim(key, tile)

    def release(self, keys: Iterable[TileKey]) -> list[tuple[TileKey, int]]:
        """These tiles were used once each; returns those dropped, with their bytes."""
        dropped = super().release(keys)
        if dropped:
            with self._counting:
                self.held -= sum(size for _, size in dropped)
        return dropped

    def _count(self, size: int) -> None:
        with self._counting:
            self.held += size
            self.peak: int = max(self.peak, self.held)
