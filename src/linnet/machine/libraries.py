"""Compiled libraries: plain C that knows nothing of Python, built where a compiler was there.

A library says which sources it was built from. Where these lie beside it and are others, it is not taken: the
structures that Python hands over could be laid out differently, and nobody would notice.
"""

from __future__ import annotations

import ctypes
import hashlib
import warnings
from pathlib import Path

from linnet.errors import CompiledCoreWarning

_warned = False
"""Whether this process was told that something is missing."""


def loaded(place: Path) -> ctypes.CDLL | None:
    """The library in a file, or None where it was not built, or for another machine, or from other sources.

    The caller then does the same in Python, more slowly; a process is told so once.
    """
    problem, library = "was not built", None
    if place.exists():
        try:
            library = ctypes.CDLL(str(place))
            problem = "" if is_current(place, built_from(library)) else "was built from other sources"
        except OSError:
            problem = "was built for another machine"
    if not problem:
        return library
    _warn(f"{place.name} {problem}")
    return None


def built_from(library: ctypes.CDLL) -> str:
    """What a library says of its sources, flags and compiler; with others, bits of results may differ."""
    try:
        symbol = ctypes.c_char.in_dll(library, "linnet_built_from")
    except ValueError:  # from before libraries said so
        return ""
    return ctypes.string_at(ctypes.addressof(symbol)).decode()


def is_current(place: Path, built: str) -> bool:
    """Whether the sources beside a library are those it was built from; where none are, it must be right."""
    source = place.with_suffix(".c")
    if not source.exists():
        return True
    parts = [source, *sorted(place.parent.glob("*.h"))]
    text = hashlib.sha256(b"\0".join(part.read_bytes() for part in parts)).hexdigest()[:16]
    return built.partition(" ")[0] == text


def _warn(problem: str) -> None:
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"a part of Linnet's compiled core is not used: {problem}. Results are right, but some functions "
            "are many times slower. Install a C compiler, then Linnet anew from source (in a checkout: make "
            'dev); or silence this: warnings.simplefilter("ignore", linnet.errors.CompiledCoreWarning)',
            CompiledCoreWarning,
            stacklevel=4,
        )
