"""The public names of arrays, gathered from the chapters: what `linnet` itself shows of them."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from linnet.arrays import CHAPTERS
from linnet.arrays.array import Array
from linnet.arrays.core import ArrayBase, as_node
from linnet.arrays.evaluation import computed, persisted
from linnet.arrays.expression import Source


@lru_cache(maxsize=1)
def names() -> dict[str, Any]:
    """Every public name, with what it stands for."""
    found: dict[str, Any] = {"Array": Array, "compute": compute, "persist": persist}
    for chapter in CHAPTERS:
        module = import_module(f"linnet.arrays.{chapter}")
        for name in module.__all__:
            if name in found:
                raise ImportError(f"{name} is defined by {found[name].__module__} and by {module.__name__}")
            found[name] = getattr(module, name)
    return found


def compute(*arrays: Any) -> Any:
    """The values of several arrays, as NumPy arrays; what they share is computed once.

    >>> from linnet.arrays.core import wrapped
    >>> import numpy as np
    >>> x = wrapped(np.arange(3.0))
    >>> compute(x + 1, x.sum())
    (array([1., 2., 3.]), np.float64(3.0))
    """
    nodes = [as_node(each) for each in arrays]
    values = computed(nodes)
    results = [
        value[()] if not value.shape else value.copy() if isinstance(node, Source) else value
        for node, value in zip(nodes, values, strict=True)
    ]
    return results[0] if len(results) == 1 else tuple(results)


def persist(*arrays: Any) -> Any:
    """Compute several arrays now and keep the results, in tiles; they are the arrays' own from now on."""
    for each in arrays:
        if not isinstance(each, ArrayBase):
            raise TypeError(f"persist takes arrays, not {type(each).__name__}")
    for each, node in zip(arrays, persisted([each.node for each in arrays]), strict=True):
        each._node = node
    return arrays[0] if len(arrays) == 1 else arrays
