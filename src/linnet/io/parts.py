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
from linnet.io.journal import Journal
from linnet.io.places import Place

Tile = NDArray[Any]


def place_of(journal: Journal, number: int) -> Place:
    """Where the part of a tile is written."""
    return journal.folder / f"part-{number:06}"


def save(form: str, tile: Tile, journal: Journal, number: int, **how: Any) -> None:
    """Write the part of one tile: "raw" are its elements in C order."""
    if form == "raw":
        data = np.ascontiguousarray(tile).reshape(-1).view(np.uint8)
        stores.write(place_of(journal, number), data)
    else:
        raise ValueError(f"save_part expects a form it knows, got {form!r}")


def join(journal: Journal, head: bytes, count: int) -> None:
    """String the parts together behind a head: the target, from now on."""
    blocks: Iterator[Any] = itertools.chain(
        (head,) if head else (),
        itertools.chain.from_iterable(stores.stream(place_of(journal, number)) for number in range(count)),
    )
    stores.write_stream(journal.target, blocks)
    journal.end()
