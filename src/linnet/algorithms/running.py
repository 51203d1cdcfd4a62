"""What the algorithms share: from an array to tiles, and onto an engine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.engines import Engine, Outputs
from linnet.errors import InputError
from linnet.events import Sink
from linnet.kernels import storage
from linnet.programs import BoundProgram, TileProgram
from linnet.session import current_engine
from linnet.tiles import TiledArray


def as_matrix(a: NDArray[Any] | TiledArray, tile: int | tuple[int, int]) -> TiledArray:
    """A matrix in tiles: as it is if it has tiles, else as views of the array (nothing is copied)."""
    if isinstance(a, TiledArray):
        matrix = a
    else:
        matrix = TiledArray.from_numpy(np.asarray(a), tile, copy=False) if np.ndim(a) == 2 else None
    if matrix is None or matrix.ndim != 2:
        raise InputError(f"expected a matrix, got an array of shape {np.shape(a)}")
    return matrix


def sized(program: TileProgram, **sizes: int) -> BoundProgram:
    """The program bound to sizes; the last ones are kept, and with them what engines planned for them."""
    return _sized(program, tuple(sizes.items()))


@lru_cache(maxsize=16)
def _sized(program: TileProgram, sizes: tuple[tuple[str, int], ...]) -> BoundProgram:
    return program.bind(**dict(sizes))


def run(
    bound: BoundProgram,
    inputs: Mapping[str, TiledArray],
    engine: Engine | None,
    events: Sink | None,
    out: Mapping[str, TiledArray] | None = None,
) -> Outputs:
    """Run on the given engine, or on that of the session."""
    return (current_engine() if engine is None else engine).run(bound, inputs, out=out, events=events)


def budget(engine: Engine | None) -> int | None:
    """The bytes that an engine (None: that of the session) may take for tiles; None if it knows no limit."""
    return (current_engine() if engine is None else engine).memory


def at_hand(engine: Engine) -> bool:
    """Whether workers share this process's memory, without a limit: tiles in between then cost nothing."""
    return engine.shares_memory and budget(engine) is None


def room(engine: Engine, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """An array for a result, every tile of which will be written: zeros only if it may go to a file."""
    return storage.empty(shape, dtype) if budget(engine) is None else engine.zeros(shape, dtype)


def need_square_tiles(matrix: TiledArray, what: str) -> None:
    """Refuse a matrix whose tiles on the diagonal are not square, save the last."""
    rows, columns = (np.diff(edges) for edges in matrix.layout.boundaries)
    steps = min(len(rows), len(columns)) - 1
    if not np.array_equal(rows[:steps], columns[:steps]):
        raise InputError(
            f"{what} takes square tiles on the diagonal (the last may be ragged); got row heights "
            f"{rows[: steps + 1].tolist()} and column widths {columns[: steps + 1].tolist()}"
        )
