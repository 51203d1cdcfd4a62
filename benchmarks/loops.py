"""Measures programs written as loops against `ln.matmul` and NumPy's own way, in the same process.

Times are the least of several repetitions. Missing: Funk's factorisation on stored entries, and the peak
memory of a chain.

    python benchmarks/loops.py [--json FILE] [--size N] [--only ROW ...]
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
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
def shortest_paths(D):
    n = D.shape[0]
    changed = True
    while changed:
        E = ln.full((n, n), ln.inf)
        for i, j, k in ln.grid(n, n, n):
            E[i, j] = min(E[i, j], D[i, k] + D[k, j])
        changed = any(E[i, j] < D[i, j] for i, j in ln.grid(n, n))
        D = E
    return D


@ln.loops
def ranks(P, rank, steps):
    n = P.shape[0]
    for _ in range(steps):
        new = ln.zeros(n)
        for i, j in ln.grid(n, n):
            new[i] += P[i, j] * rank[j]
        for i in range(n):
            new[i] = 0.15 / n + 0.85 * new[i]
        rank = new
    return rank


@ln.loops
def smith_waterman(a, b):
    n, m = a.shape[0], b.shape[0]
    H = ln.zeros((n + 1, m + 1), dtype=ln.int64)
    for i, j in ln.wavefront((1, n + 1), (1, m + 1)):
        score = 2 if a[i - 1] == b[j - 1] else -1
        H[i, j] = max(0, H[i - 1, j - 1] + score, H[i - 1, j] - 1, H[i, j - 1] - 1)
    return H


def numba_alignment() -> Callable[[Any, Any], Any]:
    """The table of scores, row by row on one core."""
    from numba import njit

    @njit
    def table(a: Any, b: Any) -> Any:
        H = np.zeros((len(a) + 1, len(b) + 1), np.int64)
        for i in range(1, len(a) + 1):
            for j in range(1, len(b) + 1):
                score = 2 if a[i - 1] == b[j - 1] else -1
                H[i, j] = max(0, H[i - 1, j - 1] + score, H[i - 1, j] - 1, H[i, j - 1] - 1)
        return H

    return table


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


@ln.loops
def network(X, y, U, v, rate, epochs):
    n, m = X.shape
    h = U.shape[1]
    for _ in range(epochs):
        H = ln.zeros((n, h))
        P = ln.zeros(n)
        dU, dv = ln.zeros((m, h)), ln.zeros(h)
        for i, k in ln.grid(n, h):
            t = sum(X[i, j] * U[j, k] for j in range(m))
            H[i, k] = 1 / (1 + math.exp(-t))
        for i in range(n):
            for k in range(h):
                P[i] += H[i, k] * v[k]
        for i in range(n):
            e = P[i] - y[i]
            for k in range(h):
                dv[k] += e * H[i, k] / n
                d = e * v[k] * H[i, k] * (1 - H[i, k])
                for j in range(m):
                    dU[j, k] += d * X[i, j] / n
        for k in range(h):
            v[k] -= rate * dv[k]
            for j in range(m):
                U[j, k] -= rate * dU[j, k]
    return U, v


def torch_descent(loss: Callable[..., Any], starts: list[Any], rate: float, epochs: int) -> list[Any]:
    """Epochs of gradient descent with PyTorch's derivatives and its optimiser."""
    import torch

    parameters = [torch.from_numpy(each.copy()).requires_grad_() for each in starts]
    optimiser = torch.optim.SGD(parameters, lr=rate)
    for _ in range(epochs):
        optimiser.zero_grad()
        loss(*parameters).backward()
        optimiser.step()
    return [each.detach().numpy() for each in parameters]


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


def closer_by_rows(D: Any) -> Any:
    made = np.full_like(D, np.inf)
    for k in range(D.shape[0]):
        made = np.minimum(made, D[:, k, None] + D[k])
    return made


