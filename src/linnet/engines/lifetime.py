"""From the making of an engine to its closing: who keeps something of an engine asks here if it lives."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol
from weakref import WeakMethod, WeakValueDictionary

from linnet.errors import EngineClosedError


class Kept(Protocol):
    """Something that is gone when its engine is closed."""

    def let_go(self) -> None:
        """The engine was closed: drop what is left of it."""
        ...


class Lifetime:
    """Whether an engine is open, and what goes with it when it is closed.

    >>> life = Lifetime()
    >>> life.end("Threads(workers=2)")
    >>> life.check()
    Traceback (most recent call last):
        ...
    linnet.errors.EngineClosedError: Threads(workers=2) was closed and runs nothing any more; ...
    """

    def __init__(self) -> None:
        self.ended = ""
        """The engine, as it showed itself when it was closed; empty: it is open."""
        self._look: WeakMethod[Callable[[], str]] | None = None
        self._kept: WeakValueDictionary[int, Kept] = WeakValueDictionary()
        self._lock = threading.Lock()

    def watch(self, look: Callable[[], str]) -> None:
        """From now on, a method of the engine is asked whether what lies below it is gone: it then tells the
        engine, and what became of it."""
        self._look = WeakMethod(look)

    def is_over(self) -> bool:
        """Whether the engine was closed, or what lies below it."""
        look = None if self._look is None else self._look()
        if not self.ended and look is not None and (found := look()):
            self.end(found)
        return bool(self.ended)

    def check(self) -> None:
        """Refuse to go on with an engine that was closed."""
        if self.is_over():
            raise EngineClosedError(
                f"{self.ended} was closed and runs nothing any more; make another one, with ln.init(...)"
            )

    def keep(self, kept: Kept) -> None:
        """Something that is gone when the engine is closed; while it is open, nobody is kept alive."""
        with self._lock:
            self._kept[id(kept)] = kept

    def __reduce__(self) -> tuple[type[Lifetime], tuple[()]]:
        return Lifetime, ()  # a copy of the engine in another process lives for itself

    def end(self, engine: str, shut_down: Callable[[], object] | None = None) -> None:
        """Close the engine of this name, unless that was done before; `shut_down` ends what it started."""
        with self._lock:
            if self.ended:
                return
            self.ended: str = engine
            kept = list(self._kept.values())
        for each in kept:
            each.let_go()
        if shut_down is not None:
            shut_down()
