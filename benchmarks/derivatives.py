"""Measures derivatives: gradients of a logistic loss against those by hand, and memory of a long chain.

Loss and gradient of 10⁶ x 100 numbers, in the same process, the least of several repetitions. The chain is
100 element-wise steps on 10⁷ numbers, in blocks of ten under `ln.checkpoint`; its memory is the peak of a
process of its own, above what it had before.

    python benchmarks/derivatives.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, show

import linnet as ln

ROWS, COLUMNS, LENGTH, STEPS, BLOCK = 10**6, 100, 10**7, 100, 10


def loss(w: Any, x: Any, y: Any) -> Any:
    return ln.mean(ln.log1p(ln.exp(-y * (x @ w))))


def gradient_by_hand(w: Any, x: Any, y: Any) -> Any:
    return x.T @ (-y / (1 + ln.exp(y * (x @ w)))) / y.size


def both_by_hand(w: Any, x: Any, y: Any) -> Any:
    e = ln.exp(-y * (x @ w))
    return ln.mean(ln.log1p(e)), x.T @ (-y * e / (1 + e)) / y.size


def least(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """The least time of each, taken in turns: a machine that is busy is so for all."""
    found = dict.fromkeys(calls, float("inf"))
    for _ in range(repeats):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            found[name] = min(found[name], time.perf_counter() - began)
    return found


def logistic(rows: int, repeats: int) -> list[Row]:
    rng = np.random.default_rng(0)
    x = ln.asarray(rng.normal(size=(rows, COLUMNS)), chunks=(10_000, COLUMNS))
    y = ln.asarray(rng.choice([-1.0, 1.0], rows), chunks=10_000)
    w = ln.asarray(rng.normal(size=COLUMNS) / 10)
    slope, both = ln.grad(loss), ln.value_and_grad(loss)
    np.testing.assert_allclose(slope(w, x, y), gradient_by_hand(w, x, y), rtol=1e-8)
    times = least(
        {
            "gradient by hand": lambda: gradient_by_hand(w, x, y).compute(),
            "gradient": lambda: slope(w, x, y).compute(),
            "both by hand": lambda: ln.compute(*both_by_hand(w, x, y)),
            "both": lambda: ln.compute(*both(w, x, y)),
        },
        repeats,
    )
    one, two = times["gradient"] / times["gradient by hand"], times["both"] / times["both by hand"]
    what = f"logistic loss, {rows:,} x {COLUMNS}"
    return [
        Row(f"gradient of a {what}, against by hand", "<= 1.15", f"{one:.3f}", one <= 1.15, times),
        Row(f"value and gradient of a {what}, against by hand", "<= 1.2", f"{two:.3f}", two <= 1.2, times),
    ]


def chain(length: int) -> None:
    """The gradient of the chain; prints how many arrays of its length memory grew by."""

    def block(x: Any) -> Any:
        for _ in range(BLOCK):
            x = ln.sin(x) * 1.01
        return x

    def whole(x: Any) -> Any:
        for _ in range(STEPS // BLOCK):
            x = ln.checkpoint(block)(x)
        return ln.sum(x)

    values = np.arange(length, dtype=float)
    values /= length
    x = ln.asarray(values)
    before = _memory("VmRSS")
    ln.grad(whole)(x).compute()
    print((_memory("VmHWM") - before) / (8 * length))


def _memory(what: str) -> int:
    """Memory of this process now, or its peak; `ru_maxrss` begins with that of the parent."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    (line,) = [line for line in lines if line.startswith(what)]
    return int(line.split()[1]) * 1024


def memory(length: int) -> Row:
    done = subprocess.run(
        [sys.executable, __file__, "--chain", str(length)], capture_output=True, text=True, check=True
    )
    arrays = float(done.stdout)
    return Row(
        f"memory of the gradient of {STEPS} steps on {length:,} numbers, with checkpoint",
        "<= 4 arrays",
        f"{arrays:.2f} arrays above the argument",
        arrays + 1 <= 4,
        {"arrays": arrays},
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--quick", action="store_true", help="a tenth of the sizes")
    parser.add_argument("--chain", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.chain:
        chain(arguments.chain)
        return
    part = 10 if arguments.quick else 1
    show([*logistic(ROWS // part, 15), memory(LENGTH // part)], "Derivatives", arguments.json)


if __name__ == "__main__":
    main()
