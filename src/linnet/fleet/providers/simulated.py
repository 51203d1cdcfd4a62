"""Servers in virtual time: a bag on these is run by the simulator, and no job is really run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from linnet.errors import InputError
from linnet.fleet.model import Model
from linnet.fleet.offers import Offer
from linnet.fleet.prices import Catalogue
from linnet.fleet.providers.provider import Place, Seen, Wanted


class Simulated:
    """Servers that are only drawn at random, for plans: `bag.plan(Fleet([Simulated(32)], model=model))`.

    Parameters
    ----------
    servers : how many there may be at once
    type, cores, price, memory, boot : of a server
    on_demand : dollars an hour of the same server where it cannot be lost; None: there is none
    model : how long servers live; None: the fleet's
    speed : how fast a server is, 1 being what the hours of jobs are given for
    """

    speed: float = 1.0
    poll: float = 0.0
    patience: float = 0.0

    def __init__(
        self,
        servers: int,
        *,
        type: str = "simulated",
        cores: int = 1,
        price: float = 1.0,
        on_demand: float | None = None,
        memory: float | None = None,
        boot: float = 0.0,
        model: Model | None = None,
        job_speed: float | None = 1.0,
        name: str = "simulated",
    ) -> None:
        if not isinstance(servers, int) or isinstance(servers, bool) or servers < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"Simulated({servers!r}): give how many servers there may be, at least 1")
        self.servers: int = servers
        self.type: str = type
        self.cores: int = cores
        self.price: float = price
        self.on_demand: float | None = on_demand
        self.memory: float | None = memory
        self.boot: float = boot
        self.model: Model | None = model
        self.job_speed: float | None = job_speed
        self.name: str = name

    def offers(self, model: Model | None, prices: Catalogue | None) -> list[Offer]:
        """Spot, and on-demand if that has a price."""
        spot = Offer(
            self.name, self.type, self.cores, self.price, "spot", self.servers, self.memory, self.boot,
            self.model or model, "", self.job_speed,
        )  # fmt: skip
        if self.on_demand is None:
            return [spot]
        sure = Offer(
            self.name, self.type, self.cores, self.on_demand, "on-demand", self.servers, self.memory,
            self.boot,
            None, "", self.job_speed,
        )  # fmt: skip
        return [spot, sure]

    def open(self, place: Place) -> None:
        raise InputError("jobs cannot run on simulated servers; use bag.plan(fleet), or another provider")

    def launch(self, wanted: Sequence[Wanted]) -> None:
        """Never called: `open` refuses."""

    def release(self, names: Sequence[str]) -> None:
        """Never called: `open` refuses."""

    def seen(self) -> Mapping[str, Seen]:
        """None."""
        return {}

    def close(self) -> None:
        """Nothing is held."""

    def to_json(self) -> dict[str, Any]:
        from linnet.fleet.model_text import model_to_json

        return {
            "kind": "simulated", "servers": self.servers, "type": self.type, "cores": self.cores,
            "price": self.price, "on_demand": self.on_demand, "memory": self.memory, "boot": self.boot,
            "model": model_to_json(self.model), "job_speed": self.job_speed, "name": self.name,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Simulated({self.servers})"
