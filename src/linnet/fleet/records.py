"""What happens to a bag, and what is decided about it, as values: the whole language of the controller.

Events come from providers, servers and users; decisions come from `linnet.fleet.deciding`. Both change the
state (`linnet.fleet.state`) by the same door, `State.apply`, and both are stored, in order. So a controller
that was killed has its state again after applying what is stored, whatever its policies are by then.

Records are never changed once made. They are not frozen because making a frozen one takes longer by far,
and a simulation makes hundreds of thousands.

Times are hours since the bag began. Jobs, servers and attempts are numbers, counted from 0.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeAlias

from linnet.errors import FormatError


@dataclass(slots=True)
class Added:
    """Jobs joined the bag; they wait in this order."""

    kind: ClassVar[str] = "added"
    at: float
    jobs: tuple[int, ...]


@dataclass(slots=True)
class Up:
    """A server can take jobs."""

    kind: ClassVar[str] = "up"
    at: float
    server: int


@dataclass(slots=True)
class Warned:
    """A server will be taken away soon; its jobs were told so."""

    kind: ClassVar[str] = "warned"
    at: float
    server: int


@dataclass(slots=True)
class Lost:
    """A server was taken away, and what ran on it."""

    kind: ClassVar[str] = "lost"
    at: float
    server: int
    why: str = "preempted"


@dataclass(slots=True)
class Refused:
    """A server that was asked for is not to be had."""

    kind: ClassVar[str] = "refused"
    at: float
    server: int
    why: str


@dataclass(slots=True)
class Ended:
    """An attempt ended by itself."""

    kind: ClassVar[str] = "ended"
    at: float
    attempt: int
    status: int
    """Its exit status; 0 is success."""
    hours: float
    """How long it ran."""
    warned: bool = False
    """Whether its server was about to be taken away: a job that ends then with another status did not
    fail."""
    work: float | None = None
    """Hours of work of the whole job, if earlier attempts saved some of it; None: this one did it all."""

    @property
    def length(self) -> float:
        """Hours of the job, as plans count them."""
        return self.hours if self.work is None else self.work


@dataclass(slots=True)
class Reported:
    """A job told a value of its metric."""

    kind: ClassVar[str] = "reported"
    at: float
    job: int
    step: float
    value: float


@dataclass(slots=True)
class Cancelled:
    """Somebody wants the bag to end."""

    kind: ClassVar[str] = "cancelled"
    at: float


@dataclass(slots=True)
class Reopened:
    """The bag goes on: it was cancelled, its budget had ended it, or jobs came after it was done."""

    kind: ClassVar[str] = "reopened"
    at: float


@dataclass(slots=True)
class Launch:
    """Ask for a server."""

    kind: ClassVar[str] = "launch"
    at: float
    server: int
    offer: int


@dataclass(slots=True)
class Start:
    """Run a job on servers."""

    kind: ClassVar[str] = "start"
    at: float
    attempt: int
    job: int
    servers: tuple[int, ...]


@dataclass(slots=True)
class Stop:
    """End an attempt, and its job with it."""

    kind: ClassVar[str] = "stop"
    at: float
    attempt: int
    why: str


@dataclass(slots=True)
class Drop:
    """Do not run a job (again)."""

    kind: ClassVar[str] = "drop"
    at: float
    job: int
    why: str


@dataclass(slots=True)
class Release:
    """Give a server back."""

    kind: ClassVar[str] = "release"
    at: float
    server: int
    why: str


@dataclass(slots=True)
class Close:
    """The bag is over."""

    kind: ClassVar[str] = "close"
    at: float
    why: str
    """"done", "cancelled" or "budget"."""


Event: TypeAlias = "Added | Up | Warned | Lost | Refused | Ended | Reported | Cancelled | Reopened"
Decision: TypeAlias = "Launch | Start | Stop | Drop | Release | Close"
Record: TypeAlias = "Event | Decision"

_KINDS: dict[str, type[Any]] = {
    each.kind: each
    for each in (
        Added, Up, Warned, Lost, Refused, Ended, Reported, Cancelled, Reopened,
        Launch, Start, Stop, Drop, Release, Close,
    )
}  # fmt: skip


def to_text(record: Record) -> str:
    """A record as it is stored.

    >>> to_text(Lost(2.5, 3))
    '["lost", 2.5, 3, "preempted"]'
    """
    return json.dumps([record.kind, *(getattr(record, field.name) for field in fields(record))])


def from_text(text: str) -> Record:
    """The record that `to_text` stored.

    >>> from_text('["lost", 2.5, 3, "preempted"]')
    Lost(at=2.5, server=3, why='preempted')
    """
    try:
        kind, *values = json.loads(text)
        found = _KINDS[kind](*(tuple(each) if isinstance(each, list) else each for each in values))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    except (ValueError, KeyError, TypeError) as error:
        raise FormatError(f"{text[:80]!r} is no record of a bag") from error
    return found
