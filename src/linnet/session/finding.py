"""Engines by name.

An engine announces itself as an entry point of the group `linnet.engines`: a class, or a
function, that takes `workers`, `memory` and its own options as keywords and returns an
`Engine`. Linnet's own are also known without one, so that a source tree that was never
installed works.
"""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from linnet.engines import Engine
from linnet.errors import InputError

GROUP = "linnet.engines"
OF_SESSIONS = ("progress", "dashboard")
"""Options that `init` takes whatever the engine is."""
_BUILT_IN = {
    "threads": "linnet.engines:Threads",
    "stateless": "linnet.engines.stateless:Stateless",
    "ray": "linnet.engines.ray:Ray",
    "dask": "linnet.engines.dask:Dask",
    "mpi": "linnet.engines.mpi:MPI",
    "simulated": "linnet.engines.simulated:Simulated",
}


def engine_names() -> tuple[str, ...]:
    """Names that `init` takes, sorted.

    >>> "threads" in engine_names()
    True
    """
    return tuple(sorted(_announced()))


def make_engine(name: str, **options: Any) -> Engine:
    """The engine of that name, with `workers`, `memory` and its own options where they are not None.

    >>> make_engine("threads", workers=2)
    Threads(workers=2)
    """
    entry = _announced().get(name)
    if entry is None:
        near = difflib.get_close_matches(name, engine_names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"no engine named {name!r}{hint} (there are: {', '.join(engine_names())})")
    factory: Callable[..., Engine] = entry.load()
    keywords = {option: value for option, value in options.items() if value is not None}
    _check_options(name, factory, keywords)
    return factory(**keywords)


def _check_options(name: str, factory: Callable[..., Engine], given: Iterable[str]) -> None:
    """Refuse options that an engine does not have, with the names of those it has."""
    known = inspect.signature(factory).parameters
    if any(each.kind is each.VAR_KEYWORD for each in known.values()):
        return
    for option in given:
        if option not in known:
            near = difflib.get_close_matches(option, [*known, *OF_SESSIONS], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else _elsewhere(option)
            raise InputError(
                f"engine {name!r} has no option {option!r}{hint} (its options are: {', '.join(known)}; "
                f"of every session: {', '.join(OF_SESSIONS)})"
            )


def _elsewhere(option: str) -> str:
    """Other engines that have an option."""
    engines: list[str] = []
    for name in _BUILT_IN:
        try:
            if option in inspect.signature(_announced()[name].load()).parameters:
                engines.append(repr(name))
        except ImportError:  # an extra that is not installed
            continue
    return f"; engine {' and '.join(engines)} has it" if engines else ""


def _announced() -> dict[str, EntryPoint]:
    own = {name: EntryPoint(name, place, GROUP) for name, place in _BUILT_IN.items()}
    return {**own, **{point.name: point for point in entry_points(group=GROUP)}}
