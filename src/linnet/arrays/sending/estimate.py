"""What an expression will cost on a fleet, and how long it will take, before it is submitted."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any

from linnet.arrays.sending.plans import plan
from linnet.errors import InputError
from linnet.planning.cluster import Cluster

if TYPE_CHECKING:
    from linnet.fleet.fleet import Fleet
    from linnet.fleet.planning import Plan
    from linnet.planning.calibration import Calibration

_PIECES = 400
"""Pieces into which the work of a job is cut for the simulation; a lost server loses at most one of its "
"own."""


def estimate(
    what: Any,
    *,
    fleet: Fleet,
    workers: int | None = None,
    runs: int | None = None,
    seed: int = 0,
    calibration: Calibration | None = None,
    start: float | None = None,
    **options: Any,
) -> Plan:
    """Price and time of an expression on servers that may be taken away; nothing is computed.

    The plan on as many nodes as there are workers tells how long it takes if nobody is lost. The fleet's
    simulator then
    runs that much work on servers that are lost and replaced, many times.

    Parameters
    ----------
    what : an array, several arrays, or a bound program, as for `ln.plan`
    fleet : the servers; workers take those that cost least for each core
    workers : how many servers; by default as many as the fleet has of these
    runs : how many simulations
    calibration : how fast a worker is, measured on such a server (`linnet.planning.calibrate().save(path)`
        there, `Calibration.load(path)` here); by default this machine is measured, for a second
    start : seconds from a server that is up to a worker that takes tasks; by default what it takes here
    options : further ones for `ln.plan`

    Returns
    -------
    Plan with `cost` (dollars) and `hours`, which have `.mean` and `.quantile(q)`

    Examples
    --------
    >>> import numpy as np
    >>> import linnet as ln
    >>> from linnet.fleet import Fleet, Simulated
    >>> x = ln.asarray(np.ones((64, 64)), chunks=16)
    >>> found = ln.estimate(x @ x, fleet=Fleet([Simulated(4, price=0.1)]), runs=5, start=2)
    >>> found.cost.quantile(0.9) > 0
    True
    """
    from linnet.fleet.fleet import Fleet
    from linnet.fleet.planning import make_plan
    from linnet.fleet.rules import Rules

    if not isinstance(fleet, Fleet):
        raise InputError(f"fleet={fleet!r}: give a linnet.fleet.Fleet")
    offers = sorted(fleet.offers(), key=lambda each: each.price / each.cores)
    count = workers or offers[0].limit or fleet.servers
    if count is None:
        raise InputError("how many workers? give workers=…: the fleet has no limit")
    speed = calibration.flops if calibration is not None else _speed_here()
    begin = _start_here(_here(fleet, count)) if start is None else start
    if not begin >= 0:
        raise InputError(f"start={start!r}: give seconds of at least 0")
    # Processes of this machine live by the fleet's clock: its hours are what a bill counts.
    clock = fleet.speed / 3600
    offers = [replace(each, boot=each.boot + begin * clock) for each in offers]
    found = plan(what, Cluster(nodes=count, workers=1, flops=speed), **options)
    # Servers that wait for others are paid as well, so the work is what all of them are there for.
    work = max((found.seconds + found.loading) * count * clock, 1e-9)
    pieces = max(
        count, min(_PIECES, len(found.tasks) if hasattr(found.tasks, "__len__") else int(found.tasks))
    )
    return make_plan(
        Rules(servers=count), offers, [work / pieces], pieces, runs=runs or 20, seed=seed, compare=True,
        notes=[
            f"{count} workers; without losses {found.seconds + found.loading:.3g} s of computing at "
            f"{speed / 1e9:.3g} Gflop/s each ({'as given' if calibration else 'measured here'}), after "
            f"{begin:.3g} s for a worker to start"
        ],
    )  # fmt: skip


@cache
def _speed_here() -> float:
    """Operations a second of a worker on this machine."""
    from linnet.planning.calibration import calibrate

    return calibrate(sizes=(128, 512)).flops


@cache
def _start_here(workers: int) -> float:
    """Seconds until so many fresh processes of this machine, begun at once, have loaded what tasks need."""
    code = "import linnet.workers.worker; from linnet.kernels.registry import names; names()"
    begun = time.perf_counter()
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(workers)]
    for each in processes:
        each.wait()
    return time.perf_counter() - begun


def _here(fleet: Fleet, workers: int) -> int:
    """How many workers begin on one machine at once: those of local servers share its cores."""
    from linnet.fleet.providers.local import Local

    shared = sum(each.servers for each in fleet.providers if isinstance(each, Local))
    return max(1, min(workers, shared, 4 * (os.cpu_count() or 1)))


METHODS: Mapping[str, Any] = {}
__all__ = ["estimate"]
