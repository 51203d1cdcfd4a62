"""Short rows taken several at a time.

NumPy's loops run along rows. A row of some dozens of elements takes as long to begin as to run, so
rows that lie one behind another in memory are taken as one long row. An operand that is the same for
all rows is repeated, and a fold over rows first gives a state for each row of the long one; these
are joined at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.arrays.folds import Fold

Tile = NDArray[Any]

LONG = 1024
"""Elements that a row should have."""


def at_once(lengths: Sequence[int]) -> int:
    """How many rows are taken as one: a power of two that divides their number.

    >>> at_once((20736, 50)), at_once((7, 50)), at_once((4096, 2000))
    (16, 1, 1)
    """
    *_, count, length = lengths
    rows = 1
    while 2 * rows * length <= LONG and count % (2 * rows) == 0 and count > 2 * rows:
        rows *= 2
    return rows


def longer(form: tuple[int, ...], rows: int) -> tuple[int, ...]:
    """The form of an operand when so many rows are one; axes along which it is the same stay as they are.

    >>> longer((20736, 50), 16), longer((1, 50), 16), longer((3, 1, 1), 16)
    ((1296, 800), (1, 800), (3, 1, 1))
    """
    *rest, outer, inner = form
    return (*rest, outer if outer == 1 else outer // rows, inner if inner == 1 else inner * rows)


def repeated(x: Tile, form: tuple[int, ...], rows: int) -> Tile:
    """What is the same for all rows, as often as rows are taken together.

    >>> repeated(np.array([[1, 2]]), (1, 4), 2)
    array([[1, 2, 1, 2]])
    """
    *rest, inner = form
    return np.concatenate([x.reshape((*rest, inner // rows))] * rows, axis=-1)


def joined(state: Tile, fold: Fold, rows: int) -> Tile:
    """The state of all rows, from those of the rows that a long one is made of.

    >>> from linnet.kernels.arrays.folds import fold
    >>> joined(np.array([[1, 2, 10, 20]]), fold("sum"), 2)
    array([[11, 22]])
    """
    length = state.shape[-1] // rows
    while rows > 1:
        rows //= 2
        state = fold.combine(state[..., : rows * length], state[..., rows * length :], None)
    return state
