"""Multinomial and multivariate hypergeometric counts: their sums, means and covariances, NumPy's errors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linnet as ln

CHANCES = np.array([0.5, 0.3, 0.15, 0.05])
COLORS = np.array([10, 20, 0, 30])


def test_counts_of_results() -> None:
    x = ln.random.default_rng(3).multinomial(20, CHANCES, size=40_000, chunks=7_000)
    found = x.compute()
    assert (found.shape, found.dtype) == ((40_000, 4), np.int64)
    assert (found.sum(axis=1) == 20).all()
    np.testing.assert_allclose(found.mean(axis=0), 20 * CHANCES, atol=0.06)
    want = 20 * (np.diag(CHANCES) - np.outer(CHANCES, CHANCES))
    np.testing.assert_allclose(np.cov(found.T), want, atol=0.15)


def test_counts_of_colours() -> None:
    rng = ln.random.default_rng(4)
    found = rng.multivariate_hypergeometric(COLORS, 12, size=(200, 200)).compute().reshape(-1, 4)
    assert (found.sum(axis=1) == 12).all()
    assert (found <= COLORS).all()
    share = COLORS / COLORS.sum()
    np.testing.assert_allclose(found.mean(axis=0), 12 * share, atol=0.06)
    want = 12 * (60 - 12) / (60 - 1) * (np.diag(share) - np.outer(share, share))
    np.testing.assert_allclose(np.cov(found.T), want, atol=0.15)


@pytest.mark.parametrize(
    ("n", "pvals", "size"),
    [
        (5, [1.0], None),
        ([3, 4], [0.2, 0.8], None),
        ([3, 4], [[0.2, 0.8], [0.5, 0.5]], (7, 2)),
        (0, CHANCES, 3),
    ],
)
def test_shapes_are_numpys(n: Any, pvals: Any, size: Any) -> None:
    found = ln.random.default_rng(0).multinomial(n, pvals, size)
    want = np.random.default_rng(0).multinomial(n, pvals, size)
    assert found.shape == want.shape
    assert (found.sum(axis=-1).compute() == want.sum(axis=-1)).all()


def test_the_trials_may_be_an_array_in_tiles() -> None:
    trials = np.arange(1000)
    found = ln.random.default_rng(0).multinomial(ln.asarray(trials, chunks=300), CHANCES)
    assert (found.sum(axis=-1).compute() == trials).all()


def test_the_last_result_gets_what_is_left() -> None:
    for pvals in ([0.1, 0.1], [0.1, 0.9999999]):
        found = ln.random.default_rng(1).multinomial(10, pvals, size=20_000).compute()
        np.testing.assert_allclose(found.mean(axis=0), [1, 9], atol=0.05)


def test_the_same_seed_gives_the_same_counts() -> None:
    one, other = (ln.random.default_rng(5).multinomial(9, CHANCES, 1000, chunks=c) for c in (1000, 77))
    assert np.array_equal(one.compute(), other.compute())


@pytest.mark.parametrize(
    "arguments", [(5, [0.9, 0.9, 0.1]), (-1, CHANCES), (5, []), (5, 0.5), (5, [-0.1, 1.1])]
)
def test_what_is_no_chance_is_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(ValueError, match=r"pvals|n < 0"):
        ln.random.default_rng(0).multinomial(*arguments)


def test_more_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match="nsample"):
        ln.random.default_rng(0).multivariate_hypergeometric(COLORS, 61)
