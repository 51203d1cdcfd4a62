"""Recurrences in two loops: one program whose tiles pass edges on, with the values of the plain function."""

from __future__ import annotations

import numpy as np
import pytest
from comparing import same

import linnet as ln
from linnet.kernels.arrays import waves
from linnet.loopnests import nests, waving

RNG = np.random.default_rng(5)
A, B = RNG.integers(0, 4, 23), RNG.integers(0, 4, 31)


@ln.loops
def align(a, b):
    n, m = a.shape[0], b.shape[0]
    H = ln.zeros((n + 1, m + 1), dtype=ln.int64)
    for i, j in ln.wavefront((1, n + 1), (1, m + 1)):
        score = 2 if a[i - 1] == b[j - 1] else -1
        H[i, j] = max(0, H[i - 1, j - 1] + score, H[i - 1, j] - 1, H[i, j - 1] - 1)
    return H


@ln.loops
def longest_common(a, b):
    n, m = a.shape[0], b.shape[0]
    L = ln.zeros((n + 1, m + 1), dtype=ln.int32)
    for i in range(n):
        for j in range(m):
            if a[i] == b[j]:
                L[i + 1, j + 1] = L[i, j] + 1
            else:
                L[i + 1, j + 1] = max(L[i, j + 1], L[i + 1, j])
    return L


@ln.loops
def with_gaps(M):
    """Three arrays; loop variables as numbers; a matrix that is only read."""
    n, m = M.shape
    H, E, F = ln.zeros((n + 1, m + 1)), ln.full((n + 1, m + 1), -1e30), ln.full((n + 1, m + 1), -1e30)
    for i, j in ln.wavefront((1, n + 1), (1, m + 1)):
        E[i, j] = max(E[i, j - 1] - 1, H[i, j - 1] - 3)
        F[i, j] = max(F[i - 1, j] - 1, H[i - 1, j] - 3)
        H[i, j] = max(0.0, H[i - 1, j - 1] + M[i - 1, j - 1] * (1 + 0.01 * i - j * 0.001), E[i, j], F[i, j])
    return H, E, F


@ln.loops
def cheapest(C):
    """An update of the argument; far neighbours."""
    n, m = C.shape
    for i in range(3, n):
        for j in range(2, m):
            C[i, j] += min(C[i - 1, j], C[i, j - 1], C[i - 3, j - 2])


@ln.loops
def guarded(C, w):
    n, m = C.shape
    for i in range(1, n):
        for j in range(1, m):
            if C[i, j] > 0.3:
                C[i, j] = 0.5 * C[i - 1, j] + C[i, j - 1] / w[j] + math_free(C[i - 1, j - 1])


def math_free(x):
    return abs(x) * 0.25


@ln.loops
def single(C):
    n, m = C.shape
    for i in range(1, n):
        for j in range(1, m):
            C[i, j] = C[i, j - 1] * 0.5 + C[i - 1, j]


@pytest.fixture(autouse=True)
def seen(monkeypatch):
    """Which nests were run in this way."""
    found = []
    ask = nests.wave
    monkeypatch.setattr(nests, "wave", lambda *given: found.append(ask(*given)) or found[-1])
    return found


CASES = [
    (align, A, B), (longest_common, A, B), (with_gaps, RNG.random((9, 14))), (cheapest, RNG.random((19, 17))),
    (guarded, RNG.random((12, 18)), RNG.random(18) + 0.5), (single, RNG.random((8, 9)).astype(np.float32)),
    (single, RNG.random((2, 9))), (single, RNG.random((9, 2))),
]  # fmt: skip


@pytest.mark.parametrize("compiled", [True, False], ids=["c", "numpy"])
@pytest.mark.parametrize("side", [1, 2, 5, 256])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_the_values_of_the_plain_function(case, side, compiled, monkeypatch, seen):
    function, *args = case
    monkeypatch.setattr(waving, "HEIGHT", side)
    monkeypatch.setattr(waving, "WIDEST", side + 2)
    if not compiled:
        monkeypatch.setattr(waves, "in_c", lambda *_: False)
    same(function, *args)
    assert all(seen)


