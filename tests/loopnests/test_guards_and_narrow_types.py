"""What guards protect, and whole numbers of few bits: as in the plain run, or refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
from comparing import same

import linnet as ln
from linnet.errors import KernelError

RNG = np.random.default_rng(1)
V = RNG.standard_normal(7)
FAR = RNG.integers(0, 4, 7) + 5  # some of them beyond V


@ln.loops
def protected_in_expressions(v, k):
    t = ln.zeros(7)
    for i in range(7):
        t[i] = v[k[i]] if k[i] < 7 else -1
    return t


@ln.loops
def protected_by_guards(v, k):
    t = ln.zeros(7)
    for i in range(7):
        if k[i] < 7 and v[k[i]] > 0:
            t[i] = 1.0
        elif k[i] < 7:
            t[i] = -v[k[i]]
            if i > 2:
                t[i] += v[k[i] - 1]
    return t


@ln.loops
def protected_division(v):
    for i in range(7):
        if i % 3 != 0:
            v[i] = 1 / (i % 3)
    for i in range(7):
        v[i] += 1 / i if i > 0 else 0.0


@ln.loops
def downwards(v):
    for i in range(6, 0, -1):
        v[i] = v[i - 1]


@ln.loops
def upwards(v):
    for i in range(6):
        v[i] = 0.5 * v[i + 1]


@ln.loops
def unsigned(v):
    s = ln.zeros(2, dtype=ln.uint8)
    for i in range(7):
        v[i] -= 1
    for i in range(2):
        for _ in range(300):
            s[i] -= 1
        for j in range(7):
            s[i] -= v[j]
    return s


@ln.loops
def wrapping(v):
    s, p = ln.zeros(2, dtype=ln.int8), ln.full(2, 3, dtype=ln.int8)
    for i in range(2):
        for j in range(300):
            s[i] += v[j % 7]
        for _ in range(300):
            p[i] *= 3
    return s, p


@ln.loops
def widest_with_gaps(D, F):
    n = D.shape[0]
    E = ln.full((n, n), -ln.inf)
    for i, j, k in ln.grid(n, n, n):
        E[i, j] = max(E[i, j], min(F[k, j], D[i, k]))
    return E


GAPS = np.where(RNG.random((9, 9)) < 0.2, np.nan, RNG.standard_normal((9, 9)))
CASES = [
    (protected_in_expressions, V, FAR), (protected_by_guards, V, FAR), (protected_division, V), (downwards, V),
    (upwards, V), (unsigned, RNG.integers(0, 9, 7).astype(np.uint8)),
    (wrapping, RNG.integers(0, 99, 7).astype(np.int8)), (widest_with_gaps, GAPS, GAPS.T.copy()),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_as_in_the_plain_run(case):
    same(*case, chunks=3)


def narrow(v, w):
    for i in range(3):
        v[i] = w[i]


def too_large(v, w):
    for i in range(3):
        v[i] = 300


def too_long(v, w):
    p = 1
    for i in range(1, 30):
        p *= i
    return p


@pytest.mark.parametrize(
    ("function", "words"),
    [(narrow, "dtype int64 are stored in v"), (too_large, "do not fit"), (too_long, "do not fit")],
)
def test_numbers_that_do_not_fit_are_refused(function, words):
    v = np.zeros(3, np.int8)
    with pytest.raises(ln.LoopError, match=words):
        ln.loops(function)(v, np.array([1, 2, 600]))
    assert not v.any()


def total(a):
    s = 0
    for i in range(a.shape[0]):
        s += int(a[i])
    return s


def products(a):
    s = 0
    for i in range(a.shape[0]):
        s += int(a[i]) * int(a[i])
    return s


def doubled(a):
    made = ln.zeros(a.shape[0], dtype=ln.int64)
    for i in range(a.shape[0]):
        made[i] = int(a[i]) * 2 + 1
    return made


def narrow_sum(a):
    made = ln.zeros(a.shape[0], dtype=ln.int8)
    small = ln.ones(a.shape[0], dtype=ln.int8)
    for i in range(a.shape[0]):
        made[i] = small[i] + int(a[i])
    return made


def whole_parts(a):
    made = ln.zeros(a.shape[0], dtype=ln.int64)
    for i in range(a.shape[0]):
        if a[i] < 1e10:
            made[i] = int(a[i]) + math.floor(a[i])
    return made


@pytest.mark.parametrize("chunks", [2, 9])
@pytest.mark.parametrize(
    ("function", "values"),
    [
        (total, np.array([2**62, 2**61, -5])),
        (total, np.array([100, 100, 100], np.int8)),
        (total, np.array([1.5, -2.5, 1e17])),
        (products, np.array([2**31, 2**30, -7])),
        (products, np.array([9, 9], np.uint8)),
        (doubled, np.array([2**61, 3, -4])),
        (narrow_sum, np.array([5, 30, -128])),
        (whole_parts, np.array([1.5, 1e30, -2.5, np.inf])),
    ],
)
def test_whole_numbers_of_python_that_fit(function, values, chunks):
    given = ln.asarray(values, chunks=chunks)
    assert np.array_equal(ln.loops(function)(given).compute(), np.asarray(function(values)))


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (total, np.array([2**62, 2**62, 5])),
        (total, np.array([1e19, 2.0])),
        (total, np.array([1.0, np.nan])),
        (total, np.array([2**63 + 1, 2], np.uint64)),
        (products, np.array([2**32, 2**31])),
        (doubled, np.array([2**62, 3])),
        (narrow_sum, np.array([5, 300])),
    ],
)
def test_whole_numbers_of_python_that_are_too_long(function, values):
    """They would have wrapped around: Python has the right value, or an error of its own."""
    with pytest.raises((ln.LoopError, KernelError)):
        ln.loops(function)(ln.asarray(values, chunks=2)).compute()


ENDS = {
    "i2": np.array([32767, -5, 32767, 3], np.int16),
    "i1": np.array([-128, 127, 5, -128], np.int8),
    "u1": np.array([3, 255, 0, 200], np.uint8),
    "b": np.array([True, False, True, True]),
}


@ln.loops
def sums_of_sums(x, y):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] + y[i]
    return s


@ln.loops
def sums_of_products(x, y, total):
    n = x.shape[0]
    for i in range(n):
        for j in range(n):
            total[i] += x[j] * y[i]
    s = 0.0
    for i in range(n):
        for j in range(n):
            s += x[i] * y[j]
    return s


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("function", [sums_of_sums, sums_of_products])
def test_narrow_numbers_wrap_around_before_they_are_added(function, kind):
    more = () if function is sums_of_sums else (np.zeros(4),)
    same(function, ENDS[kind], ENDS[kind][::-1].copy(), *more)
    same(function, ENDS[kind], ENDS["i1"], *more)


@ln.loops
def taken_away(x, total, wide):
    s = 0
    for i in range(x.shape[0]):
        wide[i] -= x[i]
        s -= x[i]
        for j in range(x.shape[0]):
            total[i] -= x[j]
            total[i // 2] -= x[j]
    return s


@ln.loops
def negated_and_added(x, total, wide):
    for i in range(x.shape[0]):
        wide[i] += -x[i]
        for j in range(x.shape[0]):
            total[i] += -x[j]


@pytest.mark.parametrize("kind", ["i2", "i1", "u1"])
@pytest.mark.parametrize("function", [taken_away, negated_and_added])
def test_what_is_taken_away_is_not_negated_alone(function, kind):
    same(function, ENDS[kind], np.zeros(4), np.zeros(4, np.int64))
    same(function, ENDS[kind], np.zeros(4, np.int64), np.zeros(4))


def test_picks_that_meet_at_a_divided_index_are_refused():
    @ln.loops
    def picks(x, best, arg):
        for i in range(x.shape[0]):
            best[i // 2], arg[i // 2] = min((best[i // 2], arg[i // 2]), (x[i], i))

    with pytest.raises(ln.LoopError, match="several steps may pick for one cell"):
        picks(np.array([3.0, 1, 2, 4]), np.full(2, 9.0), np.zeros(2, int))


def test_sums_of_sums_of_two_widths_and_of_repeated_booleans():
    @ln.loops
    def sums(x, y, b):
        s = found = False
        for i in range(x.shape[0]):
            s += x[i] + y[i]
            for _ in range(3):
                found += b[i]
        return s, found

    same(sums, ENDS["i1"], ENDS["i2"], ENDS["b"], exact=True)
    same(sums, ENDS["u1"], ENDS["i2"], np.zeros(4, bool), exact=True)


def test_booleans_are_not_taken_away():
    @ln.loops
    def taken(b):
        s = False
        for i in range(b.shape[0]):
            for _ in range(3):
                s -= b[i]
        return s

    with pytest.raises(TypeError, match="boolean subtract"):
        taken(ENDS["b"])


def test_python_numbers_that_elements_cannot_take_are_refused_where_they_stand():
    @ln.loops
    def products(x):
        for i in range(x.shape[0]):
            if i > 9:
                x[i] = -2 * x[i]

    with pytest.raises(ln.LoopError, match="do not fit"):
        products(np.arange(12, dtype=np.uint8))
