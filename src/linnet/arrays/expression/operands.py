"""NumPy's arrays as operands: they count as read when the expression is written.

An expression is computed later, when the user may have changed his array. So a copy is taken, unless nobody
can change it: it, and every array that it is a view of, is read-only. A memory-mapped array counts as a
file and is read when the expression is computed. `asarray` alone shares memory, and says so.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.session import current_engine

_borrowing: ContextVar[bool] = ContextVar("operands are borrowed", default=False)


@contextmanager
def borrowed() -> Iterator[None]:
    """Take no copies in this block: what is written in it is also computed in it."""
    token = _borrowing.set(True)
    try:
        yield
    finally:
        _borrowing.reset(token)


def as_read(obj: Any, dtype: Any = None) -> NDArray[Any]:
    """An operand as it is now: an array that does not change any more.

    >>> given = np.arange(3)
    >>> kept = as_read(given)
    >>> given[:] = 7
    >>> kept
    array([0, 1, 2])
    """
    array = np.asarray(obj, dtype)
    if type(obj) in (list, tuple, int, float, complex, bool) or isinstance(obj, np.generic):
        return array  # new already
    if _borrowing.get() or is_fixed(array):
        return array
    return copied(array)


def is_fixed(array: NDArray[Any]) -> bool:
    """Whether no array can change it, or it lies in a file.

    >>> frozen = np.arange(4)
    >>> frozen.flags.writeable = False
    >>> is_fixed(frozen[1:]), is_fixed(np.broadcast_to(np.arange(2), (3, 2)))
    (True, False)
    """
    base: Any = array
    changes = False
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return True
        changes = changes or base.flags.writeable
        base = base.base
    if changes:
        return False
    # Under an array lies its own memory, or somebody else's, who may be writing to it.
    return base is None or isinstance(base, bytes) or (isinstance(base, memoryview) and base.readonly)


def copied(array: NDArray[Any]) -> NDArray[Any]:
    """A copy, where results go (in a file, if a budget has no room); what was broadcast stays so."""
    once = array[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)]
    engine = current_engine()
    if engine.memory is None:
        made = np.array(once, order="K", subok=False)
    else:
        made = engine.zeros(once.shape, once.dtype)
        np.copyto(made, once)
    return made if made.shape == array.shape else np.broadcast_to(made, array.shape)
