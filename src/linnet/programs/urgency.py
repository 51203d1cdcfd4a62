"""How urgent a task is, from the program alone: about how long a chain of tasks waits for it.

The length of the longest chain after a task is, for most programs, an affine function of its loop
values. One is fitted for each statement to what is seen at small sizes (or at the given ones, where a
program has tables and cannot be bound to others). It need not be exact: it orders what is ready, and
nothing depends on it but speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linnet.errors import BindError, ProgramError
from linnet.programs.enumeration import TaskArrays
from linnet.programs.levels import asap_levels

if TYPE_CHECKING:
    from linnet.programs.bound import BoundProgram

_SAMPLE = (4, 6, 7)
_SAMPLE_TASKS = 20_000
_LARGEST = 100_000
"""Tasks of the largest program that is listed for this at its own size."""

Weights = tuple[float, ...]
"""Of each loop value, outermost first, and the constant."""


def heights(arrays: TaskArrays) -> npt.NDArray[np.int64]:
    """For every task the number of tasks in the longest chain after it."""
    level = asap_levels(arrays)
    height = np.zeros(len(arrays), dtype=np.int64)
    order = np.argsort(level, kind="stable")
    edges = np.searchsorted(level[order], np.arange(int(level.max(initial=-1)) + 2))
    for step in range(len(edges) - 2, -1, -1):
        tasks = order[edges[step] : edges[step + 1]]
        lengths = arrays.child_start[tasks + 1] - arrays.child_start[tasks]
        tasks, lengths = tasks[lengths > 0], lengths[lengths > 0]
        if len(tasks):
            first = np.cumsum(lengths) - lengths
            places = np.arange(int(lengths.sum())) + np.repeat(arrays.child_start[tasks] - first, lengths)
            height[tasks] = np.maximum.reduceat(height[arrays.child[places]], first) + 1
    return height


def urgency(bound: BoundProgram) -> list[Weights]:
    """Weights that give the urgency of each statement's tasks; all zero where nothing is known."""
    program = bound.program
    flat: list[Weights] = [(0.0,) * (len(each.loops) + 1) for each in program.statements]
    samples = list(_samples(bound))
    if not samples:
        return flat
    all_weights: list[Weights] = []
    sizes = list(bound.sizes.values())
    for statement, fallback in zip(program.statements, flat, strict=True):
        rows = [each.rows(statement.number) for each in samples]
        matrix = np.concatenate([features for features, _ in rows])
        values = np.concatenate([heights for _, heights in rows])
        if not len(values):
            all_weights.append(fallback)
            continue
        weights = np.linalg.lstsq(matrix, values, rcond=None)[0].round(6)
        loops = len(statement.loops)
        constant = float(weights[loops:-1] @ np.asarray(sizes, dtype=float) + weights[-1])
        all_weights.append((*map(float, weights[:loops]), constant))
    return all_weights


def priority(weights: Sequence[float], indices: Sequence[int]) -> int:
    """The urgency of one task, as a number for a queue.

    >>> priority((-2.0, 1.5, 10.0), (3, 1))
    550
    """
    value = weights[-1]
    for weight, index in zip(weights, indices, strict=False):
        value += weight * index
    return int(100 * max(-1e13, min(value, 1e13)))


class _Sample:
    """A program at one choice of sizes, with the heights of its tasks."""

    def __init__(self, bound: BoundProgram) -> None:
        self._arrays = bound.task_arrays()
        self._heights = heights(self._arrays)
        self._sizes = list(bound.sizes.values())

    def rows(self, statement: int) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Loop values, sizes and 1 for each task of a statement; and the heights."""
        indices = self._arrays.indices[statement].astype(float)
        start = int(self._arrays.offsets[statement])
        rest = np.tile([*self._sizes, 1.0], (len(indices), 1))
        return np.hstack([indices, rest]), self._heights[start : start + len(indices)].astype(float)


def _samples(bound: BoundProgram) -> Iterator[_Sample]:
    program = bound.program
    if program.tables or not bound.sizes:
        if bound.count() <= _LARGEST:
            yield _Sample(bound)
        return
    for values in _choices(len(bound.sizes)):
        try:
            small = program.bind(**dict(zip(bound.sizes, values, strict=True)))
            if small.count() <= _SAMPLE_TASKS:
                yield _Sample(small)
        except (BindError, ProgramError):
            continue


def _choices(sizes: int) -> Iterator[tuple[int, ...]]:
    """Small sizes: every combination of a few, or each varied in turn."""
    if sizes <= 3:
        yield from product(_SAMPLE, repeat=sizes)
        return
    middle = (_SAMPLE[1],) * sizes
    yield middle
    for place in range(sizes):
        for value in (_SAMPLE[0], _SAMPLE[2]):
            yield (*middle[:place], value, *middle[place + 1 :])
