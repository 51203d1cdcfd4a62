"""The session of this process: one engine, the same for all threads.

Sessions form a stack, because `with init(...)` must give back what was there before. A
session may end while a later one, of another thread, goes on: it is taken out of the stack
wherever it stands.
"""

from __future__ import annotations

import threading
from types import TracebackType
from typing import Any

from linnet.engines import Engine, Threads
from linnet.session.finding import make_engine

_lock = threading.Lock()
_sessions: list[Session] = []
_default: Engine | None = None


class Session:
    """An engine that is the current one from `init` until `close`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        """What runs programs in this session."""

    def close(self) -> None:
        """End the session; the one before it is current again. A second call does nothing."""
        with _lock:
            if self in _sessions:
                _sessions.remove(self)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Session({self.engine!r})"


def init(
    engine: str | Engine = "threads",
    workers: int | None = None,
    memory: float | str | None = None,
    **options: Any,
) -> Session:
    """Choose what runs programs from now on: an engine by its name, or an engine.

    `workers` is how many tasks run side by side (None: as many as suit the engine), `memory` the
    budget for tiles, in bytes or as "2 GB" (None: no limit); `options` are the engine's own.
    Without `init`, threads with a worker per core run everything.

    >>> init(workers=2)
    Session(Threads(workers=2))
    >>> with init("threads", workers=1):
    ...     current_engine()
    Threads(workers=1)
    >>> current_engine()
    Threads(workers=2)
    """
    if isinstance(engine, str):
        made = make_engine(engine, workers=workers, memory=memory, **options)
    else:
        given = {"workers": workers, "memory": memory, **options}
        extra = [name for name, value in given.items() if value is not None]
        if extra:
            raise TypeError(
                f"init was given an engine, {engine!r}, and also {', '.join(extra)}; "
                "give these to the engine when you make it"
            )
        made = engine
    session = Session(made)
    with _lock:
        _sessions.append(session)
    return session


def current_engine() -> Engine:
    """The engine of the latest session that has not ended; threads, if there is none."""
    global _default
    with _lock:
        if _sessions:
            return _sessions[-1].engine
        if _default is None:
            _default = Threads()
        return _default
