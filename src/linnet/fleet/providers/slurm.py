"""Servers of a Slurm cluster: each is a batch job that runs the agent until it is ended or its node is "
"taken."""

from __future__ import annotations

import getpass
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from linnet.errors import InputError, JobError
from linnet.fleet.model import Model
from linnet.fleet.model_text import model_to_json
from linnet.fleet.offers import Offer
from linnet.fleet.prices import Catalogue
from linnet.fleet.providers.provider import Place, Seen, Wanted, agent_command

_RUNS = {"R", "S"}
_WAITS = {"PD", "CF", "RQ", "RH", "SO"}


class Slurm:
    """Servers as jobs of a Slurm cluster, whose nodes see the bag's folder and this Python.

    Waiting in Slurm's queue counts as the boot of a server: it is measured, and part of estimates. A node
    that is
    set down, or a job that a more important one preempts, is a server that was taken away; Slurm does not
    start it
    again, the controller does.

    Parameters
    ----------
    servers : how many there may be at once
    cores : of each server
    options : for `sbatch`, as they are (`["--partition=short", "--time=2:00:00"]`)
    price : dollars an hour of a server, if hours are charged
    model : how long servers live, if they are taken away
    boot : hours in the queue, as far as is known beforehand
    poll : seconds between two looks
    idle : seconds after which a server without jobs and without controller ends itself
    """

    speed: float = 1.0
    patience: float = 10.0

    def __init__(
        self,
        servers: int,
        *,
        cores: int = 1,
        options: Sequence[str] = (),
        price: float = 0.0,
        model: Model | None = None,
        boot: float = 0.0,
        poll: float = 1.0,
        idle: float = 600.0,
        name: str = "slurm",
    ) -> None:
        if not isinstance(servers, int) or isinstance(servers, bool) or servers < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"Slurm({servers!r}): give how many servers there may be, at least 1")
        self.servers: int = servers
        self.cores: int = cores
        self.options: list[str] = list(options)
        self.price: float = price
        self.model: Model | None = model
        self.boot: float = boot
        self.poll: float = poll
        self.idle: float = idle
        self.name: str = name
        self._place: Place | None = None
        self._refused: dict[str, str] = {}

    def offers(self, model: Model | None, prices: Catalogue | None) -> list[Offer]:
        """One: the nodes of the cluster."""
        market = "on-demand" if self.model is None else "spot"
        return [
            Offer(
                self.name,
                self.name,
                self.cores,
                self.price,
                market,
                self.servers,
                None,
                self.boot,
                self.model,
            )
        ]

    def open(self, place: Place) -> None:
        if shutil.which("sbatch") is None:
            raise JobError(
                "'sbatch' is not on the PATH: is this a machine of a Slurm cluster? "
                "(Debian has it in the package slurm-client)"
            )
        self._place = place

    @property
    def place(self) -> Place:
        """The bag it works for."""
        if self._place is None:
            raise InputError("this provider works for no bag yet; give it to a Fleet, and run a bag on that")
        return self._place

    def launch(self, wanted: Sequence[Wanted]) -> None:
        there = self.seen()
        for each in wanted:
            if each.name in there:
                continue
            folder = self.place.server(each.name)
            folder.mkdir(parents=True, exist_ok=True)
            agent = agent_command(self.place, each.name, poll=self.poll, idle=self.idle, grace=5.0)
            done = subprocess.run(
                [
                    "sbatch", "--parsable", "--no-requeue", "--ntasks=1", f"--cpus-per-task={self.cores}",
                    f"--job-name={each.name}", f"--output={folder / 'log'}", *self.options,
                    f"--wrap=exec {shlex.join(agent)}",
                ],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            if done.returncode:
                self._refused[each.name] = f"sbatch: {done.stderr.strip() or done.stdout.strip()}"

    def seen(self) -> Mapping[str, Seen]:
        done = subprocess.run(
            ["squeue", "--noheader", "--format=%j|%t|%r", f"--user={getpass.getuser()}"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise JobError(f"squeue does not answer: {done.stderr.strip()}")
        found = {name: Seen("refused", why) for name, why in self._refused.items()}
        for line in done.stdout.splitlines():
            name, state, why = line.strip().split("|", 2)
            if not name.startswith(f"{self.name}-{self.place.id}-"):
                continue
            if state in _RUNS:
                up = (self.place.server(name) / "up").exists()
                found[name] = Seen("alive" if up else "starting")
            elif state in _WAITS:
                found[name] = Seen("starting", f"waits in Slurm's queue: {why}")
        return found

    def release(self, names: Sequence[str]) -> None:
        for name in names:
            self._refused.pop(name, None)
            folder = self.place.server(name)
            if folder.exists():
                (folder / "leave").touch()
        if names:
            subprocess.run(
                ["scancel", "--quiet", f"--name={','.join(names)}"], capture_output=True, check=False
            )

    def close(self) -> None:
        """Nothing is held."""

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "slurm", "servers": self.servers, "cores": self.cores, "options": self.options,
            "price": self.price, "model": model_to_json(self.model), "boot": self.boot, "poll": self.poll,
            "idle": self.idle, "name": self.name,
        }  # fmt: skip

    def __repr__(self) -> str:
        return f"Slurm({self.servers})"
