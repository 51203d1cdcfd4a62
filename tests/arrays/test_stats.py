"""Moments and tests of hypotheses, against SciPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.arrays.strategies import tiled

import linnet as ln
from linnet.errors import InputError

rng = np.random.default_rng(5)
A = rng.gamma(2.0, size=(31, 4))
B = rng.gamma(2.5, size=(31, 4))


def agree(ours: Any, theirs: Any, dtype: Any = float) -> None:
    both = (ours, theirs) if not isinstance(ours, tuple) else (tuple(ours), (theirs.statistic, theirs.pvalue))
    for mine, other in zip(*(each if isinstance(each, tuple) else (each,) for each in both), strict=True):
        assert mine.dtype == dtype
        assert mine.shape == np.shape(other)
        np.testing.assert_allclose(mine.compute(), other, rtol=1e-4 if dtype == "f4" else 1e-9)


@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("bias", [True, False])
def test_skew_and_kurtosis(axis: Any, bias: bool) -> None:
    x = tiled(A, (7, 3))
    agree(ln.stats.skew(x, axis, bias), stats.skew(A, axis, bias))
    agree(ln.stats.kurtosis(x, axis, bias=bias), stats.kurtosis(A, axis, bias=bias))
    agree(ln.stats.kurtosis(x, axis, False, bias), stats.kurtosis(A, axis, False, bias))


def test_moments() -> None:
    x = tiled(A, (7, 3))
    for order in range(7):
        np.testing.assert_allclose(ln.stats.moment(x, order).compute(), stats.moment(A, order), atol=1e-12)
    short = A.astype("f4")
    agree(ln.stats.skew(tiled(short, (7, 3))), stats.skew(short), "f4")
    numbers = rng.integers(0, 9, 20)
    agree(ln.stats.skew(tiled(numbers, 6)), stats.skew(numbers))
    with pytest.raises(ValueError, match="of order 0 or more"):
        ln.stats.moment(x, -1)
    with pytest.raises(InputError, match="nan_policy='omit'"):
        ln.stats.skew(x, nan_policy="omit")


def test_equal_data_have_no_skew() -> None:
    assert np.isnan(ln.stats.skew(tiled(np.full(9, 3.0), 4)).compute())
    assert np.isnan(ln.stats.kurtosis(tiled(np.full(9, 3.0), 4)).compute())


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, 1, None])
@pytest.mark.parametrize("alternative", ["two-sided", "less", "greater"])
def test_tests_of_means(axis: Any, alternative: str) -> None:
    x, y = tiled(A, (7, 3)), tiled(B, 5)
    side = {"alternative": alternative}
    for equal in (True, False):
        agree(
            ln.stats.ttest_ind(x, y, axis=axis, equal_var=equal, **side),
            stats.ttest_ind(A, B, axis=axis, equal_var=equal, **side),
        )
    agree(ln.stats.ttest_rel(x, y, axis, **side), stats.ttest_rel(A, B, axis, **side))
    agree(ln.stats.ttest_1samp(x, 1.9, axis, **side), stats.ttest_1samp(A, 1.9, axis, **side))


@pytest.mark.slow
def test_tests_of_means_of_other_lengths() -> None:
    x, y = tiled(A, (7, 3)), tiled(B[:12], 5)
    agree(ln.stats.ttest_ind(x, y), stats.ttest_ind(A, B[:12]))
    agree(ln.stats.f_oneway(x, y, B), stats.f_oneway(A, B[:12], B))
    agree(ln.stats.ttest_1samp(x, A.mean(0) + 0.1), stats.ttest_1samp(A, A.mean(0) + 0.1))
    same = ln.stats.ttest_ind(tiled(np.ones(5), 2), np.ones(4))
    assert np.isnan(same.statistic.compute())
    with pytest.raises(ValueError, match="not 31 and 12"):
        ln.stats.ttest_rel(x, y)
    with pytest.raises(ValueError, match="two-sided"):
        ln.stats.ttest_ind(x, y, alternative="both")
    with pytest.raises(TypeError, match="at least two samples"):
        ln.stats.f_oneway(x)


@pytest.mark.parametrize("power", [None, "log-likelihood", "freeman-tukey", "neyman", 2 / 3, -1])
def test_counts(power: Any) -> None:
    counts = rng.integers(1, 40, (12, 3))
    x = tiled(counts, (5, 2))
    agree(
        ln.stats.power_divergence(x, ddof=1, axis=0, lambda_=power),
        stats.power_divergence(counts, ddof=1, axis=0, lambda_=power),
    )
    agree(ln.stats.chisquare(x, axis=None), stats.chisquare(counts, axis=None))
    expected = counts[::-1].astype(float)
    agree(ln.stats.chisquare(x, expected), stats.chisquare(counts, expected))
    with pytest.raises(ValueError, match="lambda_='gauss' is not known"):
        ln.stats.power_divergence(x, lambda_="gauss")


@pytest.mark.slow
@pytest.mark.parametrize("axis", [0, None])
def test_tests_of_normality(axis: Any) -> None:
    x = tiled(A, (7, 3))
    agree(ln.stats.skewtest(x, axis), stats.skewtest(A, axis))
    agree(ln.stats.kurtosistest(x, axis, alternative="less"), stats.kurtosistest(A, axis, alternative="less"))
    agree(ln.stats.normaltest(x, axis), stats.normaltest(A, axis))
    with pytest.raises(InputError, match="at least 8 elements"):
        ln.stats.skewtest(x, 1)
    with pytest.raises(InputError, match="at least 5 elements"):
        ln.stats.kurtosistest(x, 1)


def test_tests_are_lazy() -> None:
    calls: list[int] = []

    def noted(t: Any) -> Any:
        calls.append(1)
        return t

    result = ln.stats.ttest_ind(ln.map_blocks(noted, tiled(A, (7, 3)), dtype=float), B)
    assert not calls
    ln.compute(*result)
    assert len(calls) == 10  # a call for each tile, though mean and variance are taken of it
