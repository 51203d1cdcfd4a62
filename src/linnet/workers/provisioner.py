"""How many workers there should be, and starting those that are missing.

The provisioner keeps no state: what is pending it reads from the queue, who is at work from the ledger.
It can be run once, again and again, here or anywhere. Workers go by themselves when they find no work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from linnet.workers.launcher import Launcher, Limits, Order, worker_names
from linnet.workers.parts import Parts


@dataclass(frozen=True, slots=True)
class Policy:
    """When to start workers."""

    most: int = 2
    """Workers at a time."""
    least: int = 1
    """Workers while anything is pending."""
    factor: float = 1.0
    """Workers for each pending batch of tasks: `sf` of the numpywren paper."""
    silence: float = 15.0
    """Seconds after which a worker that is not heard of counts no more; it may take so long to come up."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A look at a job, for its trace."""

    at: float
    """The ledger's clock."""
    ready: int
    leased: int
    workers: int
    """Alive before others were started."""
    done: int
    started: int = 0
    """Workers that were started then."""


def provision(
    parts: Parts, launcher: Launcher, policy: Policy, limits: Limits, imports: Sequence[str] = ()
) -> Sample:
    """Start the workers that are missing; returns what was seen before."""
    for name in launcher.ended():
        parts.ledger.leave(name)
    status = parts.ledger.status()
    size = parts.queue.size()
    running = len(parts.ledger.workers(within=policy.silence))
    names: list[str] = []
    if status.state == "running":
        # A job whose queue is empty may have tasks that nobody put there: somebody must look.
        pending = max(size.ready + size.leased, 1)
        wanted = math.ceil(pending * policy.factor / limits.width)
        missing = min(policy.most, max(policy.least, wanted)) - running
        if missing > 0:
            names = worker_names(missing)
            for name in names:
                parts.ledger.touch([], name)
            launcher.start(Order(parts.address.text, names, limits, imports, parts.address.secrets))
    return Sample(status.now, size.ready, size.leased, running, status.done, len(names))
