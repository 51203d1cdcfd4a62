"""Launchers of workers, by name; others announce themselves as entry points of `linnet.launchers`."""

from __future__ import annotations

import difflib
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, cast

from linnet.errors import InputError
from linnet.workers.launcher import Launcher

if TYPE_CHECKING:
    from linnet.fleet.fleet import Fleet

GROUP = "linnet.launchers"
_BUILT_IN = {
    "processes": "linnet.workers.launchers.processes:Processes",
    "threads": "linnet.workers.launchers.threads:WorkerThreads",
    "slurm": "linnet.workers.launchers.slurm:Slurm",
    "lithops": "linnet.workers.launchers.lithops:Lithops",
}


def make_launcher(name: str, **options: Any) -> Launcher:
    """The launcher of that name.

    >>> make_launcher("threads")
    WorkerThreads()
    """
    known = {each: EntryPoint(each, place, GROUP) for each, place in _BUILT_IN.items()}
    known.update((point.name, point) for point in entry_points(group=GROUP))
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"no launcher named {name!r}{hint} (there are: {', '.join(sorted(known))})")
    return known[name].load()(**options)


def as_launcher(given: str | Launcher | Fleet | None) -> Launcher | None:
    """What the user gave for `launcher=`: a name, a fleet, or a launcher."""
    if isinstance(given, str):
        return make_launcher(given)
    if given is not None and type(given).__module__.startswith("linnet.fleet."):
        from linnet.workers.launchers.fleet import FleetLauncher

        return FleetLauncher(cast("Fleet", given))
    return cast("Launcher | None", given)
