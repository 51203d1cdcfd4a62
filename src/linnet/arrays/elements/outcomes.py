"""What NumPy makes of operands of these dtypes, known before anything is computed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np


@lru_cache(maxsize=1024)
def sample(dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An empty array, to ask NumPy what comes of a dtype."""
    return np.empty((0,), dtype)


def outcome(ufunc: np.ufunc, samples: Sequence[Any], dtype: Any, casting: Any) -> tuple[Any, Any]:
    """NumPy says what comes out, and refuses what it would refuse; and the dtypes it computes with."""
    made = ufunc(*samples, dtype=dtype, casting=casting)
    if ufunc is np.power and made.dtype.kind in "iu" and type(samples[1]) is int and samples[1] < 0:
        raise ValueError("Integers to negative integer powers are not allowed.")
    return made, _loops(ufunc, list(samples), dtype, casting)


def kind_of(item: Any) -> Any:
    """What the outcome depends on: a dtype, or the type of a number; None if its value matters too."""
    if isinstance(item, np.ndarray):
        return item.dtype
    return None if type(item) is int and not 0 <= item <= 127 else type(item)


@lru_cache(maxsize=4096)
def outcome_of(ufunc: np.ufunc, kinds: tuple[Any, ...]) -> tuple[Any, Any]:
    samples = [sample(each) if isinstance(each, np.dtype) else each(1) for each in kinds]
    return outcome(ufunc, samples, None, "same_kind")


def _loops(ufunc: np.ufunc, samples: list[Any], dtype: Any, casting: Any) -> tuple[Any, ...]:
    """The dtypes the ufunc computes with."""
    kinds = tuple(
        s.dtype if isinstance(s, np.ndarray) else (np.dtype(bool) if isinstance(s, bool) else type(s))
        for s in samples
    )
    wanted = (None,) * ufunc.nin + (None if dtype is None else np.dtype(dtype),) * ufunc.nout
    given: dict[str, Any] = {} if dtype is None else {"signature": wanted}
    try:
        return ufunc.resolve_dtypes((*kinds, *(None,) * ufunc.nout), casting=casting, **given)
    except TypeError:  # dates have no loops known beforehand
        return tuple(np.asarray(s).dtype for s in samples)
