"""Memory that is written to where it lies: `x[key] = value` and `x += value` on arrays in one piece.

An array in memory that is assigned to is brought together in one piece, in whatever tiles it is: these are
views, which can be cut again without a copy. NumPy then writes to it, as long as nobody else holds it
(`memory_owners`).
"""

from __future__ import annotations

import math
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements import elementwise
from linnet.arrays.elements.computed_indices import known
from linnet.arrays.elements.core import NUMBERS, SCALARS, ArrayBase, at_hand, is_small, wrapped
from linnet.arrays.elements.long_results import compute_into, computed_anew
from linnet.arrays.elements.memory_owners import owned, same_memory
from linnet.arrays.elements.outcomes import kind_of, outcome_of, sample
from linnet.arrays.expression import chunking
from linnet.arrays.expression.nodes import Axes, Map, Node, Source, Stored
from linnet.arrays.lowering.assigned_versions import shortened
from linnet.arrays.lowering.evaluate import computed
from linnet.arrays.lowering.on_caller_thread import is_cheap, numbers

TOGETHER = 1 << 28
"""Bytes of an array that is brought together to be written to."""


# ---- assignments


def put_plainly(x: Any, key: Any, value: Any) -> bool:
    """`x[key] = value` in the case that loops are full of: `put` does the same, and takes longer to ask.

    Both arrays are in memory, or the value is a number; the key has integers and slices alone, and nobody
    else holds the memory that is written to.
    """
    node = x._node
    if type(node) is not Source:
        return False
    for each in key if type(key) is tuple else (key,):
        if type(each) is not int and type(each) is not slice:
            return False
    size = node.data.nbytes
    if (size > chunking.SMALL or not node.in_one_tile) and (size > TOGETHER or not at_hand()):
        return False
    if type(value) in NUMBERS:
        plain = value
    elif type(value) is ArrayBase._public and type(value._node) is Source:
        plain = value._node.data
        if same_memory(plain, node.data):
            plain = plain.copy()
            value._node = Source(plain, value._node._layout)  # it keeps what it had
    else:
        return False
    del node
    data = owned(x)
    if data is None:
        return False
    data[key] = plain
    return True


def put(x: Any, key: Any, value: Any, temporary: bool) -> bool:
    """Let NumPy write to the memory of an array, if it is in memory, or cheap to bring there."""
    node = x._node
    if not _goes_together(node):
        return False
    if isinstance(value, ArrayBase):
        held = value._node
        if type(held) is not Source:
            held = shortened(held, numbers)
            if not (_in_one_tile(node) or is_cheap(held)):
                return False
            np.empty(0, node.dtype)[...] = sample(held.dtype)  # NumPy refuses what it would refuse
            node = None  # `owned` counts who holds it
            if _computed_there(x, key, held):
                return True
            plain = computed([held])[0]
            if temporary:
                value._node = Source(plain, held.layout)  # it held on to what it was made of
        elif type(node) is Source and same_memory(held.data, node.data):
            value._node = Source(held.data.copy(), held._layout)  # it keeps what it had
            plain = value._node.data
        else:
            plain = held.data
        del held
    else:
        plain = value
    plain_key = _plain_key(key)
    node = None
    data = owned(x)
    if data is None:
        data = _own(x)
    # Without axes it is what NumPy has numbers for, and it refuses NaN among integers.
    data[plain_key] = plain[()] if isinstance(value, ArrayBase) and not plain.ndim else plain
    return True


def _computed_there(x: Any, key: Any, value: Node) -> bool:
    """Compute a value where it is to stay: nobody else holds the memory, so it is not made of that either.

    Only what cannot go wrong on the way, since the array must stay as it was then: numbers that are not
    integers, element by element.
    """
    for each in key if type(key) is tuple else (key,):
        if type(each) is not int and type(each) is not slice and each is not Ellipsis:
            return False
    data = owned(x)
    if data is None or value.dtype != data.dtype or not _cannot_fail(value):
        return False
    place = data[key]
    if type(place) is not np.ndarray or place.shape != value.shape:
        return False
    with _uninterrupted():
        made = computed([value], place=place)[0]
        if made is not place:
            place[...] = made
    return True


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let Ctrl-C wait until an array is written: NumPy's assignment is done or not begun, and so is ours."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    pressed: list[tuple[int, FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda *given: pressed.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if pressed:
        handler(*pressed[0])


def _cannot_fail(node: Node) -> bool:
    pending, seen = [node], set[int]()
    while pending:
        each = pending.pop()
        if id(each) in seen or type(each) is Source:
            continue
        if not isinstance(each, Map | Axes) or each.dtype.kind not in "fcb":
            return False
        seen.add(id(each))
        pending.extend(each.operands)
    return True


def _goes_together(node: Node) -> bool:
    """Whether an array is in memory as a whole, or should be."""
    if is_small(node):
        return True
    size = math.prod(node.shape) * node.dtype.itemsize
    if size > TOGETHER or not at_hand():
        return False
    if isinstance(node, Stored):
        return isinstance(node.tiles.tiles, dict)
    return isinstance(node, Source) or is_cheap(node)


def _in_one_tile(node: Node) -> bool:
    return node.in_one_tile if type(node) is Source else math.prod(node.grid) == 1


