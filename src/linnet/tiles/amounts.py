"""Amounts of memory: as people write and read them, and as this machine has them."""

from __future__ import annotations

import contextlib
import operator
import os
import re
from functools import cache
from pathlib import Path

from linnet.errors import InputError

_DECIMAL = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS = _DECIMAL | {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where a container's memory limit stands, in the two versions of control groups."""
_AMOUNT = re.compile(r"\s*(?P<number>\d+(?:\.\d*)?|\.\d+)\s*(?P<unit>[a-zA-Z]*)\s*")


def human(size: float) -> str:
    """Bytes in units people read.

    >>> human(1_536), human(3_200_000_000)
    ('1.5 kB', '3.2 GB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def amount(given: float | str, what: str = "memory") -> int:
    """Bytes, from a number of them or a text such as "2 GB" or "512 MiB"; `what` is for messages.

    >>> amount("1.5 GB"), amount("512 MiB"), amount(4096)
    (1500000000, 536870912, 4096)
    """
    matched = _AMOUNT.fullmatch(given) if isinstance(given, str) else None
    if matched and matched["unit"].lower() in _UNITS:
        size = int(float(matched["number"]) * _UNITS[matched["unit"].lower()])
    elif not isinstance(given, str | bool) and given == given:
        size = int(given)
    else:
        size = 0
    if size < 1:
        raise InputError(f'{what}={given!r}: give bytes as a number, or as text such as "2 GB" or "512 MiB"')
    return size


def count(given: object, what: str = "workers", least: int = 1, instead: str = "") -> int:
    """How many there are of something; `what` is for messages, and `instead` what else may be given.

    >>> count(2)
    2
    >>> count(2.5, instead="None for one per core")
    Traceback (most recent call last):
        ...
    linnet.errors.InputError: workers=2.5: give at least 1, a whole number, or None for one per core
    """
    number = least - 1
    if not isinstance(given, bool):
        with contextlib.suppress(TypeError):
            number = operator.index(given)  # type: ignore[arg-type]
    if number < least:
        or_else = f", or {instead}" if instead else ""
        raise InputError(f"{what}={given!r}: give at least {least}, a whole number{or_else}")
    return number


@cache
def total_memory() -> int:
    """Bytes of memory this process may use: the machine's, or its container's if that is less."""
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([machine, *filter(None, map(_limit, _LIMITS))])


def _limit(path: str) -> int | None:
    try:
        text = Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return None
    return int(text) if text.isdigit() else None
