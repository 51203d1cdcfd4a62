"""What operators of arrays are made of: `+`, `==`, `+=`, `-`, each from a ufunc."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements import elementwise, operators
from linnet.arrays.elements import in_place as in_memory
from linnet.arrays.elements.core import NUMBERS, ArrayBase, wrapped
from linnet.arrays.elements.memory_owners import is_unnamed
from linnet.arrays.expression import chunking
from linnet.arrays.expression.nodes import Source
from linnet.arrays.expression.traced import Traced

if TYPE_CHECKING:
    from linnet.arrays.array import Array

_LONG = 1 << 17
"""Bytes from which on looking for memory that nobody needs any more takes less time than new memory."""


def binary(ufunc: np.ufunc, reverse: bool = False) -> Callable[[Any, Any], Array]:
    def method(self: Any, other: Any) -> Any:
        # The common case first, and here: every call on the way takes as long as NumPy for a few numbers.
        node, kind = self._node, type(other)
        if type(node) is Source and (kind is ArrayBase._public or kind in NUMBERS):
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


def equality(ufunc: np.ufunc) -> Callable[[Any, Any], Array]:
    def method(self: Any, other: Any) -> Any:
        other = operators.taken(other)
        return other if other is NotImplemented else operators.compared(ufunc, self, other)

    return method


def inplace(ufunc: np.ufunc) -> Callable[[Any, Any], Array]:
    operator = binary(ufunc)

    def of_number(self: Any, other: Any) -> Any:
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

    def method(self: Any, other: Any) -> Any:
        unnamed = type(other) is ArrayBase._public and is_unnamed(sys.getrefcount(other))
        try:
            if not self._node.shape:
                return of_number(self, other)
            return in_memory.in_place(ufunc, self, other, unnamed)
        except Traced as found:
            traced = found
        return traced.apply(in_memory.in_place, (ufunc, self, other), {})

    return method


def unary(ufunc: np.ufunc) -> Callable[[Any], Array]:
    def method(self: Any) -> Any:
        node = self._node
        if type(node) is Source and node.data.nbytes <= chunking.SMALL and node.in_one_tile:
            return wrapped(ufunc(node.data))
        return elementwise.call(ufunc, (self,), {})

    return method


def _power(self: Any, other: Any) -> Array:
    other = operators.taken(other)
    return other if other is NotImplemented else elementwise.power_operator(self, other)


def _operators() -> dict[str, Callable[..., Array]]:
    """Every operator, by the name of its method."""
    made: dict[str, Callable[..., Array]] = {}
    for name, ufunc in _BINARY.items():
        made[f"__{name}__"] = binary(ufunc)
        made[f"__r{name}__"] = binary(ufunc, True)
        if name != "divmod":
            made[f"__i{name}__"] = inplace(ufunc)
    made |= {f"__{name}__": binary(ufunc) for name, ufunc in _COMPARED.items()}
    made |= {f"__{name}__": unary(ufunc) for name, ufunc in _UNARY.items()}
    return made | {"__eq__": equality(np.equal), "__ne__": equality(np.not_equal), "__pow__": _power}


_BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "truediv": np.divide,
    "floordiv": np.floor_divide,
    "mod": np.remainder,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
    "lshift": np.left_shift,
    "rshift": np.right_shift,
    "pow": np.power,
    "divmod": np.divmod,
}
_COMPARED = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
_UNARY = {"neg": np.negative, "pos": np.positive, "abs": np.absolute, "invert": np.invert}

OPERATORS: dict[str, Callable[..., Array]] = _operators()
"""What arrays do at `+`, `==`, `+=`, `-`."""
