"""Which engine is current: that of the innermost `with init(...)` around the caller, or of the process.

A plain `init(...)` is for the process, all its threads included. Such sessions form a stack: a later one
takes over, and when it is closed the earlier one is current again. A session that is entered with `with`
leaves this stack, and is there for the caller's context only (as `contextvars` has it): other threads do not
see it, tasks that engines run for the caller do. A session may end while later ones go on; it is passed over
wherever it stands.
"""

# pyright: reportPrivateUsage=false
# the functions of this module keep the stack of sessions, which nobody else sees
from __future__ import annotations

import atexit
import os
import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

from linnet.engines import Engine, Threads
from linnet.errors import InputError
from linnet.events.showing import checked, set_for_engine
from linnet.kernels.surroundings import IN_A_WORKER, chosen
from linnet.session.finding import engine_names, make_engine

if TYPE_CHECKING:
    from linnet.webpage import Dashboard

_lock = threading.Lock()
_of_process: tuple[Session, ...] = ()
"""Sessions for all threads, the latest last; replaced as a whole, so that reading it needs no lock."""
_default: Engine | None = None
_in_a_worker: Engine | None = None


class Session:
    """An engine that is the current one from `init` until `close`.

    As a context manager it is the session of the caller's context, from `with` to the end of the block.
    """

    def __init__(self, engine: Engine, *, closes_engine: bool = False) -> None:
        self.engine = engine
        """What runs programs in this session."""
        self.closed = False
        """Whether it has ended."""
        self.dashboard: Dashboard | None = None
        """Its page, if it was asked for."""
        self._closes_engine = closes_engine
        self._entered = False
        self._thread, self._process = threading.get_ident(), os.getpid()
        self._lent = False
        """Whether another thread was given the engine while the session was that of the process."""

    def close(self) -> None:
        """End the session; the one before it is current again. A second call does nothing.

        An engine that `init` made is closed with it, one that was given to `init` is left open.
        """
        if self._leave() and self._closes_engine:
            self.engine.close()

    def _leave(self) -> bool:
        """Take the session out wherever it stands; False if that was done before."""
        global _of_process
        with _lock:
            if self.closed:
                return False
            self.closed: bool = True
            _of_process = tuple(each for each in _of_process if each is not self)
        atexit.unregister(self._end_with_process)
        if self.dashboard is not None:
            self.dashboard.close()
        return True

    def _end_with_process(self) -> None:
        """Close what is still open when the interpreter ends; not in a child process, which shares it."""
        if os.getpid() == self._process:
            self.close()

    def __enter__(self) -> Session:
        global _of_process
        with _lock:
            if self.closed:
                raise InputError(f"{self!r} was closed; begin another one with ln.init(...)")
            if self._entered:
                raise InputError(f"{self!r} has a with block already; begin another one with ln.init(...)")
            self._entered = True
            _of_process = tuple(each for each in _of_process if each is not self)
        chosen.set((*_still_open(), self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # A generator may end in another context than it began in: there, the session is only passed over.
        first = self._leave()
        if self in chosen.get():
            chosen.set(_still_open())
        # Between `init` and `with` it was the session of the process. A thread that was given its engine then
        # may be about to use it: the engine is closed when everybody has let go of it.
        if first and self._closes_engine and not self._lent:
            self.engine.close()

    def __repr__(self) -> str:
        return f"Session({self.engine!r})"


def _still_open() -> tuple[object, ...]:
    """What is chosen in this context, without sessions that have ended."""
    return tuple(each for each in chosen.get() if not (isinstance(each, Session) and each.closed))


def init(
    engine: str | Engine = "threads",
    workers: int | None = None,
    memory: float | str | None = None,
    *,
    progress: bool | None = None,
    dashboard: bool | int = False,
    **options: Any,
) -> Session:
    """Choose what runs programs from now on: an engine by its name, or an engine.

    `workers` is how many tasks run side by side (None: as many as suit the engine), `memory` the
    budget for tiles, in bytes or as "2 GB" (None: no limit); `options` are the engine's own.
    Without `init`, threads with a worker per core run everything. `progress=True` shows how far every run of
    the session is, `progress=False` none (see `ln.progress`). `dashboard=True` serves a page of the session
    on this machine, and prints its address; a number is the port (see `ln.dashboard`).

    A plain `init(...)` is for the whole process, until the session is closed: the one before is current
    again then. `with init(...)` is for the block, and for what is called in it: neither other threads nor
    those that are started in the block see it, unless they run in a copy of the caller's context
    (`contextvars.copy_context().run`, as `asyncio.to_thread` does it). Functions that engines call for the
    caller (`map_blocks`) see it: what they compute themselves runs in the same session, if the engine is
    threads; on other engines, it runs in the worker that called them.

    An engine that `init` made is closed with its session, at the latest when the interpreter ends: a cluster
    that it started is shut down, and arrays that were persisted there are gone. An engine that was given to
    `init` is left open; its own `close` does the same.

    Parameters
    ----------
    engine : str or Engine
        A name ("threads", "ray", "dask", "mpi", "stateless", "simulated"), or an engine that you made.
    workers : int, optional
        How many tasks run side by side; None: as many as suit the engine.
    memory : int or str, optional
        The budget for tiles, in bytes or as "2 GB"; None: no limit.
    progress : bool, optional
        Whether to show how far every run of the session is; None: as `ln.progress` says.
    dashboard : bool or int
        True serves a page of the session on this machine; a number is its port.
    options
        What the engine takes besides.

    Returns
    -------
    Session
        With `close()`, and a context manager.

    Examples
    --------
    >>> init(workers=2)
    Session(Threads(workers=2))
    >>> with init("threads", workers=1):
    ...     current_engine()
    Threads(workers=1)
    >>> current_engine()
    Threads(workers=2)
    """
    global _of_process
    if isinstance(engine, str):
        chosen = make_engine(engine, workers=workers, memory=memory, **options)
    elif isinstance(engine, type) or not callable(getattr(engine, "run", None)):
        names = ", ".join(f'"{name}"' for name in engine_names())
        raise InputError(f"engine={engine!r}: give the name of one ({names}), or an engine")
    else:
        keywords = {"workers": workers, "memory": memory, **options}
        extra = [name for name, value in keywords.items() if value is not None]
        if extra:
            raise TypeError(
                f"init was given an engine, {engine!r}, and also {', '.join(extra)}; "
                "give these to the engine when you make it"
            )
        chosen = engine
    set_for_engine(chosen, checked(progress))
    session = Session(chosen, closes_engine=chosen is not engine)
    if dashboard is not False:
        from linnet.session.reporting import dashboard as served

        session.dashboard = served(port=0 if dashboard is True else dashboard)
        atexit.register(session._end_with_process)
    if chosen is not engine:
        # Registered now, after what the engine's library registered when it was imported: so it comes first.
        atexit.register(session._end_with_process)
    with _lock:
        _of_process = (*_of_process, session)
    return session


def current_engine() -> Engine:
    """The engine of the innermost session around the caller; without one, that of the process, or threads."""
    for latest in reversed(chosen.get()):
        if isinstance(latest, Session) and not latest.closed:
            return latest.engine
        if latest is IN_A_WORKER:
            return _engine_in_a_worker()
    sessions = _of_process
    if not sessions:
        return _default_engine()
    latest = sessions[-1]
    if latest._thread != threading.get_ident():
        latest._lent = True
    return latest.engine


def _default_engine() -> Engine:
    global _default
    if _default is None:
        with _lock:
            _default = _default or Threads()
    return _default


def _engine_in_a_worker() -> Engine:
    """What runs what a task computes itself: the one core that the task has, with bits like the engine's."""
    global _in_a_worker
    if _in_a_worker is None:
        with _lock:
            _in_a_worker = _in_a_worker or Threads(1, deterministic=True)
    return _in_a_worker
