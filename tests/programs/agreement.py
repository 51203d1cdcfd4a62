"""Does a bound program say the same as the oracle? Every query, for every task and tile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from oracle import Trace

from linnet.programs import BoundProgram, Out, Task, Temp
from linnet.tiles import TileKey


def compare(bound: BoundProgram, trace: Trace) -> None:
    """Assert that `bound` agrees with `trace` in everything that can be asked of it."""
    compare_tasks(bound, trace)
    compare_edges(bound, trace)
    compare_tiles(bound, trace)
    compare_arrays(bound, trace)
    compare_profile(bound, trace)


def compare_tasks(bound: BoundProgram, trace: Trace) -> None:
    assert list(bound.tasks()) == trace.order
    assert bound.count() == len(trace.order)
    same(bound.roots(), trace.roots, "roots")
    for task in trace.order:
        call, expected = bound.call(Task(*task)), trace.calls[task]
        assert call.kernel == expected.kernel
        assert list(call.outputs) == expected.outputs, f"outputs of {task}"
        assert call.args == expected.args, f"arguments of {task}"
        assert call.attributes == expected.attributes
        assert expected.kernel in bound.where(Task(*task))


def compare_edges(bound: BoundProgram, trace: Trace) -> None:
    for task in trace.order:
        named = Task(*task)
        same(bound.children(named), trace.children[task], f"children of {task}")
        same(bound.parents(named), trace.parents[task], f"parents of {task}")
        assert bound.in_degree(named) == len(trace.parents[task]), f"in-degree of {task}"


def compare_tiles(bound: BoundProgram, trace: Trace) -> None:
    """Writers and readers, also of tiles just beside those in use."""
    touched = dict.fromkeys([*trace.writer, *trace.readers])
    beside = [(name, (index[0] + 1, *index[1:])) for name, index in touched if index]
    for tile in dict.fromkeys([*touched, *beside]):
        key = TileKey(*tile)
        assert bound.writer(key) == trace.writer.get(tile), f"writer of {key}"
        same(bound.readers(key), trace.readers.get(tile, []), f"readers of {key}")
    for name, role in bound.program.arrays.items():
        if isinstance(role, Out | Temp) and trace.grid(name):
            assert bound.grid(name) == trace.grid(name), f"grid of {name}"


def compare_arrays(bound: BoundProgram, trace: Trace) -> None:
    arrays = bound.task_arrays()
    assert len(arrays) == len(trace.order)
    numbers = {task: arrays.number(Task(*task)) for task in trace.order}
    assert sorted(numbers.values()) == list(range(len(trace.order)))
    for task, number in numbers.items():
        assert arrays.task(number) == task
        statement, indices = task
        row = number - int(arrays.offsets[statement])
        assert tuple(arrays.indices[statement][row].tolist()) == indices
        children = arrays.child[arrays.child_start[number] : arrays.child_start[number + 1]]
        same(children.tolist(), [numbers[child] for child in trace.children[task]], f"CSR row of {task}")
        assert arrays.in_degree[number] == len(trace.parents[task])
    assert int(arrays.child_start[-1]) == len(arrays.child)
    assert arrays.offsets.dtype == np.int64
    assert arrays.child.dtype.kind == arrays.in_degree.dtype.kind == "i"


def compare_profile(bound: BoundProgram, trace: Trace) -> None:
    profile = bound.profile()
    assert profile.tasks == len(trace.order)
    assert {k: n for k, n in profile.by_kernel.items() if n} == trace.by_kernel()
    assert profile.parallelism.tolist() == trace.parallelism()
    assert profile.critical_path == len(trace.parallelism())
    assert profile.working_set.tolist() == trace.working_set()


def same(got: Iterable[Any], expected: Sequence[Any], what: str) -> None:
    """Equal as sets, and nothing twice."""
    listed = list(got)
    assert len(listed) == len(set(listed)), f"{what}: something is listed twice in {listed}"
    assert sorted(listed) == sorted(expected), what
