"""Launchers of workers, by name; others announce themselves as entry points of `linnet.launchers`."""

from __future__ import annotations

import difflib
from importlib.metadata import entry_points
from typing import Any

from linnet.errors import InputError
from linnet.workers.launcher import Launcher

_BUILT_IN = {
    "processes": "linnet.workers.launchers.processes:Processes",
    "threads": "linnet.workers.launchers.threads:WorkerThreads",
}


def make_launcher(name: str, **options: Any) -> Launcher:
    """The launcher of that name."""
    points = {point.name: point for point in entry_points(group="linnet.launchers")}
    known = sorted({*_BUILT_IN, *points})
    if name in points:
        return points[name].load()(**options)
    if name in _BUILT_IN:
        module, _, attribute = _BUILT_IN[name].partition(":")
        return getattr(__import__(module, fromlist=[attribute]), attribute)(**options)
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise InputError(f"no launcher named {name!r}{hint} (there are: {', '.join(known)})")
