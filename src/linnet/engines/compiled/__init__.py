"""What the engines do row by row, compiled where a C compiler was there when the package was built."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from linnet.machine.libraries import loaded


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiled moves of rows, or None where they were not built or cannot be loaded."""
    found = loaded(Path(__file__).with_name("runs.so"))
    if found is not None:
        number = ctypes.c_int64
        found.linnet_move_runs.argtypes = (
            ctypes.c_int, number, number, ctypes.c_void_p, number, number, number, ctypes.c_int,
        )  # fmt: skip
        found.linnet_move_runs.restype = ctypes.c_int
    return found
