"""The kernel "fused": a chain of element-wise operations and folds, in one pass over its tiles.

What it runs is data: which axes of each tile to take (`loads`), operations by name on numbered values
(`steps`), and what to keep (`results`). It is read once and kept as a `Steps`. Small tiles go straight
through NumPy, one call after another; large ones go in pieces (`linnet.kernels.arrays.cache_pieces`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.arrays.cache_pieces import FoldOf, Layout, Step
from linnet.kernels.arrays.folds import fold
from linnet.kernels.arrays.operations import Operation, cast, operation
from linnet.kernels.registry import kernel
from linnet.machine.float_errors import quietly

Tile = NDArray[Any]
Loads = tuple[tuple[int, ...] | None, ...]

_LAYOUTS = 64
"""Forms of operands a plan remembers."""
_STRAIGHT = 32768
"""Elements up to which temporaries stay in the cache by themselves."""
_WORTH = 1024
"""Elements from which on overwriting an operand is worth looking for."""


class Steps:
    """A chain, read and checked."""

    def __init__(
        self,
        loads: Loads,
        steps: tuple[tuple[Any, ...], ...],
        results: tuple[tuple[Any, ...], ...],
        sized: int,
    ) -> None:
        self._count = len(loads)
        self._sized = sized
        self._loaders = [(at, _loader(axes)) for at, axes in enumerate(loads) if axes is not None]
        self._steps = [_step(at, given, self._count) for at, given in enumerate(steps)]
        self._calls = [(each.operation.function, _taker(each.arguments)) for each in self._steps]
        known = self._count + len(steps)
        self._results = [_result(given, known) for given in results]
        self._maps = [each for each in self._results if isinstance(each, int)]
        self._folds = [each for each in self._results if not isinstance(each, int)]
        self._keeps = {at for at, axes in enumerate(loads) if axes is None} - set(self._maps)
        self._keeps -= {each.value for each in self._folds}
        passes = len(steps) + sum(each.fold.passes for each in self._folds)
        self._in_pieces = passes > 1
        self._only = len(results) == 1
        self._plain = self._only and len(self._maps) == 1 and self._maps[0] >= self._count
        self._layouts: dict[Any, Layout] = {}
        self._made: dict[Any, np.dtype[Any]] = {}

    def run(self, arguments: tuple[Any, ...], overwrite: Sequence[int], into: Tile | None) -> Any:
        """The results, from tiles and lengths."""
        values, shape = self._loaded(arguments)
        size = math.prod(shape)
        if into is not None and self._fits(into, values, shape):
            return self._run_into(values, shape, into)
        if size > _STRAIGHT and self._in_pieces:
            return self._run_in_pieces(values, shape, overwrite, None)
        if overwrite and size >= _WORTH and len(self._steps) == 1 and self._plain:
            values.append(self._run_over(values, shape, overwrite))
        else:
            for function, take in self._calls:
                values.append(function(*take(values)))
        return self._collected(values, shape, None)

    def _loaded(self, arguments: tuple[Any, ...]) -> tuple[list[Any], tuple[int, ...]]:
        """The operands as the steps see them, and the shape of the tile."""
        count = self._count
        if len(arguments) != count + self._sized:
            raise ValueError(
                f"fused got {len(arguments)} arguments; its loads name {count} tiles, followed by "
                f"{self._sized} lengths (sized={self._sized})"
            )
        values = list(arguments[:count])
        for at, load in self._loaders:
            values[at] = load(values[at])
        if self._sized:
            return values, tuple(map(int, arguments[count:]))
        shape: tuple[int, ...] = ()
        for x in values:
            own = x.shape
            if own != shape:
                # The two common cases first: NumPy's own answer takes microseconds.
                shape = own if not shape else shape if not own else np.broadcast_shapes(shape, own)
        return values, shape

    def _fits(self, into: Tile, values: list[Any], shape: tuple[int, ...]) -> bool:
        """Whether the only result can be written there."""
        if not (self._only and self._maps and into.shape == shape and into.size):
            return False
        key = tuple([x.dtype for x in values])
        dtype = self._made.get(key)
        if dtype is None:
            dtype = self._made[key] = self._dtypes(key)[self._maps[0]]
        return into.dtype == dtype

    def _run_into(self, values: list[Any], shape: tuple[int, ...], into: Tile) -> Tile:
        """The only result, written where it will stay."""
        if self._in_pieces and math.prod(shape) > _STRAIGHT:
            made = self._run_in_pieces(values, shape, (), into)
            if made is not into:
                np.copyto(into, made)
            return into
        for number, (function, take) in enumerate(self._calls, self._count):
            if number == self._maps[0]:
                self._steps[number - self._count].operation.into(*take(values), into)
                return into
            values.append(function(*take(values)))
        np.copyto(into, values[self._maps[0]])
        return into

    def _run_in_pieces(
        self, values: list[Any], shape: tuple[int, ...], overwrite: Sequence[int], into: Tile | None
    ) -> Any:
        key = (
            shape,
            None if into is None else into.strides,
            *[(x.shape, x.strides, x.dtype) for x in values],
        )
        layout = self._layouts.get(key)
        if layout is None:
            folds = [
                each._replace(axes=tuple(axis % len(shape) for axis in each.axes)) for each in self._folds
            ]
            dtypes = self._dtypes([x.dtype for x in values])
            layout = Layout(self._steps, self._maps, folds, values, shape, dtypes, into)
            if len(self._layouts) >= _LAYOUTS:
                self._layouts.clear()
            self._layouts[key] = layout
        values, states = layout.run(values, [at for at in overwrite if at in self._keeps], into)
        if into is not None and self._maps[0] in layout.whole and self._maps[0] >= self._count:
            return into
        return self._collected(values, shape, states)

    def _run_over(self, values: list[Any], shape: tuple[int, ...], overwrite: Sequence[int]) -> Any:
        """The only step, written over one of its operands where that is possible."""
        step = self._steps[0]
        dtype = self._dtypes([x.dtype for x in values])[-1]
        operands = [values[each] for each in step.arguments]
        for at in overwrite:
            if at in self._keeps and (step.operation.overlaps or at not in step.arguments):
                x = values[at]
                if x.shape == shape and x.dtype == dtype and x.flags.writeable:
                    step.operation.into(*operands, x)
                    return x
        return step.operation.function(*operands)

    def _collected(
        self, values: list[Any], shape: tuple[int, ...], states: Sequence[Tile | None] | None
    ) -> Any:
        """The results of a run, each in memory of its own."""
        if self._plain:
            made = values[self._maps[0]]
            if type(made) is np.ndarray and made.shape == shape:
                return made
        found: list[Tile] = []
        given = set(range(self._count))
        remaining = iter(states or [None] * len(self._folds))
        for result in self._results:
            if isinstance(result, int):
                x = np.asarray(values[result])
                if result in given or x.shape != shape:
                    x = np.array(np.broadcast_to(x, shape))
                given.add(result)
                found.append(x)
            else:
                state = next(remaining)
                if state is None:
                    x = values[result.value]
                    if type(x) is not np.ndarray or x.shape != shape:
                        x = np.broadcast_to(x, shape)
                    state = result.fold.fold(x, result.axes, result.dtype)
                found.append(state)
        return found[0] if self._only else found

    # ---- what planning asks

    def _dtypes(self, operands: Sequence[np.dtype[Any]]) -> list[np.dtype[Any]]:
        """The dtypes of all values: NumPy's own, found by running the steps on single elements."""
        values: list[Any] = [np.zeros((), dtype) for dtype in operands]
        for function, take in self._calls:
            values.append(function(*take(values)))
        return [np.asarray(value).dtype for value in values]

    def describe_shapes(self, given: Sequence[Any]) -> Any:
        """The shapes of the results, from those of the tiles and the lengths."""
        shape = self._shape(given)
        shapes = [shape if isinstance(each, int) else _folded_shape(each, shape) for each in self._results]
        return shapes[0] if self._only else shapes

    def size(self, given: Sequence[Any]) -> int:
        """How many elements each step works on, at most."""
        return math.prod(self._shape(given))

    def _shape(self, given: Sequence[Any]) -> tuple[int, ...]:
        zero = np.zeros((), np.int8)
        tiles = [np.broadcast_to(zero, tuple(each)) for each in given[: self._count]]
        return self._loaded((*tiles, *given[self._count :]))[1]

    def describe_dtypes(self, given: Sequence[Any]) -> Any:
        """The dtypes of the results, from those of the tiles."""
        values = self._dtypes(given[: self._count])
        found = [
            values[each]
            if isinstance(each, int)
            else each.fold.fold(np.zeros(1, values[each.value]), (0,), each.dtype).dtype
            for each in self._results
        ]
        return found[0] if self._only else found


