"""Memory that is freed goes back to the system, while a run with a budget lasts.

An allocator keeps what is freed, for later. Tiles that come and go by the megabyte, in several
threads with a heap each, left glibc's with half of the budget again. So large blocks get pages
of their own meanwhile, and take them along when they are freed. Other allocators are left as
they are.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from linnet.machine.large_arrays import nothing_kept

_MMAP_THRESHOLD = -3
"""The name of the setting, as mallopt(3) has it: bytes from which a block gets pages of its own."""
_SMALLEST = 16 * 1024
"""Smaller blocks are never worth pages of their own."""
_LARGEST = 32 * 2**20
"""And the one it comes to by itself once large blocks were freed; nobody can ask for the current one."""
_BLOCKS = 4096
"""Pages of their own for at most so many blocks: the system limits the number of mappings."""


def _found() -> Callable[[int, int], int] | None:
    if not sys.platform.startswith("linux"):
        return None
    library: Any = ctypes.CDLL(None)
    return library.mallopt if hasattr(library, "gnu_get_libc_version") else None


_mallopt = _found()
_lock = threading.Lock()
_budgets: list[int] = []


@contextmanager
def freed_at_once(budget: int) -> Generator[None]:
    """Blocks that are large, measured by this budget, are not kept by the allocator when freed."""
    with _lock:
        _budgets.append(budget)
        _set()
    try:
        with nothing_kept():
            yield
    finally:
        with _lock:
            _budgets.remove(budget)
            _set()


def _set() -> None:
    if _mallopt is not None:
        size = max(_SMALLEST, min(_budgets) // _BLOCKS) if _budgets else _LARGEST
        _mallopt(_MMAP_THRESHOLD, min(size, _LARGEST))
