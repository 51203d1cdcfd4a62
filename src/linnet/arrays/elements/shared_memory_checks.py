"""Whether arrays share memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays.elements.core import (
    NUMPY,
    ArrayBase,
)
from linnet.arrays.expression.nodes import Source


def _memory(a: Any) -> Any:
    """The memory an array of somebody's lies in; an empty one where it is not computed yet."""
    if not isinstance(a, ArrayBase):
        return a
    return a.__node__.data if isinstance(a.__node__, Source) else np.empty(0)


def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether two arrays may lie in the same memory. What is not computed yet lies nowhere.

    Parameters
    ----------
    a, b : arrays
    max_work : without meaning here

    Returns
    -------
    bool

    Examples
    --------
    >>> import linnet as ln
    >>> import numpy as np
    >>> data = np.zeros(3)
    >>> ln.may_share_memory(ln.asarray(data), data), ln.may_share_memory(ln.asarray(data) + 1, data)
    (True, False)
    """
    return np.may_share_memory(_memory(a), _memory(b), max_work=max_work)


def shares_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether two arrays have an element in the same place of memory.

    Parameters
    ----------
    a, b : arrays
    max_work : without meaning here

    Returns
    -------
    bool

    Examples
    --------
    >>> import linnet as ln
    >>> import numpy as np
    >>> x = np.ones(3)
    >>> ln.shares_memory(ln.asarray(x), x)
    True
    """
    return np.shares_memory(_memory(a), _memory(b), max_work=-1 if max_work is None else max_work)


METHODS: dict[str, Any] = {}
__all__ = ["may_share_memory", "shares_memory"]
for _name in __all__:
    if hasattr(np, _name):
        NUMPY[getattr(np, _name)] = globals()[_name]
