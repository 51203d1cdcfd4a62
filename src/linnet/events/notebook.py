"""Progress in a notebook: one piece of HTML below the cell, updated in place."""

from __future__ import annotations

import html
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from linnet.events.display_text import Shown, short_time
from linnet.events.hub import Events
from linnet.events.types import Event, JobCancelled, JobFailed, JobFinished, JobStarted, Progress

_EVERY = 0.25
"""Seconds between two updates."""
_KEPT = 6
"""Runs that have ended and are still shown."""
_SHORT = 0.3
"""Seconds of runs that are only counted."""


def in_notebook() -> bool:
    """Whether this is a notebook's kernel. Nothing is imported to find out.

    >>> in_notebook()
    False
    """
    shell = sys.modules.get("IPython")
    shell_of_now = shell.get_ipython() if shell is not None and hasattr(shell, "get_ipython") else None
    return type(shell_of_now).__name__ == "ZMQInteractiveShell"


class NotebookProgress:
    """Bars as HTML; a listener."""

    def __init__(
        self, show: Callable[[str], Callable[[str], None]] | None = None, *, after: float = 0.0
    ) -> None:
        """`show` displays HTML and returns the function that updates it; None: IPython's."""
        self._show = show or _displayed
        self._after = after
        self._jobs: dict[str, Shown] = {}
        self._ended: list[str] = []
        self._short = 0
        self._update: Callable[[str], None] | None = None
        self._drawn = 0.0
        self._cell: int | None = None
        self._lock = threading.RLock()

    def listen(self, events: Events) -> Callable[[], None]:
        """Subscribe to what is needed; returns the function that unsubscribes."""
        return events.subscribe(self, JobStarted, Progress, JobFinished, JobFailed, JobCancelled)

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, JobStarted):
                if self._cell != _cell():
                    self._ended, self._short = [], 0
                self._jobs[event.job] = job = Shown.of(event)
            elif (job := self._jobs.get(event.job)) is None:
                return
            elif isinstance(event, Progress):
                job.hear(event)
                if job.seconds >= max(self._after, _SHORT):
                    job.visible = True
                    self._draw()
            elif isinstance(event, JobFinished | JobFailed | JobCancelled):
                del self._jobs[event.job]
                self._end(job, event)

    def _end(self, job: Shown, event: JobFinished | JobFailed | JobCancelled) -> None:
        if not job.visible and (self._after or event.seconds < _SHORT):
            self._short += 1
            return
        words: dict[type[Event], str] = {JobFinished: "finished", JobFailed: "failed"}
        word = words.get(type(event), "cancelled")
        if word == "finished":
            job.done = job.tasks
        self._ended = [*self._ended, bar(job, f"{word} in {short_time(event.seconds)}", word)][-_KEPT:]
        self._draw(last=True)

    def _draw(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if not last and now - self._drawn < _EVERY:
            return
        self._drawn = now
        shown = [
            bar(each, " · ".join(each.details()), "running") for each in self._jobs.values() if each.visible
        ]
        few = f"<div style='color:#888'>{self._short:,} shorter runs</div>" if self._short else ""
        page = (
            "<div style='font:13px/1.6 system-ui,sans-serif'>"
            + "".join([*self._ended, *shown, few])
            + "</div>"
        )
        if self._update is None or self._cell != _cell():
            self._cell = _cell()
            self._update = self._show(page)
        else:
            self._update(page)

    def close(self) -> None:
        """The next run gets a display of its own, below its own cell."""
        with self._lock:
            self._update = None


def _cell() -> int | None:
    """The number of the cell that runs."""
    shell = sys.modules.get("IPython")
    return getattr(shell.get_ipython(), "execution_count", None) if shell is not None else None


_COLOURS = {"running": "#2f6fde", "finished": "#2a9d5c", "failed": "#c8372d", "cancelled": "#b07d12"}


def bar(job: Shown, text: str, state: str) -> str:
    """One job as a line of HTML."""
    return (
        "<div style='display:flex;align-items:center;gap:10px;color:inherit'>"
        f"<b style='min-width:7em'>{html.escape(job.program)}</b>"
        "<span style='flex:0 0 180px;height:8px;border-radius:4px;background:rgba(128,128,128,.25)'>"
        f"<span style='display:block;width:{100 * job.share:.1f}%;height:8px;border-radius:4px;"
        f"background:{_COLOURS[state]}'></span></span>"
        f"<span>{job.done:,}/{job.tasks:,} tasks</span>"
        f"<span style='opacity:.7'>{html.escape(text)}</span></div>"
    )


def _displayed(page: str) -> Callable[[str], None]:
    ipython: Any = import_module("IPython.display")
    handle: Any = ipython.display(ipython.HTML(page), display_id=True)

    def update(changed: str) -> None:
        handle.update(ipython.HTML(changed))

    return update
