"""One call of `linnet.linalg` several ways: on NumPy's arrays at once, and lazily, on threads and on three nodes.

What a lazy result is said to be before it is computed (shape, dtype) is compared with what it becomes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import linnet as ln
from linnet import linalg
from linnet.engines import Threads
from linnet.engines.simulated import Simulated
from linnet.planning.cluster import Cluster

ENGINE = Threads(2)
WAYS = ["at once", "lazily", "on nodes"]


def run(
    way: str, name: str, *operands: Any, tile: int | None = None, engine: Any = ENGINE, **options: Any
) -> Any:
    """The result of a function of `linnet.linalg`, as NumPy's arrays."""
    function: Callable[..., Any] = getattr(linalg, name)
    if tile is not None:
        options["tile"] = tile
    if way == "at once":
        return function(*operands, engine=engine, **options)
    nodes = way == "on nodes"
    # On nodes, matrices come in other tiles than they are worked on in.
    chunks = "auto" if tile is None else 2 * tile + 1 if nodes else tile
    with ln.init(engine=Simulated(cluster=Cluster(3)) if nodes else engine):
        return computed(function(*(lazy(each, chunks) for each in operands), **options))


def lazy(given: Any, chunks: Any) -> Any:
    """NumPy's arrays, also those in tuples, as lazy ones."""
    if isinstance(given, np.ndarray):
        return ln.asarray(given, chunks=chunks)
    if isinstance(given, tuple):
        several = [lazy(each, chunks) for each in given]
        return type(given)(*several) if hasattr(given, "_fields") else tuple(several)
    return given


def computed(result: Any) -> Any:
    """What is lazy of a result, alone or in a tuple, in one run; it is what it was said to be."""
    several = result if isinstance(result, tuple) else (result,)
    arrays = [each for each in several if not isinstance(each, bool)]
    assert all(isinstance(each, ln.Array) for each in arrays)
    told = [(each.shape, each.dtype) for each in arrays]
    values = ln.compute(*arrays) if len(arrays) > 1 else (arrays[0].compute(),)
    assert [(value.shape, value.dtype) for value in values] == told
    found: Iterator[Any] = iter(values)
    made = [each if isinstance(each, bool) else next(found) for each in several]
    if not isinstance(result, tuple):
        return made[0]
    return type(result)(*made) if hasattr(result, "_fields") else tuple(made)
