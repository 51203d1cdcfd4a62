"""What loops may contain, piece by piece; each against the plain run."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import same

import linnet as ln

RNG = np.random.default_rng(11)
V, A = RNG.standard_normal(8), RNG.standard_normal((6, 6))
longer = ln.monoid("longer_side", lambda a, b: np.hypot(a, b), 0.0)


def square(x):
    return x * x


@ln.loops
def guards(v, w):
    for i in range(v.shape[0]):
        if w[i] != 0 and v[i] / w[i] > 0.5:
            v[i] = v[i] / w[i]
        elif i % 3 == 0:
            v[i] = w[i - 1] if i > 0 else 0.0 if w[i] > 9 else v[i]


@ln.loops
def neighbours(v, out):
    for i in range(len(v)):
        out[i] = v[i - 1] if i > 0 else -1.0


@ln.loops
def strided(v, out):
    n = v.shape[0]
    for i in range(1, n, 3):
        out[n - 1 - i] = v[i] * i
    for i in range(n - 1, 0, -2):
        out[i // 2] += v[i]


@ln.loops
def diagonal(A):
    n = A.shape[0]
    for i in range(n):
        A[i, i] = 1.0
        A[i, n - 1] += i
    for i in range(1, n):
        A[i, i // 2] *= 2


@ln.loops
def skips(v):
    s = 0.0
    for i in range(v.shape[0]):
        if v[i] < 0:
            continue
        s += square(v[i])
    return math.sqrt(s), s


@ln.loops
def integers(a, b):
    total = 0
    n = ln.zeros(a.shape[0], dtype=ln.int32)
    for i in range(a.shape[0]):
        n[i] = a[i] // b[i] + i % 3
        total += a[i]
    return n, total


@ln.loops
def bits(a):
    x, y, z = 0, 0, -1
    for i in range(a.shape[0]):
        x ^= a[i]
        y |= a[i]
        z &= a[i]
    return x, y, z


@ln.loops
def products(A):
    p = ln.ones(A.shape[0])
    for i, j in ln.grid(*A.shape):
        p[i] *= A[i, j]
    return p


@ln.loops
def own_monoid(A):
    r = ln.zeros(A.shape[0])
    for i, j in ln.grid(*A.shape):
        r[i] = longer(r[i], A[i, j])
    return r


@ln.loops
def folds(A):
    n, m = A.shape
    low = min(A[i, j] for i in range(n) for j in range(m))
    some = any(A[i, i] > 1 for i in range(n))
    every = all(A[i, j] < 9 for i, j in ln.grid(n, m))
    half = sum(A[i, j] for i, j in ln.grid(n, m) if A[i, j] > 0 and i != j)
    r = ln.zeros(n)
    for i in range(n):
        r[i] = max(A[i, j] for j in range(m)) - sum(A[j, i] for j in range(i))
    return low, some, every, half, r


@ln.loops
def single_precision(a, b):
    c = ln.zeros(a.shape[0], dtype=ln.float32)
    s = 0.0
    for i in range(a.shape[0]):
        c[i] = a[i] * 2.5 + b[i] * i + math.exp(a[i])
        s += a[i] * i
    return c, s


@ln.loops
def mixed(A):
    B = A @ A
    for i, j in ln.grid(*A.shape):
        B[i, j] -= A[j, i]
    s = ln.sum(B)
    C = ln.full(A.shape, s)
    for i in range(A.shape[0]):
        C[i, -1] = B[i, 0]
    return C.T, s


@ln.loops
def not_a_number(v, w):
    m = w[0]
    for i in range(v.shape[0]):
        m = min(m, v[i])
        w[i] = max(w[i], v[i])
    return m


@ln.loops
def infinite(A, B, C):
    n = A.shape[0]
    for i in range(n):
        for j in range(n):
            for k in range(i + 1):
                C[i, j] += A[i, k] * B[k, j]


@ln.loops
def after_the_loops(v):
    for i in range(v.shape[0]):
        t = v[i] * 2
        v[i] = t + 1
    return i, t


HOLES = np.where(RNG.random(8) < 0.4, np.nan, V)
INF = np.where(np.arange(36).reshape(6, 6) > 30, np.inf, A)
CASES = [
    (guards, V, np.where(V > 0, 0, W := RNG.standard_normal(8))), (neighbours, V, V.copy()),
    (strided, V, RNG.standard_normal(8)), (diagonal, A), (skips, V), (products, A), (own_monoid, A), (folds, A),
    (integers, RNG.integers(-9, 9, 7).astype(np.int32), RNG.integers(1, 4, 7).astype(np.int32)),
    (bits, RNG.integers(0, 99, 7)), (single_precision, V.astype(np.float32), W.astype(np.float32)), (mixed, A),
    (not_a_number, HOLES, V), (not_a_number, V, HOLES), (infinite, A, INF, A.copy()), (after_the_loops, V),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_it_equals_the_plain_run(case):
    same(*case, rtol=1e-5 if case[0] is single_precision else 1e-9)


@pytest.mark.slow
def test_results_are_lazy_and_have_a_plan():
    @ln.loops
    def multiply(A, B):
        C = ln.zeros((A.shape[0], B.shape[1]))
        for i, j, k in ln.grid(A.shape[0], B.shape[1], A.shape[1]):
            C[i, j] += A[i, k] * B[k, j]
        return C

    x = ln.asarray(RNG.standard_normal((600, 600)), chunks=200)
    y = multiply(x, x)
    plan = ln.plan(y, cluster=ln.Cluster(nodes=4))
    assert len(plan.tasks) >= 27
    np.testing.assert_allclose(y.compute(), x.compute() @ x.compute(), rtol=1e-9)
    with ln.init(engine="simulated", cluster=ln.Cluster(nodes=3)):
        np.testing.assert_allclose(multiply(x, x).compute(), y.compute(), rtol=1e-9)


def test_einop_starts_from_the_identity_or_from_the_target():
    B = RNG.standard_normal((3, 4))
    np.testing.assert_allclose(ln.einop("r[i] += B[i, j]", B=B).compute(), B.sum(1))
    np.testing.assert_allclose(ln.einop("r[i] += B[i, j]", B=B, r=np.ones(3)).compute(), B.sum(1) + 1)
    np.testing.assert_allclose(ln.einop("T[j, i] = 2 * B[i, j]", B=B).compute(), 2 * B.T)
    with pytest.raises(ln.LoopError, match="there is no monoid 'foo'"):
        ln.einop("r[i] foo= B[i, j]", B=B)
    with pytest.raises(ln.LoopError, match="axes of lengths 3 and 4"):
        ln.einop("r[i] += B[i, i]", B=B)


@ln.loops
def histogram(key, v, groups):
    sums = ln.tensor(groups, {key[i]: v[i] for i in range(key.shape[0])}, reduce="+")
    least = ln.tensor((groups,), ((key[i], v[i]) for i in range(key.shape[0]) if v[i] > 0), reduce="min")
    return sums, least


@ln.loops
def product(A, B):
    m, n = A.shape
    p = B.shape[1]
    return ln.tensor((m, p), {(i, j): A[i, k] * B[k, j] for i, j, k in ln.grid(m, p, n)}, reduce="+")


@ln.loops
def turned(A):
    m, n = A.shape
    return ln.tensor((n, m), {(j, m - 1 - i): A[i, j] for i in range(m) for j in range(n) if j != 1})


def test_comprehensions_in_tensor_group_by_their_keys():
    key, v = np.array([0, 2, 2, 0, 3]), np.array([1.0, -2, 3, 4, 5])
    sums, least = histogram(key, v, 5)
    assert sums.compute().tolist() == [5, 0, 1, 5, 0]
    assert least.compute().tolist() == [1, math.inf, 3, 5, math.inf]
    A, B = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4)
    np.testing.assert_allclose(product(A, B), A @ B)
    expected = np.rot90(A, -1).copy()
    expected[1] = 0
    np.testing.assert_array_equal(turned(ln.asarray(A, chunks=1)), expected)
    np.testing.assert_array_equal(turned.serial(A), expected)


def test_pairs_in_tensor_are_combined():
    pairs = [((0, 1), 2), ((1, 1), 5), ((0, 1), 7)]
    assert ln.tensor((2, 2), pairs, reduce="+").compute().tolist() == [[0, 9], [0, 5]]
    assert ln.tensor((2, 2), iter(pairs), reduce="max").compute()[0, 1] == 7
    with pytest.raises(ln.InputError, match=r"the index \(0, 1\) has two values"):
        ln.tensor((2, 2), pairs)
    with pytest.raises(ln.InputError, match="one value of each key"):
        ln.tensor(3, {k % 3: 1 for k in range(9)}, reduce="+")
    with pytest.raises(ln.InputError, match="is no monoid"):
        ln.tensor(3, [(0, 1)], reduce="sum")


def test_two_values_of_one_key_without_a_monoid_are_refused():
    @ln.loops
    def wrong(A):
        return ln.tensor(A.shape[0], {i: A[i, j] for i, j in ln.grid(*A.shape)})

    with pytest.raises(ln.LoopError, match="the same cell of the tensor"):
        wrong(np.ones((2, 3)))
