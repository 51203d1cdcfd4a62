"""What operators of arrays are made of: `+`, `==`, `+=`, `-`, each from a ufunc."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.arrays import chunking, elementwise, operators
from linnet.arrays import inplace as in_memory
from linnet.arrays.core import SCALARS, ArrayBase
from linnet.arrays.expression import Source
from linnet.arrays.owning import is_unnamed

_NUMBERS = frozenset(SCALARS)
_LONG = 1 << 17
"""Bytes from which on looking for memory that nobody needs any more takes less time than new memory."""


def binary(ufunc: np.ufunc, reverse: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        # The common case first, and here: every call on the way takes as long as NumPy for a few numbers.
        node, kind = self._node, type(other)
        if type(node) is Source and (kind is ArrayBase.public or kind in _NUMBERS):
            data, beside = node.data, other._node if kind is ArrayBase.public else node
            if data.nbytes >= _LONG:
                del node, data, beside
                if is_unnamed(sys.getrefcount(self)) and in_memory.written_over(ufunc, self, other, reverse):
                    return self
            elif (
                type(beside) is Source
                and beside.shape == data.shape
                and data.nbytes <= chunking.SMALL
                and node.in_one_tile
                and beside.in_one_tile
            ):
                plain = beside.data if kind is ArrayBase.public else other
                made = ufunc(plain, data) if reverse else ufunc(data, plain)
                return ArrayBase.public(Source(made if type(made) is np.ndarray else np.asarray(made)))
        else:
            other = operators.taken(other)
            if other is NotImplemented:
                return other
        return elementwise.call(ufunc, (other, self) if reverse else (self, other), {})

    return method


def equality(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        other = operators.taken(other)
        return other if other is NotImplemented else operators.compared(ufunc, self, other)

    return method


def inplace(ufunc: np.ufunc) -> Callable[[Any, Any], Any]:
    operator = binary(ufunc)

    def method(self: Any, other: Any) -> Any:
        if not self._node.shape:
            # What `x[1]` gives is a number in NumPy, and `x[1] /= 2` another one, of any dtype.
            result = operator(self, other)
            if result is NotImplemented:
                return result
            if result._node.dtype == self._node.dtype and not result._node.shape:
                self._node = result._node
                return self
            if result.shape or not np.can_cast(result.dtype, self.dtype, "same_kind"):
                return result
            return elementwise.placed(result, self, True, ufunc.__name__)
        return in_memory.in_place(ufunc, self, other)

    return method


def unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        return elementwise.call(ufunc, (self,), {})

    return method
