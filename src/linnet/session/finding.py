"""Engines by name.

An engine announces itself as an entry point of the group `linnet.engines`: a class, or a
function, that takes `workers`, `memory` and its own options as keywords and returns an
`Engine`. Linnet's own are also known without one, so that a source tree that was never
installed works.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from linnet.engines import Engine
from linnet.errors import InputError

GROUP = "linnet.engines"
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
    found = _announced().get(name)
    if found is None:
        near = difflib.get_close_matches(name, engine_names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise InputError(f"no engine named {name!r}{hint} (there are: {', '.join(engine_names())})")
    factory: Callable[..., Engine] = found.load()
    try:
        return factory(**{option: value for option, value in options.items() if value is not None})
    except TypeError as error:
        if "unexpected keyword argument" not in str(error):
            raise
        raise InputError(f"engine {name!r} does not take these options: {error}") from error


def _announced() -> dict[str, EntryPoint]:
    own = {name: EntryPoint(name, place, GROUP) for name, place in _BUILT_IN.items()}
    return {**own, **{point.name: point for point in entry_points(group=GROUP)}}