def _folded_shape(each: FoldOf, shape: tuple[int, ...]) -> tuple[int, ...]:
    axes = {axis % len(shape) for axis in each.axes}
    return each.fold.leading + tuple(1 if axis in axes else length for axis, length in enumerate(shape))


# ---- reading a chain


def _step(at: int, given: tuple[Any, ...], count: int) -> Step:
    name, *arguments = given
    if name == "cast":
        if not arguments or not isinstance(arguments[-1], str):
            raise ValueError(f"step {at} of a fused kernel is {given}; 'cast' ends with the name of a dtype")
        called: Operation = cast(arguments.pop())
    else:
        called = operation(name)
    if not called.least <= len(arguments) <= called.most:
        wanted = f"{called.least}" if called.least == called.most else f"{called.least} or {called.most}"
        raise ValueError(f"step {at} of a fused kernel is {given}; {name!r} takes {wanted} operands")
    for value in arguments:
        _check_value(value, count + at, f"step {at} of a fused kernel is {given}")
    return Step(called, tuple(arguments))


def _result(given: tuple[Any, ...], known: int) -> int | FoldOf:
    """The number of a value wanted whole, or a fold."""
    kind, value, *rest = given
    _check_value(value, known, f"a result of a fused kernel is {given}")
    if kind == "map" and not rest:
        return value
    if kind == "map" or len(rest) != 2:
        raise ValueError(
            f"a result of a fused kernel is {given}; "
            "expected ('map', value) or (kind, value, axes, dtype or None)"
        )
    axes, dtype = rest
    return FoldOf(fold(kind), value, tuple(axes), None if dtype is None else np.dtype(dtype))


