"""The public names of arrays, gathered from the chapters: what `linnet` itself shows of them."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np

from linnet.arrays import CHAPTERS
from linnet.arrays.array import Array
from linnet.arrays.elements.core import ArrayBase, as_node, wrap
from linnet.arrays.elements.undecided_arrays import values_of
from linnet.arrays.expression.nodes import Source
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.arrays.sending.nested_arrays import PLAIN, arrays_in, leaves, rebuilt
from linnet.events.showing import for_call


@lru_cache(maxsize=1)
def names() -> dict[str, Any]:
    """Every public name, with what it stands for."""
    own = {"Array": Array, "ndarray": Array, "compute": compute, "persist": persist}
    return own | {name: getattr(import_module(home), name) for name, home in chapters_of().items()}


def chapters_of() -> dict[str, str]:
    """For every public name of a chapter, the module that defines it."""
    homes: dict[str, str] = {}
    for chapter in CHAPTERS:
        module = import_module(f"linnet.arrays.{chapter}")
        for name in module.__all__:
            if name in homes:
                raise ImportError(f"{name} is defined by {homes[name]} and by {module.__name__}")
            homes[name] = module.__name__
    return homes


def compute(*arrays: Any, progress: bool | None = None) -> Any:
    """The values of several arrays, as NumPy arrays; what they share is computed once.

    Tuples, lists and named tuples of arrays give the same of values. `progress=True` shows how far it is.

    Parameters
    ----------
    arrays : Arrays, or tuples, lists and named tuples of them

    Returns
    -------
    a NumPy array or scalar, or as many as were given in what they were given in

    Examples
    --------
    >>> from linnet.arrays.elements.core import wrapped
    >>> import numpy as np
    >>> x = wrapped(np.arange(3.0))
    >>> compute(x + 1, x.sum())
    (array([1., 2., 3.]), np.float64(3.0))
    >>> compute([x + 1, (x.sum(),)])
    [array([1., 2., 3.]), (np.float64(3.0),)]
    """
    if progress is not None:
        with for_call(progress):
            return compute(*arrays)
    what = arrays[0] if len(arrays) == 1 else arrays
    parts = leaves(what) if isinstance(what, tuple | list) else []
    at_once = values_of(parts) if parts else None
    if at_once is not None:
        return rebuilt(what, at_once)
    several = hasattr(what, "_fields") or any(isinstance(each, ArrayBase | np.ndarray) for each in parts)
    if not several:  # a list of numbers is one array
        return what.compute() if isinstance(what, Array) else wrap(as_node(what)).compute()
    plain = [isinstance(each, PLAIN) for each in parts]
    nodes = [as_node(each) for each, skip in zip(parts, plain, strict=True) if not skip]
    values = (
        value[()] if not value.shape else value.copy() if isinstance(node, Source) else value
        for node, value in zip(nodes, computed(nodes), strict=True)
    )
    return rebuilt(what, [each if skip else next(values) for each, skip in zip(parts, plain, strict=True)])


def persist(*arrays: Any) -> Any:
    """Compute several arrays now and keep the results, in tiles; they are the arrays' own from now on.

    Tuples, lists and named tuples of arrays are given back as they are.

    Parameters
    ----------
    arrays : Arrays, or tuples, lists and named tuples of them

    Returns
    -------
    what was given

    Examples
    --------
    >>> import linnet as ln
    >>> x = ln.persist(ln.ones((4, 4), chunks=2) + 1)
    >>> x.sum().compute()
    np.float64(32.0)
    """
    what = arrays[0] if len(arrays) == 1 else arrays
    found = arrays_in(what, "persist")
    for each, node in zip(found, persisted([each.__node__ for each in found]), strict=True):
        each._node = node
    return what
