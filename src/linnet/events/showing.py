"""Which runs are shown: what the user said for a call, for a block, for a session, or by default.

By default a run is shown from its fourth second on, if somebody looks: on a terminal or in a notebook.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from linnet.errors import InputError
from linnet.events.hub import Events
from linnet.events.progress import display_for, interactive

AFTER = 3.0
"""Seconds after which a run is shown without being asked for."""

_call: ContextVar[bool | None] = ContextVar("progress of this call", default=None)
_process: bool | None = None
_engines: weakref.WeakKeyDictionary[Any, bool] = weakref.WeakKeyDictionary()
_lock = threading.Lock()
_displays: dict[float, tuple[Any, Any, Events]] = {}
"""By the seconds after which it shows: the stream, the display, its hub."""


class ProgressChoice:
    """What `progress` returns: as a context manager, it ends the choice with the block."""

    def __init__(self, on: bool | None, before: bool | None) -> None:
        self._on, self._before = on, before

    def __enter__(self) -> ProgressChoice:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        global _process
        _process = self._before
        for _, display, _ in list(_displays.values()):
            display.close()

    def __repr__(self) -> str:
        return f"progress(on={self._on})"


def progress(on: bool | None = True) -> ProgressChoice:
    """Show how far computations are, from now on, or in a `with` block.

    One live display tells of everything that runs: arrays, factorisations, programs, jobs, reads and writes.
    It shows tasks done and in all, tasks a second, bytes, workers, memory and the time left: bars on a
    terminal, HTML that changes in place in a notebook, a line every few seconds in a log.

    Without a choice, what takes longer than three seconds is shown on a terminal and in a notebook.

    Parameters
    ----------
    on : True shows every run, False none, None what is the default

    Returns
    -------
    ProgressChoice
        A context manager, at whose end the choice before holds again.

    Examples
    --------
    >>> import linnet as ln
    >>> with ln.progress(False):
    ...     total = ln.ones((1000, 1000)).sum().compute()
    >>> ln.progress(None)
    progress(on=None)
    """
    global _process
    before, _process = _process, checked(on)
    return ProgressChoice(on, before)


def checked(on: Any) -> bool | None:
    """A choice that is one."""
    if on is None or isinstance(on, bool):
        return on
    raise InputError(f"progress={on!r}: give True (show every run), False (none) or None (the default)")


def set_for_engine(engine: Any, on: bool | None) -> None:
    """The choice of a session, for its engine."""
    if on is None:
        _engines.pop(engine, None)
    else:
        _engines[engine] = on


@contextmanager
def for_call(on: bool | None) -> Generator[None]:
    """The choice of one call, such as `x.compute(progress=True)`."""
    token = _call.set(checked(on))
    try:
        yield
    finally:
        _call.reset(token)


def hub_of_display(engine: Any = None) -> Events | None:
    """Where a run that begins now sends events to be shown; None: it is not shown."""
    on = _call.get()
    if on is None:
        on = _process
    if on is None and engine is not None:
        on = _engines.get(engine)
    if on is False or (on is None and not interactive()):
        return None
    after = 0.0 if on else AFTER
    with _lock:
        known = _displays.get(after)
        if known is None or known[0] is not sys.stderr:
            display, hub = display_for(after=after), Events()
            display.listen(hub)
            _displays[after] = known = (sys.stderr, display, hub)
    return known[2]
