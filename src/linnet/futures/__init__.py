"""Plain Python functions run as futures; imported when first used, since arrays need little of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from linnet.futures.function import ParallelFunction, parallel
    from linnet.futures.future import Future, as_completed, map_calls, submit_call
    from linnet.futures.purity import pure

__all__ = ["Future", "ParallelFunction", "as_completed", "map_calls", "parallel", "pure", "submit_call"]

_HOMES = {
    "ParallelFunction": "function",
    "parallel": "function",
    "Future": "future",
    "as_completed": "future",
    "map_calls": "future",
    "submit_call": "future",
    "pure": "purity",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'linnet.futures' has no attribute {name!r}")
    return getattr(import_module(f"linnet.futures.{_HOMES[name]}"), name)
