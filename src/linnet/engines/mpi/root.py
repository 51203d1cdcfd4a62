"""The runs of rank 0, and the tiles that other ranks keep for it."""

from __future__ import annotations

import itertools
import queue
import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.engines.mpi.messages import Header, Kind
from linnet.engines.mpi.parts import Runs, below
from linnet.engines.mpi.peers import Peers
from linnet.engines.remote_tiles import RemoteTiles
from linnet.tiles import Tile, TiledArray


class Held:
    """A tile of an output that stays where it was made, as long as somebody holds this."""

    __slots__ = ("_root", "name", "rank", "run", "tile", "value")

    def __init__(
        self, root: Root, rank: int, run: int, tile: int, name: str, value: Tile | None = None
    ) -> None:
        self._root = root
        self.rank: int = rank
        self.run: int = run
        self.tile: int = tile
        self.name: str = name
        self.value: Tile | None = value
        """The tile itself, on rank 0."""

    def __del__(self) -> None:
        if self.rank:
            self._root.unneeded.append((self.rank, self.run, self.tile))


class Root(Runs):
    """The runs of rank 0, and tiles that stayed with other ranks."""

    def __init__(self, peers: Peers) -> None:
        super().__init__(peers)
        self.key: str = f"mpi-{id(self)}"
        """What tells tiles on these ranks from others."""
        self.names: list[str] = [f"rank {rank}" for rank in range(peers.size)]
        """Of the ranks."""
        self.unneeded: deque[tuple[int, int, int]] = deque()
        """Tiles that ranks keep and that nobody holds: rank, run and number. Only ever appended to, so that
        this can be done wherever the garbage collector happens to run."""
        self._numbers = itertools.count(1)
        self._starting = threading.Lock()
        self._fetched: dict[tuple[int, int], list[queue.SimpleQueue[Tile]]] = {}
        peers.start(self)

    def begin(self, packed: bytes) -> int:
        """Tell the other ranks of a run; its number."""
        with self._starting:
            number = next(self._numbers)
            self.announce(number)
            self._tell_all(Kind.START, number, packed)
        return number

    def stop(self, number: int) -> None:
        """Tell the other ranks that a run is broken off."""
        self._tell_all(Kind.STOP, number, b"")
        self.end(number)

    def save(self, number: int) -> None:
        """Tell the other ranks to write down what a run needs."""
        self._tell_all(Kind.SAVE, number, b"")

    def quit(self) -> None:
        """Let the other ranks go."""
        self._tell_all(Kind.QUIT, 0, b"")
        self.peers.quit()

    def _tell_all(self, kind: Kind, number: int, body: bytes) -> None:
        for target in below(0, self.peers.size):
            self.peers.send(target, kind, number, body=body)

    # ---- tiles that stayed with other ranks

    def fetch(self, refs: Sequence[Held]) -> list[Tile]:
        """Copies of tiles."""
        waiting: list[queue.SimpleQueue[Tile] | None] = []
        for ref in refs:
            answer: queue.SimpleQueue[Tile] | None = None
            if ref.rank:
                answer = queue.SimpleQueue()
                with self.lock:
                    self._fetched.setdefault((ref.run, ref.tile), []).append(answer)
                    self.peers.runs += 1  # the thread that talks looks more often
                self.peers.send(ref.rank, Kind.FETCH, ref.run, ref.tile)
            waiting.append(answer)
        return [
            _copy(ref) if answer is None else answer.get() for ref, answer in zip(refs, waiting, strict=True)
        ]

    def holds(self, array: TiledArray) -> bool:
        """Whether all tiles of an array stayed with these ranks."""
        tiles = array.tiles
        if not isinstance(tiles, RemoteTiles) or tiles.key != self.key:
            return False
        return all(index in tiles.places for index in array.layout.indices())

    def release(self, refs: Sequence[Any]) -> None:
        """Tiles go with whoever holds them."""

    # ---- called by the thread that talks

    def place(self, header: Header, source: int) -> NDArray[Any] | None:
        """Where a long tile goes: straight to where the caller wants it, if it can."""
        part = self.get(header.run) if header.kind is Kind.RESULT else None
        return part.place(header) if part is not None else None

    def handle(self, header: Header, source: int, body: Any) -> None:
        """A message: for a run, or a tile that was fetched."""
        if header.kind is Kind.HELD:
            with self.lock:
                asked = self._fetched[header.run, header.number]
                answer = asked.pop(0)
                if not asked:
                    del self._fetched[header.run, header.number]
                self.peers.runs -= 1
            answer.put(body)
        else:
            self.deliver(header, source, body)

    def tick(self) -> None:
        """Let runs tell what happened, and ranks let go of what nobody holds."""
        super().tick()
        gone: dict[tuple[int, int], list[int]] = {}
        while self.unneeded:
            rank, run, tile = self.unneeded.popleft()
            gone.setdefault((rank, run), []).append(tile)
        for (rank, run), tiles in gone.items():
            self.peers.send(rank, Kind.DROP, run, body=np.array(tiles, np.int64).tobytes())


def _copy(ref: Held) -> Tile:
    assert ref.value is not None
    return np.array(ref.value, order="K")
