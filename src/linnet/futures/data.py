"""Values as data, for workers that take orders from a store: nothing in the bytes can run when they are read.

Numbers, texts, dates, containers and arrays are written down; classes, functions and other objects are not.
Objects that can be changed are numbered in the order in which they are met, on both sides, so that a value
which holds one of the caller's objects says its number, and becomes that object again.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import pathlib
from collections.abc import Callable
from typing import Any

import msgpack
import numpy as np

from linnet.futures.plain import forms
from linnet.futures.travelling import StaysHere

_BITS = 63
_DEEPEST = 200
"""How deep containers may lie in each other."""
Tree = Any
_NAMED: dict[str, type] = {
    kind.__name__: kind for kind in (bool, int, float, complex, str, bytes, list, tuple, dict, set, object)
}
"""Classes that may be given as arguments, as dtypes are."""
_TEXTS: dict[str, type] = {
    "decimal": decimal.Decimal,
    "fraction": fractions.Fraction,
    "posix": pathlib.PurePosixPath,
    "windows": pathlib.PureWindowsPath,
}
_TEXT_NAMES = {kind: name for name, kind in _TEXTS.items()}
_DATES: dict[str, type] = {"date": datetime.date, "datetime": datetime.datetime, "time": datetime.time}
_DATE_NAMES = {kind: name for name, kind in _DATES.items()}


class Writer:
    """Values as trees of what msgpack knows."""

    def __init__(self, theirs: list[Any] | None = None, *, ordered: bool = False) -> None:
        self._ordered = ordered
        """Whether equal sets are written alike in all processes."""
        self.objects: list[Any] = []
        """Objects that can be changed, in the order in which they were met."""
        self._numbers: dict[int, int] = {}
        self._theirs = {id(each): number for number, each in enumerate(theirs or [])}
        self._shared = [each for each in theirs or [] if isinstance(each, np.ndarray)]
        self._depth = 0

    def bytes(self, value: Any) -> bytes:
        """A value as bytes."""
        return msgpack.packb(self.tree(value))

    def tree(self, value: Any) -> Tree:
        """A value as a tree."""
        kind = type(value)
        if kind in (type(None), bool, float, str, bytes):
            return value
        if kind is int:
            return value if -(1 << _BITS) <= value < 1 << _BITS else ["int", hex(value)]
        if id(value) in self._theirs:
            return ["theirs", self._theirs[id(value)]]
        if id(value) in self._numbers:
            return ["again", self._numbers[id(value)]]
        self._depth += 1
        if self._depth > _DEEPEST:
            raise StaysHere(f"it holds containers that are nested more than {_DEEPEST} deep")
        try:
            return self._other(value, kind)
        finally:
            self._depth -= 1

    def _met(self, value: Any) -> None:
        self._numbers[id(value)] = len(self.objects)
        self.objects.append(value)

    def _other(self, value: Any, kind: type) -> Tree:
        if kind in (list, set, dict):
            self._met(value)
            inside = [x for pair in value.items() for x in pair] if kind is dict else value
            return [kind.__name__, *self._elements(kind, inside)]
        if kind in (tuple, frozenset):
            return [kind.__name__, *self._elements(kind, value)]
        if kind is np.ndarray:
            return self._array(value)
        if issubclass(kind, np.generic) and value.dtype.type is kind:
            return ["scalar", *_numbers_of(np.asarray(value))]
        if issubclass(kind, np.dtype):
            return ["dtype", _dtype_name(value)]
        if issubclass(kind, type):
            return _class(value)
        for name, (known, told, _) in forms.items():
            if kind is known:
                self._met(value)
                return ["made", name, self.tree(told(value))]
        return self._unchanging(value, kind)

    def _unchanging(self, value: Any, kind: type) -> Tree:
        if kind is complex:
            return ["complex", value.real, value.imag]
        if kind in (range, slice):
            return [kind.__name__, *(self.tree(each) for each in (value.start, value.stop, value.step))]
        if value is Ellipsis or value is NotImplemented:
            return [str(value)]
        if kind in _TEXT_NAMES:
            return [_TEXT_NAMES[kind], str(value)]
        if kind is datetime.timedelta:
            return ["timedelta", value.days, value.seconds, value.microseconds]
        if kind in _DATE_NAMES and getattr(value, "tzinfo", None) is None:
            return [_DATE_NAMES[kind], value.isoformat(), getattr(value, "fold", 0)]
        raise StaysHere(f"{kind.__module__}.{kind.__qualname__} is no value that travels as data")

    def _elements(self, kind: type, inside: Any) -> list[Tree]:
        found = [self.tree(each) for each in inside]
        return sorted(found, key=msgpack.packb) if self._ordered and kind in (set, frozenset) else found

    def _array(self, array: Any) -> Tree:
        if any(np.may_share_memory(array, each) for each in self._shared):
            raise StaysHere("it is a view of an array that was given")
        self._met(array)
        return ["array", *_numbers_of(array)]


def _class(value: type) -> Tree:
    if _NAMED.get(value.__name__) is value:
        return ["class", value.__name__]
    if issubclass(value, np.generic) and np.sctypeDict.get(value.__name__) is value:
        return ["dtype class", value.__name__]
    raise StaysHere(f"class {value.__module__}.{value.__qualname__} does not travel as data")


def _dtype_name(dtype: np.dtype[Any]) -> str:
    if dtype.hasobject or dtype.names is not None or np.dtype(dtype.str) != dtype:
        raise StaysHere(f"arrays of dtype {dtype} do not travel as data")
    return dtype.str


def _numbers_of(array: Any) -> list[Any]:
    name = _dtype_name(array.dtype)
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return [name, list(array.shape), "F" if fortran else "C", array.tobytes(order="F" if fortran else "C")]


class Reader:
    """Trees as values."""

    def __init__(self, theirs: list[Any] | None = None) -> None:
        self.objects: list[Any] = []
        """Objects that can be changed, numbered as their writer did."""
        self._theirs = theirs or []

    def value(self, body: bytes) -> Any:
        """What was written."""
        return self.of(msgpack.unpackb(body, strict_map_key=False))

    def _met(self, value: Any) -> Any:
        self.objects.append(value)
        return value

    def of(self, tree: Tree) -> Any:
        """The value of a tree."""
        if type(tree) is not list:
            return tree
        kind, rest = tree[0], tree[1:]
        if kind == "list":
            made = self._met([])
            made.extend(map(self.of, rest))
            return made
        if kind == "dict":
            made = self._met({})
            inside = [self.of(each) for each in rest]
            made.update(zip(inside[::2], inside[1::2], strict=True))
            return made
        if kind == "set":
            made = self._met(set())
            made.update(map(self.of, rest))
            return made
        return _SIMPLE[kind](self, *rest)

    def _again(self, number: int) -> Any:
        return self.objects[number]

    def _their(self, number: int) -> Any:
        return self._theirs[number]

    def _array(self, *rest: Any) -> Any:
        return self._met(_array_of(*rest))

    def _made(self, name: str, tree: Tree) -> Any:
        place = len(self.objects)
        self.objects.append(None)
        self.objects[place] = forms[name][2](self.of(tree))
        return self.objects[place]


def _array_of(dtype: str, shape: list[int], order: Any, body: bytes) -> Any:
    return np.frombuffer(bytearray(body), np.dtype(dtype)).reshape(shape, order=order)


_SIMPLE: dict[str, Callable[..., Any]] = {
    "again": Reader._again,
    "theirs": Reader._their,
    "array": Reader._array,
    "made": Reader._made,
    "tuple": lambda reader, *rest: tuple(map(reader.of, rest)),
    "frozenset": lambda reader, *rest: frozenset(map(reader.of, rest)),
    "int": lambda reader, text: int(text, 16),
    "complex": lambda reader, *parts: complex(*parts),
    "range": lambda reader, *parts: range(*map(reader.of, parts)),
    "slice": lambda reader, *parts: slice(*map(reader.of, parts)),
    "Ellipsis": lambda reader: Ellipsis,
    "NotImplemented": lambda reader: NotImplemented,
    "scalar": lambda reader, *rest: _array_of(*rest)[()],
    "dtype": lambda reader, name: np.dtype(name),
    "class": lambda reader, name: _NAMED[name],
    "dtype class": lambda reader, name: np.sctypeDict[name],
    "timedelta": lambda reader, *parts: datetime.timedelta(*parts),
    **{name: lambda reader, text, kind=kind: kind(text) for name, kind in _TEXTS.items()},
    "date": lambda reader, text, fold: datetime.date.fromisoformat(text),
    "datetime": lambda reader, text, fold: datetime.datetime.fromisoformat(text).replace(fold=fold),
    "time": lambda reader, text, fold: datetime.time.fromisoformat(text).replace(fold=fold),
}
"""How values are made of what was written down of them."""
