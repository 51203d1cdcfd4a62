"""What operators of arrays are made of: `+`, `==`, `+=`, `-`, each from a ufunc."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from linnet.arrays import chunking, elementwise, operators
from linnet.arrays import inplace as in_memory
from linnet.arrays.core import NUMBERS, ArrayBase, wrapped
from linnet.arrays.expression import Source
from linnet.arrays.owning import is_unnamed

_LONG = 1 << 17
"""Bytes from which on looking for memory that nobody needs any more takes less time than new memory."""


def binary(ufunc: np.ufunc, reverse: bool = False) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        # The common case first, and here: every call on the way takes as long as NumPy for a few numbers.
        node, kind = self._node, type(other)
        if type(node) is Source and (kind is ArrayBase.public or kind in NUMBERS):
            data = node.data
            size = data.nbytes
            if size >= _LONG:
                del node, data
                unnamed = is_unnamed(sys.getrefcount(self))
                result = in_memory.of_long_ones(ufunc, self, other, reverse, unnamed)
                if result is not NotImplemented:
                    return result
            elif size <= chunking.SMALL and (node._layout is None or node._layout.is_whole):
                if kind in NUMBERS:
                    return wrapped(ufunc(other, data) if reverse else ufunc(data, other))
                node = other._node
                if (
                    type(node) is Source
                    and (node.data.shape == data.shape or not data.ndim or not node.data.ndim)
                    and node.data.nbytes <= chunking.SMALL
                    and (node._layout is None or node._layout.is_whole)
                ):
                    return wrapped(ufunc(node.data, data) if reverse else ufunc(data, node.data))
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
            made = result._node
            if made.dtype == self._node.dtype and not made.shape:
                self._node = made
                return self
            if result.shape or not np.can_cast(result.dtype, self.dtype, "same_kind"):
                return result
            return elementwise.placed(result, self, True, ufunc.__name__)
        unnamed = type(other) is ArrayBase.public and is_unnamed(sys.getrefcount(other))
        return in_memory.in_place(ufunc, self, other, unnamed)

    return method


def unary(ufunc: np.ufunc) -> Callable[[Any], Any]:
    def method(self: Any) -> Any:
        node = self._node
        if type(node) is Source and node.data.nbytes <= chunking.SMALL and node.in_one_tile:
            return wrapped(ufunc(node.data))
        return elementwise.call(ufunc, (self,), {})

    return method
