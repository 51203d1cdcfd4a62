"""Where events go: from one sender to whoever listens.

An event nobody listens to is never made: senders ask `TaskStarted in events.wanted`
(one set lookup) before they build it, so a silent run pays nanoseconds a task.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import Protocol

from linnet.events.types import ALL_EVENTS, Event

Listener = Callable[[Event], None]


class Sink(Protocol):
    """What an engine needs of a place to send events to."""

    @property
    def wanted(self) -> frozenset[type[Event]]:
        """The kinds of event that somebody listens to."""
        ...

    def emit(self, event: Event) -> None:
        """Hand an event on; called from any thread."""
        ...


class Events:
    """A hub that hands each event to its listeners, one event at a time.

    >>> from linnet.events import Progress
    >>> events = Events()
    >>> stop = events.subscribe(print, Progress)
    >>> Progress in events.wanted
    True
    >>> events.emit(Progress("job", 0.0, done=3, tasks=10))
    Progress(job='job', at=0.0, done=3, tasks=10)
    >>> stop()
    >>> events.wanted
    frozenset()
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._listeners: list[tuple[Listener, frozenset[type[Event]]]] = []
        self.wanted: frozenset[type[Event]] = frozenset()

    def subscribe(self, listener: Listener, *kinds: type[Event]) -> Callable[[], None]:
        """Call `listener` with every event of these kinds (all kinds, if none is given).

        Calls come from the threads that run tasks, never two at once. Returns a function
        that ends the subscription.
        """
        entry = (listener, frozenset(kinds or ALL_EVENTS))
        with self._lock:
            self._listeners.append(entry)
            self._refresh()

        def unsubscribe() -> None:
            with self._lock:
                if entry in self._listeners:
                    self._listeners.remove(entry)
                    self._refresh()

        return unsubscribe

    def emit(self, event: Event) -> None:
        """Hand an event to those who subscribed to its kind.

        A listener that raises is unsubscribed with a warning: watching a job must not end it.
        """
        kind = type(event)
        with self._lock:
            for entry in tuple(self._listeners):
                listener, kinds = entry
                if kind not in kinds:
                    continue
                try:
                    listener(event)
                except Exception as error:
                    self._listeners.remove(entry)
                    self._refresh()
                    warnings.warn(
                        f"listener {listener!r} raised {type(error).__name__}: {error} on a "
                        f"{kind.__name__} event and hears no more; the job goes on",
                        RuntimeWarning,
                        stacklevel=2,
                    )

    def _refresh(self) -> None:
        self.wanted = frozenset().union(*(kinds for _, kinds in self._listeners))
