"""Files that cannot be written in several places at once: made of parts, one for each tile.

Tasks write parts beside the target; the last step strings them together, in order, a block at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.io import stores
from linnet.io.csv_columns import text_of
from linnet.io.journal import Journal
from linnet.io.parquet import encoded
from linnet.io.places import Place

Tile = NDArray[Any]


def place_of(journal: Journal, number: int, end: str = "") -> Place:
    """Where the part of a tile is written."""
    return journal.folder / f"parts/{number:06}{end}"


def save(form: str, tile: Tile, journal: Journal, number: int, **how: Any) -> None:
    """Write the part of one tile: its elements in C order ("raw"), its rows as text, or as Parquet."""
    match form:
        case "raw":
            data = np.ascontiguousarray(tile).reshape(-1).view(np.uint8)
        case "text":
            data = text_of(tile, **how)
        case "parquet":
            data = encoded(tile, **how)
        case _:
            raise ValueError(f"a part is raw, text or parquet, not {form!r}")
    stores.write(place_of(journal, number, ".parquet" if form == "parquet" else ""), data)


def join(journal: Journal, head: bytes, count: int) -> None:
    """String the parts together behind a head: the target, from now on."""
    blocks: Iterator[Any] = itertools.chain(
        (head,) if head else (),
        itertools.chain.from_iterable(stores.stream(place_of(journal, number)) for number in range(count)),
    )
    stores.write_stream(journal.target, blocks)
    journal.end()
