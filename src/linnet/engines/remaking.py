"""How arrays that stay on a cluster were made: where a node goes, and tiles with it, they are made again.

What is kept of a run is its program, small inputs as copies, and how inputs that were on the cluster
themselves were made; so nothing large is kept in memory for it, neither here nor there. Large arrays of this
process cannot be read again: whoever owns them may have changed them, and the array would be another one.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from linnet.engines.engine import Outputs
from linnet.engines.remote_tiles import RemoteTiles
from linnet.errors import JobError
from linnet.programs import BoundProgram
from linnet.tiles import Layout, TiledArray, human

_SMALL = 1 << 16
"""Bytes of inputs that are copied."""
_GENERATIONS = 16
"""Runs, each on what the one before kept, that are remembered: a loop that persists must not fill memory."""


class _Runs(Protocol):
    def run(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> Outputs: ...


class _Kept(NamedTuple):
    """An input that was on the cluster: it may be there still, or can be made again."""

    tiles: weakref.ref[RemoteTiles]
    origin: Origin | None
    name: str
    layout: Layout
    dtype: np.dtype[Any]
    what: str

    def array(self) -> TiledArray:
        tiles = self.tiles()
        if tiles is not None:
            return TiledArray(self.layout, self.dtype, tiles)
        if self.origin is None:
            raise JobError(f"it was made from {self.what}, which is gone")
        return self.origin.outputs().left(self.name, self.layout, self.dtype)


class Origin:
    """A run whose results stay on the cluster."""

    def __init__(
        self, engine: _Runs, bound: BoundProgram, inputs: Mapping[str, TiledArray], key: str
    ) -> None:
        self._engine = weakref.ref(engine)
        self._bound = bound
        self._inputs: dict[str, TiledArray | _Kept] = {}
        self._lacking = ""
        """What cannot be had again."""
        self.generation = 0
        """How many runs before this one are remembered for it."""
        for name, array in inputs.items():
            size = array.dtype.itemsize * int(np.prod(array.shape))
            if isinstance(array.tiles, RemoteTiles) and array.tiles.key == key:
                self._inputs[name] = self._kept(array.tiles, array)
            elif size <= _SMALL:
                copies = {index: np.array(tile) for index, tile in array.tiles.items()}
                self._inputs[name] = TiledArray(array.layout, array.dtype, copies)
            else:
                self._lacking = (
                    f"an array of {human(size)} of this process that it was made from may have changed since"
                )
        if self._lacking:
            self._inputs.clear()

    def _kept(self, tiles: RemoteTiles, array: TiledArray) -> _Kept:
        origin, name = tiles.origin if tiles.origin is not None else (None, "")
        if origin is not None and origin.generation + 1 >= _GENERATIONS:
            origin = None
        if origin is not None:
            self.generation: int = max(self.generation, origin.generation + 1)
        return _Kept(weakref.ref(tiles), origin, name, array.layout, array.dtype, tiles.what)

    def outputs(self) -> Outputs:
        """What the run gives when it is made again; a JobError if that cannot be."""
        engine = self._engine()
        if self._lacking or engine is None:
            raise JobError(self._lacking or "its engine is gone")
        given = {
            name: each.array() if isinstance(each, _Kept) else each for name, each in self._inputs.items()
        }
        return engine.run(self._bound, given)