def test_the_program_is_proved_and_does_not_grow(monkeypatch):
    programs = []
    ask = waving.made_by
    monkeypatch.setattr(
        waving, "made_by", lambda recipe, *given: programs.append(recipe) or ask(recipe, *given)
    )
    for n in (300, 2000):
        a = np.zeros(n, np.int64)
        align(a, a)
    found = [recipe.choose(None, frozenset(), {}) for recipe in programs]
    assert all(program.proven for program in found)
    sizes = [len(program.to_bytes()) for program in found]
    assert max(sizes) - min(sizes) <= 4
    assert max(sizes) < 1500


def test_edges_travel_and_tiles_do_not():
    """Every task but the first needs the edges of two others, and no other tile of the result."""
    program = waving.wave_program(1, (), (1, 1), (4, 4), OPTIONS)
    bound = program.bind(P=3, Q=3)
    task = ln.Task(0, (1, 1))
    assert sorted(each.array for each in bound.call(task).args if hasattr(each, "array")) == ["B0", "R0"]
    assert sorted(bound.children(task)) == [ln.Task(0, (1, 2)), ln.Task(0, (2, 1))]


OPTIONS = (
    ("halos", ((1, 1),)), ("kinds", ()), ("reads", ((0, 1, 0), (0, 0, 1))), ("constants", ()),
    ("steps", (("add", 2, 3),)), ("results", (4,)),
)  # fmt: skip


def test_four_nodes(monkeypatch):
    monkeypatch.setattr(waving, "HEIGHT", 6)
    monkeypatch.setattr(waving, "WIDEST", 8)
    with ln.init("simulated", cluster=ln.Cluster(4)):
        assert np.array_equal(align(A, B).compute(), align.serial(A, B).compute())


@ln.loops
def looked_up(C, v, k):
    n, m = C.shape
    for i in range(1, n):
        for j in range(1, m):
            C[i, j] = C[i - 1, j] + 0.5 * C[i, j - 1] + (v[k[j]] if k[j] < 3 else 1.0)


def test_protected_indices():
    """Those beyond the array are never read: such nests run in another way."""
    same(looked_up, RNG.random((5, 6)), RNG.random(3), np.array([0, 1, 9, 2, 7, 0]))


@ln.loops
def warped(A, C, top, left):
    """Starts and ends inside of the array, with costs for each cell."""
    n, m = A.shape
    for i in range(top, n):
        for j in range(left, m - 1):
            A[i, j] = min(A[i - 1, j - 1], A[i - 1, j], A[i, j - 1]) + C[i, j]


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int32])
@pytest.mark.parametrize(
    ("top", "left", "shape"), [(1, 1, (90, 131)), (3, 2, (67, 40)), (1, 2, (3, 200)), (2, 1, (200, 4))]
)
def test_many_diagonals(dtype, top, left, shape, monkeypatch, seen):
    A, C = (RNG.integers(0, 1000, shape).astype(dtype) for _ in range(2))
    for height in (33, 64, 256):
        monkeypatch.setattr(waving, "HEIGHT", height)
        same(warped, A, C, top, left, exact=True)
    assert seen
    monkeypatch.setattr(waves, "in_c", lambda *_: False)
    same(warped, A, C, top, left, exact=True)


@ln.loops
def paths_of_lattice(n, m):
    """All of the array but for its first row and column, which are its edges."""
    P = ln.ones((n, m), dtype=ln.int64)
    for i, j in ln.grid((1, n), (1, m)):
        P[i, j] = (P[i - 1, j] + P[i, j - 1]) % 1000003
    return P


def test_edges_of_the_array_are_in_its_tiles(monkeypatch):
    monkeypatch.setattr(waving, "HEIGHT", 16)
    made = paths_of_lattice(40, 70)
    assert type(made.__node__).__name__ == "Result"  # nothing is put around it afterwards
    same(paths_of_lattice, 40, 70, exact=True)
    np.testing.assert_array_equal(made[:2, ::2], paths_of_lattice.serial(40, 70)[:2, ::2])
