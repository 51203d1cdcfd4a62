"""Arrays larger than memory: cut in other ways, shuffled, sorted, within a budget.

Each row runs in a process of its own, from an array in a file to one that is kept in scratch files,
and tells the most resident memory above what there was before, and its time in passes: a pass is the
time to read and to write as many bytes as the array has, at the bandwidth of the disk, measured
beside it with the system's cache of files emptied of them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, show

import linnet as ln
from linnet.tiles import amount, human

_PIECE = 64 * 2**20
COLUMNS = 32_768
"""Of the matrix: a row takes 256 kB."""


def most_resident() -> int:
    """The most bytes this process has held since `forget`."""
    text = Path("/proc/self/status").read_text(encoding="ascii")
    (line,) = [line for line in text.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) * 1024


def forget() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def written(path: Path, size: int) -> None:
    """A file of random doubles."""
    rng = np.random.Generator(np.random.SFC64(0))
    with path.open("wb") as file:
        for start in range(0, size, _PIECE):
            file.write(rng.random(min(_PIECE, size - start) // 8).data)


def bandwidth(folder: str, size: int) -> tuple[float, float]:
    """Bytes a second that the disk reads and writes in long runs."""
    piece = np.random.default_rng(0).bytes(_PIECE)
    path = Path(folder) / "bandwidth.bin"
    begun = time.perf_counter()
    with path.open("wb") as file:
        for _ in range(0, size, _PIECE):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
        writing = time.perf_counter() - begun
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    begun = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(_PIECE):
            pass
    reading = time.perf_counter() - begun
    path.unlink()
    return size / reading, size / writing


# ---- what is measured


def rechunked(x: np.memmap[Any, Any]) -> Callable[[], bool]:
    rows = ln.asarray(x, chunks=(32, -1))
    made = rows.rechunk((-1, 32)).persist()
    return lambda: all(
        np.array_equal(made[:, column].compute(), x[:, column]) for column in (0, 33, COLUMNS - 1)
    )


def permuted(x: np.memmap[Any, Any]) -> Callable[[], bool]:
    made = ln.random.default_rng(0).permutation(ln.asarray(x, chunks=(32, -1))).persist()

    def right() -> bool:
        ours, theirs = np.sort(made[:, 5].compute()), np.sort(x[:, 5])
        return np.array_equal(ours, theirs) and not np.array_equal(made[:, 5].compute(), x[:, 5])

    return right


def ordered(x: np.memmap[Any, Any]) -> Callable[[], bool]:
    made = ln.sort(ln.asarray(x)).persist()

    def right() -> bool:
        picked = made[:: max(1, x.size // 10_000)].compute()
        marks = np.array([0.1, 0.5, 0.9])
        parts = (x[k : k + 2**20, None] < marks for k in range(0, x.size, 2**20))
        below = np.sum([part.sum(axis=0) for part in parts], axis=0)
        found = [made[b - 1 : b + 1].compute() for b in below.tolist()]
        return bool((np.diff(picked) >= 0).all()) and all(
            low < mark <= high for (low, high), mark in zip(found, marks, strict=True)
        )

    return right


CASES: dict[str, tuple[str, Callable[..., Any], float | None]] = {
    "rechunk": ("rechunk rows to columns", rechunked, 3.0),
    "permute": ("permute rows", permuted, None),
    "sort": ("sort", ordered, None),
}


def child(name: str, path: str, budget: int, scratch: str) -> None:
    """One row, in this process."""
    x = np.memmap(path, np.float64, "r")
    x = x if name == "sort" else x.reshape(-1, COLUMNS)
    with ln.init(memory=budget, scratch=scratch):
        small = ln.asarray(np.zeros((64, 64)), chunks=16)  # modules are loaded once
        ln.compute(ln.sort(small[:, 0]), (small + 1).rechunk(8).sum())
        forget()
        before = most_resident()
        begun = time.perf_counter()
        right = CASES[name][1](x)
        seconds = time.perf_counter() - begun
        peak = most_resident() - before
        print(json.dumps({"seconds": seconds, "peak": peak, "right": bool(right())}))


def measured(name: str, size: int, budget: int, folder: str) -> list[Row]:
    """A row for the time and one for the memory."""
    what, _, passes = CASES[name]
    probed = [bandwidth(folder, min(size, 2**30))]
    path = Path(folder) / "given.bin"
    written(path, size)
    try:
        command = [sys.executable, __file__, "--child", name, str(path), str(budget), folder]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    finally:
        path.unlink()
    found = json.loads(done.stdout)
    probed.append(bandwidth(folder, min(size, 2**30)))  # disks are fast for a while, and then slow
    reading, writing = (2 / (1 / before + 1 / after) for before, after in zip(*probed, strict=True))
    one = size / reading + size / writing
    taken = found["seconds"] / one
    allowed = 1.1 * budget + 4e6 * (os.cpu_count() or 1)
    disk = f"disk reads {reading / 1e9:.2f}, writes {writing / 1e9:.2f} GB/s"
    return [
        Row(
            f"{what}, {human(size)}, budget {human(budget)}",
            "right, time told" if passes is None else f"≤ {passes:g} passes",
            f"{taken:.2f} passes  ({found['seconds']:.1f} s; {disk})",
            found["right"] and (passes is None or taken <= passes),
            {**found, "passes": taken, "reading": reading, "writing": writing},
        ),
        Row(
            "its memory",
            f"≤ {allowed / 1e6:.0f} MB",
            f"{found['peak'] / 1e6:.0f} MB",
            found["peak"] <= allowed,
            {"peak": found["peak"], "budget": budget},
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", default="8 GB", help="of the array; sorting takes a fifth of it")
    parser.add_argument("--budget", default="1 GB", help="memory for tiles")
    parser.add_argument("--folder", help="for the files: several times the size of the array")
    parser.add_argument("--only", nargs="+", choices=list(CASES), help="these rows only")
    parser.add_argument("--quick", action="store_true", help="small arrays: does it still run?")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    parser.add_argument("--child", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, path, budget, scratch = options.child
        child(name, path, int(budget), scratch)
        return
    size, budget = (2**28, 2**25) if options.quick else (amount(options.size), amount(options.budget))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="linnet-", dir=options.folder) as folder:
        for name in options.only or CASES:
            whole = size // 5 if name == "sort" else size
            row = COLUMNS * 8
            rows += measured(name, max(1, whole // row) * row, budget, folder)
    show(rows, "Arrays larger than memory", options.json)


if __name__ == "__main__":
    main()
