"""Derivatives are expressions as all others, and run on every engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import linnet as ln


def network(x: Any, w: Any, filters: Any) -> Any:
    def block(x: Any, w: Any) -> Any:
        return ln.tanh(x @ w)

    for _ in range(2):
        x = ln.checkpoint(block)(x, w)
    x = ln.maximum(ln.convolve(x, filters, "same", strides=2), 0)
    gram = x @ x.T + 3 * ln.eye(x.shape[0])
    factor = ln.linalg.cholesky(gram)
    return ln.sum(ln.sort(factor, axis=0) ** 2) + ln.var(x[1:, ::2]) + ln.logaddexp.reduce(x[0])


def gradients() -> Any:
    rng = np.random.default_rng(3)
    x, w, filters = (rng.normal(size=shape) for shape in ((12, 12), (12, 12), (3, 3)))
    found = ln.value_and_grad(network, (0, 1, 2))(ln.asarray(x, chunks=5), ln.asarray(w, chunks=6), filters)
    return ln.compute(found)


@pytest.mark.slow
def test_a_cluster_gives_the_same():
    value, slopes = gradients()
    with ln.init(engine="simulated", cluster=ln.Cluster(nodes=3)):  # sums go another way there
        other, others = gradients()
    np.testing.assert_allclose(other, value, rtol=1e-12)
    for one, again in zip(slopes, others, strict=True):
        np.testing.assert_allclose(again, one, rtol=1e-11, atol=1e-13)


@pytest.mark.slow
def test_stateless_workers_give_equal_bits():
    value, slopes = gradients()
    with ln.init("stateless", 2, launcher="threads"):
        other, others = gradients()
    assert value == other
    for one, again in zip(slopes, others, strict=True):
        np.testing.assert_array_equal(one, again)
