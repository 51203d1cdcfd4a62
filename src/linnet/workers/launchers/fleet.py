"""Workers on servers of a fleet, which may be taken away: one server for each worker, and the bill."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from linnet.errors import InputError
from linnet.fleet.elapsed import elapsed
from linnet.fleet.fleet import Fleet
from linnet.fleet.offers import Offer
from linnet.fleet.providers.provider import Place, Provider, Wanted
from linnet.fleet.saving import exit_of
from linnet.workers.launcher import Order
from linnet.workers.launchers.processes import command, environment
from linnet.workers.secrets import put_aside, secrets_of

_SHOWN = 2000
_PASSED_ON = ("PYTHONPATH", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(slots=True)
class _Rented:
    worker: str
    name: str
    offer: Offer
    attempt: int
    began: float
    ended: float | None = None
    lost: bool = False


class FleetLauncher:
    """Starts each worker on a server of its own, of the cheapest kind there is.

    A server ends when its worker does. One that is taken away is a worker that died: the provisioner starts
    another.
    `folder` must be seen by the servers under the same path; by default it is a temporary one.
    """

    def __init__(self, fleet: Fleet, *, folder: str | os.PathLike[str] | None = None) -> None:
        self.fleet = fleet
        self._folder = Path(folder or tempfile.mkdtemp(prefix="linnet-fleet-")).resolve()
        for name in ("servers", "attempts", "done"):
            (self._folder / name).mkdir(parents=True, exist_ok=True)
        self._place = Place(os.urandom(6).hex(), self._folder)
        for provider in fleet.providers:
            provider.open(self._place)
        self._offers = sorted(
            (each for each in fleet.offers() if each.limit != 0), key=lambda each: each.price / each.cores
        )
        if not self._offers:
            raise InputError("the fleet has no servers to put workers on")
        self._lock = threading.Lock()
        self._rented: list[_Rented] = []
        self._told: set[str] = set()
        self._asked = 0.0

    def start(self, order: Order) -> None:
        secrets = secrets_of(environment(), order.secrets)
        with self._lock:
            for worker in order.names:
                offer = self._offer()
                number = len(self._rented)
                rented = _Rented(
                    worker, f"{offer.provider}-{self._place.id}-{number}", offer, number, elapsed()
                )
                aside = put_aside(secrets, self._folder) if secrets else None
                self._put_order(rented, command(order, worker, aside))
                before = sum(1 for each in self._rented if each.offer is offer)
                self._rented.append(rented)
                self.fleet.provider(offer.provider).launch([Wanted(rented.name, offer, before)])

    def _offer(self) -> Offer:
        """The cheapest of which there may be one more."""
        for offer in self._offers:
            used = sum(1 for each in self._rented if each.offer is offer and each.ended is None)
            if offer.limit is None or used < offer.limit:
                return offer
        raise InputError("all servers of the fleet are in use")

    def _put_order(self, rented: _Rented, argv: Sequence[str]) -> None:
        orders = self._place.server(rented.name) / "orders"
        orders.mkdir(parents=True)
        place = self._folder / "attempts" / str(rented.attempt)
        place.mkdir()
        found = environment()
        variables = {name: found[name] for name in _PASSED_ON if name in found}
        variables["LINNET_CHECKPOINTS"] = str(place / "kept")
        text = json.dumps({"argv": list(argv), "environment": variables, "last": True})
        (orders / f"{rented.attempt}.json").write_text(text, encoding="utf-8")

    def coming(self) -> list[str]:
        """Those whose servers are not known to be gone; `ended` gives up servers that do not come."""
        with self._lock:
            return [each.worker for each in self._rented if each.ended is None]

    def ended(self) -> list[str]:
        (self._folder / "heartbeat").touch()
        if time.monotonic() - self._asked < max(0.2, *(each.poll for each in self.fleet.providers)):
            return []
        self._asked = time.monotonic()
        with self._lock:
            self._look()
            over = [each.worker for each in self._rented if each.ended is not None]
            fresh = [each for each in over if each not in self._told]
            self._told.update(fresh)
            return fresh

    def _look(self) -> None:
        """Servers whose worker ended, or that are gone, are paid until then, and given back."""
        seen = {name: each for provider in self.fleet.providers for name, each in provider.seen().items()}
        for each in self._rented:
            if each.ended is not None:
                continue
            try:
                ago = time.time() - (self._folder / "done" / str(each.attempt)).stat().st_mtime
            except FileNotFoundError:
                ago = None
            found = seen.get(each.name)
            late = elapsed() - each.began > self._provider(each).patience
            if (
                ago is not None
                or (found is None and late)
                or (found and found.condition in ("gone", "refused"))
            ):
                each.ended, each.lost = max(each.began, elapsed() - max(ago or 0.0, 0.0)), ago is None
                self._provider(each).release([each.name])

    def _provider(self, rented: _Rented) -> Provider:
        return self.fleet.provider(rented.offer.provider)

    def problem(self) -> str | None:
        with self._lock:
            for each in reversed(self._rented):
                place = self._folder / "attempts" / str(each.attempt)
                if (place / "exit.json").exists() and exit_of(place / "exit.json")[0] > 0:
                    said = (place / "stderr").read_text(errors="replace")[-_SHOWN:].strip()
                    return f"worker {each.worker}: {said or 'it said nothing'}"
        return None

    def kill(self, names: Sequence[str]) -> None:
        with self._lock:
            for each in self._rented:
                if each.worker in names and each.ended is None:
                    each.ended = elapsed()
                    self._provider(each).release([each.name])

    @property
    def bill(self) -> tuple[float, float, int, int]:
        """Dollars, hours of servers, servers, and how many of these were lost, so far."""
        with self._lock:
            if any(each.ended is None for each in self._rented):
                self._look()
        now, speed = elapsed(), self.fleet.speed
        hours = [((each.ended or now) - each.began) / 3600 * speed for each in self._rented]
        dollars = sum(each.offer.price * spent for each, spent in zip(self._rented, hours, strict=True))
        return dollars, sum(hours), len(self._rented), sum(each.lost for each in self._rented)

    def close(self) -> None:
        """Workers go on; each server ends with its worker."""
        for provider in self.fleet.providers:
            provider.close()

    def __repr__(self) -> str:
        return f"FleetLauncher({self.fleet!r})"
