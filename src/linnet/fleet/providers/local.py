"""Servers on this machine: sessions of processes that really get killed, by a law or a trace if one is "
"given."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from linnet.errors import InputError
from linnet.fleet.model import Model
from linnet.fleet.offers import Offer
from linnet.fleet.prices import Catalogue
from linnet.fleet.providers.processes import belonging, kill_all, started
from linnet.fleet.providers.provider import Place, Seen, Wanted, agent_command
from linnet.fleet.saving import UNFIT
from linnet.fleet.simulation import Lives


class Local:
    """Servers that are processes of this machine.

    Parameters
    ----------
    servers : how many there may be at once; by default one for each core
    cores : of each server
    price : dollars an hour of a server
    model : how long servers live: they are killed by this law; None: they live as long as they are needed.
        A fleet's `model` does not count here, since this machine is not taken away
    lives : instead of a model, hours that the first, second, ... server lives; those after the last are not
    killed
    notice : hours before its end at which a server's jobs are told, with SIGTERM
    speed : hours of the bag in an hour of the clock; 3600 makes an hour of a second
    seed : of lifetimes
    boot : hours until a server takes its first job, as far as is known beforehand
    poll : seconds between two looks
    idle : seconds after which a server without jobs and without controller ends itself

    Examples
    --------
    >>> from linnet.fleet import Local
    >>> Local(4)
    Local(4)
    """

    patience: float = 0.0

    def __init__(
        self,
        servers: int | None = None,
        *,
        cores: int = 1,
        price: float = 0.0,
        model: Model | None = None,
        lives: Sequence[float] | None = None,
        notice: float = 0.0,
        speed: float = 1.0,
        seed: int = 0,
        boot: float = 0.0,
        poll: float = 0.02,
        idle: float = 60.0,
        name: str = "local",
    ) -> None:
        count = os.cpu_count() or 1 if servers is None else servers
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"Local({servers!r}): give how many servers there may be, at least 1")
        if not 0 < speed < inf:
            raise InputError(f"speed={speed!r}: give hours of the bag in an hour of the clock, above 0")
        self.servers: int = count
        self.cores: int = cores
        self.price: float = price
        self.model: Model | None = model
        self.lives: list[float] | None = None if lives is None else [float(each) for each in lives]
        self.notice: float = notice
        self.speed: float = speed
        self.seed: int = seed
        self.boot: float = boot
        self.poll: float = poll
        self.idle: float = idle
        self.name: str = name
        self._draw = Lives(model, seed)
        self._place: Place | None = None
        self._children: dict[str, subprocess.Popen[bytes]] = {}
        self._over: set[str] = set()

    def offers(self, model: Model | None, prices: Catalogue | None) -> list[Offer]:
        """One: this machine."""
        law, market = self.model, "on-demand" if self.model is None and self.lives is None else "spot"
        return [
            Offer(self.name, self.name, self.cores, self.price, market, self.servers, None, self.boot, law)
        ]

    def open(self, place: Place) -> None:
        self._place = place

    @property
    def place(self) -> Place:
        """The bag it works for."""
        if self._place is None:
            raise InputError("this provider works for no bag yet; give it to a Fleet, and run a bag on that")
        return self._place

    def life(self, number: int) -> float:
        """Hours that the server of this number lives."""
        if self.lives is not None:
            return self.lives[number] if number < len(self.lives) else inf
        return self._draw(number)

    def launch(self, wanted: Sequence[Wanted]) -> None:
        for each in wanted:
            if self._condition(each.name) == "alive":
                continue
            seconds = self.life(each.number) * 3600 / self.speed
            options: dict[str, Any] = {"grace": 5.0}
            if seconds < inf:
                options.update(life=seconds, notice=self.notice * 3600 / self.speed)
            command = agent_command(self.place, each.name, poll=self.poll, idle=self.idle, **options)
            folder = self.place.server(each.name)
            folder.mkdir(parents=True, exist_ok=True)
            with open(folder / "log", "ab") as log:
                self._children[each.name] = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    env={**os.environ, "LINNET_BAG": self.place.id, "LINNET_SERVER": each.name},
                )  # fmt: skip

    def _process(self, name: str) -> tuple[int, str] | None:
        """Number and beginning of a server's agent, as it wrote them down."""
        try:
            pid, begun = json.loads((self.place.server(name) / "pid").read_text())
            return int(pid), str(begun)
        except UNFIT:
            return None

    def _condition(self, name: str) -> str:
        child = self._children.get(name)
        if child is not None:
            return "alive" if child.poll() is None else "gone"
        known = self._process(name)
        if known is None:
            return "unknown"
        return "alive" if started(known[0]) == known[1] else "gone"

    def release(self, names: Sequence[str]) -> None:
        for name in names:
            folder = self.place.server(name)
            if folder.exists():
                (folder / "leave").touch()  # an agent that is just starting leaves at once
            known, child = self._process(name), self._children.pop(name, None)
            session = known[0] if known else child.pid if child is not None else None
            if self._dead(known, child):
                session = None
            kill_all("LINNET_SERVER", name, session)
            if child is not None:
                child.wait()
            self._over.add(name)

    def _dead(self, known: tuple[int, str] | None, child: subprocess.Popen[bytes] | None) -> bool:
        """Whether the agent is over, so that its number may be somebody else's."""
        if child is not None:
            return child.poll() is not None
        return known is None or started(known[0]) != known[1]

    def seen(self) -> Mapping[str, Seen]:
        found: dict[str, Seen] = {}
        for entry in os.scandir(self.place.folder / "servers"):
            if entry.name in self._over or not entry.name.startswith(f"{self.name}-"):
                continue
            condition = self._condition(entry.name)
            if condition == "gone":
                self._sweep(entry.name)
                found[entry.name] = Seen("gone", "its processes were killed")
            elif condition == "alive":
                up = Path(entry.path, "up").exists()
                found[entry.name] = Seen("alive" if up else "starting")
        return found

    def _sweep(self, name: str) -> None:
        """What a killed server's jobs left behind dies with it, once."""
        marker = self.place.server(name) / "swept"
        if not marker.exists():
            known = self._process(name)
            kill_all("LINNET_SERVER", name, known[0] if known else None)
            marker.touch()

    def left(self) -> list[int]:
        """Processes of the bag that still run."""
        return belonging("LINNET_BAG", self.place.id)

    def close(self) -> None:
        for child in self._children.values():
            if child.poll() is None:
                child.returncode = 0  # it outlives this object, and is meant to
        self._children.clear()

    def to_json(self) -> dict[str, Any]:
        from linnet.fleet.model_text import model_to_json

        return {
            "kind": "local", "servers": self.servers, "cores": self.cores, "price": self.price,
            "model": model_to_json(self.model), "lives": self.lives, "notice": self.notice, "speed":
            self.speed,
            "seed": self.seed, "boot": self.boot, "poll": self.poll, "idle": self.idle, "name": self.name,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Local({self.servers})"
