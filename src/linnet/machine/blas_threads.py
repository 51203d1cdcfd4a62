"""How many threads BLAS takes: one, while anybody in this process runs tasks side by side.

For some libraries (OpenBLAS on its own threads) the number of threads belongs to the process:
those who limit it at the same time share one limit, and the last to end takes it back. For others it
belongs to the calling thread: each sets it for itself. Which is which is tried out, once per library.

threadpoolctl finds the libraries. It lets only one thread at a time change OpenBLAS, and here
whichever thread begins or ends must: so OpenBLAS is called directly.
"""

from __future__ import annotations

import importlib
import itertools
import os
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any


class Library:
    """A BLAS in this process, and who limits it."""

    def __init__(self, get: Callable[[], int], set: Callable[[int], object], shared: bool) -> None:
        self.get = get
        """How many threads it takes."""
        self.set = set
        """Change that."""
        self.shared = shared
        """Whether this holds for all threads of the process, not only for the one that asks."""
        self.holders: int = 0
        """How many runs limit it, if it is shared."""
        self._before = 0

    def hold(self) -> None:
        """One thread, until the last holder lets go. Somebody else may have changed it while it was held."""
        threads = self.get()
        if not self.holders or threads != 1:
            self._before = threads
            self.set(1)
        self.holders += 1

    def let_go(self) -> None:
        """As it was before, if this was the last holder; nothing, if there is none (after `fork`)."""
        if self.holders:
            self.holders -= 1
            if not self.holders:
                self.set(self._before)


def belongs_to_process(get: Callable[[], int], set: Callable[[int], object]) -> bool:
    """Whether a number of threads that is set by another thread counts in this one."""
    before = get()
    was_set, was_seen = threading.Event(), threading.Event()

    def other() -> None:
        own = get()
        set(before + 1)
        was_set.set()
        was_seen.wait()
        set(own)

    thread = threading.Thread(target=other, daemon=True)
    thread.start()
    was_set.wait()
    seen = get()
    was_seen.set()
    thread.join()
    return seen != before


class _Libraries:
    """Every BLAS loaded so far; looked for again when modules were imported since."""

    def __init__(self) -> None:
        self.known: dict[str, Library] = {}
        """By their files."""
        self._modules = 0

    def found(self) -> list[Library]:
        if self._modules != len(sys.modules):
            # A library loaded later would not be limited, and kernels load SciPy's at their first call.
            importlib.import_module("scipy.linalg.cython_lapack")
            threadpoolctl = importlib.import_module("threadpoolctl")
            for each in threadpoolctl.ThreadpoolController().lib_controllers:
                if each.user_api == "blas" and each.filepath not in self.known:
                    self.known[each.filepath] = _library(each)
            self._modules = len(sys.modules)
        return list(self.known.values())


def _library(controller: Any) -> Library:
    if controller.internal_api == "openblas" and controller.threading_layer != "openmp":
        for prefix, suffix in itertools.product(("", "scipy_"), ("", "64_", "_64")):
            names = (f"{prefix}openblas_{verb}_num_threads{suffix}" for verb in ("get", "set"))
            get, set = (getattr(controller.dynlib, name, None) for name in names)
            if get is not None and set is not None:
                return Library(get, set, shared=True)

    def known() -> int:
        return controller.get_num_threads() or 1

    return Library(known, controller.set_num_threads, belongs_to_process(known, controller.set_num_threads))


_lock = threading.Lock()
_libraries = _Libraries()
_holders = 0


@contextmanager
def one_blas_thread() -> Generator[list[Library]]:
    """Let every BLAS in this process use one thread, until the last such context ends; gives them all."""
    global _holders
    with _lock:
        libraries = _libraries.found()
        shared = [each for each in libraries if each.shared]
        for each in shared:
            each.hold()
        _holders += 1
    own = [(each, each.get()) for each in libraries if not each.shared]
    for each, _ in own:
        each.set(1)
    try:
        yield libraries
    finally:
        for each, before in own:
            each.set(before)
        with _lock:
            _holders = max(0, _holders - 1)
            for each in shared:
                each.let_go()


def limit_this_thread() -> None:
    """One thread, where that belongs to the thread that calls this; for threads that do nothing else.

    >>> with one_blas_thread():
    ...     helper = threading.Thread(target=limit_this_thread)
    ...     helper.start()
    ...     helper.join()
    """
    for each in list(_libraries.known.values()):  # others may find more meanwhile
        if not each.shared:
            each.set(1)


def blas_holders() -> int:
    """How many in this process want one thread now."""
    return _holders


def _after_fork() -> None:
    """The runs of the parent do not go on in its child: BLAS there is as it was without them."""
    global _lock, _holders
    _lock = threading.Lock()
    _holders = 0
    for each in _libraries.known.values():
        each.holders = min(each.holders, 1)
        each.let_go()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