def numba_closer() -> Callable[[Any], Any]:
    """The (min, +) product as Numba's users write it: rows in parallel, the loop over columns inside."""
    from numba import njit, prange

    @njit(parallel=True, fastmath=False)
    def product(D: Any) -> Any:
        n = D.shape[0]
        E = np.full((n, n), np.inf)
        for i in prange(n):
            for k in range(n):
                d = D[i, k]
                for j in range(n):
                    t = d + D[k, j]
                    if t < E[i, j]:
                        E[i, j] = t
        return E

    return product


def ratio(what: str, limit: float, one: float, other: float) -> Row:
    """A row of two times."""
    return Row(
        what, f"<= {limit}", f"{one / other:.2f}", one / other <= limit, {"ours": one, "theirs": other}
    )


def build(size: int) -> Row:
    big = ln.zeros((8000, 8000), chunks=1000)
    ln.plan(multiply(big, big))
    time_ = least(lambda: ln.plan(multiply(big, big)), 5)
    return Row(
        "build and plan a product of 8 x 8 x 8 blocks, known program", "<= 20 ms", f"{time_ * 1e3:.1f} ms",
        time_ <= 0.02, {"s": time_},
    )  # fmt: skip


def matmul(size: int) -> Row:
    A = ln.asarray(RNG.random((size, size)), chunks=size // 2)
    ours, theirs = least(lambda: multiply(A, A).compute(), 5), least(lambda: ln.matmul(A, A).compute(), 5)
    return ratio(f"product from loops against ln.matmul, {size}", 1.05, ours, theirs)


def minplus(size: int) -> Row:
    D = RNG.random((size, size))
    theirs = numba_closer()
    np.testing.assert_array_equal(theirs(D[:64, :64].copy()), closer(D[:64, :64].copy()).compute())
    one, other = least(lambda: closer(D).compute(), 3), least(lambda: theirs(D), 3)
    return ratio(f"(min, +) product, {size}, against Numba's i-k-j loop", 0.8, one, other)


def paths(size: int) -> Row:
    D = np.where(RNG.random((size, size)) < 0.01, RNG.random((size, size)), np.inf)
    np.fill_diagonal(D, 0)

    def by_steps() -> Any:
        made = D.copy()
        for k in range(size):
            made = np.minimum(made, made[:, k, None] + made[k])
        return made

    def ours() -> Any:
        return shortest_paths(ln.asarray(D)).compute()

    np.testing.assert_allclose(ours(), by_steps())
    one, other = least(ours, 1), least(by_steps, 1)
    return ratio(f"shortest paths, {size} nodes, against NumPy's loop", 0.3, one, other)


def pagerank(size: int) -> Row:
    nodes, edges, steps = 500 * size, 5000 * size, 10
    ends = RNG.integers(0, nodes, (2, edges))
    A = scipy.sparse.coo_array((np.ones(edges), tuple(ends)), shape=(nodes, nodes)).tocsr()
    share = 1 / np.maximum(A.sum(axis=1), 1)
    P = (scipy.sparse.diags_array(share) @ A).T.tocsr()
    ours = ln.sparse(P, chunks=(nodes // 8, nodes))
    rank = np.full(nodes, 1 / nodes)

    def theirs() -> Any:
        r = rank
        for _ in range(steps):
            r = 0.15 / nodes + 0.85 * (P @ r)
        return r

    def mine() -> Any:
        return ranks(ours, ln.asarray(rank), steps).compute()

    np.testing.assert_allclose(mine(), theirs())
    one, other = least(mine, 2), least(theirs, 2)
    return ratio(f"PageRank, {nodes} nodes, {edges} edges, {steps} steps, against SciPy", 0.5, one, other)


def sparse_product(size: int) -> Row:
    n = 10 * size
    A = scipy.sparse.random_array((n, n), density=0.01, format="csr", rng=RNG)
    ours = ln.sparse(A, chunks=n // 4)
    one, other = least(lambda: multiply(ours, ours).compute(), 2), least(lambda: A @ A, 2)
    return ratio(f"sparse product from loops, {n} at 1%, against SciPy", 0.35, one, other)


def sparse_rows(size: int) -> Row:
    n, each = 500 * size, 10
    places = RNG.integers(0, n, (n, each))
    A = scipy.sparse.csr_array((RNG.random(n * each), places.ravel(), np.arange(n + 1) * each), shape=(n, n))
    A.sum_duplicates()
    ours = ln.sparse(A, chunks=(n // 8, n))
    np.testing.assert_allclose((ours @ ours)[:100].todense().sum(axis=1), (A[:100] @ A).sum(axis=1))
    one, other = least(lambda: (ours @ ours).persist(), 2), least(lambda: A @ A, 2)
    return ratio(f"sparse product, {n} rows with {each}, against SciPy", 0.5, one, other)


def alignment(size: int) -> Row:
    n = 10 * size
    one, other = RNG.integers(0, 4, n), RNG.integers(0, 4, n)
    compared = numba_alignment()
    np.testing.assert_array_equal(smith_waterman(one, other).compute(), compared(one, other))
    mine = least(lambda: smith_waterman(one, other).compute(), 2)
    return ratio(f"Smith-Waterman, {n}, against Numba", 0.6, mine, least(lambda: compared(one, other), 3))


def stencil(size: int) -> Row:
    n, steps = 2 * size + 96, 5 * size // 100
    H = RNG.random((n, n))
    kept = ln.asarray(H)

    def ours() -> Any:
        return heat(kept.copy(), kept.copy(), steps).compute()

    np.testing.assert_array_equal(ours(), numpy_heat(H, steps))
    one, other = least(ours, 2), least(lambda: numpy_heat(H, steps), 1)
    return ratio(f"heat {n}², {steps} steps, against NumPy's slices", 0.3, one, other)


def descent(size: int) -> Row:
    n, m = 100 * size, size // 2
    X, y, w = RNG.random((n, m)), RNG.random(n), np.zeros(m)
    kept, rate = ln.asarray(X), 1 / m
    what = f"linear regression, {n} x {m}, 10 epochs, against PyTorch"
    if importlib.util.find_spec("torch") is None:
        return Row(what, "<= 1.0", "no torch here", None, {})
    import torch

    rows, wanted = torch.from_numpy(X), torch.from_numpy(y)

    def theirs() -> Any:
        return torch_descent(lambda w: ((rows @ w - wanted) ** 2).sum() / (2 * n), [w], rate, 10)

    def ours() -> Any:
        return regression(kept, y, w.copy(), rate, 10).compute()

    np.testing.assert_allclose(ours(), theirs()[0])
    return ratio(what, 1.0, least(ours, 3), least(theirs, 3))


def hidden(size: int) -> Row:
    n, m, h = 100 * size, size // 4, 64
    X, y = RNG.random((n, m)), RNG.random(n)
    U, v = RNG.standard_normal((m, h)) / m, RNG.standard_normal(h) / h
    kept = ln.asarray(X)
    what = f"network, {n} x {m}, {h} hidden, 10 epochs, against PyTorch"
    if importlib.util.find_spec("torch") is None:
        return Row(what, "<= 1.1", "no torch here", None, {})
    import torch

    rows, wanted = torch.from_numpy(X), torch.from_numpy(y)

    def theirs() -> Any:
        def loss(U: Any, v: Any) -> Any:
            return ((torch.sigmoid(rows @ U) @ v - wanted) ** 2).sum() / (2 * n)

        return torch_descent(loss, [U, v], 0.1, 10)

    def ours() -> Any:
        return ln.compute(*network(kept, y, U.copy(), v.copy(), 0.1, 10))

    for one, other in zip(ours(), theirs(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-8)
    return ratio(what, 1.1, least(ours, 2), least(theirs, 2))


RNG = np.random.default_rng(0)
ROWS: dict[str, Callable[[int], Row]] = {
    each.__name__: each
    for each in (
        build,
        matmul,
        minplus,
        paths,
        pagerank,
        sparse_product,
        sparse_rows,
        alignment,
        stencil,
        descent,
        hidden,
    )
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--size", type=int, default=2000, help="rows and columns of matrices")
    parser.add_argument("--only", choices=list(ROWS), nargs="+", default=list(ROWS), help="these rows")
    arguments = parser.parse_args()
    show([ROWS[name](arguments.size) for name in arguments.only], "Loops", arguments.json)


if __name__ == "__main__":
    main()
