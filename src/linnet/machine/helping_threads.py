"""Threads that help the caller with a call of NumPy's: a part of it each, while the caller does one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context

_helpers: ThreadPoolExecutor | None = None


def side_by_side(calls: Sequence[Callable[[], object]]) -> None:
    """Run calls at the same time, the first in this thread, and wait for all of them.

    Each sees the caller's context, NumPy's handling of errors for one. An error of any of them is raised.

    >>> made = [0, 0]
    >>> side_by_side([lambda: made.__setitem__(0, 1), lambda: made.__setitem__(1, 2)])
    >>> made
    [1, 2]
    """
    first, *others = calls
    waiting = [_pool().submit(copy_context().run, each) for each in others]
    try:
        first()
    finally:
        wait(waiting)
    for each in waiting:
        each.result()


def _pool() -> ThreadPoolExecutor:
    global _helpers
    if _helpers is None:
        _helpers = ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), "linnet-helper")
    return _helpers


def _forget() -> None:
    global _helpers
    _helpers = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)  # threads stay behind
