"""What a provider is: it starts servers by name, ends them, and says which there are. Nothing else.

Jobs are no concern of it: on every server runs the same agent (`linnet.fleet.agent`), which finds its orders
in
the bag's folder. So a server must see that folder: on this machine and on a cluster it does, in a cloud it
is a
file system that servers mount.

A controller may be killed between asking for a server and storing the answer. So servers have names, which
the
controller chose and stored before it asked; asking twice for a name gives one server; and a provider finds
the
servers of a bag again by asking the cloud, not by remembering.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

from linnet.fleet.model import Model
from linnet.fleet.offers import Offer
from linnet.fleet.prices import Catalogue

Condition: TypeAlias = Literal["starting", "alive", "gone", "refused"]


@dataclass(frozen=True, slots=True)
class Place:
    """The bag that a provider works for."""

    id: str
    """Of the bag; servers carry it, so that they are known again."""
    folder: Path
    """Of the bag."""

    def server(self, name: str) -> Path:
        """The folder of a server."""
        return self.folder / "servers" / name


@dataclass(frozen=True, slots=True)
class Seen:
    """A server as its provider sees it."""

    condition: Condition
    """"gone": it was taken away or ended; "refused": it will not come."""
    why: str = ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A server to be started."""

    name: str
    offer: Offer
    number: int
    """How many servers of this offer the bag asked for before."""


class Provider(Protocol):
    """Starts and ends servers. `linnet.testing.providers` is what each must pass."""

    name: str
    """In its fleet; two providers of one fleet have different names."""
    speed: float
    """Hours of the bag in an hour of the clock: 1, but for tests on this machine."""
    poll: float
    """Seconds between two looks at the servers."""
    patience: float
    """Seconds for which a server that was asked for may not be seen yet."""

    def offers(self, model: Model | None, prices: Catalogue | None) -> Sequence[Offer]:
        """What can be asked for."""
        ...

    def open(self, place: Place) -> None:
        """Work for this bag."""
        ...

    def launch(self, wanted: Sequence[Wanted]) -> None:
        """Ask for servers; who is there already is not started again. What goes wrong, `seen` tells."""
        ...

    def release(self, names: Sequence[str]) -> None:
        """End servers, at once; who is gone already is no error."""
        ...

    def seen(self) -> Mapping[str, Seen]:
        """Servers of the bag by name; those that ended may be left out."""
        ...

    def close(self) -> None:
        """Let go of what is held; servers go on."""
        ...

    def to_json(self) -> dict[str, Any]:
        """How to make it again: `kind` and options, without secrets."""
        ...


def agent_command(place: Place, name: str, *, poll: float, idle: float, **options: Any) -> list[str]:
    """The command line of the agent of a server that shares this machine's files and Python."""
    given = {"folder": str(place.folder), "name": name, "poll": poll, "idle": idle, **options}
    return [sys.executable, "-I", "-S", str(agent_file()), json.dumps(given)]


def agent_file() -> Path:
    """The agent's source."""
    return Path(__file__).parent.parent / "agent.py"
