"""What a fleet can be asked for: kinds of servers, each with its price, its law of loss and its limit."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, inf
from typing import TYPE_CHECKING, Literal, TypeAlias

from linnet.errors import InputError

if TYPE_CHECKING:
    from linnet.fleet.model import Model

Market: TypeAlias = Literal["spot", "on-demand"]


@dataclass(frozen=True, slots=True)
class Offer:
    """Servers of one type, from one provider, at one price."""

    provider: str
    """The provider's name in its fleet."""
    type: str
    """What the provider calls them."""
    cores: int = 1
    """Of one server."""
    price: float = 0.0
    """Dollars an hour."""
    market: Market = "spot"
    """Whether they may be taken away, or not."""
    limit: int | None = None
    """How many there may be at once; None: as many as are wanted."""
    memory: float | None = None
    """Bytes of one server, if known."""
    boot: float = 0.0
    """Hours from asking for a server to its first job; billed."""
    model: Model | None = None
    """How long they live; None: they are not taken away, as far as is known."""
    zone: str = ""
    """Where they are, if it matters."""
    speed: float | None = None
    """How fast they are, 1 being what job hours are given for; None: not known, to be measured."""

    def __post_init__(self) -> None:
        if isinstance(self.cores, bool) or not isinstance(self.cores, int) or self.cores < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"cores={self.cores!r} of {self.type!r}: give a whole number of at least 1")
        for what in ("price", "boot"):
            given = getattr(self, what)
            if not 0 <= given < inf:
                raise InputError(f"{what}={given!r} of {self.type!r}: give a number of at least 0")
        if self.speed is not None and not 0 < self.speed < inf:
            raise InputError(f"speed={self.speed!r} of {self.type!r}: give a number above 0, or None")

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.provider}:{self.type}{' in ' + self.zone if self.zone else ''} ({self.market})"

    def gang(self, cores: int) -> int:
        """How many of these servers a job of so many cores takes.

        >>> Offer("local", "small", cores=4).gang(10)
        3
        """
        return ceil(cores / self.cores)

    def slots(self, cores: int) -> int:
        """How many such jobs one server takes at once.

        >>> Offer("local", "small", cores=4).slots(1)
        4
        """
        return max(1, self.cores // cores)

    def job_price(self, cores: int) -> float:
        """Dollars an hour of a job."""
        return self.price * self.gang(cores) / self.slots(cores)
