"""Counts the instructions of hot paths under valgrind, which no other process on the machine can disturb.

    python benchmarks/instructions.py           compare with what is kept in instructions.json
    python benchmarks/instructions.py --write   keep what was counted, after a change that is meant
    python benchmarks/instructions.py --only indexing

Every path runs a few times to warm up and then while callgrind counts, in one process with one thread and a
fixed order of hashes. How many instructions the interpreter and NumPy take differs between their builds, so a
path is compared by its share of `REFERENCE`, which is plain Python and NumPy and runs in the same process.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_suffix(".json")
REFERENCE = "plain Python and NumPy"
TOLERANCE = 0.15
"""What a path may take beyond its kept count, as a share of it."""
WARMING, TIMES = 3, 10
SWITCH = """
#include <valgrind/callgrind.h>
void begin(void) { CALLGRIND_START_INSTRUMENTATION; CALLGRIND_DUMP_STATS_AT("what came before"); }
void end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""
FIXED = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def paths() -> dict[str, Callable[[], Any]]:
    """What is counted, by name."""
    import numpy as np

    import linnet as ln
    from linnet.algorithms.cholesky import cholesky
    from linnet.tiles import codec

    ln.init(workers=1, progress=False)
    rng = np.random.default_rng(0)
    small, block = rng.random((10, 10)), rng.random((64, 64))
    symmetric = small @ small.T + np.eye(10)
    array, matrix, kept = ln.asarray(small), ln.asarray(symmetric), ln.asarray(np.zeros(100))
    tiled = ln.asarray(block, chunks=16)
    definite = ln.asarray(block @ block.T + 64 * np.eye(64), chunks=16)
    text = cholesky.to_bytes()
    bound = cholesky.bind(N=12)
    stored = b"".join(bytes(part) for part in codec.encoded(block))
    square = ln.grad(lambda x: ln.sum(ln.sin(x) * x))

    def reference() -> float:
        seen: dict[int, float] = {}
        for number in range(4000):
            seen[number % 17] = seen.get(number % 17, 0.0) + number
            if number % 20 == 0:
                (small * 2 + small).sum()
        return sum(seen.values())

    def assign() -> None:
        for at in range(10):
            kept[at] = 1.0
        kept.compute()

    def order() -> ln.Array:
        return ((array * 2 + array) / 3 - array.T).sum(axis=0)[2:5]

    return {
        REFERENCE: reference,
        "six operations on 10 × 10": order,
        "x + 1 of 10 × 10": lambda: (array + 1).compute(),
        "Cholesky of 10 × 10": lambda: ln.linalg.cholesky(matrix).compute(),
        "indexing: a slice, a list and a mask": lambda: ln.compute(
            array[1:7:2], array[[3, 1, 4]], array[array > 0.5]
        ),
        "ten assignments to elements": assign,
        "element-wise chain and sum of 16 tiles": lambda: (ln.sin(tiled) * 2 + tiled).sum().compute(),
        "product of 16 tiles": lambda: (tiled @ tiled).compute(),
        "Cholesky of 16 tiles": lambda: ln.linalg.cholesky(definite).compute(),
        "sort of 16 tiles": lambda: ln.sort(tiled.ravel()).compute(),
        "gradient of a sum": lambda: square(array).compute(),
        "a program from bytes": lambda: ln.TileProgram.from_bytes(text),
        "364 tasks with their children": lambda: [bound.children(task) for task in bound.tasks()],
        "a tile to bytes and back": lambda: (codec.encoded(block), codec.decoded(stored)),
    }


def count(folder: Path, only: Sequence[str]) -> dict[str, int]:
    """Run under callgrind, in a process of its own, what `paths` names; instructions of one call each."""
    source, switch = folder / "switch.c", folder / "switch.so"
    source.write_text(SWITCH)
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", switch, source], check=True)
    command = ["valgrind", "--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={folder}/counts"]
    inner = [sys.executable, __file__, "--inside", str(switch), *(["--only", *only] if only else [])]
    done = subprocess.run(
        [*command, *inner], env={**os.environ, **FIXED}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    counts: dict[str, int] = {}
    for each in folder.glob("counts*"):
        text = each.read_text()
        name = re.search(r"^desc: Trigger: Client Request: (.*)$", text, re.MULTILINE)
        total = re.search(r"^(?:totals|summary): (\d+)$", text, re.MULTILINE)
        if name and total and name[1] != "what came before":
            counts[name[1]] = int(total[1]) // TIMES
    return counts


def run_inside(switch: Path, only: Sequence[str]) -> None:
    """In the process that callgrind watches: call every path, telling callgrind when to count."""
    import gc

    library = ctypes.CDLL(str(switch))
    for name, call in paths().items():
        if only and name != REFERENCE and not any(word in name for word in only):
            continue
        for _ in range(WARMING):
            call()
        gc.collect()
        gc.disable()
        library.begin()
        for _ in range(TIMES):
            call()
        library.end(name.encode())
        gc.enable()


def shares(counts: dict[str, int]) -> dict[str, float]:
    """Each path as a share of the reference, in thousandths.

    >>> shares({REFERENCE: 2000, "a": 1000})
    {'a': 500.0}
    """
    return {
        name: round(1000 * number / counts[REFERENCE], 1)
        for name, number in counts.items()
        if name != REFERENCE
    }


def slower(now: dict[str, float], kept: dict[str, float]) -> list[str]:
    """What takes more instructions than it may, or is not kept yet, in words.

    >>> slower({"a": 114.0, "b": 116.0, "c": 1.0}, {"a": 100.0, "b": 100.0})
    ['b: 116.0 thousandths of the reference, kept are 100.0 (+16%)', 'c: 1.0, and no count is kept']
    """
    words = []
    for name, share in now.items():
        if name not in kept:
            words.append(f"{name}: {share}, and no count is kept")
        elif share > kept[name] * (1 + TOLERANCE):
            more = share / kept[name] - 1
            words.append(f"{name}: {share} thousandths of the reference, kept are {kept[name]} (+{more:.0%})")
    return words


def main() -> int:
    parser = argparse.ArgumentParser(description="Instructions of hot paths, under valgrind.")
    parser.add_argument("--write", action="store_true", help="keep what was counted")
    parser.add_argument("--only", nargs="+", default=[], help="paths whose names contain one of these words")
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.inside:
        run_inside(chosen.inside, chosen.only)
        return 0
    with tempfile.TemporaryDirectory() as folder:
        counts = count(Path(folder), chosen.only)
    now = shares(counts)
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    print(f"{'instructions':>14}  {'thousandths':>11}  {'kept':>9}")
    for name, number in counts.items():
        print(f"{number:14,}  {now.get(name, 1000.0):11.1f}  {kept.get(name, ''):>9}  {name}")
    if chosen.write:
        KEPT.write_text(
            json.dumps({**kept, **now} if chosen.only else now, indent=1, ensure_ascii=False) + "\n"
        )
        return 0
    for line in slower(now, kept):
        print(line)
    return 1 if slower(now, kept) else 0


if __name__ == "__main__":
    sys.exit(main())
