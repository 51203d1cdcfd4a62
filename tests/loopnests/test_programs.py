"""The programs of the paper, and others that everybody writes as loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import same

import linnet as ln

RNG = np.random.default_rng(7)
A, B, C = RNG.standard_normal((5, 4)), RNG.standard_normal((4, 6)), RNG.standard_normal((5, 4))
SQUARE = RNG.standard_normal((6, 6))
V, W = RNG.standard_normal(7), RNG.standard_normal(7)


@ln.loops
def multiply(A, B):
    C = ln.zeros((A.shape[0], B.shape[1]))
    for i, j, k in ln.grid(A.shape[0], B.shape[1], A.shape[1]):
        C[i, j] += A[i, k] * B[k, j]
    return C


@ln.loops
def add(A, B):
    C = ln.zeros(A.shape)
    for i, j in ln.grid(*A.shape):
        C[i, j] = A[i, j] + B[i, j]
    return C


@ln.loops
def three_way(A, B, v):
    out = ln.zeros((A.shape[0], B.shape[1]))
    for i in range(A.shape[0]):
        for j in range(B.shape[1]):
            for k in range(A.shape[1]):
                out[i, j] += A[i, k] * B[k, j] * v[k]
    return out


@ln.loops
def transpose(A):
    n, m = A.shape
    T = ln.zeros((m, n))
    for i in range(n):
        for j in range(m):
            T[j, i] = A[i, j]
    return T


@ln.loops
def slices(A):
    S = ln.zeros((2, 3))
    for i, j in ln.grid(2, 3):
        S[i, j] = A[2 * i + 1, j + 1]
    return S


@ln.loops
def padding(A):
    n, m = A.shape
    P = ln.zeros((n + 2, m + 2))
    for i, j in ln.grid(n, m):
        P[i + 1, j + 1] = A[i, j]
    return P


@ln.loops
def rotation(v):
    n = v.shape[0]
    r = ln.zeros(n)
    for i in range(n):
        r[(i + 2) % n] = v[i]
    return r


@ln.loops
def rotation_by_reading(v):
    n = len(v)
    r = ln.zeros(n)
    for i in range(n):
        r[i] = v[(i + 3) % n]
    return r


@ln.loops
def outer(v, w):
    O = ln.zeros((v.shape[0], w.shape[0]))
    for i, j in ln.grid(v.shape[0], w.shape[0]):
        O[i, j] = v[i] * w[j]
    return O


@ln.loops
def inner(v, w):
    s = 0.0
    for i in range(v.shape[0]):
        s += v[i] * w[i]
    return s


@ln.loops
def rows_and_columns(A):
    r, c = ln.zeros(A.shape[0]), ln.full(A.shape[1], -ln.inf)
    for i, j in ln.grid(*A.shape):
        r[i] += A[i, j]
        c[j] = max(c[j], A[i, j])
    return r, c


@ln.loops
def tensor_times_matrix(T, M):
    a, b, c = T.shape
    R = ln.zeros((a, b, M.shape[1]))
    for i, j, k, l in ln.grid(a, b, M.shape[1], c):
        R[i, j, k] += T[i, j, l] * M[l, k]
    return R


@ln.loops
def tensor_times_vector(T, v):
    a, b, c = T.shape
    R = ln.zeros((a, b))
    for i, j, k in ln.grid(a, b, c):
        R[i, j] += T[i, j, k] * v[k]
    return R


@ln.loops
def linear_regression(X, y, w, rate, epochs):
    n, m = X.shape
    for epoch in range(epochs):
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
    for epoch in range(epochs):
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


@ln.loops
def pagerank(E, steps, damping):
    n = E.shape[0]
    degree = ln.zeros(n)
    for i, j in ln.grid(n, n):
        if E[i, j]:
            degree[i] += 1
    r = ln.full(n, 1 / n)
    for step in range(steps):
        new = ln.zeros(n)
        dangling = 0.0
        for i in range(n):
            if degree[i] == 0:
                dangling += r[i]
        for i, j in ln.grid(n, n):
            if E[i, j]:
                new[j] += r[i] / degree[i]
        for j in range(n):
            r[j] = (1 - damping) / n + damping * (new[j] + dangling / n)
    return r


@ln.loops
def funk(R, known, P, Q, rate, reg, steps):
    n, m = R.shape
    d = P.shape[1]
    for step in range(steps):
        E = ln.zeros((n, m))
        for i, j in ln.grid(n, m):
            if known[i, j]:
                E[i, j] = R[i, j] - sum(P[i, k] * Q[j, k] for k in range(d))
        dP, dQ = ln.zeros((n, d)), ln.zeros((m, d))
        for i, j, k in ln.grid(n, m, d):
            dP[i, k] += E[i, j] * Q[j, k]
            dQ[j, k] += E[i, j] * P[i, k]
        for i, k in ln.grid(n, d):
            P[i, k] += rate * (dP[i, k] - reg * P[i, k])
        for j, k in ln.grid(m, d):
            Q[j, k] += rate * (dQ[j, k] - reg * Q[j, k])
    return P, Q


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
def closure(R):
    n = R.shape[0]
    for step in range(3):
        S = ln.zeros((n, n), dtype=bool)
        for i, j, k in ln.grid(n, n, n):
            S[i, j] = S[i, j] or (R[i, k] and R[k, j])
        for i, j in ln.grid(n, n):
            R[i, j] = R[i, j] or S[i, j]
    return R


@ln.loops
def widest(D):
    n = D.shape[0]
    E = ln.full((n, n), -ln.inf)
    for i, j, k in ln.grid(n, n, n):
        E[i, j] = max(E[i, j], min(D[i, k], D[k, j]))
    return E


@ln.loops
def floyd(D):
    n = D.shape[0]
    for k in range(n):
        for i in range(n):
            for j in range(n):
                D[i, j] = min(D[i, j], D[i, k] + D[k, j])
    return D


@ln.loops
def kmeans(X, M, steps):
    n, d = X.shape
    k = M.shape[0]
    label = ln.zeros(n, dtype=ln.int64)
    for step in range(steps):
        best = ln.full(n, ln.inf)
        label = ln.zeros(n, dtype=ln.int64)
        for i in range(n):
            for c in range(k):
                s = 0.0
                for j in range(d):
                    s += (X[i, j] - M[c, j]) ** 2
                best[i], label[i] = min((best[i], label[i]), (s, c))
        count = ln.zeros(k)
        total = ln.zeros((k, d))
        for i in range(n):
            count[label[i]] += 1
        for i, j in ln.grid(n, d):
            total[label[i], j] += X[i, j]
        for c, j in ln.grid(k, d):
            if count[c] > 0:
                M[c, j] = total[c, j] / count[c]
    return M, label


@ln.loops
def group_sums(key, v, groups):
    total = ln.zeros(groups)
    count = ln.zeros(groups, dtype=ln.int64)
    for i in range(key.shape[0]):
        total[key[i]] += v[i]
        count[key[i]] += 1
    return total, count


@ln.loops
def moving_average(v, width):
    n = v.shape[0] - width + 1
    out = ln.zeros(n)
    for i in range(n):
        for k in range(width):
            out[i] += v[i + k] / width
    return out


@ln.loops
def smoothing(A):
    n, m = A.shape
    S = ln.copy(A)
    for i in range(1, n - 1):
        for j in range(1, m - 1):
            S[i, j] = (A[i - 1, j] + A[i + 1, j] + A[i, j - 1] + A[i, j + 1] + A[i, j]) / 5
    return S


@ln.loops
def heat(A, steps):
    n, m = A.shape
    B = ln.copy(A)
    for t in range(steps):
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
def forward_substitution(L, b):
    n = L.shape[0]
    x = ln.zeros(n)
    for i in range(n):
        s = b[i]
        for j in range(i):
            s -= L[i, j] * x[j]
        x[i] = s / L[i, i]
    return x


@ln.loops
def smith_waterman(a, b):
    n, m = a.shape[0], b.shape[0]
    H = ln.zeros((n + 1, m + 1), dtype=ln.int64)
    best = 0
    for i, j in ln.wavefront((1, n + 1), (1, m + 1)):
        score = 2 if a[i - 1] == b[j - 1] else -1
        H[i, j] = max(0, H[i - 1, j - 1] + score, H[i - 1, j] - 1, H[i, j - 1] - 1)
    for i, j in ln.grid(n + 1, m + 1):
        best = max(best, H[i, j])
    return H, best


@ln.loops
def triangular_product(L, B):
    n, m = B.shape
    C = ln.zeros((n, m))
    for i in range(n):
        for j in range(m):
            for k in range(i + 1):
                C[i, j] += L[i, k] * B[k, j]
    return C


@ln.loops
def banded_product(A, x, w):
    n = A.shape[0]
    y = ln.zeros(n)
    for i in range(n):
        for j in range(max(0, i - w), min(n, i + w + 1)):
            y[i] += A[i, j] * x[j]
    return y


@ln.loops
def masked_update(A, M):
    for i, j in ln.grid(*A.shape):
        if M[i, j] > 0:
            A[i, j] = -1.0
        elif A[i, j] > 0:
            A[i, j] *= 2


@ln.loops
def row_normalise(A):
    n, m = A.shape
    for i in range(n):
        s = 0.0
        for j in range(m):
            s += A[i, j] * A[i, j]
        if s > 0:
            for j in range(m):
                A[i, j] /= math.sqrt(s)


@ln.loops
def mean_and_variance(v):
    n = v.shape[0]
    mean = sum(v[i] for i in range(n)) / n
    var = sum((v[i] - mean) ** 2 for i in range(n)) / n
    return mean, var


POSITIVE = np.abs(RNG.standard_normal((6, 6))) + np.where(np.eye(6), -1, 0) * 0
DISTANCES = np.where(RNG.random((7, 7)) < 0.4, RNG.integers(1, 9, (7, 7)).astype(float), np.inf)
np.fill_diagonal(DISTANCES, 0)
PROGRAMS = [
    (multiply, A, B), (add, A, C), (three_way, A, B, RNG.standard_normal(4)), (transpose, A), (slices, A), (padding, A),
    (rotation, V), (rotation_by_reading, V), (outer, V, B[0]), (inner, V, W), (rows_and_columns, A),
    (tensor_times_matrix, RNG.standard_normal((3, 4, 5)), RNG.standard_normal((5, 2))),
    (tensor_times_vector, RNG.standard_normal((3, 4, 5)), RNG.standard_normal(5)),
    (linear_regression, A, RNG.standard_normal(5), np.zeros(4), 0.1, 3),
    (network, A, RNG.standard_normal(5), RNG.standard_normal((4, 3)), RNG.standard_normal(3), 0.1, 2),
    (pagerank, RNG.random((6, 6)) < 0.3, 4, 0.85),
    (funk, A, RNG.random((5, 4)) < 0.5, RNG.standard_normal((5, 2)), RNG.standard_normal((4, 2)), 0.1, 0.01, 2),
    (shortest_paths, DISTANCES), (closure, RNG.random((6, 6)) < 0.25), (widest, POSITIVE), (floyd, DISTANCES),
    (floyd, SQUARE), (kmeans, RNG.standard_normal((9, 2)), RNG.standard_normal((3, 2)), 2),
    (group_sums, RNG.integers(0, 4, 11), RNG.standard_normal(11), 5), (moving_average, V, 3), (smoothing, SQUARE),
    (heat, SQUARE, 3), (forward_substitution, np.tril(SQUARE) + 4 * np.eye(6), RNG.standard_normal(6)),
    (smith_waterman, RNG.integers(0, 3, 6), RNG.integers(0, 3, 8)), (triangular_product, SQUARE, SQUARE.T.copy()),
    (banded_product, SQUARE, SQUARE[0].copy(), 2), (masked_update, A, C), (row_normalise, A), (mean_and_variance, V),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", PROGRAMS, ids=lambda case: case[0].__name__)
def test_programs_equal_the_plain_run(case):
    same(*case, rtol=1e-8)
