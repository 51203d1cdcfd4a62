"""Element-wise chains in pieces that stay in the cache.

NumPy runs `sin(x) * 2 + x**2` as four passes over memory. Here a tile is cut into pieces of some
thousands of elements, and each piece goes through the whole chain, in a few buffers that are used
again: memory is read once and written once. What makes it work for tiles of any form:

- axes are put in the order in which most operands lie in memory, and neighbours that lie one after
  the other in all of them become one: most tiles end up with a single axis;
- steps whose result is smaller than the tile (on a row that is added to every row) run once, before;
- short rows are taken several at a time: what belongs to each row is repeated, folds join their parts;
- a result of the whole tile is written where it will stay, which may be an operand nobody needs;
- folds take a piece while it is in the cache; states of pieces are joined pairwise.

All of this depends on shapes, strides and dtypes alone. It is worked out once for each such form and
kept in a `Layout`.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.arrays import short_rows
from linnet.kernels.arrays.folds import Fold, Pairwise
from linnet.kernels.arrays.operations import Operation
from linnet.machine import large_arrays

Tile = NDArray[Any]

PIECE = 131072
"""Elements in a piece, at most. Between two operations a thread holds the interpreter lock; with
pieces of some 16,000 elements two threads meet there so often that they are no faster than one."""
SMALL_PIECE = 16384
"""Elements in a piece, at least, however many buffers there are."""
CACHE = 1 << 22
"""Bytes that buffers, operands and results of a piece may take together."""
ROW = 4096
"""Elements along the last axis of a piece, if it is kept and an axis before it is folded."""

_ALL = slice(None)


class Step(NamedTuple):
    """One operation of a chain."""

    operation: Operation
    arguments: tuple[int, ...]
    """The values it reads: operands of the chain count from 0, results of steps follow."""


class FoldOf(NamedTuple):
    """A fold of one value."""

    fold: Fold
    value: int
    axes: tuple[int, ...]
    dtype: np.dtype[Any] | None


class _Piece(NamedTuple):
    shape: tuple[int, ...]
    indices: tuple[tuple[slice, ...], ...]
    """Where it lies, for each way in which sources are spread over the tile."""
    places: tuple[int, ...]
    """Which part of its result each fold adds it to."""


class _Buffers(threading.local):
    """Memory for the buffers of one thread."""

    def __init__(self) -> None:
        self.memory = np.empty(0, np.uint8)

    def take(self, size: int) -> NDArray[np.uint8]:
        if self.memory.size < size:
            self.memory = np.empty(size, np.uint8)
        return self.memory


_BUFFERS = _Buffers()


class Layout:
    """How one chain runs over operands of one form. It is read by several threads at once."""

    def __init__(
        self,
        steps: Sequence[Step],
        maps: Sequence[int],
        folds: Sequence[FoldOf],
        operands: Sequence[Tile],
        shape: tuple[int, ...],
        dtypes: Sequence[np.dtype[Any]],
        into: Tile | None = None,
    ) -> None:
        """`into` is a place for the only result of the whole tile, of the form that `run` will be given."""
        self._count = len(operands)
        self._steps = steps
        self._folds = folds
        self._dtypes = dtypes
        self._spread = _spread(steps, operands, shape)
        full = tuple(length > 1 for length in shape)
        self.whole: frozenset[int] = frozenset(
            value for value, spread in enumerate(self._spread) if spread == full
        )
        """The values that have an element for each of the tile; only these run in pieces."""
        self._before = [at for at in range(len(steps)) if self._count + at not in self.whole]
        self._during = [at for at in range(len(steps)) if self._count + at in self.whole]
        self._maps = tuple(value for value in dict.fromkeys(maps) if value - self._count in self._during)
        self._live = [each for each in folds if each.value in self.whole]
        reads = {value for at in self._during for value in steps[at].arguments}
        reads |= {each.value for each in self._live}
        made = {self._count + at for at in self._during}
        self._sources = tuple(sorted(reads - made))
        values = self._prepared(list(operands))
        self._arrange([values[source] for source in self._sources], shape, into)
        self._assign_slots()
        self._cut()
        # What follows is on the path of every tile, so it is made once.
        self._program = [
            (steps[at].operation.into, itemgetter(*steps[at].arguments, self._count + at))
            for at in self._during
        ]
        self._folding = [(each.fold.fold, each.value, self._folded(each), each.dtype) for each in self._live]
        self._result_shape = tuple(shape[axis] for axis in self._permuted)
        self._turned = self._permuted != tuple(range(len(shape)))

    # ---- working it out

    def _prepared(self, values: list[Any]) -> list[Any]:
        """All values that are smaller than the tile; None for those made in pieces."""
        values.extend([None] * len(self._steps))
        for at in self._before:
            step = self._steps[at]
            values[self._count + at] = step.operation.function(*[values[each] for each in step.arguments])
        return values

    def _arrange(self, sources: Sequence[Tile], shape: tuple[int, ...], into: Tile | None) -> None:
        """Choose the order of the axes, and which of them become one."""
        lengths = [_padded(np.shape(source), len(shape)) for source in sources]
        strides = [
            tuple(
                0 if own == 1 else stride
                for own, stride in zip(length, _padded(np.asarray(x).strides, len(shape)), strict=True)
            )
            for x, length in zip(sources, lengths, strict=True)
        ]
        if into is not None:
            strides.append(into.strides)
        axes = [axis for axis in range(len(shape)) if shape[axis] > 1]
        self._order = tuple(sorted(axes, key=lambda axis: -sum(abs(each[axis]) for each in strides)))
        rest = tuple(axis for axis in range(len(shape)) if shape[axis] == 1)
        self._permuted = (*rest, *self._order)
        self._shape = shape
        groups: list[list[int]] = []
        for axis in self._order:
            if groups and self._joins(groups[-1][-1], axis, shape, strides):
                groups[-1].append(axis)
            else:
                groups.append([axis])
        self._groups = groups
        self._lengths = tuple(math.prod(shape[axis] for axis in group) for group in groups)
        self._forms = [
            tuple(math.prod(own[axis] for axis in group) for group in groups)
            if any(n > 1 for n in own)
            else ()
            for own in lengths
        ]
        self._rows = short_rows.at_once(self._lengths) if self._rows_join(strides) else 1
        if self._rows > 1:
            self._lengths = short_rows.longer(self._lengths, self._rows)
            self._forms = [short_rows.longer(form, self._rows) if form else () for form in self._forms]

    def _rows_join(self, strides: Sequence[Sequence[int]]) -> bool:
        """Whether each operand has its rows one behind another in memory, or is the same for all of
        them, and no fold ends within a row."""
        if len(self._groups) < 2:
            return False
        outer, inner = self._groups[-2], self._groups[-1]
        for form, own in zip(itertools.chain(self._forms, [self._lengths]), strides, strict=False):
            behind = own[outer[-1]] == own[inner[0]] * self._shape[inner[0]]
            if form and form[-2] != 1 and not (behind and form[-1] != 1):
                return False
        return all(outer[0] in each.axes for each in self._live if inner[0] in each.axes)

    def _joins(self, outer: int, inner: int, shape: Sequence[int], strides: Sequence[Sequence[int]]) -> bool:
        return all(each[outer] == each[inner] * shape[inner] for each in strides) and all(
            (outer in fold.axes) == (inner in fold.axes) for fold in self._live
        )

    def _assign_slots(self) -> None:
        """Give each step a buffer; one is free again after the last step that reads it."""
        last: dict[int, int] = {}
        for at in self._during:
            last.update(dict.fromkeys(self._steps[at].arguments, at))
        last.update(dict.fromkeys((each.value for each in self._live), len(self._steps)))
        self._last = last
        slots: dict[int, int] = {}
        free: list[int] = []
        made = 0
        for at in self._during:
            value = self._count + at
            dying = [each for each in set(self._steps[at].arguments) if each in slots and last[each] == at]
            if value not in self._maps:
                same = [each for each in dying if self._dtypes[each] == self._dtypes[value]]
                if same and self._steps[at].operation.overlaps:
                    dying.remove(same[0])
                    slots[value] = slots[same[0]]
                elif free:
                    slots[value] = free.pop()
                else:
                    slots[value], made = made, made + 1
                if value not in last:
                    free.append(slots[value])
            free.extend(slots[each] for each in dying)
        self._slots = slots
        self._slot_count = made

    def _cut(self) -> None:
        """Choose the pieces."""
        values = [*self._sources, *self._maps]
        wide = max((self._dtypes[value].itemsize for value in self._slots), default=0)
        each = wide * self._slot_count + sum(self._dtypes[value].itemsize for value in values)
        left = min(PIECE, max(SMALL_PIECE, CACHE // max(each, 1)))
        self._slot_bytes = -(-left * wide // 64) * 64
        folded = [any(group[0] in fold.axes for fold in self._live) for group in self._groups]
        extents: list[int] = []
        for axis in reversed(range(len(self._lengths))):
            most = left
            if not extents and any(folded[:axis]) and not folded[axis]:
                most = min(most, ROW)
            extents.insert(0, max(1, min(self._lengths[axis], most)))
            left //= extents[0]
        kept = [tuple(group[0] not in fold.axes for group in self._groups) for fold in self._live]
        forms = [tuple(length > 1 for length in form) for form in self._forms if form]
        self._kinds = tuple(dict.fromkeys([(True,) * len(extents), *forms]))
        self._kind_of = [
            self._kinds.index(tuple(length > 1 for length in form)) if form else None for form in self._forms
        ]
        numbers: list[dict[tuple[int, ...], int]] = [{} for _ in kept]
        self._where: list[list[tuple[slice, ...]]] = [[] for _ in kept]
        self._pieces: list[_Piece] = []
        for cuts in itertools.product(*map(_slices, self._lengths, extents)):
            places: list[int] = []
            for which, keeps in enumerate(kept):
                key = tuple(cut.start for cut, keep in zip(cuts, keeps, strict=True) if keep)
                if key not in numbers[which]:
                    numbers[which][key] = len(self._where[which])
                    self._where[which].append(_chosen(cuts, keeps))
                places.append(numbers[which][key])
            lengths = tuple(cut.stop - cut.start for cut in cuts)
            indices = tuple(_chosen(cuts, kind) for kind in self._kinds)
            self._pieces.append(_Piece(lengths, indices, tuple(places)))

    # ---- running it

    def run(
        self, operands: list[Any], overwrite: list[int], into: Tile | None = None
    ) -> tuple[list[Any], list[Tile | None]]:
        """All values that are smaller than the tile or are asked for, and the state of each fold that
        could be made in pieces, in the order they were given."""
        values = self._prepared(operands)
        current = list(values)
        moving: list[tuple[int, Tile, int]] = []
        for source, form, kind in zip(self._sources, self._forms, self._kind_of, strict=True):
            x = values[source]
            if kind is None:
                current[source] = np.asarray(x).reshape(())
            else:
                x = self._ordered(x)
                if x.size < math.prod(form):
                    x = short_rows.repeated(x, form, self._rows)
                moving.append((source, x if x.shape == form else x.reshape(form), kind))
        for value in self._maps:
            result = self._place(value, operands, overwrite) if into is None else self._ordered(into)
            moving.append((value, result.reshape(self._lengths), 0))
            values[value] = self._restored(result, ()) if self._turned else result
        states = iter(self._loop(current, moving))
        return values, [next(states) if each.value in self.whole else None for each in self._folds]

    def _loop(self, current: list[Any], moving: Sequence[tuple[int, Tile, int]]) -> list[Tile]:
        """Run all pieces; the states of the folds."""
        program = self._program
        memory = _BUFFERS.take(self._slot_count * self._slot_bytes)
        trees = [
            [Pairwise(each.fold) for _ in where] for each, where in zip(self._live, self._where, strict=True)
        ]
        shape = None
        for piece in self._pieces:
            if piece.shape != shape:
                shape = piece.shape
                self._point(current, memory, shape)
            indices = piece.indices
            for value, x, kind in moving:
                current[value] = x[indices[kind]]
            for function, take in program:
                function(*take(current))
            for (fold, value, axes, dtype), tree, place in zip(
                self._folding, trees, piece.places, strict=True
            ):
                tree[place].push(fold(current[value], axes, dtype))
        return [
            self._restored(
                self._one_row(_placed(tree, where, self._kept(each)), each), each.fold.leading, each.axes
            )
            for tree, where, each in zip(trees, self._where, self._live, strict=True)
        ]

    def _one_row(self, state: Tile, each: FoldOf) -> Tile:
        """The state of a fold over rows that were taken together, but not over what is in them."""
        if self._rows == 1 or self._groups[-2][0] not in each.axes or self._groups[-1][0] in each.axes:
            return state
        return short_rows.joined(state, each.fold, self._rows)

    def _point(self, current: list[Any], memory: NDArray[np.uint8], shape: tuple[int, ...]) -> None:
        """Let the values of steps be buffers of a piece's shape."""
        size = math.prod(shape)
        for value, slot in self._slots.items():
            dtype = self._dtypes[value]
            start = slot * self._slot_bytes
            current[value] = memory[start : start + size * dtype.itemsize].view(dtype).reshape(shape)

    def _folded(self, fold: FoldOf) -> tuple[int, ...]:
        return tuple(at for at, group in enumerate(self._groups) if group[0] in fold.axes)

    def _kept(self, fold: FoldOf) -> tuple[int, ...]:
        folded = self._folded(fold)
        return tuple(1 if at in folded else length for at, length in enumerate(self._lengths))

    def _ordered(self, x: Any) -> Tile:
        """With as many axes as the tile, in the order of the pieces."""
        if x.ndim < len(self._shape):
            x = x.reshape(_padded(x.shape, len(self._shape)))
        return x.transpose(self._permuted) if self._turned else x

    def _restored(self, x: Tile, leading: tuple[int, ...], folded: Sequence[int] = ()) -> Tile:
        """With the axes of the tile, after the leading ones; those that are folded have length 1."""
        front = len(leading)
        lengths = [1 if axis in folded else self._shape[axis] for axis in self._permuted]
        back = [front + self._permuted.index(axis) for axis in range(len(self._shape))]
        return x.reshape((*leading, *lengths)).transpose((*range(front), *back))

    def _place(self, value: int, operands: Sequence[Any], overwrite: list[int]) -> Tile:
        """Where a result of the whole tile is written: over an operand of its form that no later step
        reads, or to new memory."""
        at = value - self._count
        for position in overwrite:
            x = operands[position]
            last = self._last.get(position, -1)
            if x.shape == self._shape and x.dtype == self._dtypes[value] and x.flags.writeable:
                ordered = self._ordered(x)
                free = last < at or (last == at and self._steps[at].operation.overlaps)
                if free and ordered.flags.c_contiguous:
                    overwrite.remove(position)
                    return ordered
        return large_arrays.empty(self._result_shape, self._dtypes[value])


