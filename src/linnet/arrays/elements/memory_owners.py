"""Whose memory an array is in: what nobody else can see is written to where it lies.

Slices are no views to the user, but in memory they are: `x[1:]`, an expression over it, a NumPy array made of
`x` all refer to the memory of `x`, and Python counts these references. If the only ones are those that
every array has, nobody else holds it. What a statement made on its way is gone when that is asked, so a loop
of assignments writes to one place, and copies only where somebody kept an older version.
"""

from __future__ import annotations

import opcode
import sys
from sys import getrefcount
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.expression.nodes import Source
from linnet.machine import large_arrays


def _holders(x: ArrayBase) -> tuple[int, int, int]:
    """How many refer to the node of an array, to its data, and to the memory that these are a view of."""
    node = x._node
    assert type(node) is Source
    data = node.data
    base = data.base
    return getrefcount(node), getrefcount(data), 0 if base is None else getrefcount(base)


def _alone() -> ArrayBase:
    return ArrayBase(Source(np.empty(2)[:1]))


_NODE, _DATA, _BASE = _holders(_alone())
"""What these are of an array that nobody else has seen."""


def owned(x: ArrayBase) -> NDArray[Any] | None:
    """The memory of an array that is in one piece, to be written to; None if others may see it.

    >>> x = ArrayBase(Source(np.zeros(3)))
    >>> owned(x) is x._node.data
    True
    >>> y = ArrayBase(Source(x._node.data[1:]))
    >>> owned(x), owned(y)
    (None, None)
    """
    node = x._node
    if type(node) is not Source:
        return None
    data = node.data
    base = data.base
    # Counted as in `_holders`; a call of it would take as long as all the rest.
    if getrefcount(node) != _NODE or getrefcount(data) != _DATA:
        return None
    if type(data) is not np.ndarray or not data.flags.writeable:
        return None
    if base is None:
        return data
    if type(base) is not np.ndarray or getrefcount(base) != _BASE:
        return None
    return data if base.base is None or large_arrays.is_kept(base.base) else None


def same_memory(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two arrays refer to the same memory, perhaps to different parts of it."""
    if one.base is None and other.base is None:
        return one is other
    return _root(one) is _root(other)


def _root(array: Any) -> Any:
    while isinstance(array.base, np.ndarray):
        array = array.base
    return array


# ---- what has no name

_OPERATOR = opcode.opmap["BINARY_OP"]


class _Probe:
    """Tells how many refer to it while an operator works on it."""

    def __add__(self, other: Any) -> int:
        return getrefcount(self)


def _unnamed() -> int:
    """How many refer to what an expression has just made, inside the method of an operator.

    From Python 3.14 on names may not be counted, so that nothing is known to have none.
    """
    named = _Probe()
    count = _Probe() + 0
    return count if count < named + 0 and sys.version_info < (3, 14) else -1


_UNNAMED = _unnamed()


def is_unnamed(references: int) -> bool:
    """Whether an operand with so many references is gone after the operator that asks.

    Code that is not Python's may hold what it does not count: a line of Python must have asked.
    """
    if references > _UNNAMED:
        return False
    asked = sys._getframe(2)
    return asked.f_code.co_code[asked.f_lasti] == _OPERATOR
