"""Random arrays: the right distributions, and the same numbers however they are made."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import linnet as ln
from linnet.arrays.elements.core import wrap

pytestmark = pytest.mark.slow

COUNT = 20_000
CONTINUOUS = {
    "random": ((), stats.uniform()),
    "standard_normal": ((), stats.norm()),
    "standard_exponential": ((), stats.expon()),
    "standard_gamma": ((2.5,), stats.gamma(2.5)),
    "normal": ((1.0, 2.0), stats.norm(1, 2)),
    "uniform": ((-1.0, 3.0), stats.uniform(-1, 4)),
    "exponential": ((2.0,), stats.expon(scale=2)),
    "gamma": ((2.0, 3.0), stats.gamma(2, scale=3)),
    "beta": ((2.0, 5.0), stats.beta(2, 5)),
    "chisquare": ((4.0,), stats.chi2(4)),
    "f": ((5.0, 12.0), stats.f(5, 12)),
    "gumbel": ((1.0, 2.0), stats.gumbel_r(1, 2)),
    "laplace": ((1.0, 2.0), stats.laplace(1, 2)),
    "logistic": ((1.0, 2.0), stats.logistic(1, 2)),
    "lognormal": ((0.5, 0.4), stats.lognorm(0.4, scale=np.exp(0.5))),
    "noncentral_chisquare": ((3.0, 2.0), stats.ncx2(3, 2)),
    "pareto": ((5.0,), stats.pareto(5, loc=-1)),
    "power": ((3.0,), stats.powerlaw(3)),
    "rayleigh": ((2.0,), stats.rayleigh(scale=2)),
    "standard_cauchy": ((), stats.cauchy()),
    "standard_t": ((7.0,), stats.t(7)),
    "triangular": ((0.0, 1.0, 4.0), stats.triang(0.25, 0, 4)),
    "vonmises": ((0.5, 2.0), stats.vonmises(2.0, loc=0.5)),
    "wald": ((2.0, 3.0), stats.invgauss(2 / 3, scale=3)),
    "weibull": ((1.5,), stats.weibull_min(1.5)),
}
DISCRETE = {
    "binomial": ((10, 0.3), stats.binom(10, 0.3)),
    "geometric": ((0.2,), stats.geom(0.2)),
    "hypergeometric": ((15, 10, 8), stats.hypergeom(25, 15, 8)),
    "integers": ((3, 17), stats.randint(3, 17)),
    "logseries": ((0.6,), stats.logser(0.6)),
    "negative_binomial": ((4, 0.4), stats.nbinom(4, 0.4)),
    "poisson": ((3.5,), stats.poisson(3.5)),
    "zipf": ((4.5,), stats.zipf(4.5)),
}


def rng(seed=12):
    return ln.random.default_rng(seed)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_distributions(name):
    parameters, expected = CONTINUOUS[name]
    drawn = getattr(rng(), name)(*parameters, size=COUNT, chunks=4096).compute()
    assert drawn.dtype == np.float64
    assert stats.kstest(drawn, expected.cdf).pvalue > 1e-3


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_distributions(name):
    parameters, expected = DISCRETE[name]
    drawn = getattr(rng(), name)(*parameters, size=COUNT, chunks=4096).compute()
    assert drawn.dtype == np.int64
    values = np.arange(drawn.min(), drawn.max() + 1)
    seen = (drawn[:, None] <= values).mean(axis=0)
    assert np.abs(seen - expected.cdf(values)).max() < 1.63 / np.sqrt(COUNT)  # Kolmogorov's bound at 1%
    assert abs(drawn.mean() - expected.mean()) < 5 * expected.std() / np.sqrt(COUNT)


def test_neighbouring_blocks_and_arrays_are_independent():
    one = rng()
    x, y = one.standard_normal(200_000).compute(), one.standard_normal(200_000).compute()
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.01
    half = 65_536
    assert abs(np.corrcoef(x[:half], x[half : 2 * half])[0, 1]) < 0.02


@pytest.mark.parametrize("name", ["random", "standard_normal", "integers", "poisson", "gamma"])
@pytest.mark.parametrize("shape", [(70_000,), (300, 400), (5, 90, 200)])
def test_the_same_numbers_however_it_is_cut(name, shape):
    parameters = (CONTINUOUS | DISCRETE)[name][0]
    whole = getattr(rng(), name)(*parameters, size=shape).compute()
    uneven = tuple(max(1, n // 3 + 1) for n in shape)
    for workers, chunks in ((1, uneven), (2, uneven), (2, -1)):
        with ln.init(workers=workers):
            assert np.array_equal(
                getattr(rng(), name)(*parameters, size=shape, chunks=chunks).compute(), whole
            )


def test_parameters_may_be_arrays():
    means = np.arange(300.0)[:, None] * 10
    deviations = np.linspace(0.1, 2, 400)
    expected = rng().normal(means, deviations).compute()
    assert expected.shape == (300, 400)
    assert abs(((expected - means) / deviations).std() - 1) < 0.02
    lazily = rng().normal(ln.asarray(means, chunks=7), ln.asarray(deviations, chunks=11) * 1, chunks=100)
    assert np.array_equal(lazily.compute(), expected)
    assert rng().normal(means, 1, size=(2, 300, 5)).shape == (2, 300, 5)
    with pytest.raises(ValueError, match="shape mismatch|do not fit"):
        rng().normal(means, 1, size=(299, 5))


class TestIntegers:
    @pytest.mark.parametrize("dtype", ["i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?"])
    def test_dtypes(self, dtype):
        high = 2 if dtype == "?" else 100
        drawn = rng().integers(0, high, 10_000, dtype=dtype, chunks=999).compute()
        assert drawn.dtype == np.dtype(dtype)
        assert (drawn.min(), drawn.max()) == (0, high - 1)

    def test_bounds(self):
        assert set(rng().integers(3, size=1000, chunks=100).compute().tolist()) == {0, 1, 2}
        assert set(rng().integers(1, 3, 1000, endpoint=True).compute().tolist()) == {1, 2, 3}
        lows = np.array([0, 10, 20])
        drawn = rng().integers(lows, lows + 2, (500, 3)).compute()
        assert ((drawn >= lows) & (drawn < lows + 2)).all()

    @pytest.mark.parametrize("arguments", [(5, 5), (5, 2), (0, 300, 10, np.uint8), (-1, 3, 10, np.uint64)])
    def test_what_numpy_refuses(self, arguments):
        size = arguments if len(arguments) > 2 else (*arguments, 10)
        with pytest.raises(ValueError, match="high|low"):
            np.random.default_rng(0).integers(*size)
        with pytest.raises(ValueError, match="high|low"):
            rng().integers(*size)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("normal", (0, -1)),
        ("exponential", (-1,)),
        ("binomial", (5, 1.5)),
        ("poisson", (-1,)),
        ("beta", (0, 1)),
    ],
)
def test_bad_parameters_are_refused_at_the_call(name, parameters):
    with pytest.raises(ValueError, match=".") as theirs:
        getattr(np.random.default_rng(0), name)(*parameters, 3)
    with pytest.raises(ValueError, match=".") as ours:
        getattr(rng(), name)(*parameters, 3)
    assert str(ours.value) == str(theirs.value)
    with pytest.raises(ValueError, match="negative"):
        rng().random(-1)
    with pytest.raises(TypeError, match="unexpected"):
        rng().poisson(1.0, mean=2)


@pytest.mark.parametrize("method", ["random", "standard_normal", "standard_exponential"])
def test_single_precision_and_places(method):
    assert getattr(rng(), method)(1000, dtype=np.float32, chunks=100).compute().dtype == np.float32
    with pytest.raises(TypeError):
        getattr(rng(), method)(10, dtype=np.int64)
    place = ln.zeros(1000)
    assert getattr(rng(), method)(1000, out=place) is place
    assert np.array_equal(place.compute(), getattr(rng(), method)(1000).compute())


class TestOrder:
    def test_choice(self):
        population = np.array([2.0, 3.0, 5.0, 7.0])
        drawn = rng().choice(ln.asarray(population, chunks=1), 4000, p=[0.1, 0.2, 0.3, 0.4]).compute()
        seen = [(drawn == value).mean() for value in population]
        assert np.allclose(seen, [0.1, 0.2, 0.3, 0.4], atol=0.03)
        assert sorted(rng().choice(10, 10, replace=False).compute()) == list(range(10))
        assert rng().choice(5, (2, 3), chunks=1).shape == (2, 3)
        assert set(rng().choice(5, 300).compute().tolist()) == set(range(5))
        rows = rng().choice(ln.asarray(np.eye(4), chunks=1), 6, axis=0).compute()
        assert rows.shape == (6, 4)
        assert (rows.sum(axis=1) == 1).all()
        with pytest.raises(ValueError, match="larger sample"):
            rng().choice(3, 5, replace=False)
        with pytest.raises(ValueError, match="sum to 1"):
            rng().choice(3, 5, p=[0.5, 0.1, 0.1])

    def test_permutations(self):
        values = np.arange(60).reshape(20, 3)
        x = ln.asarray(values, chunks=4)
        assert sorted(rng().permutation(50).compute()) == list(range(50))
        moved = rng().permutation(x).compute()
        assert not np.array_equal(moved, values)
        assert np.array_equal(moved[np.argsort(moved[:, 0])], values)
        across = rng().permutation(x, axis=1).compute()
        assert np.array_equal(np.sort(across, axis=1), values)
        each = rng().permuted(x, axis=0).compute()
        assert np.array_equal(np.sort(each, axis=0), values)
        assert not np.array_equal(each - each[:, :1], np.tile([0, 1, 2], (20, 1)))
        assert sorted(rng().permuted(x).compute().ravel()) == list(range(60))
        before = wrap(x.__node__)
        rng().shuffle(x)
        assert np.array_equal(x.compute(), rng().permutation(before).compute())
        with pytest.raises(TypeError, match="permutation"):
            rng().shuffle([1, 2])


class TestSeeds:
    def test_equal_seeds_give_equal_arrays(self):
        for seed in (5, [1, 2, 3], np.random.SeedSequence(4), (2**70, 1)):
            assert np.array_equal(rng(seed).random(10).compute(), rng(seed).random(10).compute())
        assert not np.array_equal(rng(1).random(10).compute(), rng(2).random(10).compute())
        assert not np.array_equal(rng(None).random(10).compute(), rng(None).random(10).compute())

    def test_generators_of_numpy_are_seeds(self):
        draws = [rng(np.random.default_rng(3)).random(5).compute().tolist() for _ in range(2)]
        assert draws[0] == draws[1]
        ours = rng()
        assert ln.random.default_rng(ours) is ours

    def test_an_array_keeps_its_numbers(self):
        one = rng()
        x = one.random(100, chunks=7)
        first = x.compute()
        one.random(5)
        assert np.array_equal(x.compute(), first)
        assert not np.array_equal(one.random(100).compute(), first)

    def test_children_are_independent(self):
        children = rng().spawn(3)
        drawn = [child.random(4).compute().tolist() for child in children]
        assert len({tuple(each) for each in drawn}) == 3
        assert drawn == [child.random(4).compute().tolist() for child in rng().spawn(3)]

    @pytest.mark.parametrize("seed", [-1, 1.5, "seed"])
    def test_bad_seeds(self, seed):
        with pytest.raises((ValueError, TypeError)):
            rng(seed)


def test_vectors_that_belong_together():
    cov = np.array([[2.0, 0.6], [0.6, 1.0]])
    drawn = rng().multivariate_normal([1.0, -1.0], cov, 20_000, chunks=3000).compute()
    assert np.allclose(drawn.mean(axis=0), [1, -1], atol=0.05)
    assert np.allclose(np.cov(drawn.T), cov, atol=0.06)
    with pytest.raises(ValueError, match="square"):
        rng().multivariate_normal([1.0, -1.0], np.ones(2), 3)
    parts = rng().dirichlet([1.0, 2.0, 3.0], 20_000, chunks=1000).compute()
    assert np.allclose(parts.sum(axis=1), 1)
    assert np.allclose(parts.mean(axis=0), [1 / 6, 2 / 6, 3 / 6], atol=0.01)


def test_no_size_is_a_scalar_and_bytes_are_bytes():
    drawn = rng().random().compute()
    assert isinstance(drawn, np.float64)
    assert len(rng().bytes(10)) == 10
