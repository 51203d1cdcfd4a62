"""The same results by several sides, each in a process of its own that is told when to begin.

A side is NumPy, an array of ours (what users type), NumPy's arrays given to `ln.linalg`, or MKL. Sides of a
case make the same inputs, from a seed, and their results are compared. They take turns: one that waits uses
no core, and none inherits the threads or the memory of another.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

REST = 0.3
"""Seconds before each turn: threads of BLAS go on spinning for a while after their work."""
ALIKE = 1e-6
"""How much the sum of all moduli of a result may differ, relatively."""

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One computation."""

    inputs: Callable[[int], tuple[np.ndarray, ...]]
    """What it starts from, at a size."""
    numpy: Function | None
    """By NumPy, if it has that."""
    linnet: Function
    """By Linnet: lazy on arrays of ours, at once on NumPy's."""
    mkl: str | None = None
    """By which function of `mkl_peer`."""
    result: int = 0
    """Which of several results is compared: one that is unique but for signs."""
    flops: Callable[[int], float] | None = None


def spd(n: int) -> np.ndarray:
    """A positive definite matrix, made without factorising anything."""
    a = np.random.default_rng(0).standard_normal((n, n))
    a += a.T
    a[np.diag_indices(n)] += 4 * n**0.5
    return a


def hermitian(n: int) -> np.ndarray:
    """A symmetric matrix."""
    a = np.random.default_rng(0).standard_normal((n, n))
    return a + a.T


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape)


def _linalg() -> Any:
    return importlib.import_module("linnet").linalg


CASES = {
    "gemm": Case(
        lambda n: tuple(each.copy() for each in _random(2, n, n)), np.matmul,
        lambda a, b: _linalg().matmul(a, b) if isinstance(a, np.ndarray) else a @ b, "matmul",
        flops=lambda n: 2.0 * n**3,
    ),
    "cholesky": Case(
        lambda n: (spd(n),), np.linalg.cholesky, lambda a: _linalg().cholesky(a), "cholesky",
        flops=lambda n: n**3 / 3,
    ),
    "solve": Case(
        lambda n: (_random(n, n), _random(n, 8)), np.linalg.solve, lambda a, b: _linalg().solve(a, b),
        "solve", flops=lambda n: 2 * n**3 / 3,
    ),
    "lu": Case(lambda n: (_random(n, n),), None, lambda a: _linalg().lu_factor(a)),
    "qr": Case(
        lambda n: (_random(n, n),), np.linalg.qr, lambda a: _linalg().qr(a), "qr", 1, lambda n: 8 * n**3 / 3
    ),
    "tall": Case(
        lambda n: (_random(n, 64),), np.linalg.qr, lambda a: _linalg().qr(a), "qr", 1,
        lambda n: 4.0 * n * 64**2,
    ),
    "svd": Case(
        lambda n: (_random(n, n),), lambda a: np.linalg.svd(a, full_matrices=False),
        lambda a: _linalg().svd(a, full_matrices=False), "svd", 1,
    ),
    "svdvals": Case(
        lambda n: (_random(n, n),), lambda a: np.linalg.svd(a, compute_uv=False),
        lambda a: _linalg().svdvals(a),
    ),
    "eigh": Case(lambda n: (hermitian(n),), np.linalg.eigh, lambda a: _linalg().eigh(a), "eigh"),
    "eigvalsh": Case(lambda n: (hermitian(n),), np.linalg.eigvalsh, lambda a: _linalg().eigvalsh(a)),
}  # fmt: skip


# ---- in the process of a side


def serve(case: str, side: str, size: int) -> None:
    """Make the inputs, then run once for each line that is read, and write what that took."""
    work = CASES[case]
    inputs = work.inputs(size)
    run = _runner(work, side, inputs)
    print(json.dumps({"tasks": _tasks(work, inputs) if side == "lazy" else 0}), flush=True)
    total: float | None = None
    for _ in sys.stdin:
        begun = time.perf_counter()
        found = run()
        seconds = time.perf_counter() - begun
        if total is None:
            total = float(np.abs(found[work.result] if isinstance(found, tuple) else found).sum())
        print(json.dumps({"seconds": seconds, "sum": total}), flush=True)
        del found


def _runner(work: Case, side: str, inputs: tuple[np.ndarray, ...]) -> Callable[[], Any]:
    if side == "numpy":
        by_numpy = work.numpy
        assert by_numpy is not None
        return lambda: by_numpy(*inputs)
    if side == "mkl":
        assert work.mkl is not None
        by_mkl = getattr(importlib.import_module("mkl_peer"), work.mkl)
        return lambda: by_mkl(*inputs)
    if side == "ndarray":
        return lambda: work.linnet(*inputs)
    ln: Any = importlib.import_module("linnet")
    arrays = [ln.asarray(each) for each in inputs]

    def lazily() -> Any:
        made = work.linnet(*arrays)
        return ln.compute(made) if isinstance(made, tuple) else made.compute()

    return lazily


def _tasks(work: Case, inputs: tuple[np.ndarray, ...]) -> int:
    """How many tasks the program has that runs: where LAPACK takes a matrix whole, one."""
    ln: Any = importlib.import_module("linnet")
    return int(ln.plan(work.linnet(*(ln.asarray(each) for each in inputs))).tasks)


# ---- in the process that measures


class Side:
    """A side of a case, waiting in a process of its own."""

    def __init__(self, case: str, side: str, size: int) -> None:
        environment = {**os.environ, "MKL_NUM_THREADS": str(len(os.sched_getaffinity(0)))}
        script = str(Path(__file__).with_name("linalg.py"))
        self._process = subprocess.Popen(
            [sys.executable, script, "--side", case, side, str(size)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment,
        )  # fmt: skip
        self.name = f"{case} by {side}"
        self.best = float("inf")
        self.total: float | None = None
        """The sum of the moduli of its result."""
        self.tasks = int(self._read()["tasks"])

    def turn(self) -> float:
        """Run once; the seconds that took."""
        time.sleep(REST)
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found = self._read()
        self.best, self.total = min(self.best, found["seconds"]), found["sum"]
        return found["seconds"]

    def _read(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.name} ended with {self._process.wait()}")
        return json.loads(line)

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *error: object) -> None:
        self._process.communicate()


def agree(sides: Sequence[Side]) -> None:
    """Refuse to compare the times of sides with different results."""
    totals = {side.name: side.total for side in sides if side.total is not None}
    if not np.allclose(list(totals.values()), next(iter(totals.values())), rtol=ALIKE, atol=0):
        raise SystemExit(f"sides have different results; sums of their moduli: {totals}")
