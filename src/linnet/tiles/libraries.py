"""Compiled libraries: plain C that knows nothing of Python, built where a compiler was there."""

from __future__ import annotations

import ctypes
from pathlib import Path


def loaded(place: Path) -> ctypes.CDLL | None:
    """The library in a file, or None where it was not built or cannot be loaded.

    >>> loaded(Path("nowhere.so"))
    """
    if not place.exists():
        return None
    try:
        return ctypes.CDLL(str(place))
    except OSError:  # built for another machine: the slow way still works
        return None
