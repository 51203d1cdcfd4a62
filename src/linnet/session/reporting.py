"""`ln.report`: what ran in this process lately, with what programs tell of it: operations, least bytes."""

from __future__ import annotations

import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.events import TaskFinished, TaskReady, TileDropped, TileWritten
from linnet.events.record import JobRecord
from linnet.events.watching import RECORD, WATCH
from linnet.reports import Report, described
from linnet.tiles import human
from linnet.tiles.amounts import total_memory

if TYPE_CHECKING:
    from linnet.webpage import Dashboard

_MANY = 300_000
"""Tasks of the largest program of which operations are counted."""
_TEXT = 6_000
"""Letters of a program that are shown."""
_SIDE = 512
"""Side of the matrices whose product says how fast the machine is."""


def report(path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> Report:
    """A report about what ran in this process lately; the latest run is shown first.

    It has, for each run, who was busy when, how many tasks were under way and waited, operations and bytes
    over time, memory against the budget, the slowest kernels, failures. Tasks shorter than a millisecond are
    counted, not drawn.

    Parameters
    ----------
    path : where to write it: `.html` (one file; the data are beside it as `.json`), `.json`, or a picture of
        the last run, `.svg`, `.png`, `.pdf` (with the extra `plot`). None: it is only returned
    title : its headline

    Returns
    -------
    Report
        With `html()`, `json()`, `save(path)`, and `data`; a notebook shows it as a page.

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.ones((600, 600), chunks=100)
    >>> total = (x @ x).sum().compute()
    >>> found = ln.report()
    >>> found.data["jobs"][-1]["state"]
    'finished'
    """
    jobs = [described(job, known_of(job)) for job in RECORD.jobs]
    page = Report(
        {
            "title": title or ("What ran" if jobs else "Nothing has run yet"),
            "sub": time.strftime("%d %B %Y, %H:%M"),
            "peak": product_rate() if any("Threads" in each["engine"] for each in jobs) else None,
            "notes": [["machine", f"{os.cpu_count()} cores, {human(total_memory())} of memory"]],
            "jobs": jobs,
        }
    )
    if path is not None:
        page.save(path)
    return page


@contextmanager
def recording(path: str | os.PathLike[str], title: str) -> Generator[None]:
    """Record every task and tile while the block runs, then write a report."""
    RECORD.clear()
    stop = WATCH.subscribe(lambda _: None, TaskFinished, TaskReady, TileWritten, TileDropped)
    try:
        yield
    finally:
        stop()
        report(path, title=title)


def dashboard(*, host: str = "127.0.0.1", port: int = 0) -> Dashboard:
    """Serve a page that shows what runs in this process, live, on whichever engine.

    It has the workers and who was busy when, tiles as a factorisation makes them, memory against the budget,
    speed, kernels and failures. It needs the extra `dashboard`.

    Parameters
    ----------
    host : where to listen; elsewhere than on this machine the page needs its token, too
    port : 0 takes a free one

    Returns
    -------
    Dashboard
        A context manager with the `address` of the page and the `token` that cancelling needs.

    Examples
    --------
    >>> import linnet as ln
    >>> with ln.dashboard() as page:
    ...     page.address.startswith("http://127.0.0.1:")
    True
    """
    from linnet.webpage import dashboard as served

    return served(host=host, port=port, known=known_of)


def known_of(job: JobRecord) -> dict[str, Any]:
    """What the program of a job tells: operations in all and of each kernel, and bytes of inputs and results.

    It is worked out once, when somebody asks.
    """
    about = job.about
    if "known" in about:
        return about["known"]
    ran = about.get("ran")
    known: dict[str, Any] = {}
    program = ran.program() if ran is not None else None
    if program is not None:
        known["source"] = _cut(repr(program))
    try:
        work = ran.workload() if ran is not None and job.tasks <= _MANY else None
    except Exception:  # a program whose kernels declare too little; its report has fewer numbers
        work = None
    if work is not None:
        known["flops"] = float(work.flops.sum())
        kernels = [each.kernel for each in work.bound.program.statements]
        sums = np.bincount(work.statement, work.flops, len(kernels))
        known["of_kernels"] = {
            name: float(sum(s for k, s in zip(kernels, sums, strict=True) if k == name)) for name in kernels
        }
        known["least"] = int(work.tile_bytes[work.kept].sum())
    about["known"] = known  # a page that is drawn every second asks every second
    about.pop("ran", None)
    return known


def _cut(text: str) -> str:
    """The beginning of a long text."""
    return text if len(text) <= _TEXT else text[:_TEXT] + "\n…"


@cache
def product_rate() -> float:
    """Operations a second of NumPy's matrix product here: the most that tasks can hope for."""
    a = np.ones((_SIDE, _SIDE))
    best = np.inf
    for _ in range(3):
        begun = time.perf_counter()
        np.matmul(a, a)
        best = min(best, time.perf_counter() - begun)
    return 2.0 * _SIDE**3 / best
