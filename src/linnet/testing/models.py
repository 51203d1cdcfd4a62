"""What models do on every engine: a suite to subclass::

    from linnet.testing.models import ModelSuite

    class TestMine(ModelSuite):
        @pytest.fixture
        def engine(self):
            return MyEngine()

The same fit has the same bits as on one thread of this process. It needs pytest and scikit-learn, and is
imported by tests only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from linnet import models
from linnet.arrays.namespace import names
from linnet.engines import Engine, Threads
from linnet.session import init

Found = dict[str, NDArray[Any]]


def fitted() -> Found:
    """Numbers of several fits, by name, on whatever engine is current."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((90, 4))
    counts = rng.poisson(np.exp(0.4 * table[:, 0])).astype(float)
    weight, offset = np.arange(90) % 3 + 0.5, np.linspace(-0.5, 0.5, 90)
    x = names()["asarray"](table, chunks=(25, 3))
    poisson = models.PoissonRegressor(alpha=0.1).fit(x, counts, weight, offset)
    classes = models.LogisticRegression().fit(x, np.minimum(counts, 2))
    clusters = models.KMeans(3, init=table[:3], n_init=1).fit(x)
    return {
        "poisson": poisson.coef_,
        "means": np.asarray(poisson.predict(x)),
        "classes": classes.coef_,
        "net": models.ElasticNet(0.05).fit(x, counts).coef_,
        "centres": clusters.cluster_centers_,
        "labels": np.asarray(clusters.labels_),
    }


class ModelSuite:
    """Subclass this with a fixture `engine`."""

    def test_fits_have_the_bits_of_one_thread(self, engine: Engine) -> None:
        with init(Threads(1, deterministic=True)):
            known = fitted()
        with init(engine):
            found = fitted()
        for name, numbers in known.items():
            np.testing.assert_array_equal(found[name], numbers, err_msg=name)

    def test_a_wide_hessian_stays_in_tiles(self, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
        from linnet.models import fitting, wide

        monkeypatch.setattr(fitting, "WIDE", 4)
        monkeypatch.setattr(wide, "_TILE", 5)
        rng = np.random.default_rng(1)
        table = rng.standard_normal((40, 8))
        counts = rng.poisson(np.exp(0.3 * table[:, 0])).astype(float)
        with init(Threads(1, deterministic=True)):
            known = models.PoissonRegressor(alpha=0.1).fit(names()["asarray"](table, chunks=20), counts)
        with init(engine):
            found = models.PoissonRegressor(alpha=0.1).fit(names()["asarray"](table, chunks=20), counts)
        # A plan may add the tiles of a product in another order.
        np.testing.assert_allclose(found.coef_, known.coef_, rtol=1e-11, atol=1e-13)
