"""A plan as a trace that Perfetto and Chrome's tracing page show: nodes are processes, workers threads.

The format is Chrome's "Trace Event Format": complete events for tasks, flow events for transfers, times in
microseconds. Events are written one by one, so that a plan of a million tasks needs no second copy.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from linnet.planning.plan import Plan


def write(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write the trace to a file, to be opened at https://ui.perfetto.dev."""
    with Path(path).open("w", encoding="utf-8") as file:
        file.write('{"displayTimeUnit": "ms", "traceEvents": [\n')
        for place, event in enumerate(events(plan)):
            file.write((",\n" if place else "") + json.dumps(event))
        file.write("\n]}\n")


def events(plan: Plan) -> Iterator[dict[str, Any]]:
    """The events of a trace."""
    yield from _names(plan)
    yield from _tasks(plan)
    yield from _flows(plan)


def _names(plan: Plan) -> Iterator[dict[str, Any]]:
    for number, node in enumerate(plan.cluster.nodes):
        yield {"ph": "M", "pid": number, "name": "process_name", "args": {"name": f"node {number}"}}
        yield {"ph": "M", "pid": number, "name": "process_sort_index", "args": {"sort_index": number}}
        for worker in range(node.workers):
            named = {"name": f"worker {worker}"}
            yield {"ph": "M", "pid": number, "tid": worker, "name": "thread_name", "args": named}


def _tasks(plan: Plan) -> Iterator[dict[str, Any]]:
    work, times = plan.work, plan.simulated
    kernels = [statement.kernel for statement in work.bound.program.statements]
    rows = zip(
        work.statement.tolist(),
        plan.placement.nodes.tolist(),
        times.worker.tolist(),
        _micro(times.start),
        _micro(times.finish - times.start),
        work.flops.tolist(),
        _indices(plan),
        strict=True,
    )
    for statement, node, worker, start, length, flops, indices in rows:
        yield {
            "ph": "X",
            "name": kernels[statement],
            "cat": "task",
            "pid": node,
            "tid": worker,
            "ts": start,
            "dur": length,
            "args": {"statement": statement, "indices": indices, "flops": flops},
        }


def _indices(plan: Plan) -> Iterator[list[int]]:
    """The loop indices of each task."""
    for rows in plan.work.tasks.indices:
        yield from rows.tolist()


def _micro(seconds: NDArray[np.float64]) -> list[float]:
    return np.round(seconds * 1e6, 3).tolist()


def _flows(plan: Plan) -> Iterator[dict[str, Any]]:
    """An arrow for each transfer: from the task that made the tile to the first that reads it there.

    Inputs come from nowhere, and have none.
    """
    work, times = plan.work, plan.simulated
    from_tasks = times.tile[work.producer[times.tile] >= 0]
    target = times.target[work.producer[times.tile] >= 0]
    task, reader = work.producer[from_tasks], _first_readers(plan, from_tasks, target)
    rows = zip(
        from_tasks.tolist(),
        plan.placement.nodes[task].tolist(),
        times.worker[task].tolist(),
        # A flow belongs to the task that encloses its moment: the middle of it is inside for sure.
        _micro((times.start[task] + times.finish[task]) / 2),
        target.tolist(),
        times.worker[reader].tolist(),
        _micro(times.start[reader]),
        work.tile_bytes[from_tasks].tolist(),
        strict=True,
    )
    for number, (tile, node, worker, begin, there, reading, end, size) in enumerate(rows):
        flow = {"name": repr(work.key(tile)), "cat": "transfer", "id": number}
        yield {**flow, "ph": "s", "pid": node, "tid": worker, "ts": begin, "args": {"bytes": size}}
        yield {**flow, "ph": "f", "bp": "e", "pid": there, "tid": reading, "ts": end}


def _first_readers(plan: Plan, tiles: NDArray[np.int64], nodes: NDArray[np.int32]) -> NDArray[np.int32]:
    """For each tile and node the task there that reads it first."""
    work, count = plan.work, plan.cluster.count
    read = np.repeat(np.arange(work.tiles), np.diff(work.reader_start))
    pairs = read * count + plan.placement.nodes[work.reader]
    order = np.lexsort((plan.simulated.start[work.reader], pairs))
    place = np.searchsorted(pairs[order], tiles * count + nodes)
    return work.reader[order][place]
