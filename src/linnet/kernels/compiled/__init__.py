"""The part of the kernels that is compiled, where a C compiler was there when the package was built.

The bulge chase and the application of its reflectors: a step takes microseconds, Python needs as
long to call anything, and BLAS has nothing for matrices of this form. And substitution in small
triangles, where BLAS is slow. And the nearest of some centres, whose distances need not leave the registers.
The libraries are plain C and know nothing of Python, so calling them lets
go of the interpreter lock. Where they are missing, `bulge`, `diamonds` and `substitution` do the same in
Python and BLAS, and pass the same tests.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib
import threading
from pathlib import Path

import numpy as np

from linnet.machine.libraries import built_from, loaded

CHASE, SUBSTITUTE, KMEANS = (
    Path(__file__).with_name(name) for name in ("chase.so", "substitute.so", "kmeans.so")
)
"""Where the build puts the libraries; they are not there if no compiler was."""


class Chase(ctypes.Structure):
    """One chase, as `chase.c` describes it."""

    _fields_ = (
        *(
            (name, ctypes.c_int64)
            for name in ("type", "hermitian", "size", "width", "first", "steps", "down")
        ),
        *((name, ctypes.c_void_p) for name in ("origin", "left_v", "left_tau", "right_v", "right_tau")),
        ("taken", ctypes.c_void_p),
        ("done", ctypes.c_void_p),
    )


class Reflect(ctypes.Structure):
    """Reflectors and what they are applied to, as `chase.c` describes it."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("type", "sweeps", "steps", "width", "first")),
        *((name, ctypes.c_int64) for name in ("vectors", "rows", "leading")),
        *((name, ctypes.c_void_p) for name in ("v", "tau", "s")),
    )


class Substitution(ctypes.Structure):
    """A triangle and right sides, as `substitute.c` describes it."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("type", "order", "count", "unit")),
        *((name, ctypes.c_int64) for name in ("t_down", "t_right", "x_down", "x_right")),
        *((name, ctypes.c_void_p) for name in ("t", "x")),
    )


class Nearest(ctypes.Structure):
    """Rows and centres, as `kmeans.c` describes them."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("rows", "columns", "centres", "down", "padded")),
        *((name, ctypes.c_void_p) for name in ("x", "shift", "weight", "turned", "squares")),
        *((name, ctypes.c_void_p) for name in ("labels", "line", "work")),
    )


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled chase, or None where it was not built or cannot be loaded."""
    found = loaded(CHASE)
    if found is not None:
        found.linnet_chase.argtypes = (ctypes.POINTER(Chase), ctypes.c_void_p)
        found.linnet_chase.restype = None
        found.linnet_reflect.argtypes = (ctypes.POINTER(Reflect), ctypes.c_void_p)
        found.linnet_reflect.restype = None
    return found


@functools.cache
def substitutes() -> ctypes.CDLL | None:
    """The compiled substitution, or None where it was not built or cannot be loaded."""
    found = loaded(SUBSTITUTE)
    if found is not None:
        found.linnet_substitute.argtypes = (ctypes.POINTER(Substitution), ctypes.c_void_p)
        found.linnet_substitute.restype = None
        found.linnet_substitute_room.argtypes = (ctypes.c_int64, ctypes.c_int64)
        found.linnet_substitute_room.restype = ctypes.c_int64
    return found


@functools.cache
def centres() -> ctypes.CDLL | None:
    """The compiled search for the nearest centre, or None where it was not built or cannot be loaded."""
    found = loaded(KMEANS)
    if found is not None:
        found.linnet_nearest.argtypes = (ctypes.POINTER(Nearest),)
        found.linnet_nearest.restype = ctypes.c_int64
    return found


def identity() -> str:
    """What the compiled kernels were built from, in a word; with others, bits of results may differ.

    >>> identity().startswith("core/")
    True
    """
    found = (library(), substitutes(), centres() if KMEANS.exists() else None)
    libraries = [each for each in found if each is not None]
    text = " ".join(built_from(each) for each in libraries)
    return f"core/{hashlib.sha256(text.encode()).hexdigest()[:12]}" if libraries else "core/python"


def run_chase(compiled: ctypes.CDLL, chase: Chase, item: int) -> None:
    """Run a chase on as many threads as BLAS may use now; elements have `item` bytes.

    All fields of `chase` but `taken` and `done` are set.
    """
    threads = allowed_threads()
    progress = np.zeros(1 + max(chase.size, 0), np.int64)
    work = np.empty((threads, 2 * chase.width * item), np.uint8)
    chase.taken = progress.ctypes.data
    chase.done = progress[1:].ctypes.data
    # Whoever comes takes the next sweeps: a thread that starts late, or never, is not waited for.
    helpers = [
        threading.Thread(target=compiled.linnet_chase, args=(chase, room.ctypes.data), daemon=True)
        for room in work[1:]
    ]
    for helper in helpers:
        helper.start()
    compiled.linnet_chase(chase, work[0].ctypes.data)
    for helper in helpers:
        helper.join()


def run_reflect(compiled: ctypes.CDLL, reflect: Reflect, item: int) -> None:
    """Apply reflectors to vectors, on the calling thread; elements have `item` bytes."""
    blocks = -(-reflect.sweeps // 4)
    window = (4 * blocks + reflect.width - 1) * (96 // item)
    work = np.empty((window + blocks * (4 * (reflect.width + 3) + 16)) * item + 64, np.uint8)
    compiled.linnet_reflect(reflect, work.ctypes.data + -work.ctypes.data % 64)


def run_substitution(compiled: ctypes.CDLL, system: Substitution, item: int) -> None:
    """Overwrite right sides with the solutions, on the calling thread; elements have `item` bytes."""
    work = np.empty(compiled.linnet_substitute_room(system.order, item) * item + 64, np.uint8)
    compiled.linnet_substitute(system, work.ctypes.data + -work.ctypes.data % 64)


def allowed_threads() -> int:
    """As many as BLAS may use: whoever limits BLAS while tasks run side by side means this too.

    >>> import threadpoolctl
    >>> with threadpoolctl.threadpool_limits(1, user_api="blas"):
    ...     allowed_threads()
    1
    """
    threadpoolctl = importlib.import_module("threadpoolctl")
    libraries = threadpoolctl.ThreadpoolController().select(user_api="blas").info()
    return max((library["num_threads"] for library in libraries), default=1)
