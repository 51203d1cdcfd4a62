"""Convolution of arrays with several axes, with strides and zeros around: tiles of the result read a halo.

The whole convolution has `n + m - 1` elements along an axis. A mode, or zeros around the first array, says
where the result begins in it, strides which elements of it are taken; the rest is one kernel for each tile.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.arrays.elements.core import listed
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, recut
from linnet.arrays.expression.nodes import At, Entry, Node, Operand, Piece, Spans
from linnet.errors import InputError
from linnet.kernels.arrays.nd_convolution import box_of_convolution
from linnet.tiles import Layout


@dataclass(frozen=True)
class Box:
    """Which elements of the whole convolution are asked for."""

    starts: tuple[int, ...]
    counts: tuple[int, ...]
    steps: tuple[int, ...]


def box(a: tuple[int, ...], v: tuple[int, ...], mode: Any, strides: Any, padding: Any) -> Box:
    """What a mode, strides and zeros around mean for arrays of these shapes."""
    if len(a) != len(v):
        raise ValueError(
            f"convolve takes two arrays with as many axes, not of shapes {a} and {v}; put axes of length 1 in"
        )
    if 0 in a or 0 in v:
        raise ValueError(f"{'a' if 0 in a else 'v'} cannot be empty")
    steps = _each(strides, len(a), "strides", 1)
    starts, lengths = _whole(a, v, mode) if padding is None else _padded(a, v, mode, padding)
    counts = tuple(-(-length // step) for length, step in zip(lengths, steps, strict=True))
    return Box(tuple(starts), counts, steps)


def _each(given: Any, ndim: int, name: str, least: int) -> tuple[int, ...]:
    numbers = listed(given)
    numbers = numbers * ndim if len(numbers) == 1 else numbers
    if len(numbers) != ndim or any(not isinstance(k, int | np.integer) or k < least for k in numbers):
        raise InputError(
            f"{name}={given!r} of convolve: one integer, or one for each of {ndim} axes, not less than "
            f"{least}"
        )
    return tuple(int(k) for k in numbers)


def _whole(a: Sequence[int], v: Sequence[int], mode: Any) -> tuple[list[int], list[int]]:
    mode = {0: "valid", 1: "same", 2: "full"}.get(mode, mode)
    if mode == "full":
        return [0] * len(a), [n + m - 1 for n, m in zip(a, v, strict=True)]
    if mode == "same":  # of one axis as NumPy has it, of several as SciPy
        if len(a) == 1:
            return [(min(a[0], v[0]) - 1) // 2], [max(a[0], v[0])]
        return [(m - 1) // 2 for m in v], list(a)
    if mode != "valid":
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    if not (all(n >= m for n, m in zip(a, v, strict=True)) or all(n <= m for n, m in zip(a, v, strict=True))):
        raise ValueError(
            f"For 'valid' mode, one must be at least as large as the other in every dimension; these are "
            f"{a} and {v}"
        )
    return (
        [min(n, m) - 1 for n, m in zip(a, v, strict=True)],
        [abs(n - m) + 1 for n, m in zip(a, v, strict=True)],
    )


def _padded(a: Sequence[int], v: Sequence[int], mode: Any, padding: Any) -> tuple[list[int], list[int]]:
    if mode not in ("full", "valid", 0, 2):
        raise InputError(f"convolve was given mode={mode!r} and padding={padding!r}; leave one of them out")
    pairs = np.asarray(padding)
    if (
        pairs.dtype.kind not in "iu"
        or pairs.shape not in ((), (1,), (2,), (1, 2), (len(a), 2))
        or (pairs < 0).any()
    ):
        raise InputError(
            f"padding={padding!r} of convolve: how many zeros around, as an integer, a pair (before, "
            f"after), or a pair "
            f"for each of {len(a)} axes"
        )
    widths = np.broadcast_to(pairs, (len(a), 2)).tolist()
    lengths = [n + sum(width) - m + 1 for n, m, width in zip(a, v, widths, strict=True)]
    if min(lengths) < 1:
        raise ValueError(
            f"convolve: an array of shape {tuple(a)} with padding={padding!r} is smaller than {tuple(v)}"
        )
    return [m - 1 - before for m, (before, _) in zip(v, widths, strict=True)], lengths


def at_once(a: Any, v: Any, asked: Box) -> Any:
    """The convolution of NumPy's arrays."""
    x, y = (a, v) if a.size >= v.size else (v, a)
    return box_of_convolution(x, y, asked.starts, asked.counts, asked.steps)


def convolved(a: Node, v: Node, asked: Box) -> Node:
    """A tile of the result reads the tiles of the larger array that it overlaps, and all of the smaller."""
    x, y = (a, v) if math.prod(a.shape) >= math.prod(v.shape) else (v, a)
    y = recut(y, chunking.whole(y.shape))
    tables = [
        _along(
            x.layout.boundaries[axis],
            y.shape[axis],
            asked.starts[axis],
            asked.counts[axis],
            asked.steps[axis],
        )
        for axis in range(x.ndim)
    ]
    accesses: list[Any] = [
        Operand(0, tuple(Spans(axis, *table[1:3]) for axis, table in enumerate(tables))),
        Operand(1, (At(0),) * y.ndim),
        *(Entry(axis, table[3]) for axis, table in enumerate(tables)),
        *(Entry(axis, table[4]) for axis, table in enumerate(tables)),
    ]
    layout = Layout(tuple(table[0] for table in tables))
    piece = Piece("convolve_box", tuple(accesses), (("steps", asked.steps),))
    return blocks((x, y), (piece,), layout, np.result_type(x.dtype, y.dtype))


def _along(edges: Sequence[int], m: int, start: int, count: int, step: int) -> tuple[Any, ...]:
    """Along an axis: where the result is cut, which tiles each part reads, from where on, how much it has."""
    n = edges[-1]
    ends = {min(max(-(-(edge - start) // step), 0), count) for edge in edges[1:-1]} - {0, count}
    cut = (0, *sorted(ends), count)
    first: list[int] = []
    last: list[int] = []
    offsets: list[int] = []
    for low, high in itertools.pairwise(cut):
        begin, end = start + low * step, start + (high - 1) * step
        lo, hi = min(max(0, begin - m + 1), n - 1), max(1, min(n, end + 1))
        tile = int(np.searchsorted(edges, lo, "right")) - 1
        first.append(tile)
        last.append(max(tile + 1, int(np.searchsorted(edges, hi, "left"))))
        offsets.append(begin - edges[tile])
    return (
        cut,
        tuple(first),
        tuple(last),
        tuple(offsets),
        tuple(b - a for a, b in itertools.pairwise(cut)),
    )