def _check_value(value: Any, known: int, place: str) -> None:
    if not isinstance(value, int) or not 0 <= value < known:
        raise ValueError(
            f"{place}, but there is no value {value!r} yet; values known there are 0 to {known - 1}"
        )


def _taker(indices: tuple[int, ...]) -> Callable[[list[Any]], tuple[Any, ...]]:
    first, *others = indices
    return itemgetter(*indices) if others else lambda values: (values[first],)


def _loader(axes: tuple[int, ...]) -> Callable[[Tile], Tile]:
    """The function that takes the named axes of a tile, in that order; -1 is a new one."""
    named = tuple(axis for axis in axes if axis >= 0)
    front = tuple(None if axis < 0 else slice(None) for axis in axes)

    def load(x: Tile) -> Tile:
        rest = tuple(axis for axis in range(x.ndim) if axis not in named)
        if any(x.shape[axis] != 1 for axis in rest):
            raise ValueError(
                f"a tile of shape {x.shape} is loaded with axes {axes}; "
                "axes that are not named must have length 1"
            )
        return x.transpose(named + rest)[(*front, *(0,) * len(rest), ...)]

    return load


@functools.lru_cache(maxsize=4096)
def _read(loads: Any, steps: Any, results: Any, sized: int) -> Steps:
    return Steps(loads, steps, results, sized)


# ---- the kernel


def _fused_shapes(*given: Any, loads: Any, steps: Any, results: Any, sized: int = 0) -> Any:
    return _read(loads, steps, results, sized).describe_shapes(given)


def _fused_dtypes(*given: Any, loads: Any = None, steps: Any = (), results: Any = (), sized: int = 0) -> Any:
    if loads is None:
        # Asked without the chain, there is no better answer than what its operands promote to.
        return np.result_type(*[each for each in given if isinstance(each, np.dtype)])
    return quietly(_read(loads, steps, results, sized).describe_dtypes, given)


def _fused_flops(*given: Any, loads: Any, steps: Any, results: Any, sized: int = 0) -> float:
    folds = sum(result[0] != "map" for result in results)
    return _read(loads, steps, results, sized).size(given) * float(len(steps) + folds)


@kernel(
    "fused", shape=_fused_shapes, dtype=_fused_dtypes, flops=_fused_flops, inplace=tuple(range(8)), into=True
)
def fused(
    *arguments: Any,
    loads: Loads,
    steps: tuple[tuple[Any, ...], ...],
    results: tuple[tuple[Any, ...], ...],
    sized: int = 0,
    overwrite: Sequence[int] = (),
    into: Tile | None = None,
) -> Any:
    """A chain of element-wise operations on tiles that broadcast together, and folds of its values.

    Arguments are the tiles, one for each of `loads`, then `sized` integers: the shape, if it is not that
    of the tiles broadcast together. `loads` says for each tile which of its axes to take, in order, -1
    for a new one (None: as it is). A step is `(operation, value, value, ...)`; values are numbered: the
    tiles, then the results of the steps. "cast" ends with a dtype. A result is `("map", value)`, or
    `(kind, value, axes, dtype or None)` for a fold (see `folds`), whose state keeps its axes.
    With one result the kernel returns it, otherwise a list; the only result may go `into` an array.

    >>> x, y = np.array([[1.0, 2.0, 3.0]]), np.array([[10.0], [20.0]])
    >>> fused(x, y, loads=(None, None), steps=(("multiply", 0, 1), ("add", 2, 0)), results=(("map", 3),))
    array([[11., 22., 33.],
           [21., 42., 63.]])
    >>> fused(
    ...     x,
    ...     loads=((1, 0),),
    ...     steps=(("square", 0),),
    ...     results=(("sum", 1, (0,), None), ("max", 0, (0,), None)),
    ... )
    [array([[14.]]), array([[3.]])]
    """
    return quietly(_read(loads, steps, results, sized).run, arguments, overwrite, into)
