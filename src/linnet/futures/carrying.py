"""What carriers to clusters share: who waits for which answer, and a thread that hands answers on.

Clusters tell of answers on threads of their own, which must not be held up, so these only put what they have
into a queue. The thread here holds no carrier while it waits: when nobody has it any more, it ends.
"""

from __future__ import annotations

import queue
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from linnet.engines.driven.engine import Driven
from linnet.errors import EngineClosedError
from linnet.futures.travelling import Lost

Answered = Callable[[Any], None]
_FRESH = 1.0
"""Seconds for which a look at the cluster is good enough."""


class ClusterCalls(ABC):
    """Takes calls to the nodes of a cluster, through the engine that drives it."""

    where = "the cluster"
    look_every: float | None = None
    """Seconds after which `look` is called if nothing was heard; None: never."""

    def __init__(self, engine: Driven) -> None:
        self._engine = weakref.ref(engine)
        self._lock = threading.Lock()
        self._flying: dict[Any, Answered] = {}
        self._inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._closed = False
        self.places: int = 1
        """How many calls may be there at a time."""
        self.names: list[str] = []
        """The nodes."""
        self._seen = 0.0
        self._refresh(engine)
        engine.keep(self)
        weakref.finalize(self, self._inbox.put, None)
        listening = weakref.ref(self), self._inbox, self.look_every
        threading.Thread(target=_listen, args=listening, daemon=True).start()

    @property
    def nodes(self) -> int:
        """How many nodes there are to choose from."""
        engine = self._engine()
        if engine is not None:
            self._refresh(engine)
        return len(self.names)

    def _refresh(self, engine: Driven) -> None:
        if time.monotonic() > self._seen + _FRESH:
            there = engine.nodes()
            self.names = list(there)
            self.places = max(1, sum(self.room(each.workers) for each in there.values()))
            self._seen: float = time.monotonic()

    def room(self, workers: int) -> int:
        """How many calls a node with so many workers is given at a time."""
        return workers

    def carry(self, name: str, sent: bytes, node: int | None, answered: Answered) -> None:
        """See `places.Carrier`."""
        engine = self._engine()
        if engine is None or self._closed:
            raise EngineClosedError(f"the engine was closed before {name} was called")
        self._refresh(engine)
        if node is not None and node >= len(self.names):
            raise Lost(f"node {node} is gone; there are {len(self.names)} left")
        self.begin(sent, None if node is None else self.names[node], answered)
        if self._closed:
            self.let_go()

    @abstractmethod
    def begin(self, sent: bytes, node: str | None, answered: Answered) -> None:
        """Have calls made; `wait_for` what tells it apart before an answer can come."""

    @abstractmethod
    def open(self, heard: list[Any]) -> None:
        """Answer who waits for what was put into the inbox."""

    def look(self) -> None:  # noqa: B027 # clusters that tell of lost workers need none
        """Look for calls whose worker is gone."""

    def wait_for(self, key: Any, answered: Answered) -> None:
        """Somebody waits for the answer of this call."""
        with self._lock:
            self._flying[key] = answered

    def hear(self, what: Any) -> None:
        """Something came from the cluster: hand it to the thread that opens it."""
        self._inbox.put(what)

    def answer(self, key: Any, what: bytes | BaseException) -> None:
        """Tell who waits for a call; nobody may any more."""
        with self._lock:
            answered = self._flying.pop(key, None)
        if answered is not None:
            answered(what)

    def let_go(self) -> None:
        """The engine was closed: tell all who wait."""
        self._closed = True
        with self._lock:
            left, self._flying = self._flying, {}
        for answered in left.values():
            answered(EngineClosedError("the engine was closed while the call ran"))


def _listen(owner: weakref.ref[ClusterCalls], inbox: queue.SimpleQueue[Any], wait: float | None) -> None:
    """Open what comes until nobody has the carrier any more."""
    while True:
        try:
            heard = [inbox.get(timeout=wait)]
            while not inbox.empty():
                heard.append(inbox.get_nowait())
        except queue.Empty:
            heard = []
        carrier = owner()
        if carrier is None:
            return
        opened = [each for each in heard if each is not None]
        if opened:
            carrier.open(opened)
        elif not heard and carrier._flying:
            carrier.look()
        del carrier, heard, opened
