"""Tests of hypotheses: a statistic of data, and how likely one as large is if the hypothesis holds.

As in `scipy.stats`, lazily: both results are arrays that are computed when their values are asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy import special

from linnet.arrays.elements.broadcast import broadcast_arrays
from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.elements.elementwise import apply
from linnet.arrays.elements.means_and_variances import mean, var
from linnet.arrays.elements.reductions import sum as sums
from linnet.arrays.functions.map_blocks import map_blocks
from linnet.arrays.functions.moments import Silent, kurtosis, sample, settled, skew
from linnet.errors import InputError
from linnet.workers.result_types import arranged_in

_SIDES = {"two-sided": 0.0, "less": -1.0, "greater": 1.0}
_POWERS = {
    "pearson": 1.0,
    "log-likelihood": 0.0,
    "freeman-tukey": -0.5,
    "mod-log-likelihood": -1.0,
    "neyman": -2.0,
    "cressie-read": 2 / 3,
}


@arranged_in
class TestResult(NamedTuple):
    """What a test gives."""

    __test__ = False  # no test of pytest's

    statistic: Any
    pvalue: Any


def _side(alternative: str) -> float:
    if alternative not in _SIDES:
        raise ValueError(f'alternative={alternative!r} is not known; use "two-sided", "less" or "greater"')
    return _SIDES[alternative]


def _likely(below: Any, value: Any, side: Any) -> Any:
    """The chance of a value as far out on one side, or on both, of a symmetric distribution."""
    two = 2 * below(-np.abs(value))
    return np.where(side == 0, two, np.where(side < 0, below(value), below(-value)))


def _judged(formula: Any, dtype: Any, *numbers: Any) -> TestResult:
    return TestResult(*settled(formula, dtype, *numbers, results=2))


# ---- are means equal?


def _student(difference: Any, error: Any, freedom: Any, side: Any) -> Any:
    t = difference / error
    return t, _likely(lambda value: special.stdtr(freedom, value), t, side)


def _pooled(m1: Any, v1: Any, n1: Any, m2: Any, v2: Any, n2: Any, side: Any) -> Any:
    freedom = n1 + n2 - 2.0
    common = ((n1 - 1) * v1 + (n2 - 1) * v2) / freedom
    return _student(m1 - m2, np.sqrt(common * (1.0 / n1 + 1.0 / n2)), freedom, side)


def _welch(m1: Any, v1: Any, n1: Any, m2: Any, v2: Any, n2: Any, side: Any) -> Any:
    one, other = v1 / n1, v2 / n2
    freedom = (one + other) ** 2 / (one**2 / (n1 - 1) + other**2 / (n2 - 1))
    return _student(m1 - m2, np.sqrt(one + other), np.where(np.isnan(freedom), 1.0, freedom), side)


def ttest_ind(
    a: Any,
    b: Any,
    axis: Any = 0,
    equal_var: bool = True,
    nan_policy: str = "propagate",
    alternative: str = "two-sided",
) -> TestResult:
    """Student's test that two samples have the same mean; Welch's with `equal_var=False`.

    Parameters
    ----------
    a, b : array_like; the samples
    axis : int or None; along which the observations are
    equal_var : whether both have the same variance; False: Welch's test
    nan_policy : "propagate", "omit" or "raise"
    alternative : "two-sided", "less" or "greater"

    Returns
    -------
    TestResult with `statistic` and `pvalue`

    Examples
    --------
    >>> result = ttest_ind([1.0, 2.0, 3.0], [2.0, 4.0, 9.0])
    >>> result.pvalue.compute().round(6)
    np.float64(0.23724)
    """
    side = _side(alternative)
    numbers: list[Any] = []
    kinds: list[Any] = []
    for each in (a, b):
        x, along = sample(each, axis, nan_policy)
        numbers += [mean(x, along), var(x, along, ddof=1), float(x.shape[along])]
        kinds.append(x.dtype)
    return _judged(_pooled if equal_var else _welch, np.result_type(*kinds), *numbers, side)


def _single(middle: Any, spread: Any, n: Any, wanted: Any, side: Any) -> Any:
    return _student(middle - wanted, np.sqrt(spread / n), n - 1.0, side)


def ttest_1samp(
    a: Any, popmean: Any, axis: Any = 0, nan_policy: str = "propagate", alternative: str = "two-sided"
) -> TestResult:
    """Student's test that a sample has this mean.

    Parameters
    ----------
    a : array_like; the sample
    popmean : number or array_like; the mean that is supposed
    axis : int or None; along which the observations are
    nan_policy : "propagate", "omit" or "raise"
    alternative : "two-sided", "less" or "greater"

    Returns
    -------
    TestResult with `statistic` and `pvalue`

    Examples
    --------
    >>> ttest_1samp([1.0, 2.0, 3.0], 1.0).statistic.compute().round(6)
    np.float64(1.732051)
    """
    side = _side(alternative)
    x, along = sample(a, axis, nan_policy)
    wanted = as_node(popmean)
    middle = mean(x, along)
    if wanted.ndim == middle.ndim + 1:  # one mean for each line, its axis kept
        wanted = as_node(mean(wrap(wanted), along))
    return _judged(_single, x.dtype, middle, var(x, along, ddof=1), float(x.shape[along]), wrap(wanted), side)


def ttest_rel(
    a: Any, b: Any, axis: Any = 0, nan_policy: str = "propagate", alternative: str = "two-sided"
) -> TestResult:
    """Student's test that pairs differ by nothing in the mean.

    Parameters
    ----------
    a, b : array_like; the pairs
    axis : int or None; along which the observations are
    nan_policy : "propagate", "omit" or "raise"
    alternative : "two-sided", "less" or "greater"

    Returns
    -------
    TestResult with `statistic` and `pvalue`

    Examples
    --------
    >>> import linnet as ln
    >>> found = ln.stats.ttest_rel([1.0, 2.0, 4.0], [1.5, 2.0, 5.5])
    >>> round(float(found.statistic), 4)
    -1.5119
    """
    (x, along), (y, _) = sample(a, axis, nan_policy), sample(b, axis, nan_policy)
    if x.shape[along] != y.shape[along]:
        raise ValueError(f"pairs need samples of the same length, not {x.shape[along]} and {y.shape[along]}")
    return ttest_1samp(apply(np.subtract, x, y), 0.0, along, alternative=alternative)


def _fisher(between: Any, inside: Any, groups: Any, count: Any) -> Any:
    one, other = groups - 1.0, count - groups
    f = (between / one) / (inside / other)
    return f, special.fdtrc(one, other, f)


def f_oneway(*samples: Any, axis: Any = 0) -> TestResult:
    """Fisher's test that all samples have the same mean: the variance between them by that inside.

    Parameters
    ----------
    samples : array_like, at least two
    axis : int or None; along which the observations are

    Returns
    -------
    TestResult with `statistic` and `pvalue`

    Examples
    --------
    >>> f_oneway([1.0, 2.0, 3.0], [2.0, 4.0, 9.0]).statistic.compute().round(6)
    np.float64(1.928571)
    """
    if len(samples) < 2:
        raise TypeError(f"f_oneway compares at least two samples, got {len(samples)}")
    found = [sample(each, axis) for each in samples]
    counts = [x.shape[along] for x, along in found]
    means = [mean(x, along) for x, along in found]
    total = float(sum(counts))
    grand: Any = 0.0
    for middle, count in zip(means, counts, strict=True):
        grand = apply(np.add, grand, apply(np.multiply, middle, count / total))
    between: Any = 0.0
    inside: Any = 0.0
    for (x, along), middle, count in zip(found, means, counts, strict=True):
        away = apply(np.subtract, middle, grand)
        between = apply(np.add, between, apply(np.multiply, apply(np.multiply, away, away), float(count)))
        inside = apply(np.add, inside, apply(np.multiply, var(x, along), float(count)))
    dtype = np.result_type(*(x.dtype for x, _ in found))
    return _judged(_fisher, dtype, between, inside, float(len(samples)), total)


# ---- are counts as expected?


def _term(observed: Any, expected: Any, power: float) -> Any:
    """What one count adds to the statistic of Cressie and Read."""
    if power == 1:
        return (observed - expected) ** 2 / expected
    if power == 0:
        return 2.0 * special.xlogy(observed, observed / expected)
    if power == -1:
        return 2.0 * special.xlogy(expected, expected / observed)
    return observed * ((observed / expected) ** power - 1) / (0.5 * power * (power + 1))


def _chi(value: Any, freedom: Any) -> Any:
    return value, special.chdtrc(freedom, value)


def power_divergence(
    f_obs: Any, f_exp: Any = None, ddof: int = 0, axis: Any = 0, lambda_: float | str | None = None
) -> TestResult:
    """The test of Cressie and Read that counts are as expected: all the same, if `f_exp` does not say.

    `lambda_` is the power, or the name of a statistic: "pearson" (the default), "log-likelihood",
    "freeman-tukey", "mod-log-likelihood", "neyman", "cressie-read". That observed and expected counts have
    the same sum is not looked at.

    Parameters
    ----------
    f_obs : array_like; the counts
    f_exp : array_like, optional; those expected; by default all the same
    ddof : int; degrees of freedom that are lost
    axis : int or None; along which the observations are
    lambda_ : number or word, optional; which of the statistics; 1: Pearson's

    Returns
    -------
    TestResult with `statistic` and `pvalue`

    Examples
    --------
    >>> import linnet as ln
    >>> float(ln.stats.power_divergence([10, 12, 14]).statistic) > 0
    True
    """
    if isinstance(lambda_, str) and lambda_ not in _POWERS:
        raise ValueError(f"lambda_={lambda_!r} is not known; use a number or one of {list(_POWERS)}")
    power = 1.0 if lambda_ is None else _POWERS[lambda_] if isinstance(lambda_, str) else float(lambda_)
    x, along = sample(f_obs, axis)
    expected = mean(x, along, keepdims=True) if f_exp is None else sample(f_exp, axis)[0]
    x, expected = broadcast_arrays(x, expected)
    dtype = np.result_type(x.dtype, expected.dtype)
    total = sums(map_blocks(Silent(_term), x, expected, power, dtype=dtype), along)
    return _judged(_chi, dtype, total, float(x.shape[along] - 1 - ddof))


def chisquare(f_obs: Any, f_exp: Any = None, ddof: int = 0, axis: Any = 0) -> TestResult:
    """Pearson's test that counts are as expected: all the same, if `f_exp` does not say.

    Parameters
    ----------
    f_obs : array_like; the counts
    f_exp : array_like, optional; those expected; by default all the same
    ddof : int; degrees of freedom that are lost
    axis : int or None; along which the observations are

    Returns
    -------
    TestResult with `statistic` and `pvalue`

    Examples
    --------
    >>> chisquare([16, 18, 16, 14, 12, 12]).statistic.compute()
    np.float64(2.0)
    """
    return power_divergence(f_obs, f_exp, ddof, axis, "pearson")


# ---- are data normal?


def _skew_test(lopsided: Any, n: Any, side: Any) -> Any:
    y = lopsided * np.sqrt(((n + 1) * (n + 3)) / (6.0 * (n - 2)))
    beta = 3.0 * (n**2 + 27 * n - 70) * (n + 1) * (n + 3) / ((n - 2.0) * (n + 5) * (n + 7) * (n + 9))
    w = -1 + np.sqrt(2 * (beta - 1))
    y = np.where(y == 0, 1.0, y) / np.sqrt(2.0 / (w - 1))
    z = np.arcsinh(y) / np.sqrt(0.5 * np.log(w))
    return z, _likely(special.ndtr, z, side)


def skewtest(
    a: Any, axis: Any = 0, nan_policy: str = "propagate", alternative: str = "two-sided"
) -> TestResult:
    """D'Agostino's test that data are no more lopsided than normal ones; of eight elements and more.

    Parameters
    ----------
    a : array_like; the sample
    axis : int or None; along which the observations are
    nan_policy : "propagate", "omit" or "raise"
    alternative : "two-sided", "less" or "greater"

    Returns
    -------
    TestResult with `statistic` and `pvalue`

    Examples
    --------
    >>> import linnet as ln
    >>> round(float(ln.stats.skewtest([2.0, 8.0, 0.0, 4.0, 1.0, 9.0, 9.0, 0.0]).statistic), 4)
    0.4463
    """
    side = _side(alternative)
    x, along = sample(a, axis, nan_policy)
    if x.shape[along] < 8:
        raise InputError(f"skewtest needs at least 8 elements, and there are {x.shape[along]}")
    return _judged(_skew_test, x.dtype, skew(x, along), float(x.shape[along]), side)


def _tail_test(tails: Any, n: Any, side: Any) -> Any:
    expected = 3.0 * (n - 1) / (n + 1)
    variance = 24.0 * n * (n - 2) * (n - 3) / ((n + 1) * (n + 1.0) * (n + 3) * (n + 5))
    x = (tails - expected) / np.sqrt(variance)
    root = 6.0 * (n * n - 5 * n + 2) / ((n + 7) * (n + 9))
    root = root * np.sqrt((6.0 * (n + 3) * (n + 5)) / (n * (n - 2) * (n - 3)))
    a = 6.0 + 8.0 / root * (2.0 / root + np.sqrt(1 + 4.0 / root**2))
    below = 1 + x * np.sqrt(2 / (a - 4.0))
    third = np.sign(below) * np.where(below == 0, np.nan, np.power((1 - 2.0 / a) / np.abs(below), 1 / 3.0))
    z = (1 - 2 / (9.0 * a) - third) / np.sqrt(2 / (9.0 * a))
    return z, _likely(special.ndtr, z, side)


def kurtosistest(
    a: Any, axis: Any = 0, nan_policy: str = "propagate", alternative: str = "two-sided"
) -> TestResult:
    """Anscombe's test that data have the tails of normal ones; of five elements and more.

    Parameters
    ----------
    a : array_like; the sample
    axis : int or None; along which the observations are
    nan_policy : "propagate", "omit" or "raise"
    alternative : "two-sided", "less" or "greater"

    Returns
    -------
    TestResult with `statistic` and `pvalue`

    Examples
    --------
    >>> import linnet as ln
    >>> bool(ln.stats.kurtosistest(ln.arange(40.0)).statistic < 0)
    True
    """
    side = _side(alternative)
    x, along = sample(a, axis, nan_policy)
    if x.shape[along] < 5:
        raise InputError(f"kurtosistest needs at least 5 elements, and there are {x.shape[along]}")
    return _judged(_tail_test, x.dtype, kurtosis(x, along, fisher=False), float(x.shape[along]), side)


def normaltest(a: Any, axis: Any = 0, nan_policy: str = "propagate") -> TestResult:
    """D'Agostino's and Pearson's test that data are normal: both tests above in one.

    Parameters
    ----------
    a : array_like; the sample
    axis : int or None; along which the observations are
    nan_policy : "propagate", "omit" or "raise"

    Returns
    -------
    TestResult with `statistic` and `pvalue`

    Examples
    --------
    >>> result = normaltest(np.arange(20.0))
    >>> result.statistic.compute().round(6), result.pvalue.compute().round(6)
    (np.float64(3.992116), np.float64(0.13587))
    """
    x, along = sample(a, axis, nan_policy)
    lopsided, tails = skewtest(x, along).statistic, kurtosistest(x, along).statistic
    both = apply(np.add, apply(np.multiply, lopsided, lopsided), apply(np.multiply, tails, tails))
    return _judged(_chi, x.dtype, both, 2.0)
