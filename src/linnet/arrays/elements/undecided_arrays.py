"""Arrays of which it is found out when somebody asks what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.lowering.evaluate import computed


class Pending(Protocol):
    """A call that gives several arrays; their values can be had without their nodes."""

    def node(self, number: int) -> Node:
        """What one of them is made of."""
        ...

    def values(self) -> Sequence[Any]:
        """The values of all, as NumPy has them."""
        ...


def late(make: Callable[[], Node]) -> Any:
    """An array whose node is made, which may run something, when it is first looked at.

    `make` is data that can be called (a dataclass): it is what such an array is pickled as.
    """
    return _late_class()(make, None, 0)


@dataclass(slots=True, eq=False)
class Either:
    """An array if a number, known when it is computed, is `value`; else (None: always) an empty one."""

    number: Any
    value: int | None
    one: Any

    def __call__(self) -> Node:
        if self.value is not None and computed([self.number.__node__])[0] == self.value:
            return self.one.__node__
        return Source(_none(self.one))

    def chosen(self, number: Any, one: Any) -> Any:
        """The values, from those of the number and of the array."""
        return one if number == self.value else _none(one)


def _none(like: Any) -> Any:
    return np.empty(0, like.dtype)


def late_of(pending: Pending, number: int) -> Any:
    """One of the arrays that a call gives."""
    return _late_class()(None, pending, number)


def values_of(arrays: Sequence[Any]) -> list[Any] | None:
    """The values of arrays that calls give, and of some in memory, had without nodes; None of others."""
    known: dict[Pending, Sequence[Any]] = {}
    for each in arrays:
        if type(each) is _class:
            calls = each._calls()
            if not calls:
                return None
            for call in calls:
                known[call] = ()
        elif type(each) is not ArrayBase._public or type(each._node) is not Source:
            return None
    for call in known:
        known[call] = call.values()
    return [_value(each, known) for each in arrays]


def _value(array: Any, known: Mapping[Pending, Sequence[Any]]) -> Any:
    if type(array) is not _class:
        data = array._node.data
        return data.copy() if data.shape else data[()]
    if array._pending is not None:
        return known[array._pending][array._number]
    choice = array._make
    return choice.chosen(_value(choice.number, known), _value(choice.one, known))


def _late_class() -> type[Any]:
    """The class of such arrays: that of all arrays, with a node that is not there yet."""
    global _class
    if _class is None:

        class LateArray(ArrayBase._public, register=False):  # type: ignore[misc, call-arg]
            """An array whose node is made once it is asked for."""

            __slots__ = ("_made", "_make", "_number", "_pending")

            def __init__(self, make: Callable[[], Node] | None, pending: Pending | None, number: int) -> None:
                self._make, self._made = make, None
                self._pending, self._number = pending, number
                self._fresh = False

            @property
            def _node(self) -> Node:  # type: ignore[override]
                if self._made is None:
                    if self._pending is not None:
                        self._made = self._pending.node(self._number)
                    else:
                        assert self._make is not None
                        self._made = self._make()
                    self._pending = None
                return self._made

            @_node.setter
            def _node(self, node: Node) -> None:
                self._make, self._made, self._pending = None, node, None  # it was assigned to, or persisted

            def _calls(self) -> tuple[Pending, ...]:
                """The calls that give it, or the two that it is one of; none if other things do."""
                if self._pending is not None:
                    return (self._pending,)
                choice = self._make
                if self._made is None and isinstance(choice, Either):
                    number, one = choice.number, choice.one
                    if type(number) is type(one) is _class and number._pending and one._pending:
                        return number._pending, one._pending
                return ()

            def compute(self, *, progress: bool | None = None) -> Any:
                """The values, as a NumPy array, or a NumPy scalar if it has no axes."""
                found = None if progress else values_of((self,))
                return super().compute(progress=progress) if found is None else found[0]

            def __reduce__(self) -> Any:
                return super().__reduce__() if self._make is None else (late, (self._make,))

            def __dask_tokenize__(self) -> Any:
                if self._make is None:
                    return super().__dask_tokenize__()
                from dask.base import normalize_token  # pyright: ignore[reportPrivateImportUsage]

                return normalize_token(self._make)

        _class = LateArray
    return _class


_class: type[Any] | None = None
