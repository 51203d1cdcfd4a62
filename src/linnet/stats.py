"""Moments and tests of hypotheses under the names of `scipy.stats`, tile by tile."""

from linnet.arrays.moments import kurtosis, moment, skew
from linnet.arrays.significance import (
    TestResult,
    chisquare,
    f_oneway,
    kurtosistest,
    normaltest,
    power_divergence,
    skewtest,
    ttest_1samp,
    ttest_ind,
    ttest_rel,
)

__all__ = [
    "TestResult",
    "chisquare",
    "f_oneway",
    "kurtosis",
    "kurtosistest",
    "moment",
    "normaltest",
    "power_divergence",
    "skew",
    "skewtest",
    "ttest_1samp",
    "ttest_ind",
    "ttest_rel",
]
