"""Padding: strips before and behind an array along one axis after another, in each of NumPy's modes.

Repeating modes (reflect, symmetric, wrap) are slices of the array, forward or backward, in turn:
however wide the strip, no element is computed, and none is looked up one by one.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import NUMPY, as_node, chunked, wrap
from linnet.arrays.elements.elementwise import cast, spread
from linnet.arrays.elements.join_and_split import joined, part_of
from linnet.arrays.expression.builders import constant, filled, mapped, recut
from linnet.arrays.expression.nodes import Node
from linnet.arrays.functions.spaced_numbers import linspace
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

if TYPE_CHECKING:
    from linnet.arrays.array import Array

_KEYWORDS: dict[str, tuple[str, ...]] = {
    "constant": ("constant_values",),
    "edge": (),
    "empty": (),
    "linear_ramp": ("end_values",),
    "maximum": ("stat_length",),
    "mean": ("stat_length",),
    "median": ("stat_length",),
    "minimum": ("stat_length",),
    "reflect": ("reflect_type",),
    "symmetric": ("reflect_type",),
    "wrap": (),
}
_STATISTICS = {"maximum": np.max, "minimum": np.min, "mean": np.mean, "median": np.median}

Strips = tuple[list[Node], list[Node]]
"""What comes before an array, and what comes behind it."""


@chunked(np.pad)
def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Array:
    """The array with strips of elements around it.

    Parameters
    ----------
    array : array_like
    pad_width : int, pair or sequence of pairs
        How many elements before and after, for all axes or for each.
    mode : str or callable
        What the strips hold, as for `np.pad`.
    kwargs
        What the mode takes: `constant_values`, `end_values`, `stat_length`, `reflect_type`.

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> pad(asarray([1, 2, 3], chunks=2), (1, 3), "reflect").compute()
    array([2, 1, 2, 3, 2, 1, 2])
    """
    node = as_node(array)
    widths = _widths(pad_width, node.ndim)
    if callable(mode):
        return _by_function(node, widths, mode, kwargs)
    if mode not in _KEYWORDS:
        raise ValueError(f"mode '{mode}' is not supported; expected one of {', '.join(_KEYWORDS)}")
    unknown = set(kwargs) - set(_KEYWORDS[mode])
    if unknown:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': {unknown}")
    if 0 in node.shape and mode not in ("constant", "empty"):
        for axis, pair in enumerate(widths):
            if node.shape[axis] == 0 and any(pair):
                raise ValueError(
                    f"can't extend empty axis {axis} using modes other than 'constant' or 'empty'"
                )
        mode = "empty"
    values = _pairs(next(iter(kwargs.values()), None), node.ndim, mode)
    for axis, (before, behind) in enumerate(widths):
        if before or behind:
            first, last = _strips(node, axis, before, behind, mode, values[axis])
            node = joined([*first, node, *last], axis, _edges(node, axis, before, behind))
    return wrap(node)


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    if isinstance(pad_width, dict):
        found: list[Any] = [(0, 0)] * rank
        for axis, width in pad_width.items():
            found[axis] = (width, width) if hasattr(width, "__index__") else tuple(width)
        pad_width = found
    given = np.asarray(pad_width)
    if given.dtype.kind not in "iu" and given.size:
        raise TypeError("`pad_width` must be of integral type.")
    pairs = [(int(a), int(b)) for a, b in np.broadcast_to(given, (rank, 2)).tolist()]
    if any(width < 0 for pair in pairs for width in pair):
        raise ValueError("index can't contain negative values")
    return pairs


def _pairs(given: Any, rank: int, mode: str) -> list[Any]:
    """The keyword of a mode, for each axis and side."""
    if mode in ("reflect", "symmetric"):
        if given not in (None, "even", "odd"):
            raise ValueError(f"reflect_type {given!r} is not known; expected 'even' or 'odd'")
        return [given or "even"] * rank
    if given is None:
        return [(None, None) if mode in _STATISTICS else (0, 0)] * rank
    pairs = np.broadcast_to(np.asarray(given), (rank, 2)).tolist()
    if mode in _STATISTICS and any(side < 0 for pair in pairs for side in pair):
        raise ValueError("index can't contain negative values")
    return pairs


def _edges(node: Node, axis: int, before: int, behind: int) -> Boundaries:
    """The tiles there were; strips no longer than these join the tiles at the ends."""
    old = node.layout.boundaries[axis]
    longest = max(b - a for a, b in itertools.pairwise(old))
    step = longest or max(before, behind)
    front = range(before % step, before + 1, step) if before > longest else ()
    back = range(before + old[-1], before + old[-1] + behind, step) if behind > longest else ()
    inner = (before + edge for edge in old[1:-1])
    return tuple(sorted({0, *front, *inner, *back, before + old[-1] + behind}))


def _strips(node: Node, axis: int, before: int, behind: int, mode: str, value: Any) -> Strips:
    if mode in ("constant", "empty"):
        return _constant(node, axis, before, behind, value)
    if mode == "edge" or (mode in ("reflect", "symmetric") and node.shape[axis] == 1):
        ends = part_of(node, axis, 0, 1), part_of(node, axis, node.shape[axis] - 1, None)
        return [_wide(ends[0], axis, before)], [_wide(ends[1], axis, behind)]
    if mode == "linear_ramp":
        return _ramps(node, axis, before, behind, value)
    if mode in _STATISTICS:
        return _statistics(node, axis, before, behind, mode, value)
    if value == "odd":
        return _odd(node, axis, before, behind, mode)
    length = node.shape[axis]
    slices = _turns(-before, 0, length, mode), _turns(length, length + behind, length, mode)
    first, last = ([sliced_along(node, axis, each) for each in side] for side in slices)
    return first, last


def sliced_along(node: Node, axis: int, part: range) -> Node:
    """The elements of a range of positions along an axis."""
    stop = part.stop if part.stop >= 0 else None
    return part_of(node, axis, part.start, stop, part.step)


def _turns(low: int, high: int, length: int, mode: str) -> list[range]:
    """Which elements stand at positions `low` to `high` of an array that goes on for ever."""
    period = length - 1 if mode == "reflect" else length
    found: list[range] = []
    while low < high:
        turn, start = divmod(low, period)
        stop = min(period, start + high - low)
        if mode == "wrap" or turn % 2 == 0:
            found.append(range(start, stop))
        else:
            found.append(range(length - 1 - start, length - 1 - stop, -1))
        low += stop - start
    return found


def _wide(end: Node, axis: int, width: int) -> Node:
    """A slice one element thick, so many times."""
    shape = (*end.shape[:axis], width, *end.shape[axis + 1 :])
    edges = end.layout.boundaries
    return spread(end, shape, Layout((*edges[:axis], (0, width), *edges[axis + 1 :])))


def _constant(node: Node, axis: int, before: int, behind: int, value: Any) -> Strips:
    sides: list[list[Node]] = []
    edges = node.layout.boundaries
    for width, each in ((before, value[0]), (behind, value[1])):
        layout = Layout((*edges[:axis], (0, width), *edges[axis + 1 :]))
        sides.append([filled(layout.shape, np.asarray(each).astype(node.dtype), node.dtype, layout)])
    return sides[0], sides[1]


def _ramps(node: Node, axis: int, before: int, behind: int, ends: Any) -> Strips:
    last = node.shape[axis] - 1
    sides: list[list[Node]] = []
    for width, edge, value, step in ((before, 0, ends[0], 1), (behind, last, ends[1], -1)):
        inner = NUMPY[np.squeeze](wrap(part_of(node, axis, edge, edge + 1)), axis)
        ramp = linspace(value, inner, width, endpoint=False, dtype=node.dtype, axis=axis)
        sides.append([part_of(ramp.__node__, axis, None, None, step)])
    return sides[0], sides[1]


def _statistics(node: Node, axis: int, before: int, behind: int, mode: str, lengths: Any) -> Strips:
    size = node.shape[axis]
    kept = [size if each is None else min(size, int(each)) for each in lengths]
    if 0 in kept and mode in ("maximum", "minimum"):
        raise ValueError("stat_length of 0 yields no value for padding")
    chosen = part_of(node, axis, 0, kept[0]), part_of(node, axis, size - kept[1], None)
    sides: list[list[Node]] = []
    for width, part in zip((before, behind), chosen, strict=True):
        found = NUMPY[_STATISTICS[mode]](wrap(part), axis=axis, keepdims=True).__node__
        if node.dtype.kind in "iu" and found.dtype.kind == "f":
            found = mapped("rint", [found], found.dtype)
        sides.append([_wide(cast(found, node.dtype), axis, width)])
    return sides[0], sides[1]


def _odd(node: Node, axis: int, before: int, behind: int, mode: str) -> Strips:
    """Reflections through the elements at the ends; wide strips go on from what they have made."""
    first: list[Node] = []
    last: list[Node] = []
    skipped = 0 if mode == "symmetric" else 1
    grown = node
    while before or behind:
        length = grown.shape[axis]
        left, right = min(before, length - skipped), min(behind, length - skipped)
        low = part_of(grown, axis, skipped, skipped + left)
        high = part_of(grown, axis, length - skipped - right, length - skipped)
        front = _through(low, part_of(grown, axis, 0, 1), axis)
        back = _through(high, part_of(grown, axis, length - 1, None), axis)
        first, last = [front, *first], [*last, back]
        grown = joined([front, grown, back], axis)
        before, behind = before - left, behind - right
    return first, last


def _through(part: Node, end: Node, axis: int) -> Node:
    """`2·end - part`, backwards."""
    turned = part_of(part, axis, None, None, -1)
    double = mapped("multiply", [constant(2, end.dtype), end], end.dtype)
    return mapped("subtract", [double, turned], part.dtype)


def _by_function(node: Node, widths: list[tuple[int, int]], mode: Callable[..., Any], kwargs: Any) -> Any:
    """A function of the user's sets the strips of every line along an axis, axis by axis."""
    from linnet.arrays.functions.gufuncs import along_axis

    padded = pad(wrap(node), widths).__node__
    for axis, pair in enumerate(widths):

        def padding(line: Any, pair: tuple[int, int] = pair, axis: int = axis) -> Any:
            vector = line.copy()
            mode(vector, pair, axis, kwargs)
            return vector

        layout = padded.layout.boundaries
        whole = recut(padded, Layout((*layout[:axis], (0, padded.shape[axis]), *layout[axis + 1 :])))
        padded = along_axis(padding, axis, whole, (padded.shape[axis],), padded.dtype)
    return wrap(padded)


METHODS: dict[str, Any] = {}
__all__ = ["pad"]
