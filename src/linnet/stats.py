"""Moments and tests of hypotheses under the names of `scipy.stats`, tile by tile."""

from linnet.arrays.functions.hypothesis_tests import (
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
from linnet.arrays.functions.moments import kurtosis, moment, skew

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
