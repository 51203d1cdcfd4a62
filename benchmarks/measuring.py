"""What the benchmarks share: lines of a report, memory that is kept, and memory that is watched.

Times are taken with an allocator that keeps what is freed, on both sides: a virtual machine that
hands free memory back to its host takes longer to touch it again than the work on it takes.
"""

from __future__ import annotations

import gc
import json
import mmap
import os
import platform
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

KEEPING = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TOP_PAD_": str(64 * 2**20),
    "MALLOC_TRIM_THRESHOLD_": str(2**40),
}
"""What tells the allocator of glibc to keep all memory that is freed; others do not look at it."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the report."""

    what: str
    """What was measured."""
    target: str
    """What it must reach."""
    measured: str
    """What it reached."""
    kept: bool | None
    """Whether that is enough; None where there is no target."""
    numbers: dict[str, Any]
    """The bare numbers."""


def keep_memory() -> None:
    """Start this program again, if need be, with an allocator that keeps what is freed."""
    if any(os.environ.get(name) != value for name, value in KEEPING.items()):
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, **KEEPING})


def ordinary_memory() -> dict[str, str]:
    """The environment for a process of its own with the allocator as it is."""
    return {key: value for key, value in os.environ.items() if key not in KEEPING}


def report(rows: Sequence[Row]) -> str:
    """The rows as a table."""
    verdicts = {True: "kept", False: "MISSED", None: ""}
    table = [("what", "target", "measured", "verdict")]
    table += [(row.what, row.target, row.measured, verdicts[row.kept]) for row in rows]
    widths = [max(len(line[column]) for line in table) for column in range(4)]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in table
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def show(rows: Sequence[Row], title: str, json_file: Path | None) -> None:
    """Print the report under what it was measured on, and write the numbers if asked to."""
    load = os.getloadavg()[0]
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    print(f"{title}    {versions}, {os.cpu_count()} cores, load {load:.1f}\n")
    print(report(rows))
    if json_file:
        json_file.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n", encoding="utf-8")


class Peak:
    """Resident memory above what it was, sampled every two milliseconds."""

    def __enter__(self) -> Peak:
        gc.collect()
        self.base = self.top = resident()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()
        return self

    def _watch(self) -> None:
        while not self.over.wait(0.002):
            self.top = max(self.top, resident())

    def __exit__(self, *error: object) -> None:
        self.over.set()
        self.thread.join()

    @property
    def bytes(self) -> int:
        """The most there was at once."""
        return self.top - self.base


def resident() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