def _own(x: Any) -> NDArray[Any]:
    """Give an array memory that it shares with nobody."""
    node = x._node
    if isinstance(node, Source):
        made, layout = np.array(node.data, order="K", subok=False), node._layout
    else:
        made, layout = computed([node])[0], node.layout
    x._node = Source(made, layout)
    return made


def _plain_key(key: Any) -> Any:
    """A key as NumPy takes it: lazy indices and masks are computed."""
    if isinstance(key, ArrayBase):
        return known(key)
    if type(key) is not tuple and type(key) is not list:
        return key
    if all(type(each) is slice or type(each) is int for each in key):
        return key
    return type(key)([_plain_key(each) for each in key])


class _Probe:
    """Tells how many refer to a value that nobody has a name for, while it is assigned."""

    count = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        self.count = sys.getrefcount(value)


def _references() -> int:
    probe = _Probe()
    probe[0] = object()
    return probe.count


TEMPORARY = _references()


# ---- operators


def of_long_ones(ufunc: np.ufunc, x: Any, other: Any, reverse: bool, unnamed: bool) -> Any:
    """`x op other` of an array in memory that is longer than a few numbers, by NumPy at once.

    The result takes the place of `x` if that has no name, and nobody else holds its memory. NotImplemented if
    this is not for NumPy alone, or if operands are broadcast.
    """
    most = chunking.SMALL * chunking.LINEAR
    node = x._node
    if node.data.nbytes > most or not node.in_one_tile or not at_hand():
        return NotImplemented
    plain = other
    if type(other) is ArrayBase._public:
        beside = other._node
        if type(beside) is not Source or beside.data.nbytes > most or not beside.in_one_tile:
            return NotImplemented
        plain = beside.data
        if plain.shape != node.data.shape and plain.ndim:
            return NotImplemented
    del node
    data = owned(x) if unnamed else None
    if data is not None and _keeps_dtype(ufunc, data.dtype, plain, reverse):
        compute_into(ufunc, (plain, data) if reverse else (data, plain), data)
        return x
    data = x._node.data
    operands = (plain, data) if reverse else (data, plain)
    return wrapped(ufunc(*operands) if ufunc.nout > 1 else computed_anew(ufunc, *operands))


def _keeps_dtype(ufunc: np.ufunc, dtype: np.dtype[Any], plain: Any, reverse: bool) -> bool:
    """Whether the result of an operator has the dtype of its operand."""
    kind = kind_of(plain)
    if kind is None:  # it depends on the number itself
        return False
    return outcome_of(ufunc, (kind, dtype) if reverse else (dtype, kind))[0].dtype == dtype


def in_place(ufunc: np.ufunc, x: Any, other: Any, unnamed: bool = False) -> Any:
    """`x op= other`, written where `x` lies if nobody else can see that; in memory it is done at once.

    Where others hold the memory of `x`, as in `x[1:] += a * b`, the result takes the place of an `other` that
    has no name, if it fits.
    """
    most = chunking.SMALL * chunking.LINEAR
    plain = other
    if isinstance(other, ArrayBase):
        plain = _beside(x, other) if type(other._node) is Source and other._node.data.nbytes <= most else None
    elif not (type(other) in SCALARS or isinstance(other, np.ndarray | np.generic)):
        plain = None
    if plain is None or type(x._node) is not Source or x._node.data.nbytes > most or not at_hand():
        return _in_place_lazily(ufunc, x, other)
    data = owned(x)
    try:
        if data is not None and data.ndim:
            ufunc(data, data if plain is x else plain, out=data)
            return x
        plain = x._node.data if plain is x else plain
        if x._node.in_one_tile:
            if unnamed and other is not x:
                plain = None  # `owned` counts who holds it
                if _written_over(ufunc, x, other):
                    return x
                plain = _beside(x, other)
            made = np.asarray(ufunc(x._node.data, plain))
            if made.shape == x._node.shape and made.dtype == x._node.dtype:
                x._node = Source(made, x._node._layout)
                return x
    except (TypeError, ValueError):
        pass  # it is said in our words below
    return _in_place_lazily(ufunc, x, other)


def _written_over(ufunc: np.ufunc, x: Any, other: Any) -> bool:
    """Let the result of `x op= other` take the memory of the other operand, if nobody needs that."""
    spare = owned(other)
    if spare is None or (spare.shape, spare.dtype) != (x._node.shape, x._node.dtype):
        return False
    if not _keeps_dtype(ufunc, spare.dtype, spare, False):
        return False
    ufunc(x._node.data, spare, out=spare)
    x._node = Source(spare, x._node._layout)
    return True


def _beside(x: Any, other: Any) -> Any:
    """The elements of an operand in memory, in memory that is not that of `x`; or `x` itself."""
    if other is x:
        return x
    node = other._node
    if type(x._node) is Source and same_memory(node.data, x._node.data):
        other._node = node = Source(node.data.copy(), node._layout)  # it keeps what it had
    return node.data


def _in_place_lazily(ufunc: np.ufunc, x: Any, other: Any) -> Any:
    in_memory = isinstance(x._node, Source | Stored)
    elementwise.call(ufunc, (x, other), {"out": x})
    node = shortened(x._node, numbers) if in_memory and at_hand() else x._node
    if in_memory and not isinstance(node, Source) and at_hand() and is_cheap(node):
        x._node = Source(computed([node])[0], node.layout)
    return x
