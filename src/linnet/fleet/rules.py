"""What a bag asks for, as far as decisions are concerned: plain values, stored with the bag."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil, inf
from numbers import Real
from typing import Any

from linnet.errors import InputError
from linnet.fleet.policies import AfterLoss


@dataclass(frozen=True, slots=True)
class Rules:
    """How the jobs of a bag are to be run."""

    cores: int = 1
    """Of each job."""
    memory: float | None = None
    """Bytes of each job; servers with less are not used."""
    deadline: float | None = None
    """Hours within which the bag must be done."""
    budget: float | None = None
    """Dollars that are never passed."""
    fraction: float = 1.0
    """Share of the jobs that must be done."""
    hours: float | None = None
    """How long a job takes, if that is known beforehand."""
    retries: int = 1
    """How often a job that failed by itself is run again. Preemption is no failure."""
    on_demand_after: int | None = None
    """Preemptions after which a job runs where it cannot be lost, if there is such a server."""
    on_loss: AfterLoss | None = None
    """What becomes of a job whose server was lost; None: what is best."""
    smallest: int | None = None
    """The fewest cores a job can run on; None: all of them."""
    reuse: bool = True
    """Whether servers are kept or given up by their age; False: kept until they are lost."""
    servers: int | None = None
    """How many servers there may be at once, of all kinds; None: as many as providers have."""
    stop: str | None = None
    """"median", or the import name of a rule that says which jobs are hopeless."""

    checkpoint: float | None = None
    """Hours that saving a job's state takes; None: jobs do not say that they can."""

    def __post_init__(self) -> None:
        _whole("cores", self.cores, 1)
        _whole("retries", self.retries, 0)
        for name in ("on_demand_after", "smallest", "servers"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), 1)
        for name in ("deadline", "hours", "memory", "checkpoint"):
            given = getattr(self, name)
            if given is not None and not (_is_number(given) and given > 0):
                raise InputError(f"{name}={given!r}: give a number above 0, or None")
            if name != "deadline" and given == inf:
                raise InputError(f"{name}={given!r}: give a finite number, or None")
        if self.budget is not None and not (_is_number(self.budget) and self.budget >= 0):
            raise InputError(f"budget={self.budget!r}: give dollars, or None")
        if not (_is_number(self.fraction) and 0 < self.fraction <= 1):
            raise InputError(f"fraction={self.fraction!r}: give a share of the jobs, above 0 and at most 1")
        if self.on_loss not in (None, "replenish", "smaller", "discard"):
            raise InputError(f'on_loss={self.on_loss!r}: give "replenish", "smaller", "discard" or None')
        if self.smallest is not None and self.smallest > self.cores:
            raise InputError(f"smallest={self.smallest}: a job has {self.cores} cores at most")

    def required(self, jobs: int) -> int:
        """How many of so many jobs must be done.

        >>> Rules(fraction=0.9).required(11)
        10
        """
        return ceil(self.fraction * jobs - 1e-9)

    def to_json(self) -> dict[str, Any]:
        """As it is stored."""
        found = asdict(self)
        if self.checkpoint is None:  # bags of earlier versions have no such rule, and are the same bags
            del found["checkpoint"]
        return found


def _is_number(given: object) -> bool:
    return not isinstance(given, bool) and isinstance(given, Real)


def _whole(name: str, given: object, least: int) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise InputError(f"{name}={given!r}: give a whole number of at least {least}")
