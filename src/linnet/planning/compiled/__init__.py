"""What planning does task by task, compiled where a C compiler was there when the package was built.

The libraries are plain C and know nothing of Python. Where one is missing, the module that asks for it does
the same in Python, and passes the same tests.
"""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path

from linnet.machine.libraries import loaded


@functools.cache
def library(name: str) -> ctypes.CDLL | None:
    """A library by its name, or None where it was not built or cannot be loaded."""
    return loaded(Path(__file__).with_name(f"{name}.so"))