def _padded(lengths: Sequence[int], ndim: int) -> tuple[int, ...]:
    return (1,) * (ndim - len(lengths)) + tuple(lengths)


def _spread(
    steps: Sequence[Step], operands: Sequence[Tile], shape: tuple[int, ...]
) -> list[tuple[bool, ...]]:
    """For each value, the axes along which it is longer than 1."""
    found = [tuple(length > 1 for length in _padded(np.shape(x), len(shape))) for x in operands]
    for step in steps:
        found.append(tuple(map(any, zip(*[found[each] for each in step.arguments], strict=True))))
    return found


def _slices(length: int, extent: int) -> list[slice]:
    return [slice(start, min(start + extent, length)) for start in range(0, length, extent)]


def _chosen(cuts: Sequence[slice], which: Sequence[bool]) -> tuple[slice, ...]:
    return tuple(cut if chosen else _ALL for cut, chosen in zip(cuts, which, strict=True))


def _placed(trees: Sequence[Pairwise], where: Sequence[tuple[slice, ...]], lengths: tuple[int, ...]) -> Tile:
    """The states of all parts of a tile, as one array."""
    if len(trees) == 1:
        return trees[0].total()
    result: Tile | None = None
    for tree, place in zip(trees, where, strict=True):
        state = tree.total()
        if result is None:
            result = np.empty(state.shape[: state.ndim - len(lengths)] + lengths, state.dtype)
        result[(..., *place)] = state
    assert result is not None
    return result
