"""Jobs as data for a page: plain numbers, texts and lists, times in seconds from the start of the job."""

from __future__ import annotations

from typing import Any

from linnet.events.record import JobRecord

_SPANS = 30_000
"""Tasks that a page draws: more would not be seen."""
_SIDE = 120
"""Rows and columns of tiles that a page draws; of more, several are one."""
_LATEST = 24
"""Tiles written last that are marked."""


def described(
    job: JobRecord, extra: dict[str, Any] | None = None, *, spans: int = _SPANS, recent: bool = False
) -> dict[str, Any]:
    """A job as the page wants it; `extra` is what others know of it: operations, bounds, cost.

    Of more than `spans` tasks the longest are drawn, or the most recent.

    >>> from linnet.events import JobStarted
    >>> from linnet.events.record import Record
    >>> record = Record()
    >>> record(JobStarted("gemm-1", 10.0, program="gemm", tasks=4, workers=2))
    >>> found = described(record.jobs[0])
    >>> found["program"], found["tasks"], found["state"]
    ('gemm', 4, 'running')
    """
    order = sorted(range(len(job.lanes)), key=lambda lane: (len(job.lanes[lane]), job.lanes[lane]))
    place = {lane: number for number, lane in enumerate(order)}
    kernels = sorted(job.kernels.items(), key=lambda each: -each[1][1])
    drawn = list(job.spans)
    if len(drawn) > spans:
        drawn = drawn[len(drawn) - spans :] if recent else sorted(drawn, key=lambda each: -each[3])[:spans]
    return {
        "job": job.job,
        "program": job.program,
        "engine": job.about.get("engine", ""),
        "state": job.state,
        "error": job.error,
        "tasks": job.tasks,
        "done": job.done,
        "workers": job.workers,
        "begun": job.begun,
        "seconds": job.seconds,
        "budget": job.about.get("budget"),
        "base": job.about.get("base"),
        "kernels": [{"name": name, "tasks": tasks, "seconds": seconds} for name, (tasks, seconds) in kernels],
        "names": job.names,
        "lanes": [_lane(job.job, job.lanes[lane]) for lane in order],
        "spans": [
            [kernel, place[lane], round(start - job.begun, 6), round(seconds, 6), list(task)]
            for kernel, lane, start, seconds, task in drawn
        ],
        "folded": job.folded + len(job.spans) - len(drawn),
        "untold": sum(tasks for tasks, _ in job.kernels.values()) - job.told if job.spans else 0,
        "samples": [
            [
                round(each.at - job.begun, 4), each.done, each.ready, each.running, each.workers, each.read,
                each.written, each.memory,
            ]
            for each in job.samples
        ],
        "log": [[round(at - job.begun, 3), text] for at, text in job.log],
        "plan": job.plan.text if job.plan else "",
        "moved": job.plan.moved if job.plan else None,
        "bound": job.plan.least if job.plan else None,
        "failures": [[at - job.begun, task, kernel, error] for at, task, kernel, error in job.failures],
        "retries": job.retries,
        "tiles": [_matrix(name, tiles) for name, tiles in _pictured(job)],
        **(extra or {}),
    }  # fmt: skip


def _lane(job: str, worker: str) -> str:
    """A worker as people say it."""
    slot = worker.removeprefix(f"{job}-w")
    return f"worker {slot}" if slot != worker else worker


def _pictured(job: JobRecord) -> list[tuple[str, dict[tuple[int, ...], int]]]:
    """Arrays in more than one tile, those with most tiles first."""
    arrays = [(name, dict(tiles)) for name, tiles in job.written.items() if len(tiles) > 1]
    return sorted(arrays, key=lambda each: -len(each[1]))[:4]


def _matrix(name: str, tiles: dict[tuple[int, ...], int]) -> dict[str, Any]:
    """An array as rows and columns of tiles: of more indices the last two, of one a row."""
    places = [(index[-2], index[-1]) if len(index) > 1 else (0, *index, 0)[:2] for index in tiles]
    step = -(-(1 + max(max(place) for place in places)) // _SIDE)
    cells: dict[tuple[int, int], int] = {}
    for (row, column), count in zip(places, tiles.values(), strict=True):
        place = (row // step, column // step)
        before = cells.pop(place, 0)
        alive = count > 0 or before > 0
        cells[place] = (abs(before) + abs(count)) * (1 if alive else -1)
    return {
        "name": name if step == 1 else f"{name}, {step} × {step} tiles a square",
        "rows": 1 + max(row for row, _ in cells),
        "columns": 1 + max(column for _, column in cells),
        "cells": [[row, column, count] for (row, column), count in cells.items()],
        "latest": [list(each) for each in list(cells)[-_LATEST:]],
    }
