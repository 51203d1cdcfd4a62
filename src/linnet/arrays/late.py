"""Arrays of which it is found out when somebody asks what they are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from linnet.arrays.core import ArrayBase
from linnet.arrays.evaluation import computed
from linnet.arrays.expression import Node


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


@dataclass(frozen=True, eq=False)
class Either:
    """One array if a number, known when it is computed, is `value`; else another."""

    number: Any
    value: int
    one: Any
    other: Any

    def __call__(self) -> Node:
        return (self.one if computed([self.number.node])[0] == self.value else self.other).node


def late_of(pending: Pending, number: int) -> Any:
    """One of the arrays that a call gives."""
    return _late_class()(None, pending, number)


def values_of(arrays: Sequence[Any]) -> list[Any] | None:
    """The values of arrays that one call gives, had without their nodes; None if they are others."""
    pending = arrays[0].pending if arrays and type(arrays[0]) is _class else None
    if pending is None:
        return None
    for each in arrays:
        if type(each) is not _class or each.pending is not pending:
            return None
    values = pending.values()
    return [values[each.number] for each in arrays]


def _late_class() -> type[Any]:
    """The class of such arrays: that of all arrays, with a node that is not there yet."""
    global _class
    if _class is None:

        class LateArray(ArrayBase.public, register=False):  # type: ignore[misc, call-arg]
            """An array whose node is made once it is asked for."""

            __slots__ = ("_made", "_make", "number", "pending")

            def __init__(self, make: Callable[[], Node] | None, pending: Pending | None, number: int) -> None:
                self._make, self._made = make, None
                self.pending, self.number = pending, number
                self._fresh = False

            @property
            def _node(self) -> Node:  # type: ignore[override]
                if self._made is None:
                    if self.pending is not None:
                        self._made = self.pending.node(self.number)
                    else:
                        assert self._make is not None
                        self._made = self._make()
                    self.pending = None
                return self._made

            @_node.setter
            def _node(self, node: Node) -> None:
                self._make, self._made, self.pending = None, node, None  # it was assigned to, or persisted

            def compute(self) -> Any:
                """The values, as a NumPy array, or a NumPy scalar if it has no axes."""
                return super().compute() if self.pending is None else self.pending.values()[self.number]

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
