"""What an expression will cost on a fleet, and how long it will take, before it is submitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from linnet.arrays.sending.plans import plan
from linnet.errors import InputError
from linnet.planning.cluster import Cluster

if TYPE_CHECKING:
    from linnet.fleet.fleet import Fleet
    from linnet.fleet.planning import Plan

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
    >>> found = ln.estimate(x @ x, fleet=Fleet([Simulated(4, price=0.1)]), runs=5)
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
    found = plan(what, Cluster(nodes=count, workers=1), **options)
    # Servers that wait for others are paid as well, so the work is what all of them are there for.
    work = max((found.seconds + found.loading) * count / 3600, 1e-9)
    pieces = max(
        count, min(_PIECES, len(found.tasks) if hasattr(found.tasks, "__len__") else int(found.tasks))
    )
    return make_plan(
        Rules(servers=count), offers, [work / pieces], pieces, runs=runs or 20, seed=seed, compare=True,
        notes=[f"{count} workers; without losses {found.seconds + found.loading:.3g} s of computing"],
    )  # fmt: skip


METHODS: Mapping[str, Any] = {}
__all__ = ["estimate"]
