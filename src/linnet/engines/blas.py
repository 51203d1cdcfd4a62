"""One BLAS thread per worker while tasks run side by side.

OpenBLAS's thread count belongs to the whole process, so runs that overlap in time share
one limit: the first sets it, the last gives back what was there before.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_lock = threading.Lock()
_depth = 0
_limits: Any = None


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let every BLAS in this process use one thread, until the last such context ends."""
    global _depth, _limits
    # A library loaded later would not be limited, and kernels load SciPy's at their first call.
    importlib.import_module("scipy.linalg.cython_lapack")
    threadpoolctl = importlib.import_module("threadpoolctl")
    with _lock:
        if _depth == 0:
            _limits = threadpoolctl.threadpool_limits(limits=1, user_api="blas")
        _depth += 1
    try:
        yield
    finally:
        with _lock:
            _depth -= 1
            if _depth == 0:
                _limits.restore_original_limits()
                _limits = None
