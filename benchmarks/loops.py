"""Measures programs written as loops against `ln.matmul` and NumPy's own way, in the same process.

Times are the least of several repetitions. Rows that need a peer which is not installed are left out; sparse
programs are not built yet.

    python benchmarks/loops.py [--json FILE] [--size N]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, show

import linnet as ln


@ln.loops
def multiply(A, B):
    C = ln.zeros((A.shape[0], B.shape[1]))
    for i, j, k in ln.grid(A.shape[0], B.shape[1], A.shape[1]):
        C[i, j] += A[i, k] * B[k, j]
    return C


@ln.loops
def closer(D):
    n = D.shape[0]
    E = ln.full((n, n), ln.inf)
    for i, j, k in ln.grid(n, n, n):
        E[i, j] = min(E[i, j], D[i, k] + D[k, j])
    return E


@ln.loops
def heat(A, B, steps):
    n, m = A.shape
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                B[i, j] = A[i, j] + 0.1 * (
                    A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1] - 4 * A[i, j]
                )
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                A[i, j] = B[i, j]
    return A


@ln.loops
def regression(X, y, w, rate, epochs):
    n, m = X.shape
    for _ in range(epochs):
        g = ln.zeros(m)
        for i in range(n):
            r = -y[i]
            for j in range(m):
                r += X[i, j] * w[j]
            for j in range(m):
                g[j] += X[i, j] * r
        for j in range(m):
            w[j] -= rate * g[j] / n
    return w


def least(function: Callable[[], Any], times: int) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def numpy_heat(A: Any, steps: int) -> Any:
    A = A.copy()
    B = A.copy()
    for _ in range(steps):
        inner = A[1:-1, 1:-1]
        B[1:-1, 1:-1] = inner + 0.1 * (A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:] - 4 * inner)
        A[1:-1, 1:-1] = B[1:-1, 1:-1]
    return A


def numpy_regression(X: Any, y: Any, w: Any, rate: float, epochs: int) -> Any:
    for _ in range(epochs):
        w = w - rate * (X.T @ (X @ w - y)) / X.shape[0]
    return w


def closer_by_rows(D: Any) -> Any:
    made = np.full_like(D, np.inf)
    for k in range(D.shape[0]):
        made = np.minimum(made, D[:, k, None] + D[k])
    return made


def rows(size: int) -> list[Row]:
    rng = np.random.default_rng(0)
    big = ln.zeros((8000, 8000), chunks=1000)
    build = least(lambda: ln.plan(multiply(big, big)), 5)
    A = ln.asarray(rng.random((size, size)), chunks=size // 2)
    ours, theirs = least(lambda: multiply(A, A).compute(), 5), least(lambda: ln.matmul(A, A).compute(), 5)
    D = rng.random((size // 4, size // 4))
    semiring, by_rows = least(lambda: closer(D).compute(), 2), least(lambda: closer_by_rows(D), 2)
    H = rng.random((size, size))
    warm, plain = (
        least(lambda: heat(ln.asarray(H), ln.asarray(H), 20).compute(), 2),
        least(lambda: numpy_heat(H, 20), 2),
    )
    X, y, w = rng.random((20 * size, 200)), rng.random(20 * size), np.zeros(200)
    kept = ln.asarray(X)
    fit = least(lambda: regression(kept, y, w.copy(), 0.01, 10).compute(), 2)
    fitted = least(lambda: numpy_regression(X, y, w, 0.01, 10), 2)

    def ratio(what: str, limit: str, one: float, other: float, most: float) -> Row:
        return Row(what, limit, f"{one / other:.2f}", one / other <= most, {"ours": one, "theirs": other})

    return [
        Row(
            "build and plan a product of 8 x 8 x 8 blocks",
            "<= 20 ms",
            f"{build * 1e3:.1f} ms",
            build <= 0.02,
            {"s": build},
        ),
        ratio(f"product from loops against ln.matmul, {size}", "<= 1.05", ours, theirs, 1.05),
        ratio(f"(min, +) product, {size // 4}, against NumPy row by row", "<= 0.3", semiring, by_rows, 0.3),
        ratio(f"heat {size}², 20 steps, against NumPy's slices", "<= 0.3", warm, plain, 0.3),
        ratio("linear regression, 10 epochs, against NumPy", "<= 1.0", fit, fitted, 1.0),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--size", type=int, default=2000, help="rows and columns of matrices")
    arguments = parser.parse_args()
    show(rows(arguments.size), "Loops", arguments.json)


if __name__ == "__main__":
    main()
